/** The venue's `POST /exchange`: reads a signed action, decides on it, and answers in the venue's words. */
import { EvmUserModify, JailSelf, MultiSig, TokenDelegate, UnjailSelf } from "@trigate/domain/actions/Action"
import { SignedEnvelope } from "@trigate/domain/actions/SignedAction"
import { type Address, lowerCase } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as UpstreamResponse from "@trigate/domain/operations/UpstreamResponse"
import type { RecoveredSigner } from "@trigate/signing/SignerRecovery"
import * as SignerRecovery from "@trigate/signing/SignerRecovery"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Random from "../Seed.ts"
import * as VenueRefusal from "./VenueRefusal.ts"
import { accountOf, changeAccount, type VenueState, withEntry } from "./VenueState.ts"

/** A value, or the venue's refusal. */
type Decision<A> = Result.Result<A, string>

const refuseIf = (refused: boolean, refusal: string): Decision<void> =>
  refused ? Result.fail(refusal) : Result.succeed(undefined)

/** The real wire has no `venueChain`, which is the documents' name for the field. */
const WireTokenDelegate = TokenDelegate.check(
  Schema.makeFilter(({ hyperliquidChain }) => hyperliquidChain === undefined ? "Expected hyperliquidChain" : undefined)
)

/** Only uses up its nonce. */
const Noop = Schema.Struct({ type: Schema.Literal("noop") })

/** The actions that can stand alone or inside a multi-sig wrapper, in the form that the real wire takes. */
const SingleAction = Schema.Union([WireTokenDelegate, JailSelf, UnjailSelf, EvmUserModify, Noop])
type SingleAction = typeof SingleAction.Type

/** Every action of the venue, in the form that the real wire takes. */
const VenueAction = Schema.Union([MultiSig, ...SingleAction.members])
type VenueAction = typeof VenueAction.Type

const day = 86_400_000

/** How many delegations of an account the venue lists. */
const listedDelegations = 100

/** When an action is executed, and under which nonce. */
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
  const account = accountOf(state, user)
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

/** Executes an action of `user`; the failure is the venue's refusal. */
const execute = (
  state: VenueState,
  user: Address,
  action: SingleAction,
  moment: Moment
): Decision<VenueState> => {
  switch (action.type) {
    case "noop":
      return Result.succeed(state)
    case "evmUserModify":
      return Result.succeed(changeAccount(state, user, { usingBigBlocks: action.usingBigBlocks }))
    case "CSignerAction":
      return setJailed(state, user, "jailSelf" in action)
    case "tokenDelegate":
      return moveStake(state, user, action, moment)
  }
}

/** How many nonces the venue remembers of each signer. */
export const retainedNonces = 100

/**
 * Uses up a nonce of a signer at the instant `now`; the failure is the venue's refusal.
 *
 * A nonce has to be inside a window around the venue's time, unused, and above the lowest of the 100 highest.
 */
export const useNonce = (
  state: VenueState,
  signer: Address,
  nonce: number,
  now: number
): Decision<VenueState> => {
  const used = state.nonces.get(signer) ?? []
  const earliest = now - 2 * day
  const latest = now + day
  const lowest = used.length < retainedNonces ? undefined : used[0]
  if (nonce < earliest) return Result.fail(VenueRefusal.nonceTooLow(nonce, earliest))
  if (nonce > latest) return Result.fail(VenueRefusal.nonceTooHigh(nonce, latest))
  if (used.includes(nonce)) return Result.fail(VenueRefusal.duplicateNonce(nonce))
  if (lowest !== undefined && nonce < lowest) return Result.fail(VenueRefusal.nonceTooLow(nonce, lowest))
  const next = [...used, nonce].toSorted((a, b) => a - b).slice(-retainedNonces)
  return Result.succeed({ ...state, nonces: withEntry(state.nonces, signer, next) })
}

/** A body that has been read: its envelope, its action, and who signed both. */
interface Submission {
  readonly envelope: SignedEnvelope
  readonly action: VenueAction
  readonly signed: RecoveredSigner
}

/** Checks the action alone: its network, and that its nonce is that of the body. */
const checkAction = (
  profile: VenueProfile,
  action: VenueAction | SingleAction,
  nonce: number
): Decision<void> => {
  if (action.type !== "tokenDelegate") return Result.succeed(undefined)
  return action.hyperliquidChain === profile.chainName
    ? refuseIf(action.nonce !== nonce, VenueRefusal.nonceMismatch)
    : Result.fail(VenueRefusal.wrongNetwork)
}

/** The account of a key: its own, or the account that it is an API wallet of. */
const accountBehind = (state: VenueState, signer: Address): Address | undefined =>
  state.accounts.has(signer) ? signer : state.agents.get(signer)

const actingUser = (state: VenueState, { envelope, signed }: Submission): Decision<Address> =>
  Result.gen(function*() {
    const user = accountBehind(state, signed.signer)
    if (user === undefined) return yield* Result.fail(VenueRefusal.unknownUser(signed.signer))
    if (signed.scheme === "userSigned") {
      yield* refuseIf(user !== signed.signer, VenueRefusal.mustDeposit(signed.signer))
      return user
    }
    const vault = envelope.vaultAddress ?? undefined
    if (vault === undefined) return user
    yield* refuseIf(accountOf(state, vault).leader !== user, VenueRefusal.unknownVault(vault))
    return lowerCase(vault)
  })

type Wrapper = Extract<VenueAction, { readonly type: "multiSig" }>

const multiSigUser = (
  state: VenueState,
  wrapper: Wrapper,
  signed: Extract<RecoveredSigner, { readonly scheme: "multiSig" }>
): Decision<Address> =>
  Result.gen(function*() {
    const user = lowerCase(wrapper.payload.multiSigUser)
    yield* refuseIf(signed.signer !== lowerCase(wrapper.payload.outerSigner), VenueRefusal.invalidOuterSigner)
    const leader = accountBehind(state, signed.signer)
    if (leader === undefined) return yield* Result.fail(VenueRefusal.outerSignerUnknown)
    const rule = accountOf(state, user).multiSig
    if (rule === undefined) return yield* Result.fail(VenueRefusal.invalidMultiSigUser)
    const authorized = new Set(rule.authorizedUsers)
    yield* refuseIf(!authorized.has(leader), VenueRefusal.invalidOuterSigner)
    const inner = new Set(signed.inner.map(({ signer }) => signer))
    yield* refuseIf(!inner.isSubsetOf(authorized), VenueRefusal.invalidInnerSigner)
    yield* refuseIf(inner.size < rule.threshold, VenueRefusal.thresholdNotMet)
    return user
  })

const countRequest = (state: VenueState, user: Address): Decision<VenueState> => {
  const { limit, sent } = accountOf(state, user).requests
  return sent + 1 > limit
    ? Result.fail(VenueRefusal.tooManyRequests(sent + 1, limit))
    : Result.succeed(changeAccount(state, user, { requests: { limit, sent: sent + 1 } }))
}

const isExpired = ({ expiresAfter }: SignedEnvelope, now: number): boolean =>
  expiresAfter !== undefined && expiresAfter !== null && expiresAfter < now

/**
 * Decides on a submission at the instant `now`.
 *
 * A refusal before the nonce check changes nothing. After it the nonce is used up, even if the action is then refused. A
 * multi-sig wrapper uses the nonce of its leader.
 */
const decide = (
  state: VenueState,
  submission: Submission,
  inner: SingleAction,
  now: number
): readonly [refusal: string | undefined, next: VenueState] => {
  const { action, envelope, signed } = submission
  const admitted = Result.gen(function*() {
    const user = action.type === "multiSig" && signed.scheme === "multiSig"
      ? yield* multiSigUser(state, action, signed)
      : yield* actingUser(state, submission)
    yield* refuseIf(isExpired(envelope, now), VenueRefusal.expired)
    const counted = yield* countRequest(state, accountBehind(state, signed.signer) ?? user)
    return { user, next: yield* useNonce(counted, signed.signer, envelope.nonce, now) }
  })
  if (Result.isFailure(admitted)) return [admitted.failure, state]
  const { next, user } = admitted.success
  const executed = signed.scheme !== "multiSig" && accountOf(next, user).multiSig !== undefined
    ? Result.fail(VenueRefusal.multiSigRequired)
    : execute(next, user, inner, { now, nonce: envelope.nonce })
  return Result.match(executed, {
    onFailure: (refusal) => [refusal, next] as const,
    onSuccess: (done) => [undefined, done] as const
  })
}

const upstream = "trading-api"

const decodeEnvelope = Schema.decodeUnknownOption(SignedEnvelope)
const decodeAction = Schema.decodeUnknownOption(VenueAction)
const decodeInner = Schema.decodeUnknownOption(SingleAction)

const accepted = UpstreamResponse.json(upstream, 200, "{\"status\":\"ok\",\"response\":{\"type\":\"default\"}}")

const refused = (text: string): UpstreamResponse.UpstreamResponse =>
  UpstreamResponse.json(upstream, 200, JSON.stringify({ status: "err", response: text }))

const typed = Schema.decodeUnknownOption(Schema.Struct({ action: Schema.Struct({ type: Schema.String }) }))

const played = new Set<string>(["multiSig", "noop", "tokenDelegate", "CSignerAction", "evmUserModify"])

/** The venue's words for a body that it cannot read. For an action type that the sandbox does not play they name the type. */
const wrongShape = (body: unknown): UpstreamResponse.UpstreamResponse => {
  const type = Option.getOrUndefined(typed(body))?.action.type
  const why = type === undefined || played.has(type) ? "" : `: the sandbox does not play ${JSON.stringify(type)}`
  return UpstreamResponse.plain(upstream, 422, VenueRefusal.wrongShape + why)
}

const notJson = UpstreamResponse.plain(upstream, 400, VenueRefusal.notJson)

/** The envelope, the action, and the action to execute; none if the venue cannot read it. */
const read = (body: unknown) =>
  Option.gen(function*() {
    const envelope = yield* decodeEnvelope(body)
    const action = yield* decodeAction(envelope.action)
    const inner = yield* (action.type === "multiSig" ? decodeInner(action.payload.action) : Option.some(action))
    return { envelope, action, inner }
  })

const answerTo = Effect.fnUntraced(function*(
  profile: VenueProfile,
  venue: Ref.Ref<VenueState>,
  { action, envelope, inner }: Option.Option.Value<ReturnType<typeof read>>
) {
  const checked = checkAction(profile, inner, envelope.nonce)
  if (Result.isFailure(checked)) return refused(checked.failure)
  const recovered = yield* Effect.result(SignerRecovery.recover(profile, envelope))
  if (Result.isFailure(recovered)) {
    const { failure } = recovered
    if (failure._tag !== "UnrecoverableSignature" || action.type !== "multiSig") return wrongShape({ action })
    return refused(
      failure.innerIndex === undefined ? VenueRefusal.invalidOuterSigner : VenueRefusal.invalidInnerSigner
    )
  }
  const now = yield* Clock.currentTimeMillis
  const submission = { envelope, action, signed: recovered.success }
  const refusal = yield* Ref.modify(venue, (state) => decide(state, submission, inner, now))
  return refusal === undefined ? accepted : refused(refusal)
})

/**
 * Handles a body as the real venue does: one after the other, for the signer that its signature recovers to.
 *
 * Unknown action types, and forms that only the documents show, are HTTP 422. A refusal is HTTP 200 with `status: "err"`.
 */
export const submit = (
  profile: VenueProfile,
  venue: Ref.Ref<VenueState>,
  body: Uint8Array
): Effect.Effect<UpstreamResponse.UpstreamResponse> => {
  const parsed = Option.flatMap(Utf8.decode(body), (text) => Result.getSuccess(Json.parse(text)))
  if (Option.isNone(parsed)) return Effect.succeed(notJson)
  return Option.match(read(parsed.value), {
    onNone: () => Effect.succeed(wrongShape(parsed.value)),
    onSome: (request) => answerTo(profile, venue, request)
  })
}
