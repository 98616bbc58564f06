/** The actions that the sandbox supports, by type. Each action is decoded by the schema of its type and executed. */
import type { ActionType } from "@trigate/domain/actions/ActionCatalog"
import type { ActionOf } from "@trigate/domain/actions/ActionSchemas"
import { actionSchemas } from "@trigate/domain/actions/ActionSchemas"
import type { AnyCodec } from "@trigate/domain/operations/Operation"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AccountActions from "./AccountActions.ts"
import type { ActionContext, ActionDecision } from "./ActionContext.ts"
import { actor, done, refuse, toVenueTime } from "./ActionContext.ts"
import * as MarginActions from "./MarginActions.ts"
import * as Orders from "./Orders.ts"
import * as StakeActions from "./StakeActions.ts"
import * as SubAccounts from "./SubAccounts.ts"
import * as Transfers from "./Transfers.ts"
import * as Twaps from "./Twaps.ts"
import * as Vaults from "./Vaults.ts"
import * as Words from "./Words.ts"

/** Executes an action that was already decoded. */
export type Executable = (context: ActionContext) => ActionDecision

const ofLegs = (type: string, statuses: ReadonlyArray<Orders.LegStatus>): ActionDecision =>
  Result.succeed({ type, data: { statuses } })

const scheduleCancel = (context: ActionContext, { time }: ActionOf<"scheduleCancel">): ActionDecision => {
  const account = actor(context)
  if (time === undefined || time === null) {
    account.cancelAt = undefined
    return done
  }
  if (time < context.sentAt + 5_000) return refuse(Words.cancelTooEarly)
  account.cancelAt = toVenueTime(context, time)
  return done
}

const modifyOne = (context: ActionContext, { oid, order }: ActionOf<"modify">): ActionDecision => {
  const [status] = Orders.modifyAll(context.venue, context.user, [{ oid, order }])
  return typeof status === "object" && "error" in status ? refuse(status.error) : done
}

const spotUser = (context: ActionContext, action: ActionOf<"spotUser">): ActionDecision =>
  "classTransfer" in action
    ? Transfers.classTransfer(context, actor(context), BigInt(action.classTransfer.usdc), action.classTransfer.toPerp)
    : AccountActions.toggleDusting(context, action.toggleSpotDusting.optOut)

const agentSendAsset = (context: ActionContext, action: ActionOf<"agentSendAsset">): ActionDecision =>
  action.destination.toLowerCase() === context.user
    ? Transfers.sendAsset(context, action)
    : refuse(Words.insufficientTransfer)

/** Decodes an action of one type; `None` if the action does not have the shape of the type. */
type Reader = (action: unknown) => Option.Option<Executable>

const play = <S extends AnyCodec>(
  schema: S,
  handler: (context: ActionContext, action: S["Type"]) => ActionDecision
): Reader => {
  const decode = Schema.decodeUnknownOption(schema)
  return (action) => Option.map(decode(action), (decoded): Executable => (context) => handler(context, decoded))
}

/**
 * `tokenDelegate` in the form that the venue accepts: with the member `hyperliquidChain`, which the venue's
 * documentation calls `venueChain`.
 */
const WireTokenDelegate = actionSchemas.tokenDelegate.check(
  Schema.makeFilter(({ hyperliquidChain }) => hyperliquidChain === undefined ? "Expected hyperliquidChain" : undefined)
)

const handlers = {
  order: play(actionSchemas.order, ({ user, venue }, action) => ofLegs("order", Orders.placeAll(venue, user, action))),
  cancel: play(
    actionSchemas.cancel,
    ({ user, venue }, { cancels }) => ofLegs("cancel", Orders.cancelAll(venue, user, cancels))
  ),
  cancelByCloid: play(
    actionSchemas.cancelByCloid,
    ({ user, venue }, { cancels }) => ofLegs("cancel", Orders.cancelAllByCloid(venue, user, cancels))
  ),
  modify: play(actionSchemas.modify, modifyOne),
  batchModify: play(
    actionSchemas.batchModify,
    ({ user, venue }, { modifies }) => ofLegs("order", Orders.modifyAll(venue, user, modifies))
  ),
  scheduleCancel: play(actionSchemas.scheduleCancel, scheduleCancel),
  twapOrder: play(
    actionSchemas.twapOrder,
    ({ user, venue }, action) =>
      Result.succeed({ type: "twapOrder", data: { status: Twaps.placeTwap(venue, user, action) } })
  ),
  twapCancel: play(
    actionSchemas.twapCancel,
    ({ user, venue }, action) =>
      Result.succeed({ type: "twapCancel", data: { status: Twaps.cancelTwap(venue, user, action) } })
  ),
  noop: play(actionSchemas.noop, () => done),
  updateLeverage: play(actionSchemas.updateLeverage, MarginActions.updateLeverage),
  updateIsolatedMargin: play(actionSchemas.updateIsolatedMargin, MarginActions.updateIsolatedMargin),
  topUpIsolatedOnlyMargin: play(actionSchemas.topUpIsolatedOnlyMargin, MarginActions.topUp),
  usdSend: play(actionSchemas.usdSend, Transfers.usdSend),
  spotSend: play(actionSchemas.spotSend, Transfers.spotSend),
  sendAsset: play(actionSchemas.sendAsset, Transfers.sendAsset),
  withdraw3: play(actionSchemas.withdraw3, Transfers.withdraw),
  usdClassTransfer: play(actionSchemas.usdClassTransfer, Transfers.usdClassTransfer),
  cDeposit: play(actionSchemas.cDeposit, StakeActions.stake),
  cWithdraw: play(actionSchemas.cWithdraw, StakeActions.unstake),
  approveAgent: play(actionSchemas.approveAgent, AccountActions.approveAgent),
  approveBuilderFee: play(actionSchemas.approveBuilderFee, AccountActions.approveBuilderFee),
  convertToMultiSigUser: play(actionSchemas.convertToMultiSigUser, AccountActions.convertToMultiSig),
  sendToEvmWithData: play(actionSchemas.sendToEvmWithData, Transfers.sendToEvm),
  linkStakingUser: play(actionSchemas.linkStakingUser, AccountActions.linkStaking),
  stakingLinkDisableTradingUser: play(actionSchemas.stakingLinkDisableTradingUser, AccountActions.unlinkStaking),
  userDexAbstraction: play(
    actionSchemas.userDexAbstraction,
    (context, { enabled, user }) => AccountActions.switchAbstraction(context, "dexAbstraction", enabled, user)
  ),
  userPortfolioMargin: play(
    actionSchemas.userPortfolioMargin,
    (context, { enabled, user }) => AccountActions.switchAbstraction(context, "portfolioMargin", enabled, user)
  ),
  userSetAbstraction: play(
    actionSchemas.userSetAbstraction,
    (context, { abstraction, user }) => AccountActions.setAbstraction(context, abstraction, user)
  ),
  agentEnableDexAbstraction: play(
    actionSchemas.agentEnableDexAbstraction,
    (context) => AccountActions.switchAbstraction(context, "dexAbstraction")
  ),
  agentSendAsset: play(actionSchemas.agentSendAsset, agentSendAsset),
  agentSetAbstraction: play(
    actionSchemas.agentSetAbstraction,
    (context, { abstraction }) => AccountActions.setAbstraction(context, abstraction)
  ),
  createSubAccount: play(actionSchemas.createSubAccount, SubAccounts.create),
  subAccountModify: play(actionSchemas.subAccountModify, SubAccounts.rename),
  subAccountTransfer: play(actionSchemas.subAccountTransfer, SubAccounts.transfer),
  subAccountSpotTransfer: play(actionSchemas.subAccountSpotTransfer, SubAccounts.spotTransfer),
  createVault: play(actionSchemas.createVault, Vaults.create),
  vaultModify: play(actionSchemas.vaultModify, Vaults.modify),
  vaultTransfer: play(actionSchemas.vaultTransfer, Vaults.transfer),
  vaultDistribute: play(actionSchemas.vaultDistribute, Vaults.distribute),
  registerReferrer: play(actionSchemas.registerReferrer, AccountActions.registerReferrer),
  setReferrer: play(actionSchemas.setReferrer, AccountActions.setReferrer),
  claimRewards: play(actionSchemas.claimRewards, AccountActions.claimRewards),
  setDisplayName: play(actionSchemas.setDisplayName, AccountActions.setDisplayName),
  reserveRequestWeight: play(actionSchemas.reserveRequestWeight, AccountActions.reserveRequests),
  spotUser: play(actionSchemas.spotUser, spotUser),
  tokenDelegate: play(WireTokenDelegate, StakeActions.delegate),
  CSignerAction: play(actionSchemas.CSignerAction, StakeActions.setJailed),
  evmUserModify: play(actionSchemas.evmUserModify, AccountActions.selectBlocks)
} satisfies { readonly [Type in ActionType]?: Reader }

const readers: ReadonlyMap<string, Reader> = new Map(Object.entries(handlers))

/** The types of actions that this module executes. */
export const playedTypes: ReadonlySet<string> = new Set(readers.keys())

/** Decodes an action of a type that this module executes; `None` for any other type or shape. */
export const read = (type: string, action: unknown): Option.Option<Executable> =>
  readers.get(type)?.(action) ?? Option.none()
