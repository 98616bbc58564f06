/** How the venue decides on a submission whose signers are known: a pure step from one state to the next. */
import type { Address } from "@trigate/domain/Hex"
import type { SignedEnvelope } from "@trigate/domain/SignedAction"
import type { RecoveredSigner } from "@trigate/signing/SignerRecovery"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Result from "effect/Result"
import type { SingleAction, VenueAction } from "./VenueAction.ts"
import { execute } from "./VenueAction.ts"
import * as VenueNonce from "./VenueNonce.ts"
import * as VenueRefusal from "./VenueRefusal.ts"
import type { VenueState } from "./VenueState.ts"
import { accountOf, changeAccount, lower } from "./VenueState.ts"

/** A body that has been read: its envelope, its action, and who signed both. */
export interface Submission {
  readonly envelope: SignedEnvelope
  readonly action: VenueAction
  readonly signed: RecoveredSigner
}

type Decision<A> = Result.Result<A, string>

const refuseIf = (refused: boolean, refusal: string): Decision<void> =>
  refused ? Result.fail(refusal) : Result.succeed(undefined)

/** Refusals that look at the action alone: another network's signature, a nonce that differs from the body's. */
export const checkAction = (
  profile: VenueProfile,
  action: VenueAction | SingleAction,
  nonce: number
): Decision<void> => {
  if (action.type !== "tokenDelegate") return Result.succeed(undefined)
  return action.hyperliquidChain === profile.chainName
    ? refuseIf(action.nonce !== nonce, VenueRefusal.nonceMismatch)
    : Result.fail(VenueRefusal.wrongNetwork)
}

/** The account behind a key: its own, or the one that it is an API wallet of. */
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
    return lower(vault)
  })

type Wrapper = Extract<VenueAction, { readonly type: "multiSig" }>

const multiSigUser = (
  state: VenueState,
  wrapper: Wrapper,
  signed: Extract<RecoveredSigner, { readonly scheme: "multiSig" }>
): Decision<Address> =>
  Result.gen(function*() {
    const user = lower(wrapper.payload.multiSigUser)
    yield* refuseIf(signed.signer !== lower(wrapper.payload.outerSigner), VenueRefusal.invalidOuterSigner)
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
    : Result.succeed(changeAccount(state, user, (account) => ({ ...account, requests: { limit, sent: sent + 1 } })))
}

const isExpired = ({ expiresAfter }: SignedEnvelope, now: number): boolean =>
  expiresAfter !== undefined && expiresAfter !== null && expiresAfter < now

/**
 * Decides on a submission at the instant `now`.
 *
 * A refusal before the nonce is looked at leaves no trace. From then on the nonce is used up, whatever becomes of the
 * action; the leader's is the one that counts for a multi-sig wrapper.
 */
export const decide = (
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
    return { user, next: yield* VenueNonce.use(counted, signed.signer, envelope.nonce, now) }
  })
  if (Result.isFailure(admitted)) return [admitted.failure, state]
  const { next, user } = admitted.success
  const executed = signed.scheme !== "multiSig" && accountOf(next, user).multiSig !== undefined
    ? Result.fail(VenueRefusal.multiSigRequired)
    : execute(next, user, inner)
  return Result.match(executed, {
    onFailure: (refusal) => [refusal, next] as const,
    onSuccess: (done) => [undefined, done] as const
  })
}
