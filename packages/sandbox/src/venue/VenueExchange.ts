/**
 * The venue's `POST /exchange`: decodes a signed action, decides whether it is executed, executes it, and responds with
 * the venue's texts.
 */
import { type ActionType, legCount, MultiSig, type SentAction, SignedEnvelope } from "@trigate/domain/actions/Action"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { type Address, lowerCase } from "@trigate/domain/encoding/Encoding"
import * as Operation from "@trigate/domain/operations/Operation"
import { actionSchemas } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as CanonicalAction from "@trigate/signing/unstable/actions/CanonicalAction"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HashMap from "effect/HashMap"
import * as MutableRef from "effect/MutableRef"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as StrictDecoder from "../internal/StrictDecoder.ts"
import * as AccountActions from "./AccountActions.ts"
import { actor, done, refuse, toVenueTime } from "./AccountActions.ts"
import type { ActionContext, ActionDecision, ActionResponse, Handler } from "./AccountActions.ts"
import { printUsd } from "./Assets.ts"
import * as Orders from "./Orders.ts"
import * as OutcomeActions from "./OutcomeActions.ts"
import * as PerpDeployers from "./PerpDeployers.ts"
import * as Reserves from "./Reserves.ts"
import * as SpotDeployers from "./SpotDeployers.ts"
import type { TradingControls } from "./TradingControls.ts"
import { findAccount } from "./TradingState.ts"
import * as Transfers from "./Transfers.ts"
import * as Validators from "./Validators.ts"
import { nextHash, type Venue } from "./Venue.ts"
import type { InfoControls } from "./VenueInfo.ts"
import * as Words from "./VenueRefusal.ts"
import { accountOrNew, countRequests, findAgentUser, notJson } from "./VenueState.ts"
import type { VenueControls, VenueState } from "./VenueState.ts"

/** Executes an action that was already decoded. */
export type Executable = (context: ActionContext) => ActionDecision

const ofLegs = (type: string, statuses: ReadonlyArray<Orders.LegStatus>): ActionDecision =>
  Result.succeed({ type, data: { statuses } })

const ofTwap = (type: string, status: Orders.TwapStatus): ActionDecision => Result.succeed({ type, data: { status } })

/** The volume in whole dollars that an account needs for a scheduled cancellation. */
const scheduledCancelVolume = 1_000_000

const scheduleCancel: Handler<"scheduleCancel"> = (context, { time }) => {
  const account = actor(context)
  const untraded = AccountActions.volumeRefusal(account, "set scheduled cancel time", scheduledCancelVolume)
  if (untraded !== undefined) return refuse(untraded)
  if (time === undefined || time === null) {
    account.cancelAt = undefined
    return done
  }
  if (time < context.sentAt + 5_000) return refuse(Words.cancelTooEarly)
  account.cancelAt = toVenueTime(context, time)
  return done
}

const modifyOne: Handler<"modify"> = (context, { a, oid, order }) => {
  const [status] = Orders.modifyAll(context, [{ oid, order }], a === true)
  return typeof status === "object" && "error" in status ? refuse(status.error) : done
}

const spotUser: Handler<"spotUser"> = (context, action) =>
  "classTransfer" in action
    ? Transfers.classTransfer(context, actor(context), BigInt(action.classTransfer.usdc), action.classTransfer.toPerp)
    : AccountActions.toggleDusting(context, action.toggleSpotDusting.optOut)

const agentSendAsset: Handler<"agentSendAsset"> = (context, action) =>
  action.destination.toLowerCase() === context.user ||
    AccountActions.findSubAccount(context, action.destination) !== undefined
    ? Transfers.sendAsset(context, action)
    : refuse(Words.agentDestination)

/** Decodes an action of one type, or returns why the sandbox refuses it. */
type Reader = StrictDecoder.StrictDecoder<Executable>

/** Makes the reader of an action. `schema` declares the members that `handler` reads. */
const reader = <S extends Operation.AnyCodec>(
  schema: S,
  handler: (context: ActionContext, action: S["Type"]) => ActionDecision
): Reader => {
  const decode = StrictDecoder.make(schema)
  return (action) => Result.map(decode(action), (decoded): Executable => (context) => handler(context, decoded))
}

/** Makes the entry of an action whose handler reads all its members. */
const play = <Type extends ActionType>(type: Type, handler: Handler<Type>) =>
  [type, reader(actionSchemas[type], handler)] as const

/**
 * `tokenDelegate` in the form that the venue accepts: with the member `hyperliquidChain`, which the venue's
 * documentation calls `venueChain`.
 */
const WireTokenDelegate = actionSchemas.tokenDelegate.check(
  Schema.makeFilter(({ hyperliquidChain }) => hyperliquidChain === undefined ? "Expected hyperliquidChain" : undefined)
)

const readers: ReadonlyMap<string, Reader> = new Map<ActionType, Reader>([
  play("order", (context, action) => ofLegs("order", Orders.placeAll(context, action))),
  play("cancel", (context, action) => ofLegs("cancel", Orders.cancelAll(context, action))),
  play("cancelByCloid", (context, action) => ofLegs("cancel", Orders.cancelAllByCloid(context, action))),
  play("modify", modifyOne),
  play("batchModify", (context, { a, modifies }) => ofLegs("order", Orders.modifyAll(context, modifies, a === true))),
  play("scheduleCancel", scheduleCancel),
  play("twapOrder", (context, action) => ofTwap("twapOrder", Orders.placeTwap(context, action))),
  play("twapCancel", (context, action) => ofTwap("twapCancel", Orders.cancelTwap(context, action))),
  play("trailingStop", (context, action) => ofLegs("trailingStop", [Orders.placeTrailing(context, action)])),
  play("noop", () => done),
  play("updateLeverage", AccountActions.updateLeverage),
  play("updateIsolatedMargin", AccountActions.updateIsolatedMargin),
  play("topUpIsolatedOnlyMargin", AccountActions.topUp),
  play("usdSend", Transfers.usdSend),
  play("spotSend", Transfers.spotSend),
  play("sendAsset", Transfers.sendAsset),
  play("withdraw3", Transfers.withdraw),
  play("usdClassTransfer", Transfers.usdClassTransfer),
  play("cDeposit", AccountActions.stake),
  play("cWithdraw", AccountActions.unstake),
  play("approveAgent", AccountActions.approveAgent),
  play("approveBuilderFee", AccountActions.approveBuilderFee),
  play("convertToMultiSigUser", AccountActions.convertToMultiSig),
  play("linkStakingUser", AccountActions.linkStaking),
  play("stakingLinkDisableTradingUser", AccountActions.unlinkStaking),
  play("userDexAbstraction", (context, action) => AccountActions.switchAbstraction(context, "dexAbstraction", action)),
  play(
    "userPortfolioMargin",
    (context, action) => AccountActions.switchAbstraction(context, "portfolioMargin", action)
  ),
  play("userSetAbstraction", AccountActions.setAbstraction),
  play("agentEnableDexAbstraction", (context) => AccountActions.setAgentAbstraction(context, "dexAbstraction")),
  play("agentSendAsset", agentSendAsset),
  play("agentSetAbstraction", (context, { abstraction }) => AccountActions.setAgentAbstraction(context, abstraction)),
  play("createSubAccount", AccountActions.create),
  play("subAccountModify", AccountActions.rename),
  play("subAccountTransfer", AccountActions.transfer),
  play("subAccountSpotTransfer", AccountActions.spotTransfer),
  play("createVault", Transfers.create),
  play("vaultModify", Transfers.modify),
  play("vaultTransfer", Transfers.transfer),
  play("vaultDistribute", Transfers.distribute),
  play("registerReferrer", AccountActions.registerReferrer),
  play("setReferrer", AccountActions.setReferrer),
  play("claimRewards", AccountActions.claimRewards),
  play("setDisplayName", AccountActions.setDisplayName),
  play("reserveRequestWeight", AccountActions.reserveRequests),
  play("spotUser", spotUser),
  ["tokenDelegate", reader(WireTokenDelegate, Validators.delegate)],
  play("CSignerAction", Validators.setJailed),
  play("CValidatorAction", Validators.change),
  play("validatorL1Stream", Validators.vote),
  play("evmUserModify", AccountActions.selectBlocks),
  play("sendToEvmWithData", Transfers.sendToEvm),
  play("borrowLend", Reserves.borrowLend),
  play("gossipPriorityBid", Reserves.bid),
  play("perpDeploy", PerpDeployers.deploy),
  play("spotDeploy", SpotDeployers.deploy),
  play("finalizeEvmContract", SpotDeployers.finalize),
  play("authorizeAqav2Role", SpotDeployers.authorize),
  play("hip3LiquidatorTransfer", PerpDeployers.transferLiquidator),
  play("userOutcome", OutcomeActions.userOutcome),
  play("activateOutcomeDeployer", OutcomeActions.activate),
  play("outcomeDeploy", OutcomeActions.deploy)
])

/** The types of actions that this module executes. */
export const decodedTypes: ReadonlySet<string> = new Set(readers.keys())

/** Decodes an action, or returns why the sandbox refuses it, as a text to append to the venue's text. */
export const readAction = (type: string, action: unknown): Result.Result<Executable, string> => {
  const reader = readers.get(type)
  return reader === undefined
    ? Result.fail(`: the sandbox does not support ${JSON.stringify(type)}`)
    : Result.mapError(reader(action), (unread) => StrictDecoder.formatUnread(unread, type))
}

/** A value, or the venue's rejection text. */
export type Decision<A> = Result.Result<A, string>

/** Rejects an action with a text if `refused` is true. */
export const refuseIf = (refused: boolean, refusal: string): Decision<void> =>
  refused ? Result.fail(refusal) : Result.succeed(undefined)

const day = 86_400_000

/** The number of nonces that the venue stores for each signer. */
export const retainedNonces = 100

/**
 * Marks a signer's nonce as used. Fails with the venue's rejection text.
 *
 * The nonce must be unused, inside a window around `now` (the time of the machine's clock), and above the lowest of the
 * signer's 100 highest nonces.
 */
export const useNonce = (
  state: VenueState,
  signer: Address,
  nonce: number,
  now: number
): Decision<VenueState> => {
  const used = Option.getOrElse(HashMap.get(state.nonces, signer), (): ReadonlyArray<number> => [])
  const earliest = now - 2 * day
  const latest = now + day
  const lowest = used.length < retainedNonces ? undefined : used[0]
  if (nonce < earliest) return Result.fail(Words.nonceTooLow(nonce, earliest))
  if (nonce > latest) return Result.fail(Words.nonceTooHigh(nonce, latest))
  const above = used.findLastIndex((each) => each <= nonce) + 1
  if (used[above - 1] === nonce) return Result.fail(Words.duplicateNonce(nonce))
  if (lowest !== undefined && nonce < lowest) return Result.fail(Words.nonceTooLow(nonce, lowest))
  const next = used.toSpliced(above, 0, nonce)
  if (next.length > retainedNonces) next.shift()
  return Result.succeed({ ...state, nonces: HashMap.set(state.nonces, signer, next) })
}

/** The signer of a request body, and the signing scheme. */
export type ActionSigner =
  | Pick<Exclude<CanonicalAction.RecoveredSigner, { readonly scheme: "multiSig" }>, "scheme" | "signer">
  | Extract<CanonicalAction.RecoveredSigner, { readonly scheme: "multiSig" }>

/** A parsed request body: the envelope, the multi-sig wrapper (if any), the action to execute, and the signers. */
export interface Submission {
  readonly envelope: SignedEnvelope
  /** The multi-sig wrapper; absent for other actions. */
  readonly wrapper: typeof MultiSig.Type | undefined
  /** The action to execute, as the caller sent it. */
  readonly action: SentAction
  readonly executable: Executable
  readonly signed: ActionSigner
}

/**
 * Returns the account for which a key signs: the account of the key's own address, or the account that approved the key
 * as an API wallet.
 */
const accountBehind = (state: VenueState, signer: Address, now: number): Address | undefined =>
  state.accounts.has(signer) ? signer : findAgentUser(state, signer, now)

const actingUser = (state: VenueState, { envelope, signed }: Submission, now: number): Decision<Address> => {
  const user = accountBehind(state, signed.signer, now)
  if (user === undefined) return Result.fail(Words.unknownUser(signed.signer))
  if (signed.scheme === "userSigned" && user !== signed.signer) {
    return Result.fail(Words.mustDeposit(signed.signer))
  }
  const vault = signed.scheme === "userSigned" ? undefined : envelope.vaultAddress ?? undefined
  if (vault === undefined) return Result.succeed(user)
  return accountOrNew(state, vault).leader === user
    ? Result.succeed(lowerCase(vault))
    : Result.fail(Words.unknownVault(vault))
}

const multiSigUser = (
  state: VenueState,
  wrapper: typeof MultiSig.Type,
  signed: Extract<CanonicalAction.RecoveredSigner, { readonly scheme: "multiSig" }>,
  now: number
): Decision<Address> =>
  Result.gen(function*() {
    const user = lowerCase(wrapper.payload.multiSigUser)
    yield* refuseIf(signed.signer !== lowerCase(wrapper.payload.outerSigner), Words.invalidOuterSigner)
    const leader = accountBehind(state, signed.signer, now)
    if (leader === undefined) return yield* Result.fail(Words.outerSignerUnknown)
    const rule = accountOrNew(state, user).multiSig
    if (rule === undefined) return yield* Result.fail(Words.invalidMultiSigUser)
    const authorized = new Set(rule.authorizedUsers)
    yield* refuseIf(!authorized.has(leader), Words.invalidOuterSigner)
    const inner = new Set(signed.inner.map(({ signer }) => signer))
    yield* refuseIf(!inner.isSubsetOf(authorized), Words.invalidInnerSigner)
    yield* refuseIf(inner.size < rule.threshold, Words.thresholdNotMet)
    return user
  })

const isCancel = (type: string): boolean => type === "cancel" || type === "cancelByCloid"

/**
 * Counts each order or cancellation of an action as one request. Cancellations have a higher limit, so that orders can
 * be canceled even after the limit for other actions is reached.
 */
const admitRequest = (state: VenueState, venue: Venue, user: Address, action: SentAction): Decision<VenueState> => {
  const { reserved, volume } = findAccount(venue.state, user)
  const next = countRequests(state, user) + legCount(action)
  const ordinary = accountOrNew(state, user).requestLimit + reserved + Number(volume / 1_000_000n)
  const most = isCancel(action.type) ? Math.min(ordinary + 100_000, ordinary * 2) : ordinary
  return next > most
    ? Result.fail(Words.tooManyRequests(next, most, printUsd(volume)))
    : Result.succeed({ ...state, requests: HashMap.set(state.requests, user, next) })
}

const isExpired = ({ expiresAfter }: SignedEnvelope, now: number): boolean =>
  expiresAfter !== undefined && expiresAfter !== null && expiresAfter < now

/**
 * Counts the request and uses the nonce of a submission. Returns the user for whom it acts, and the next state. Runs
 * for every order, so it does without generators.
 */
export const admit = (
  state: VenueState,
  venue: Venue,
  submission: Submission,
  sentAt: number
): Decision<{ readonly user: Address; readonly next: VenueState }> => {
  const { action, envelope, signed, wrapper } = submission
  const { now } = venue.state
  const acting = wrapper !== undefined && signed.scheme === "multiSig"
    ? multiSigUser(state, wrapper, signed, now)
    : actingUser(state, submission, now)
  if (Result.isFailure(acting)) return Result.fail(acting.failure)
  const user = acting.success
  if (isExpired(envelope, sentAt)) return Result.fail(Words.expired)
  const counted = admitRequest(state, venue, accountBehind(state, signed.signer, now) ?? user, action)
  if (Result.isFailure(counted)) return Result.fail(counted.failure)
  const used = useNonce(counted.success, signed.signer, envelope.nonce, sentAt)
  return Result.isFailure(used) ? Result.fail(used.failure) : Result.succeed({ user, next: used.success })
}

/**
 * Checks the network and the nonce of an action. These checks do not need the venue's state. The action's nonce must
 * equal the nonce of the request body.
 */
const checkAction = (profile: VenueProfile, action: SentAction, nonce: number): Decision<void> => {
  const type = CanonicalAction.find(action.type)
  if (type === undefined) return Result.succeed(undefined)
  if (action[profile.chainField] !== profile.chainName) return Result.fail(Words.wrongNetwork)
  const field = CanonicalAction.nonceField(type)
  return refuseIf(field !== undefined && action[field.name] !== nonce, Words.nonceMismatch)
}

/**
 * Executes a submission; `sentAt` is the time at which the submission was sent, according to the machine's clock.
 *
 * A refusal before the nonce check changes nothing. After that check, the nonce counts as used, even if the action is
 * refused later. A multi-sig wrapper uses a nonce of the leader who signed it.
 */
const decide = (
  state: VenueState,
  venue: Venue,
  submission: Submission,
  sentAt: number
): readonly [decision: ActionDecision, next: VenueState] => {
  const { envelope, executable, signed } = submission
  const admitted = admit(state, venue, submission, sentAt)
  if (Result.isFailure(admitted)) return [Result.fail(admitted.failure), state]
  const { next, user } = admitted.success
  if (signed.scheme !== "multiSig" && accountOrNew(next, user).multiSig !== undefined) {
    return [Result.fail(Words.multiSigRequired), next]
  }
  const context: ActionContext = { venue, identity: next, user, nonce: envelope.nonce, sentAt }
  venue.hash = nextHash(venue)
  const decision = executable(context)
  return [decision, context.identity]
}

const upstream = "trading-api"

const decodeEnvelope = Schema.decodeUnknownOption(SignedEnvelope)
const decodeMultiSig = StrictDecoder.make(MultiSig)

const accepted = (response: ActionResponse): Operation.UpstreamResponse =>
  Operation.jsonValue(upstream, 200, { status: "ok", response })

const refused = (text: string): Operation.UpstreamResponse =>
  Operation.jsonValue(upstream, 200, { status: "err", response: text })

/** The types of actions that the sandbox supports. */
export const playedTypes: ReadonlySet<string> = new Set(["multiSig", ...decodedTypes])

/** Returns the venue's response to a body that it cannot decode; `why` is appended to its text. */
const wrongShape = (why = ""): Operation.UpstreamResponse => Operation.plain(upstream, 422, Words.wrongShape + why)

/** Decodes the multi-sig wrapper (if any) and the action to execute, or returns why the sandbox refuses them. */
const readEnvelope = (envelope: SignedEnvelope): Result.Result<Omit<Submission, "signed">, string> => {
  const read = (action: SentAction, wrapper: typeof MultiSig.Type | undefined) =>
    Result.map(readAction(action.type, action), (executable) => ({ envelope, wrapper, action, executable }))
  return envelope.action.type === "multiSig"
    ? Result.flatMap(
      Result.mapError(decodeMultiSig(envelope.action), (unread) => StrictDecoder.formatUnread(unread, "multiSig")),
      (wrapper) => read(wrapper.payload.action, wrapper)
    )
    : read(envelope.action, undefined)
}

/** The state that actions read and change. */
export interface ExchangeState {
  readonly venue: VenueControls
  readonly info: InfoControls
  readonly trading: TradingControls
}

type Unrecovered = Result.Result.Failure<ReturnType<typeof CanonicalAction.recoverRequest>>

const answerTo = (
  profile: VenueProfile,
  { info, trading, venue: controls }: ExchangeState,
  request: Omit<Submission, "signed">,
  signer: Address | undefined,
  // callers choose nonces and expiry times by the machine's clock, so this clock is used even if the venue's time is
  // ahead
  { clock: sentAt, engine }: { readonly clock: number; readonly engine: Secp256k1.Engine }
): Operation.UpstreamResponse => {
  const { action, envelope, wrapper } = request
  const checked = checkAction(profile, action, envelope.nonce)
  if (Result.isFailure(checked)) return refused(checked.failure)
  const recovered: Result.Result<ActionSigner, Unrecovered> = signer === undefined || wrapper !== undefined
    ? CanonicalAction.recoverRequest(profile, envelope, engine)
    : Result.map(CanonicalAction.signingScheme(action), ({ scheme }) => ({ scheme, signer }))
  if (Result.isFailure(recovered)) {
    const { failure } = recovered
    if (failure._tag !== "UnrecoverableSignature" || wrapper === undefined) return wrongShape()
    return refused(
      failure.innerIndex === undefined ? Words.invalidOuterSigner : Words.invalidInnerSigner
    )
  }
  const venue = trading.at(Ref.getUnsafe(info.state), trading.nowAt(sentAt))
  const [decision, next] = decide(
    Ref.getUnsafe(controls.state),
    venue,
    { ...request, signed: recovered.success },
    sentAt
  )
  MutableRef.set(controls.state.ref, next)
  trading.deliver()
  return Result.match(decision, { onFailure: refused, onSuccess: accepted })
}

/**
 * A request body whose signer the caller of this module has already recovered, because recovery is the slowest step.
 */
export interface Recovered {
  readonly signed: SignedEnvelope
  /** The recovered signer; `undefined` if the signer cannot be recovered. */
  readonly signer: Address | undefined
}

/**
 * Returns whether the venue would decode the envelope exactly as the gateway did. Returns `false` for actions signed as
 * typed data, because the gateway renames a field in them, and for multi-sig actions, because their co-signers are
 * recovered from the body.
 */
const isAsSent = ({ signed: { action: { type } }, signer }: Recovered): boolean =>
  signer !== undefined && type !== "multiSig" && CanonicalAction.find(type) === undefined

/**
 * Handles request bodies as the real venue does: one at a time, on behalf of the recovered signer.
 *
 * The caller can pass a decoded body with its recovered signer; this function always recovers the co-signers. For
 * unknown action types, and for forms that appear only in the venue's documentation, the response is HTTP 422. If the
 * venue refuses the action, the response is HTTP 200 with `status: "err"`.
 */
export const submit = (
  profile: VenueProfile,
  state: ExchangeState,
  body: Uint8Array,
  recovered?: Recovered
): Effect.Effect<Operation.UpstreamResponse> =>
  Effect.contextWith((context) => {
    const surroundings = {
      clock: Context.get(context, Clock.Clock).currentTimeMillisUnsafe(),
      engine: Context.get(context, Secp256k1.Secp256k1)
    }
    const handle = (envelope: SignedEnvelope) =>
      Result.match(readEnvelope(envelope), {
        onFailure: wrongShape,
        onSuccess: (request) => answerTo(profile, state, request, recovered?.signer, surroundings)
      })
    if (recovered !== undefined && isAsSent(recovered)) return Exit.succeed(handle(recovered.signed))
    const parsed = Option.flatMap(Encoding.decode(body), (text) => Result.getSuccess(Encoding.parse(text)))
    return Exit.succeed(Option.match(parsed, {
      onNone: () => notJson,
      onSome: (sent) => Option.match(decodeEnvelope(sent), { onNone: () => wrongShape(), onSome: handle })
    }))
  })
