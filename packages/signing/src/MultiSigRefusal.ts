/** Why a multi-sig proposal, an approval of it, or its assembly is refused. */
import { Address, Hash } from "@trigate/domain/Hex"
import { Millis } from "@trigate/domain/Time"
import * as Schema from "effect/Schema"

/** A text that is no proposal or no approval; `faults` say where and why. */
export class MultiSigMalformed extends Schema.TaggedError<MultiSigMalformed>()("MultiSigMalformed", {
  what: Schema.Literals(["proposal", "approval"]),
  faults: Schema.Array(Schema.Struct({
    path: Schema.Array(Schema.Union([Schema.String, Schema.Int])),
    message: Schema.String
  }))
}) {
  override get message() {
    const [first, ...more] = this.faults
    const where = first === undefined || first.path.length === 0 ? "" : `${first.path.join(".")}: `
    const rest = more.length === 0 ? "" : `, and ${more.length} more`
    return `Not a multi-sig ${this.what}: ${where}${first?.message ?? ""}${rest}`
  }
}

/** The digest that a proposal claims does not follow from what it proposes: it was altered, or made by other rules. */
export class ProposalAltered extends Schema.TaggedError<ProposalAltered>()("ProposalAltered", {
  claimed: Hash,
  derived: Hash
}) {
  override get message() {
    return `The proposal claims the digest ${this.claimed}, but what it proposes has ${this.derived}`
  }
}

/** The venue no longer takes the action: `because` its expiry has passed or its nonce has left the window. */
export class ProposalExpired extends Schema.TaggedError<ProposalExpired>()("ProposalExpired", {
  because: Schema.Literals(["expiresAfter", "nonceWindow"]),
  deadline: Millis,
  now: Millis
}) {
  override get message() {
    return `The proposal expired at ${this.deadline} (${this.because}); it is ${this.now}`
  }
}

/**
 * A signature that is not the named one's: over other bytes it recovers to an address that nobody holds.
 *
 * `recovered` is absent where it recovers to nothing. For a `leader` it also says that the given key is not the
 * proposal's outer signer.
 */
export class WrongSigner extends Schema.TaggedError<WrongSigner>()("WrongSigner", {
  role: Schema.Literals(["cosigner", "leader"]),
  expected: Address,
  recovered: Schema.optionalKey(Address)
}) {
  override get message() {
    return `The signature is by ${this.recovered ?? "nobody"}, not by the ${this.role} ${this.expected}`
  }
}

/** The signer is not among the authorized users that the proposal names. */
export class CosignerNotAuthorized extends Schema.TaggedError<CosignerNotAuthorized>()("CosignerNotAuthorized", {
  signer: Address,
  authorizedUsers: Schema.Array(Address)
}) {
  override get message() {
    return `${this.signer} is not an authorized user of the multi-sig account`
  }
}

/** The co-signer has approved already, and counts once. */
export class AlreadyApproved extends Schema.TaggedError<AlreadyApproved>()("AlreadyApproved", { signer: Address }) {
  override get message() {
    return `${this.signer} has approved already`
  }
}

/** The approval is of another proposal: `digest` is what it approves, `expected` what this proposal asks for. */
export class ApprovalOfOther extends Schema.TaggedError<ApprovalOfOther>()("ApprovalOfOther", {
  signer: Address,
  digest: Hash,
  expected: Hash
}) {
  override get message() {
    return `${this.signer} approved ${this.digest}, not this proposal's ${this.expected}`
  }
}

/** Fewer co-signers than the account asks for; `missing` are the authorized users who have not approved, where known. */
export class ThresholdNotMet extends Schema.TaggedError<ThresholdNotMet>()("ThresholdNotMet", {
  threshold: Schema.Int,
  approved: Schema.Array(Address),
  missing: Schema.Array(Address)
}) {
  override get message() {
    return `${this.approved.length} of ${this.threshold} needed co-signers have approved`
  }
}
