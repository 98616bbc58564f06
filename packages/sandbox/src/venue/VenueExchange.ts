/** The venue's `POST /exchange`: decodes a signed action, executes it, and responds with the venue's texts. */
import { EvmUserModify, JailSelf, MultiSig, TokenDelegate, UnjailSelf } from "@trigate/domain/actions/Action"
import type { SentAction } from "@trigate/domain/actions/ActionCatalog"
import { innerAction, isSentAction } from "@trigate/domain/actions/ActionCatalog"
import { legCount, SignedEnvelope } from "@trigate/domain/actions/SignedAction"
import { type Address, lowerCase } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as Continuation from "@trigate/domain/operations/Continuation"
import * as UpstreamResponse from "@trigate/domain/operations/UpstreamResponse"
import * as UserSigned from "@trigate/signing/actions/UserSigned"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import type { RecoveredSigner } from "@trigate/signing/SignerRecovery"
import * as SignerRecovery from "@trigate/signing/SignerRecovery"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HashMap from "effect/HashMap"
import * as MutableRef from "effect/MutableRef"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Random from "../Seed.ts"
import type { ActionContext, ActionDecision, ActionResponse } from "./ActionContext.ts"
import { done } from "./ActionContext.ts"
import type { Executable } from "./Actions.ts"
import * as Actions from "./Actions.ts"
import { printUsd } from "./Assets.ts"
import type { TradingControls } from "./TradingControls.ts"
import { findAccount } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import { nextHash } from "./Venue.ts"
import type { InfoControls } from "./VenueInfo.ts"
import * as VenueRefusal from "./VenueRefusal.ts"
import type { Account, VenueControls } from "./VenueState.ts"
import { accountOrNew, changeAccount, countRequests, type VenueState, withEntry } from "./VenueState.ts"

/** A value, or the venue's rejection text. */
type Decision<A> = Result.Result<A, string>

const refuseIf = (refused: boolean, refusal: string): Decision<void> =>
  refused ? Result.fail(refusal) : Result.succeed(undefined)

/**
 * `tokenDelegate` in the form that the venue accepts: with the member `hyperliquidChain`, which the venue's
 * documentation calls `venueChain`.
 */
const WireTokenDelegate = TokenDelegate.check(
  Schema.makeFilter(({ hyperliquidChain }) => hyperliquidChain === undefined ? "Expected hyperliquidChain" : undefined)
)

/** The actions that change state other than the trading state, in the form that the venue accepts. */
const IdentityAction = Schema.Union([WireTokenDelegate, JailSelf, UnjailSelf, EvmUserModify])
type IdentityAction = typeof IdentityAction.Type

const day = 86_400_000

/** Maximum number of delegations that the venue lists for one account. */
const listedDelegations = 100

/** The time and the nonce of an executed action. */
interface Moment {
  readonly now: number
  readonly nonce: number
}

const moveStake = (
  state: VenueState,
  user: Address,
  { isUndelegate, validator: named, wei: moved }: typeof WireTokenDelegate.Type,
  { nonce, now }: Moment
): Decision<VenueState> => {
  const validator = lowerCase(named)
  const wei = isUndelegate ? -moved : moved
  const target = state.validators.get(validator)
  if (target === undefined) return Result.fail(VenueRefusal.unknownValidator)
  const account = accountOrNew(state, user)
  const known = account.delegations.get(validator) ?? { wei: 0n, lockedUntil: 0 }
  const delegated = known.wei + wei
  const stake = account.stake - wei
  if (stake < 0n || delegated < 0n) return Result.fail(VenueRefusal.insufficientStake)
  const changed = changeAccount(state, user, {
    stake,
    delegations: withEntry(account.delegations, validator, {
      wei: delegated,
      lockedUntil: isUndelegate ? known.lockedUntil : now + day
    }),
    delegationHistory: [
      { time: now, hash: Random.hex(user, `delegation/${nonce}`, 64), validator, wei: moved, isUndelegate },
      ...account.delegationHistory
    ].slice(0, listedDelegations)
  })
  return Result.succeed({
    ...changed,
    validators: withEntry(changed.validators, validator, { ...target, stake: target.stake + wei })
  })
}

const setJailed = (state: VenueState, signer: Address, jailed: boolean): Decision<VenueState> => {
  const validator = state.validators.get(signer)
  return validator === undefined
    ? Result.fail(VenueRefusal.notValidator)
    : Result.succeed({ ...state, validators: withEntry(state.validators, signer, { ...validator, jailed }) })
}

/**
 * Executes an action of `user` that changes accounts, stake or validators, and not the trading state. Fails with the
 * venue's rejection text.
 */
const executeIdentity = (
  state: VenueState,
  user: Address,
  action: IdentityAction,
  moment: Moment
): Decision<VenueState> => {
  switch (action.type) {
    case "evmUserModify":
      return Result.succeed(changeAccount(state, user, { usingBigBlocks: action.usingBigBlocks }))
    case "CSignerAction":
      return setJailed(state, user, "jailSelf" in action)
    case "tokenDelegate":
      return moveStake(state, user, action, moment)
  }
}

/** The number of nonces that the venue stores for each signer. */
export const retainedNonces = 100

/**
 * Marks a signer's nonce as used. Fails with the venue's rejection text.
 *
 * The nonce must be unused, inside a window around the venue's time `now`, and above the lowest of the signer's 100
 * highest nonces.
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
  if (nonce < earliest) return Result.fail(VenueRefusal.nonceTooLow(nonce, earliest))
  if (nonce > latest) return Result.fail(VenueRefusal.nonceTooHigh(nonce, latest))
  const above = used.findLastIndex((each) => each <= nonce) + 1
  if (used[above - 1] === nonce) return Result.fail(VenueRefusal.duplicateNonce(nonce))
  if (lowest !== undefined && nonce < lowest) return Result.fail(VenueRefusal.nonceTooLow(nonce, lowest))
  const next = used.toSpliced(above, 0, nonce)
  if (next.length > retainedNonces) next.shift()
  return Result.succeed({ ...state, nonces: HashMap.set(state.nonces, signer, next) })
}

/** The signer of a request body, and the signing scheme. */
type ActionSigner =
  | Pick<Exclude<RecoveredSigner, { readonly scheme: "multiSig" }>, "scheme" | "signer">
  | Extract<RecoveredSigner, { readonly scheme: "multiSig" }>

/** A parsed request body: the envelope, the multi-sig wrapper (if any), the action to execute, and the signers. */
interface Submission {
  readonly envelope: SignedEnvelope
  /** The multi-sig wrapper; absent for other actions. */
  readonly wrapper: typeof MultiSig.Type | undefined
  /** The action to execute, as the caller sent it. */
  readonly action: SentAction
  readonly executable: Executable
  readonly signed: ActionSigner
}

/**
 * Checks the network and the nonce of an action. These checks do not need the venue's state. The action's nonce must
 * equal the nonce of the request body.
 */
const checkAction = (profile: VenueProfile, action: SentAction, nonce: number): Decision<void> => {
  const type = UserSigned.find(action.type)
  if (type === undefined) return Result.succeed(undefined)
  if (action[profile.chainField] !== profile.chainName) return Result.fail(VenueRefusal.wrongNetwork)
  const field = UserSigned.nonceField(type)
  return refuseIf(field !== undefined && action[field.name] !== nonce, VenueRefusal.nonceMismatch)
}

/** Returns whether the validity period of an API wallet has ended. */
const hasExpired = ({ extraAgents, mainAgent }: Account, agent: Address, now: number): boolean => {
  const terms = mainAgent?.address === agent ? mainAgent : extraAgents.find(({ address }) => address === agent)
  return terms !== undefined && terms.validUntil < now
}

/**
 * Returns the account for which a key signs: the account of the key's own address, or the account that approved the key
 * as an API wallet.
 */
const accountBehind = (state: VenueState, signer: Address, now: number): Address | undefined => {
  if (state.accounts.has(signer)) return signer
  const user = state.agents.get(signer)
  return user === undefined || hasExpired(accountOrNew(state, user), signer, now) ? undefined : user
}

const actingUser = (state: VenueState, { envelope, signed }: Submission, now: number): Decision<Address> => {
  const user = accountBehind(state, signed.signer, now)
  if (user === undefined) return Result.fail(VenueRefusal.unknownUser(signed.signer))
  if (signed.scheme === "userSigned" && user !== signed.signer) {
    return Result.fail(VenueRefusal.mustDeposit(signed.signer))
  }
  const vault = signed.scheme === "userSigned" ? undefined : envelope.vaultAddress ?? undefined
  if (vault === undefined) return Result.succeed(user)
  return accountOrNew(state, vault).leader === user
    ? Result.succeed(lowerCase(vault))
    : Result.fail(VenueRefusal.unknownVault(vault))
}

const multiSigUser = (
  state: VenueState,
  wrapper: typeof MultiSig.Type,
  signed: Extract<RecoveredSigner, { readonly scheme: "multiSig" }>,
  now: number
): Decision<Address> =>
  Result.gen(function*() {
    const user = lowerCase(wrapper.payload.multiSigUser)
    yield* refuseIf(signed.signer !== lowerCase(wrapper.payload.outerSigner), VenueRefusal.invalidOuterSigner)
    const leader = accountBehind(state, signed.signer, now)
    if (leader === undefined) return yield* Result.fail(VenueRefusal.outerSignerUnknown)
    const rule = accountOrNew(state, user).multiSig
    if (rule === undefined) return yield* Result.fail(VenueRefusal.invalidMultiSigUser)
    const authorized = new Set(rule.authorizedUsers)
    yield* refuseIf(!authorized.has(leader), VenueRefusal.invalidOuterSigner)
    const inner = new Set(signed.inner.map(({ signer }) => signer))
    yield* refuseIf(!inner.isSubsetOf(authorized), VenueRefusal.invalidInnerSigner)
    yield* refuseIf(inner.size < rule.threshold, VenueRefusal.thresholdNotMet)
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
    ? Result.fail(VenueRefusal.tooManyRequests(next, most, printUsd(volume)))
    : Result.succeed({ ...state, requests: HashMap.set(state.requests, user, next) })
}

const isExpired = ({ expiresAfter }: SignedEnvelope, now: number): boolean =>
  expiresAfter !== undefined && expiresAfter !== null && expiresAfter < now

/**
 * Counts the request and uses the nonce of a submission. Returns the user for whom it acts, and the next state. Runs
 * for every order, so it does without generators.
 */
const admit = (
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
  if (isExpired(envelope, sentAt)) return Result.fail(VenueRefusal.expired)
  const counted = admitRequest(state, venue, accountBehind(state, signed.signer, now) ?? user, action)
  if (Result.isFailure(counted)) return Result.fail(counted.failure)
  const used = useNonce(counted.success, signed.signer, envelope.nonce, sentAt)
  return Result.isFailure(used) ? Result.fail(used.failure) : Result.succeed({ user, next: used.success })
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
    return [Result.fail(VenueRefusal.multiSigRequired), next]
  }
  const context: ActionContext = { venue, identity: next, user, nonce: envelope.nonce }
  venue.hash = nextHash(venue)
  const decision = executable(context)
  return [decision, context.identity]
}

const upstream = "trading-api"

const decodeEnvelope = Schema.decodeUnknownOption(SignedEnvelope)
const decodeMultiSig = Schema.decodeUnknownOption(MultiSig)
const decodeIdentity = Schema.decodeUnknownOption(IdentityAction)

const accepted = (response: ActionResponse): UpstreamResponse.UpstreamResponse =>
  UpstreamResponse.jsonValue(upstream, 200, { status: "ok", response })

const refused = (text: string): UpstreamResponse.UpstreamResponse =>
  UpstreamResponse.jsonValue(upstream, 200, { status: "err", response: text })

const hasAction = Schema.is(Schema.Struct({ action: Schema.Unknown }))

/** Returns the type of the action that a body executes; `undefined` if the body contains no action. */
const executedType = (body: unknown): string | undefined => {
  if (!hasAction(body) || !isSentAction(body.action)) return undefined
  return (innerAction(body.action) ?? body.action).type
}

/** The types of actions that the sandbox supports. */
export const playedTypes: ReadonlySet<string> = new Set([
  "multiSig",
  "tokenDelegate",
  "CSignerAction",
  "evmUserModify",
  ...Actions.playedTypes
])

/**
 * Returns the venue's response to a body that it cannot decode. For an action type that the sandbox does not support,
 * the response contains the type.
 */
const wrongShape = (body: unknown): UpstreamResponse.UpstreamResponse => {
  const type = executedType(body)
  const why = type === undefined || playedTypes.has(type)
    ? ""
    : `: the sandbox does not support ${JSON.stringify(type)}`
  return UpstreamResponse.plain(upstream, 422, VenueRefusal.wrongShape + why)
}

const notJson = UpstreamResponse.plain(upstream, 400, VenueRefusal.notJson)

const identityExecutable = (action: IdentityAction): Executable => (context) =>
  Result.match(
    executeIdentity(context.identity, context.user, action, { now: context.venue.state.now, nonce: context.nonce }),
    {
      onFailure: (refusal): ActionDecision => Result.fail(refusal),
      onSuccess: (identity) => {
        context.identity = identity
        return done
      }
    }
  )

const readExecutable = (action: SentAction): Option.Option<Executable> =>
  Option.orElse(
    Actions.read(action.type, action),
    () => Option.map(decodeIdentity(action), identityExecutable)
  )

/** Decodes the multi-sig wrapper (if any) and the action to execute; `None` if the venue cannot decode them. */
const readEnvelope = (envelope: SignedEnvelope): Option.Option<Omit<Submission, "signed">> => {
  const read = (action: SentAction, wrapper: typeof MultiSig.Type | undefined) =>
    Option.map(readExecutable(action), (executable) => ({ envelope, wrapper, action, executable }))
  return envelope.action.type === "multiSig"
    ? Option.flatMap(decodeMultiSig(envelope.action), (wrapper) => read(wrapper.payload.action, wrapper))
    : read(envelope.action, undefined)
}

/** The state that actions read and change. */
export interface ExchangeState {
  readonly venue: VenueControls
  readonly info: InfoControls
  readonly trading: TradingControls
}

type Unrecovered = Result.Result.Failure<ReturnType<typeof SignerRecovery.recoverRequest>>

/** The time, in milliseconds, and the engine that recovers signers. */
interface Surroundings {
  readonly clock: number
  readonly engine: Secp256k1.Engine
}

const answerTo = (
  profile: VenueProfile,
  { info, trading, venue: controls }: ExchangeState,
  request: Omit<Submission, "signed">,
  signer: Address | undefined,
  // callers choose nonces and expiry times by the machine's clock, so this clock is used even if the venue's time is
  // ahead
  { clock: sentAt, engine }: Surroundings
): UpstreamResponse.UpstreamResponse => {
  const { action, envelope, wrapper } = request
  const checked = checkAction(profile, action, envelope.nonce)
  if (Result.isFailure(checked)) return refused(checked.failure)
  const recovered: Result.Result<ActionSigner, Unrecovered> = signer === undefined || wrapper !== undefined
    ? SignerRecovery.recoverRequest(profile, envelope, engine)
    : Result.map(UserSigned.signingScheme(action), ({ scheme }) => ({ scheme, signer }))
  if (Result.isFailure(recovered)) {
    const { failure } = recovered
    if (failure._tag !== "UnrecoverableSignature" || wrapper === undefined) return wrongShape({ action })
    return refused(
      failure.innerIndex === undefined ? VenueRefusal.invalidOuterSigner : VenueRefusal.invalidInnerSigner
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
  signer !== undefined && type !== "multiSig" && UserSigned.find(type) === undefined

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
): Effect.Effect<UpstreamResponse.UpstreamResponse> =>
  Continuation.withContext((context) => {
    const surroundings = {
      clock: Context.get(context, Clock.Clock).currentTimeMillisUnsafe(),
      engine: Context.get(context, Secp256k1.Secp256k1)
    }
    const handle = (sent: unknown, envelope: Option.Option<SignedEnvelope>) =>
      Option.match(Option.flatMap(envelope, readEnvelope), {
        onNone: () => wrongShape(sent),
        onSome: (request) => answerTo(profile, state, request, recovered?.signer, surroundings)
      })
    if (recovered !== undefined && isAsSent(recovered)) {
      return Exit.succeed(handle(recovered.signed, Option.some(recovered.signed)))
    }
    const parsed = Option.flatMap(Utf8.decode(body), (text) => Result.getSuccess(Json.parse(text)))
    return Exit.succeed(Option.match(parsed, {
      onNone: () => notJson,
      onSome: (sent) => handle(sent, decodeEnvelope(sent))
    }))
  })
