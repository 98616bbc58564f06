/** One co-signer's signature under a multi-sig proposal, as a value that travels between machines. */
import { faultsOf } from "@trigate/domain/Decode"
import { Address, Hash } from "@trigate/domain/Hex"
import * as JsonText from "@trigate/domain/JsonText"
import { Signature } from "@trigate/domain/Signature"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { lowerCase } from "./internal/bytes.ts"
import { type GivenSignature, verifiedSignature } from "./internal/verifiedSignature.ts"
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
import { Secp256k1 } from "./Secp256k1.ts"
import type * as Signable from "./Signable.ts"

/** A key that signs: the service `Signer`, or whatever stands for one. */
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

const checkAuthorized = ({ authorizedUsers }: MultiSigProposal, signer: Address) =>
  authorizedUsers === undefined || authorizedUsers.includes(signer)
    ? Effect.void
    : Effect.fail(new CosignerNotAuthorized({ signer, authorizedUsers }))

/**
 * The signature over `digest` in the venue's form, with 27 or 28 for `v`; fails with `WrongSigner` unless it is by
 * `expected`, in lower case.
 */
export const verified = Effect.fnUntraced(function*(
  role: WrongSigner["role"],
  expected: Address,
  digest: Hash,
  given: GivenSignature
): Effect.fn.Return<Signature, WrongSigner> {
  const engine = yield* Secp256k1
  return yield* Effect.fromResult(
    Result.mapError(
      verifiedSignature(engine, expected, digest, given),
      (recovered) => new WrongSigner({ role, expected, ...(recovered === undefined ? {} : { recovered }) })
    )
  )
})

/** The signature of an approval of a proposal that has been derived from its own terms; for `MultiSigAssembly`. */
export const check = Effect.fnUntraced(function*(
  proposal: MultiSigProposal,
  { digest, signature, signer }: MultiSigApproval
): Effect.fn.Return<Signature, ApprovalOfOther | CosignerNotAuthorized | WrongSigner> {
  if (digest !== proposal.digest) {
    return yield* new ApprovalOfOther({ signer, digest, expected: proposal.digest })
  }
  yield* checkAuthorized(proposal, signer)
  return yield* verified("cosigner", signer, digest, signature)
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

const approvalBy = ({ digest }: MultiSigProposal, signer: Address, given: GivenSignature) =>
  Effect.map(
    verified("cosigner", signer, digest, given),
    (signature): MultiSigApproval => ({ digest, signer, signature })
  )

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
 * Accepts a signature that was made elsewhere, over the proposal's typed data or digest: 65 bytes in 0x hex as wallets
 * give it, or its numbers. `approvals` are those that are there already. Fails as {@link approve} does.
 */
export const accept = Effect.fn("MultiSigApproval.accept")(function*(
  proposal: MultiSigProposal,
  address: Address,
  signature: GivenSignature,
  approvals: ReadonlyArray<MultiSigApproval> = []
): Effect.fn.Return<MultiSigApproval, ApprovalFailure> {
  const signer = lowerCase(address)
  return yield* approvalBy(yield* open(proposal, signer, approvals), signer, signature)
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
