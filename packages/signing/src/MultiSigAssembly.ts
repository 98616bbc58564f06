/** Makes the body that the leader sends out of a multi-sig proposal and its approvals. */
import type { Address } from "@trigate/domain/Hex"
import type { Signature } from "@trigate/domain/Signature"
import type { SignedAction } from "@trigate/domain/SignedAction"
import * as Effect from "effect/Effect"
import { lowerCase } from "./internal/bytes.ts"
import * as MultiSig from "./MultiSig.ts"
import { maxSigners } from "./MultiSigAction.ts"
import type { ApprovalFailure, Cosigner, MultiSigApproval } from "./MultiSigApproval.ts"
import * as MultiSigApproval_ from "./MultiSigApproval.ts"
import * as MultiSigDeadline from "./MultiSigDeadline.ts"
import type { MultiSigProposal } from "./MultiSigProposal.ts"
import * as MultiSigProposal_ from "./MultiSigProposal.ts"
import type { AlreadyApproved, ApprovalOfOther } from "./MultiSigRefusal.ts"
import { ThresholdNotMet, WrongSigner } from "./MultiSigRefusal.ts"
import * as MultiSigTerms from "./MultiSigTerms.ts"
import * as Signable from "./Signable.ts"
import { trimmed } from "./Signature.ts"
import { wrongShape } from "./UnsignableAction.ts"

/** Why there is no body. */
export type AssemblyFailure = Exclude<ApprovalFailure, AlreadyApproved> | ApprovalOfOther | ThresholdNotMet

/** Each co-signer once, in the order in which the approvals came. */
const distinct = (approvals: ReadonlyArray<MultiSigApproval>): ReadonlyArray<MultiSigApproval> => {
  const bySigner = new Map<Address, MultiSigApproval>()
  for (const approval of approvals) {
    const signer = lowerCase(approval.signer)
    if (!bySigner.has(signer)) bySigner.set(signer, { ...approval, signer })
  }
  return [...bySigner.values()]
}

/** Without leading zeros, as the venue hashes it. */
const asSent = (signature: Signature): Signature => ({ ...trimmed(signature), v: signature.v })

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
 * Collects approvals in any order, has the leader sign the wrapper around them, and gives the body for `POST /exchange`.
 *
 * A co-signer who approved twice counts once. Each approval is checked again, wherever it comes from. Inner signatures
 * travel without leading zeros, as the venue hashes them. Fails with `ProposalAltered`, `ProposalExpired`,
 * `ApprovalOfOther`, `CosignerNotAuthorized`, `ThresholdNotMet`, with `WrongSigner` for a signature that is not its
 * signer's or a leader who is not the proposal's, and as the leader's key does.
 */
export const assemble = Effect.fn("MultiSigAssembly.assemble")(function*<E, R>(
  given: MultiSigProposal,
  approvals: ReadonlyArray<MultiSigApproval>,
  leader: Cosigner<E, R>
): Effect.fn.Return<SignedAction, AssemblyFailure | E, R> {
  const proposal = yield* MultiSigProposal_.verify(given)
  const { expiresAfter, nonce, outerSigner, vaultAddress } = proposal
  yield* MultiSigDeadline.check(proposal)
  const collected = distinct(approvals)
  if (collected.length > maxSigners) return yield* wrongShape("signatures", `at most ${maxSigners}`)
  const signatures = yield* Effect.forEach(collected, (approval) => MultiSigApproval_.check(proposal, approval))
  yield* checkThreshold(proposal, collected)
  if (lowerCase(leader.address) !== outerSigner) {
    return yield* new WrongSigner({ role: "leader", expected: outerSigner, recovered: lowerCase(leader.address) })
  }
  const action = MultiSigTerms.wrapper(
    proposal,
    signatures.map(asSent)
  )
  const outer = yield* Effect.fromResult(MultiSig.outerSignable(MultiSigTerms.profileOf(proposal), action, proposal))
  const signature = yield* MultiSigApproval_.verified(
    "leader",
    outerSigner,
    Signable.digest(outer),
    yield* leader.sign(outer)
  )
  return {
    action,
    nonce,
    signature,
    ...(vaultAddress === undefined ? {} : { vaultAddress }),
    ...(expiresAfter === undefined ? {} : { expiresAfter })
  }
})
