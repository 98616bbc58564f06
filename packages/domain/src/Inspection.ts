/** The response of `POST /exchange/inspect`, which describes a signed body without relaying it. */
import * as Schema from "effect/Schema"
import { Address, Data, Hash, Millis } from "./encoding/Encoding.ts"
import { PolicyViolation } from "./errors/GatewayError.ts"

/** A recovered signer, and the digest that its signature covers. A wrong signature recovers to an unrelated address. */
export const InspectedSigner = Schema.Struct({ signer: Address, digest: Hash }).annotate({
  identifier: "InspectedSigner"
})

/**
 * The mistakes that the inspector finds in signed bodies. The module `SigningMistake` contains a message for each mistake.
 *
 * Some mistakes are visible in the body, in the numbers of the signature, or in the recovered signers. Otherwise, the
 * signer signed a message that differs from the body: the inspector tries each known difference until the signature
 * recovers to the expected signer.
 */
export const SignatureMistake = Schema.Literals([
  // mistakes in the wrapper around a body
  "wrappedBody",
  // mistakes in the values of an action
  "trailingZero",
  "decimalText",
  "valueType",
  "letterCase",
  "integerAsFloat",
  "integerWidth",
  "textWidth",
  "sizeWidth",
  "otherEncoding",
  "otherHash",
  "roundedInteger",
  "jsonText",
  "unicodeForm",
  // mistakes in the members of an action
  "fieldOrder",
  "nullDropped",
  "nullHashed",
  "falseHashed",
  "memberNotSigned",
  "memberAdded",
  "otherType",
  "missingMember",
  "misplacedMember",
  "wrongShape",
  "emptyList",
  "unsortedList",
  "unknownWord",
  "unknownType",
  "unacceptedValue",
  "documentedForm",
  // mistakes in the members beside the action
  "otherNetwork",
  "vaultNotSigned",
  "vaultNotSent",
  "vaultMarker",
  "expiresAfterNotSigned",
  "expiresAfterNotSent",
  "expiresAfterMarker",
  "timeUnit",
  "otherNonce",
  "documentedPreimage",
  "preimageOrder",
  "byteOrder",
  "ownVault",
  // mistakes in the typed data
  "otherChainId",
  "otherDomain",
  "sourceLetter",
  "primaryType",
  "typeFields",
  "fieldType",
  "otherScheme",
  "olderTypedData",
  "absentSigned",
  "documentedChainField",
  // mistakes in a multi-sig wrapper
  "untrimmedSignature",
  "chainIdText",
  "typeHashed",
  "notWrapped",
  "otherParties",
  "otherPart",
  "otherLeader",
  "repeatedCosigner",
  // mistakes in the signature
  "hashSigned",
  "personalSign",
  "otherRecoveryBit",
  "recoveryBitForm",
  "swappedHalves",
  "shiftedHalves",
  "otherKey",
  "refused"
]).annotate({ identifier: "SignatureMistake" })
export type SignatureMistake = typeof SignatureMistake.Type

/**
 * A mistake in a signed body: its path in the body, the wrong value that was sent or signed, and the expected value.
 */
export const Mistake = Schema.Struct({
  mistake: SignatureMistake,
  path: Schema.Array(Schema.Union([Schema.String, Schema.Int])).annotateKey({
    description: "Path in the body; empty if the mistake is in the signature or concerns the whole message"
  }),
  found: Schema.optionalKey(Schema.String),
  expected: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "Mistake" })
export type Mistake = typeof Mistake.Type

/**
 * A path at which the sent action differs from the canonical action. `sent` is absent if the sent action has no value
 * at the path, and `canonical` is absent if the canonical action has none.
 */
export const Difference = Schema.Struct({
  path: Schema.Array(Schema.Union([Schema.String, Schema.Int])),
  sent: Schema.optionalKey(Schema.String),
  canonical: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "Difference" })
export type Difference = typeof Difference.Type

/** The result of comparing a signature with the expected signer: a verdict, the mistakes, and the corrections. */
export const SignatureDiagnosis = Schema.Struct({
  expectedSigner: Schema.optionalKey(Address),
  verdict: Schema.Literals(["fits", "explained", "unexplained", "unchecked"]).annotateKey({
    description: "`explained`: with the `mistakes` corrected, the signature fits. `unchecked`: no signer was expected"
  }),
  mistakes: Schema.Array(Mistake),
  innerIndex: Schema.optionalKey(Schema.Int).annotateKey({
    description: "Index of the signature inside a multi-sig; absent for the signature of the body itself"
  }),
  digest: Schema.optionalKey(Hash).annotateKey({ description: "The digest that was signed, if known" }),
  detail: Schema.String.annotateKey({ description: "The verdict, the mistakes and their corrections in one sentence" })
}).annotate({ identifier: "SignatureDiagnosis" })
export type SignatureDiagnosis = typeof SignatureDiagnosis.Type

/** The body with the mistakes corrected. */
export const CorrectedBody = Schema.Struct({
  body: Schema.String.annotateKey({
    description: "JSON text for `POST /exchange`; send it unchanged, because a parser may lose digits of large integers"
  }),
  signature: Schema.Literals(["kept", "again"]).annotateKey({
    description: "`kept`: the body has the expected signer's signature. `again`: it has none; sign `typedData`"
  }),
  verified: Schema.Boolean.annotateKey({
    description: "Whether the body, for `again` once it is signed, passes the checks of `POST /exchange`"
  })
}).annotate({ identifier: "CorrectedBody" })
export type CorrectedBody = typeof CorrectedBody.Type

/**
 * Describes a signed body, which the gateway inspects but does not relay: its form (`wire`, `documented` or `opaque`),
 * its signer and nonce, and the corrected body.
 */
export const Inspection = Schema.Struct({
  actionType: Schema.String,
  form: Schema.Literals(["wire", "documented", "opaque"]).annotateKey({
    description:
      "`wire`: accepted by the venue; `documented`: in its documentation, but rejected; `opaque`: an unknown type"
  }),
  network: Schema.Literals(["mainnet", "testnet"]).annotateKey({
    description: "The network for which the signature was checked"
  }),
  scheme: Schema.optionalKey(Schema.Literals(["l1", "userSigned", "multiSig"])),
  outer: Schema.optionalKey(InspectedSigner),
  inner: Schema.optionalKey(Schema.Array(InspectedSigner)),
  typedData: Schema.optionalKey(Schema.Unknown).annotateKey({
    description: "EIP-712 typed data for a wallet to sign"
  }),
  canonicalAction: Schema.optionalKey(Schema.Unknown).annotateKey({
    description:
      "The corrected action, as the venue encodes it before hashing. Integers above 2^53 are decimal strings, also in " +
      "`typedData`"
  }),
  differences: Schema.Array(Difference).annotateKey({
    description: "Differences between the sent action and `canonicalAction`; at most 16"
  }),
  msgpack: Schema.optionalKey(Data).annotateKey({
    description: "MessagePack of the hashed value: an L1 action, or a multi-sig wrapper without its `type`"
  }),
  connectionId: Schema.optionalKey(Hash).annotateKey({
    description: "Hash of an L1 action, or of the L1 action inside a multi-sig"
  }),
  multiSigHash: Schema.optionalKey(Hash).annotateKey({
    description: "Hash of a multi-sig wrapper, which the leader (`outerSigner`) signs"
  }),
  unsigned: Schema.optionalKey(Schema.String).annotateKey({
    description: "The reason why no signer can be determined; absent if a signer was recovered"
  }),
  otherNetwork: Schema.optionalKey(
    Schema.Struct({ network: Schema.Literals(["mainnet", "testnet"]), ...InspectedSigner.fields })
  ).annotateKey({
    description:
      "The signer that the signature recovers to on the other network; absent if the signature fits this network"
  }),
  nonce: Schema.Struct({
    value: Millis,
    now: Millis,
    earliest: Millis,
    latest: Millis,
    inWindow: Schema.Boolean
  }),
  diagnosis: SignatureDiagnosis,
  corrected: Schema.optionalKey(CorrectedBody).annotateKey({
    description: "The corrected body; absent if the body is correct or its action type is unknown"
  }),
  policyViolation: Schema.optionalKey(PolicyViolation).annotateKey({
    description: "The refusal of the guard if the body were sent now; absent if the guard would let it pass"
  }),
  warnings: Schema.Array(Schema.String)
}).annotate({ identifier: "Inspection" })
export type Inspection = typeof Inspection.Type
