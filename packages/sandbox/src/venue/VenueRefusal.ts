/**
 * The venue's refusals, verbatim. The sources are the venue's documentation, the tests of client libraries, and a
 * catalogue of refusals recorded on the venue's testnet.
 */
import type { Address } from "@trigate/domain/encoding/Hex"

/** Refusal: the signature recovers to an address that is neither an account nor an API wallet. */
export const unknownUser = (signer: Address) => `User or API Wallet ${signer} does not exist.`

/** Refusal: an API wallet signed an action that only the key of the account itself can sign. */
export const mustDeposit = (signer: Address) => `Must deposit before performing actions. User: ${signer}`

export const duplicateNonce = (nonce: number) => `Invalid nonce: duplicate nonce ${nonce}`

/** Refusal: the nonce is too old for the venue's nonce window, or below the signer's lowest stored nonce. */
export const nonceTooLow = (nonce: number, lowest: number) => `Invalid nonce: nonce too low ${nonce} < ${lowest}`

/** Refusal: the nonce is too far in the future for the venue's nonce window. */
export const nonceTooHigh = (nonce: number, highest: number) => `Invalid nonce: nonce too high ${nonce} > ${highest}`

/** Refusal: the nonce in the action differs from the nonce of the body. */
export const nonceMismatch = "Nonce mismatch."

export const wrongNetwork = "Mainnet and testnet require different signature."
export const expired = "Action already expired"
export const multiSigRequired = "Multi-sig required"
export const thresholdNotMet = "Multi-sig threshold not met"

/** Refusal: the signature of a co-signer recovers to an address that is not authorized. */
export const invalidInnerSigner = "Invalid multi-sig inner signer"

/** Refusal: the outer signature is not from the leader, or the leader is not authorized. */
export const invalidOuterSigner = "Invalid multi-sig outer signer"

export const outerSignerUnknown = "Multi-sig outer signer must be an L1 user."

/** Refusal: the account named in the wrapper is not a multi-sig account. */
export const invalidMultiSigUser = "Invalid multi-sig user"

/** Refusal: the rule of a multi-sig account names more than ten users. */
export const tooManySigners = "Too many multi-sig signers"

/** Refusal: the threshold of a multi-sig account is below one, or above the number of users. */
export const invalidThreshold = "Invalid multi-sig threshold"

export const authorizedUserUnknown = "Multi-sig authorized user must exist on L1"
export const selfAuthorized = "Cannot register self as multi-sig authorized user"

/** Refusal: `vaultAddress` is not a vault or sub-account that the signer leads. */
export const unknownVault = (vault: Address) => `Vault not registered: ${vault}`

/** Refusal: the account that sent a `CSignerAction` is not a validator. */
export const notValidator = "Signer invalid or inactive for current epoch"

export const unknownValidator = "Unknown validator"

/** Refusal: the amount to delegate or undelegate exceeds the stake. */
export const insufficientStake = "Insufficient stake"

const cents = (usd: string): string => {
  const [whole = "0", fraction = ""] = usd.split(".")
  return `${whole}.${fraction.slice(0, 2).padEnd(2, "0")}`
}

/** Refusal: the account has reached its request limit. */
export const tooManyRequests = (sent: number, limit: number, volume: string) =>
  `Too many cumulative requests sent (${sent} > ${limit}) for cumulative volume traded $${cents(volume)}. ` +
  "Place taker orders to free up 1 request per USDC traded."

/** Refusal (HTTP 422, plain text): the body is JSON, but it does not have the shape of a known query or action. */
export const wrongShape = "Failed to deserialize the JSON body into the target type"

/** Refusal (HTTP 400, plain text): the body is not JSON. */
export const notJson = "Failed to parse the request body as JSON"
