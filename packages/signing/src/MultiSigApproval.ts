/** One co-signer's signature under a multi-sig proposal, as a value that travels between machines. */
import { faultsOf } from "@trigate/domain/Decode"
import { Address, Hash } from "@trigate/domain/Hex"
import * as JsonText from "@trigate/domain/JsonText"
import { Signature } from "@trigate/domain/Signature"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { lowerCase } from "./internal/bytes.ts"
import * as MultiSigDeadline from "./MultiSigDeadline.ts"
import type { Disbelief, MultiSigProposal } from "./MultiSigProposal.ts"
import * as MultiSigProposal_ from "./MultiSigProposal.ts"
import type { ProposalExpired } from "./MultiSigRefusal.ts"
import {
  AlreadyApproved,
  ApprovalOfOther,
  CosignerNotAuthorized,
  MultiSigMalformed,
  WrongSigner
} from "./MultiSigRefusal.ts"
import * as MultiSigTerms from "./MultiSigTerms.ts"
import * as Recovery from "./Recovery.ts"
import type * as Signable from "./Signable.ts"

/** A key that signs: a `Signer` of this package, or whatever stands for one. */
export interface Cosigner<E = never, R = never> {
  readonly address: Address
  readonly sign: (signable: Signable.Signable) => Effect.Effect<Signature, E, R>
}

/** An approval: who approves which proposal, told by the digest that both share. Plain JSON when encoded. */
export const MultiSigApproval = Schema.Struct({
  digest: Hash,
  signer: Address,
  signature: Signature
}).annotate({ identifier: "MultiSigApproval" })
export type MultiSigApproval = typeof MultiSigApproval.Type

/** Why a co-signer's approval is refused before or after the signature is there. */
export type ApprovalFailure =
  | Disbelief
  | ProposalExpired
  | CosignerNotAuthorized
  | AlreadyApproved
  | WrongSigner
  | Recovery.UnrecoverableSignature

/** A signature made elsewhere, and whose it is said to be. */
export interface GivenSignature {
  readonly signer: Address
  readonly signature: Signature
}

const checkAuthorized = ({ authorizedUsers }: MultiSigProposal, signer: Address) =>
  authorizedUsers === undefined || authorizedUsers.includes(signer)
    ? Effect.void
    : Effect.fail(new CosignerNotAuthorized({ signer, authorizedUsers }))

/** Fails with `WrongSigner` unless the signature over `digest` is by `expected`, in lower case. */
export const checkSigner = Effect.fnUntraced(function*(
  role: WrongSigner["role"],
  expected: Address,
  digest: Hash,
  signature: Signature
): Effect.fn.Return<void, WrongSigner | Recovery.UnrecoverableSignature> {
  const recovered = yield* Recovery.recover(digest, signature)
  return recovered === expected ? undefined : yield* new WrongSigner({ role, expected, recovered })
})

/** Checks an approval against a proposal that has been derived from its own terms; for `MultiSigAssembly`. */
export const check = Effect.fnUntraced(function*(
  proposal: MultiSigProposal,
  { digest, signature, signer }: MultiSigApproval
): Effect.fn.Return<
  void,
  ApprovalOfOther | CosignerNotAuthorized | WrongSigner | Recovery.UnrecoverableSignature
> {
  if (digest !== proposal.digest) {
    return yield* new ApprovalOfOther({ signer, digest, expected: proposal.digest })
  }
  yield* checkAuthorized(proposal, signer)
  yield* checkSigner("cosigner", signer, digest, signature)
})

/** The proposal derived again, once nothing speaks against the signer: nobody is asked for a signature in vain. */
const open = Effect.fnUntraced(function*(
  given: MultiSigProposal,
  signer: Address,
  approvals: ReadonlyArray<MultiSigApproval>
) {
  const proposal = yield* MultiSigProposal_.verify(given)
  yield* MultiSigDeadline.check(proposal)
  yield* checkAuthorized(proposal, signer)
  return approvals.some((approval) => lowerCase(approval.signer) === signer && approval.digest === proposal.digest)
    ? yield* new AlreadyApproved({ signer })
    : proposal
})

/** Signers that do not add 27 to the recovery bit mean the same; the venue prints 27 and 28. */
export const withRecoveryBit = ({ r, s, v }: Signature): Signature => ({ r, s, v: v === 0 || v === 27 ? 27 : 28 })

const approvalBy = Effect.fnUntraced(function*(proposal: MultiSigProposal, signer: Address, given: Signature) {
  const approval: MultiSigApproval = { digest: proposal.digest, signer, signature: withRecoveryBit(given) }
  yield* checkSigner("cosigner", signer, approval.digest, approval.signature)
  return approval
})

/**
 * Signs a proposal with a co-signer's key; `approvals` are those that are there already.
 *
 * Everything that can be refused is refused before the key is asked. Fails with `ProposalAltered`, `ProposalExpired`,
 * `CosignerNotAuthorized`, `AlreadyApproved`, with `WrongSigner` where the key is not that of its address, and as the key
 * does.
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
 * Accepts a signature made elsewhere, over the proposal's typed data or digest; `approvals` are those that are there
 * already. Fails as {@link approve} does.
 */
export const accept = Effect.fn("MultiSigApproval.accept")(function*(
  proposal: MultiSigProposal,
  given: GivenSignature,
  approvals: ReadonlyArray<MultiSigApproval> = []
): Effect.fn.Return<MultiSigApproval, ApprovalFailure> {
  const signer = lowerCase(given.signer)
  return yield* approvalBy(yield* open(proposal, signer, approvals), signer, given.signature)
})

/** The JSON text to send to whoever collects the approvals. */
export const toJson = (approval: MultiSigApproval): string => JSON.stringify(approval, null, 2)

const decode = Schema.decodeUnknownResult(MultiSigApproval, { errors: "all" })

const malformed = (faults: MultiSigMalformed["faults"]) => new MultiSigMalformed({ what: "approval", faults })

/** Reads a received text; whether the signature is the signer's is looked at when the approvals are assembled. */
export const fromJson = (text: string): Effect.Effect<MultiSigApproval, MultiSigMalformed> =>
  Effect.suspend(() =>
    Effect.fromResult(
      JsonText.parseStrict(text).pipe(
        Result.mapError((refusal) => malformed([refusal])),
        Result.flatMap((parsed) => Result.mapError(decode(parsed), (error) => malformed(faultsOf(error))))
      )
    )
  )
