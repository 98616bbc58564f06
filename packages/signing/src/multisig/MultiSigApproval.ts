/**
 * The co-signers' approvals of a multi-sig proposal, and the body that the leader sends after enough co-signers have
 * approved.
 */
import { Signature } from "@trigate/domain/actions/Signature"
import type { SignedAction } from "@trigate/domain/actions/SignedAction"
import { Address, Hash, lowerCase } from "@trigate/domain/encoding/Hex"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { wrongShape } from "../actions/ActionHash.ts"
import * as Signable from "../actions/Signable.ts"
import * as Secp256k1 from "../Secp256k1.ts"
import { profileFor } from "../VenueProfile.ts"
import * as MultiSig from "./MultiSig.ts"
import type { MultiSigProposal, VerificationFailure } from "./MultiSigProposal.ts"
import * as MultiSigProposal_ from "./MultiSigProposal.ts"
import * as MultiSigTerms from "./MultiSigTerms.ts"

/**
 * The signature is not by the expected signer. This is also the error for a signature of another message, because such
 * a signature recovers to an unrelated address.
 *
 * `recovered` is absent if recovery fails. For the role `leader`, a further cause is a signing key that is not the key
 * of the proposal's outer signer.
 */
export class WrongSigner extends Schema.TaggedError<WrongSigner>()("WrongSigner", {
  role: Schema.Literals(["cosigner", "leader"]),
  expected: Address,
  recovered: Schema.optionalKey(Address)
}) {
  get group() {
    return "fix-setup" as const
  }
  override get message() {
    return `The signature is by ${this.recovered ?? "an unknown signer"}, not by the ${this.role} ${this.expected}`
  }
}

/** The signer is not one of the proposal's authorized users. */
export class CosignerNotAuthorized extends Schema.TaggedError<CosignerNotAuthorized>()("CosignerNotAuthorized", {
  signer: Address,
  authorizedUsers: Schema.Array(Address)
}) {
  get group() {
    return "fix-setup" as const
  }
  override get message() {
    return `${this.signer} is not an authorized user of the multi-sig account`
  }
}

/** The co-signer has already approved; a second approval does not count. */
export class AlreadyApproved extends Schema.TaggedError<AlreadyApproved>()("AlreadyApproved", { signer: Address }) {
  get group() {
    return "fix-request" as const
  }
  override get message() {
    return `${this.signer} has already approved`
  }
}

/**
 * The approval is for a different proposal: `digest` is the approved digest, `expected` the digest of this proposal.
 */
export class ApprovalOfOther extends Schema.TaggedError<ApprovalOfOther>()("ApprovalOfOther", {
  signer: Address,
  digest: Hash,
  expected: Hash
}) {
  get group() {
    return "fix-request" as const
  }
  override get message() {
    return `${this.signer} approved ${this.digest}, not this proposal's ${this.expected}`
  }
}

/**
 * There are fewer approvals than the account requires. `missing` lists the authorized users that have not approved; it
 * is empty if the authorized users are unknown.
 */
export class ThresholdNotMet extends Schema.TaggedError<ThresholdNotMet>()("ThresholdNotMet", {
  threshold: Schema.Int,
  approved: Schema.Array(Address),
  missing: Schema.Array(Address)
}) {
  get group() {
    return "fix-request" as const
  }
  override get message() {
    return `${this.approved.length} of ${this.threshold} required co-signers have approved`
  }
}

/** A signing key: the service `Signer`, or an object of the same shape. */
export interface Cosigner<E = never, R = never> {
  readonly address: Address
  readonly sign: (signable: Signable.Signable) => Effect.Effect<Signature, E, R>
}

/**
 * An approval: the digest of the proposal, and the co-signer's address and signature. Its encoded form is plain JSON.
 */
export const MultiSigApproval = Schema.Struct({
  digest: Hash,
  signer: Address,
  signature: Signature
}).annotate({ identifier: "MultiSigApproval" })
export type MultiSigApproval = typeof MultiSigApproval.Type

/** The reasons why an approval is refused, before or after it is signed. */
export type ApprovalFailure =
  | VerificationFailure
  | MultiSigTerms.ProposalExpired
  | CosignerNotAuthorized
  | AlreadyApproved
  | WrongSigner

const checkAuthorized = ({ authorizedUsers }: MultiSigProposal, signer: Address) =>
  authorizedUsers === undefined || authorizedUsers.includes(signer)
    ? Effect.void
    : Effect.fail(new CosignerNotAuthorized({ signer, authorizedUsers }))

/**
 * Returns the signature of `digest` in the venue's form, with a `v` of 27 or 28. Fails with `WrongSigner` if the signer
 * is not `expected`, an address in lower case.
 */
const verified = Effect.fnUntraced(function*(
  role: WrongSigner["role"],
  expected: Address,
  digest: Hash,
  given: Secp256k1.GivenSignature
): Effect.fn.Return<Signature, WrongSigner> {
  const engine = yield* Secp256k1.Secp256k1
  return yield* Effect.fromResult(
    Result.mapError(
      Secp256k1.verified(engine, expected, digest, given),
      (recovered) => new WrongSigner({ role, expected, ...(recovered === undefined ? {} : { recovered }) })
    )
  )
})

/** Verifies the signature of an approval against the digest derived from the proposal's own terms. */
const check = Effect.fnUntraced(function*(
  proposal: MultiSigProposal,
  { digest, signature, signer }: MultiSigApproval
): Effect.fn.Return<Signature, ApprovalOfOther | CosignerNotAuthorized | WrongSigner> {
  if (digest !== proposal.digest) return yield* new ApprovalOfOther({ signer, digest, expected: proposal.digest })
  yield* checkAuthorized(proposal, signer)
  return yield* verified("cosigner", signer, digest, signature)
})

/**
 * Returns the proposal, derived again from its terms, if the co-signer `signer` may approve it now. Fails if the
 * proposal was altered, has expired, or is already approved by this co-signer, or if the co-signer is not authorized.
 */
const open = Effect.fnUntraced(function*(
  given: MultiSigProposal,
  signer: Address,
  approvals: ReadonlyArray<MultiSigApproval>
) {
  const proposal = yield* MultiSigProposal_.verify(given)
  yield* MultiSigTerms.checkDeadline(proposal)
  yield* checkAuthorized(proposal, signer)
  return approvals.some((approval) => lowerCase(approval.signer) === signer && approval.digest === proposal.digest)
    ? yield* new AlreadyApproved({ signer })
    : proposal
})

const approvalBy = ({ digest }: MultiSigProposal, signer: Address, given: Secp256k1.GivenSignature) =>
  Effect.map(
    verified("cosigner", signer, digest, given),
    (signature): MultiSigApproval => ({ digest, signer, signature })
  )

/**
 * Signs a proposal with a co-signer's key; `approvals` are the approvals collected so far.
 *
 * Fails before signing with an error of `MultiSigProposal.verify`, or with `ProposalExpired`, `CosignerNotAuthorized`
 * or `AlreadyApproved`. Fails after signing with `WrongSigner` if the signature is not by the key's address. The key's
 * own errors are also possible.
 */
export const approve = Effect.fn("MultiSigApproval.approve")(function*<E, R>(
  proposal: MultiSigProposal,
  cosigner: Cosigner<E, R>,
  approvals: ReadonlyArray<MultiSigApproval> = []
): Effect.fn.Return<MultiSigApproval, ApprovalFailure | E, R> {
  const signer = lowerCase(cosigner.address)
  const verified = yield* open(proposal, signer, approvals)
  const signable = yield* Effect.fromResult(MultiSigTerms.innerSignable(verified))
  return yield* approvalBy(verified, signer, yield* cosigner.sign(signable))
})

/**
 * Makes an approval from another program's signature of the proposal's typed data or digest. The signature is 65 bytes
 * in 0x hex, as wallets return it, or an object of `r`, `s` and an optional `v`. `approvals` are the approvals
 * collected so far. Fails like {@link approve}.
 */
export const accept = Effect.fn("MultiSigApproval.accept")(function*(
  proposal: MultiSigProposal,
  address: Address,
  signature: Secp256k1.GivenSignature,
  approvals: ReadonlyArray<MultiSigApproval> = []
): Effect.fn.Return<MultiSigApproval, ApprovalFailure> {
  const signer = lowerCase(address)
  return yield* approvalBy(yield* open(proposal, signer, approvals), signer, signature)
})

/** Encodes an approval as JSON, to send to the leader. */
export const toJson = (approval: MultiSigApproval): string => JSON.stringify(approval, null, 2)

const read = MultiSigProposal_.textReader("approval", MultiSigApproval)

/** Decodes a received approval; {@link assemble} verifies the signature. Fails with `MultiSigMalformed`. */
export const fromJson = (text: string): Effect.Effect<MultiSigApproval, MultiSigProposal_.MultiSigMalformed> =>
  Effect.suspend(() => Effect.fromResult(read(text)))

/** The reasons why a body cannot be assembled. */
export type AssemblyFailure = Exclude<ApprovalFailure, AlreadyApproved> | ApprovalOfOther | ThresholdNotMet

/** Returns the approvals without repetitions: one for each co-signer, in the order of receipt. */
const distinct = (approvals: ReadonlyArray<MultiSigApproval>): ReadonlyArray<MultiSigApproval> => {
  const bySigner = new Map<Address, MultiSigApproval>()
  for (const approval of approvals) {
    const signer = lowerCase(approval.signer)
    if (!bySigner.has(signer)) bySigner.set(signer, { ...approval, signer })
  }
  return [...bySigner.values()]
}

const checkThreshold = (
  { authorizedUsers = [], threshold = 1 }: MultiSigProposal,
  approvals: ReadonlyArray<MultiSigApproval>
): Effect.Effect<void, ThresholdNotMet> => {
  const approved = approvals.map(({ signer }) => signer)
  return approved.length >= threshold
    ? Effect.void
    : Effect.fail(
      new ThresholdNotMet({ threshold, approved, missing: authorizedUsers.filter((user) => !approved.includes(user)) })
    )
}

/**
 * Assembles approvals into a multi-sig wrapper, which the leader signs, and returns the body for `POST /exchange`.
 *
 * The approvals can be in any order. Each is verified again, and only one approval of each co-signer counts. Inner
 * signatures are sent without leading zeros, as the venue hashes them.
 *
 * Fails with an error of `MultiSigProposal.verify`, or with `ProposalExpired`, `ApprovalOfOther`,
 * `CosignerNotAuthorized` or `ThresholdNotMet`. Fails with `UnsignableAction` for approvals of more than ten
 * co-signers. Fails with `WrongSigner` if a signature is not its co-signer's, or if the signing key does not belong to
 * the proposal's leader. The errors of the leader's key are also possible.
 */
export const assemble = Effect.fn("MultiSigApproval.assemble")(function*<E, R>(
  given: MultiSigProposal,
  approvals: ReadonlyArray<MultiSigApproval>,
  leader: Cosigner<E, R>
): Effect.fn.Return<SignedAction, AssemblyFailure | E, R> {
  const proposal = yield* MultiSigProposal_.verify(given)
  const { expiresAfter, nonce, outerSigner, vaultAddress } = proposal
  yield* MultiSigTerms.checkDeadline(proposal)
  const collected = distinct(approvals)
  if (collected.length > MultiSig.maxSigners) {
    return yield* wrongShape("signatures", `a list of at most ${MultiSig.maxSigners} signatures`)
  }
  const signatures = yield* Effect.forEach(collected, (approval) => check(proposal, approval))
  yield* checkThreshold(proposal, collected)
  if (lowerCase(leader.address) !== outerSigner) {
    return yield* new WrongSigner({ role: "leader", expected: outerSigner, recovered: lowerCase(leader.address) })
  }
  const action = MultiSigTerms.wrapper(proposal, signatures.map(Secp256k1.trimmed))
  const outer = yield* Effect.fromResult(MultiSig.outerSignable(profileFor(proposal.network), action, proposal))
  const signature = yield* verified("leader", outerSigner, Signable.digest(outer), yield* leader.sign(outer))
  return {
    action,
    nonce,
    signature,
    ...(vaultAddress === undefined ? {} : { vaultAddress }),
    ...(expiresAfter === undefined ? {} : { expiresAfter })
  }
})
