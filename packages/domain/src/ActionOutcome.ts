/** What the venue says to a signed action: HTTP 200 is not success. */
import * as Schema from "effect/Schema"
import { Address } from "./Hex.ts"
import { openStruct } from "./OpenStruct.ts"

/** The venue took the action; `response` is what it answered (`{"type":"default"}` for the four actions). */
export const ActionAccepted = Schema.Struct({
  status: Schema.Literal("ok"),
  response: openStruct({ type: Schema.String })
}).annotate({ identifier: "ActionAccepted" })
export type ActionAccepted = typeof ActionAccepted.Type

/** The classes of refusal that the venue's texts are known to fall in; the list of texts is open. */
export const RejectionReason = Schema.Literals([
  "UnknownSigner",
  "WrongSignature",
  "NonceDuplicate",
  "NonceTooLow",
  "NonceTooHigh",
  "NonceMismatch",
  "WrongNetwork",
  "Expired",
  "MultiSig",
  "VaultUnknown",
  "NotValidator",
  "Refused",
  "AddressRateLimited",
  "ShapeRefused",
  "Unclassified"
]).annotate({ identifier: "RejectionReason" })
export type RejectionReason = typeof RejectionReason.Type

/**
 * The venue refused the action. `message` is its own text; `signer` is the address in that text, if it names one.
 *
 * The venue can refuse a part of a batch: `response` is then its whole answer, and the other entries were accepted. Only
 * embedded services and the typed client raise this error: the HTTP route relays the venue's answer as it is.
 */
export class ActionRejected extends Schema.TaggedError<ActionRejected>()("ActionRejected", {
  reason: RejectionReason,
  message: Schema.String,
  signer: Schema.optionalKey(Address),
  recovered: Schema.optionalKey(Address),
  response: Schema.optionalKey(Schema.Unknown)
}) {
  get group() {
    return "fix-request" as const
  }
}

/** Text prefixes by reason, matched in order (facts: the venue's documentation, client libraries, a testnet catalogue). */
const prefixes: ReadonlyArray<readonly [prefix: string, reason: RejectionReason]> = [
  ["User or API Wallet ", "UnknownSigner"],
  ["Must deposit before performing actions", "UnknownSigner"],
  ["Invalid nonce: duplicate nonce", "NonceDuplicate"],
  ["Invalid nonce: nonce too low", "NonceTooLow"],
  ["Invalid nonce: nonce too high", "NonceTooHigh"],
  ["Nonce mismatch", "NonceMismatch"],
  ["Mainnet and testnet require different signature", "WrongNetwork"],
  ["Action already expired", "Expired"],
  ["Multi-sig", "MultiSig"],
  ["Invalid multi-sig", "MultiSig"],
  ["Too many multi-sig signers", "MultiSig"],
  ["Cannot register self as multi-sig", "MultiSig"],
  ["Vault not registered", "VaultUnknown"],
  ["Signer invalid or inactive for current epoch", "NotValidator"],
  ["Unknown validator", "Refused"],
  ["Insufficient ", "Refused"],
  ["Agents do not have permission", "Refused"],
  ["Too many cumulative requests sent", "AddressRateLimited"],
  ["Failed to deserialize", "ShapeRefused"]
]

const addressIn = /0x[0-9a-fA-F]{40}/u
const isAddress = Schema.is(Address)

/**
 * Reads a refusal text of the venue; an unknown text is `Unclassified` and kept whole.
 *
 * `recovered` is whom the signature recovers to here. Where the venue names somebody else as unknown, it has hashed other
 * bytes than were signed: `WrongSignature`. Where it names the same, the signature is right and the signer has no account,
 * or is no approved API wallet: `UnknownSigner`, which is also the reason while nobody has recovered the signer.
 */
export const classifyRejection = (text: string, recovered?: Address): ActionRejected => {
  const bare = text.startsWith("L1 error: ") ? text.slice("L1 error: ".length) : text
  const reason = prefixes.find(([prefix]) => bare.startsWith(prefix))?.[1] ?? "Unclassified"
  // other texts name other accounts: a vault, a validator
  const signer = reason === "UnknownSigner" ? addressIn.exec(bare)?.[0] : undefined
  if (!isAddress(signer)) return new ActionRejected({ reason, message: text })
  if (recovered === undefined) return new ActionRejected({ reason, message: text, signer })
  return new ActionRejected({
    reason: signer.toLowerCase() === recovered.toLowerCase() ? reason : "WrongSignature",
    message: text,
    signer,
    recovered
  })
}
