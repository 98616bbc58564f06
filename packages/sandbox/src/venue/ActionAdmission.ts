/** Decides whether the venue executes an action: the account behind its signer, its expiry, the request limit, its nonce. */
import type { MultiSig } from "@trigate/domain/actions/Action"
import type { SentAction } from "@trigate/domain/actions/ActionCatalog"
import { legCount } from "@trigate/domain/actions/ActionCatalog"
import type { SignedEnvelope } from "@trigate/domain/actions/SignedAction"
import { type Address, lowerCase } from "@trigate/domain/encoding/Hex"
import type { RecoveredSigner } from "@trigate/signing/SignerRecovery"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { Executable } from "./Actions.ts"
import { printUsd } from "./Assets.ts"
import { findAccount } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import * as VenueRefusal from "./VenueRefusal.ts"
import { accountOrNew, countRequests, findAgentUser, type VenueState } from "./VenueState.ts"

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
export type ActionSigner =
  | Pick<Exclude<RecoveredSigner, { readonly scheme: "multiSig" }>, "scheme" | "signer">
  | Extract<RecoveredSigner, { readonly scheme: "multiSig" }>

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
  if (isExpired(envelope, sentAt)) return Result.fail(VenueRefusal.expired)
  const counted = admitRequest(state, venue, accountBehind(state, signed.signer, now) ?? user, action)
  if (Result.isFailure(counted)) return Result.fail(counted.failure)
  const used = useNonce(counted.success, signed.signer, envelope.nonce, sentAt)
  return Result.isFailure(used) ? Result.fail(used.failure) : Result.succeed({ user, next: used.success })
}
