/**
 * The actions that the sandbox supports, by type. Each action is decoded by a schema of exactly the members that its
 * handler reads, and executed.
 */
import type { ActionType } from "@trigate/domain/actions/ActionCatalog"
import type { ActionOf } from "@trigate/domain/actions/ActionSchemas"
import { actionSchemas } from "@trigate/domain/actions/ActionSchemas"
import type { AnyCodec } from "@trigate/domain/operations/Operation"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as StrictDecoder from "../internal/StrictDecoder.ts"
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

const modifyOne = (context: ActionContext, { a, oid, order }: ActionOf<"modify">): ActionDecision => {
  const [status] = Orders.modifyAll(context.venue, context.user, [{ oid, order }], a === true)
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

/** Decodes an action of one type, or returns why the sandbox refuses it. */
type Reader = StrictDecoder.StrictDecoder<Executable>

/**
 * Makes the reader of an action. `schema` declares the members that `handler` reads; `declared` declares all members of
 * the action, if the handler does not read all of them.
 */
const play = <S extends AnyCodec>(
  schema: S,
  handler: (context: ActionContext, action: S["Type"]) => ActionDecision,
  declared: AnyCodec = schema
): Reader => {
  const decode = StrictDecoder.make(schema, declared)
  return (action) => Result.map(decode(action), (decoded): Executable => (context) => handler(context, decoded))
}

/** `vaultModify` without the setting `alwaysCloseOnWithdraw`, of which `null` means no change. */
const VaultModify = Schema.Struct({ ...actionSchemas.vaultModify.fields, alwaysCloseOnWithdraw: Schema.Null })

/**
 * `tokenDelegate` in the form that the venue accepts: with the member `hyperliquidChain`, which the venue's
 * documentation calls `venueChain`.
 */
const WireTokenDelegate = actionSchemas.tokenDelegate.check(
  Schema.makeFilter(({ hyperliquidChain }) => hyperliquidChain === undefined ? "Expected hyperliquidChain" : undefined)
)

const handlers = {
  order: play(
    actionSchemas.order,
    (context, action) =>
      ofLegs("order", Orders.placeAll(context.venue, context.user, action, StakeActions.undelegated(context)))
  ),
  cancel: play(
    actionSchemas.cancel,
    ({ user, venue }, action) => ofLegs("cancel", Orders.cancelAll(venue, user, action))
  ),
  cancelByCloid: play(
    actionSchemas.cancelByCloid,
    ({ user, venue }, action) => ofLegs("cancel", Orders.cancelAllByCloid(venue, user, action))
  ),
  modify: play(actionSchemas.modify, modifyOne),
  batchModify: play(
    actionSchemas.batchModify,
    ({ user, venue }, { a, modifies }) => ofLegs("order", Orders.modifyAll(venue, user, modifies, a === true))
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
  vaultModify: play(VaultModify, Vaults.modify, actionSchemas.vaultModify),
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

/** Decodes an action, or returns why the sandbox refuses it, as a text to append to the venue's text. */
export const read = (type: string, action: unknown): Result.Result<Executable, string> => {
  const reader = readers.get(type)
  return reader === undefined
    ? Result.fail(`: the sandbox does not support ${JSON.stringify(type)}`)
    : Result.mapError(reader(action), (unread) => StrictDecoder.formatUnread(unread, type))
}
