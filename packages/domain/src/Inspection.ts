/** What the gateway sees in a signed body: the answer of `POST /exchange/inspect`, which relays nothing. */
import * as Schema from "effect/Schema"
import { Address, Data, Hash } from "./Hex.ts"
import { Millis } from "./Time.ts"

/** An address and the digest that its signature covers; the address of a wrong signature is one that nobody holds. */
export const InspectedSigner = Schema.Struct({ signer: Address, digest: Hash }).annotate({
  identifier: "InspectedSigner"
})

/** How the message that was signed can differ from the one that the body stands for; see `SignatureDiagnosis`. */
export const SignatureMistake = Schema.Literals([
  "otherNetwork",
  "vaultNotSigned",
  "vaultNotSent",
  "expiresAfterNotSigned",
  "expiresAfterNotSent",
  "otherNonce",
  "otherChainId",
  "mixedCaseAddress",
  "untrimmedSignature",
  "chainIdText",
  "fieldOrder",
  "nullDropped",
  "typeHashed",
  "notWrapped",
  "documentedChainField",
  "documentedPreimage",
  "personalSign",
  "otherRecoveryBit"
]).annotate({ identifier: "SignatureMistake" })
export type SignatureMistake = typeof SignatureMistake.Type

/** Whether a signature is the expected signer's, and if not, which likely mistake makes it so. */
export const SignatureDiagnosis = Schema.Struct({
  expectedSigner: Address,
  verdict: Schema.Literals(["fits", "explained", "unexplained"]).annotateKey({
    description: "`explained`: with `mistakes` taken back the signature is the expected signer's"
  }),
  mistakes: Schema.Array(SignatureMistake),
  innerIndex: Schema.optionalKey(Schema.Int).annotateKey({
    description: "Which inner signature it is about; absent: the signature of the body itself"
  }),
  digest: Schema.optionalKey(Hash).annotateKey({ description: "What the signature covers, where that is known" }),
  detail: Schema.String
}).annotate({ identifier: "SignatureDiagnosis" })
export type SignatureDiagnosis = typeof SignatureDiagnosis.Type

/** A body read without being sent: its form, who signed it, whether its nonce would be taken, and what to mend. */
export const Inspection = Schema.Struct({
  actionType: Schema.String,
  form: Schema.Literals(["wire", "documented", "opaque"]).annotateKey({
    description: "`documented`: shown by the documents and not taken by the venue; `opaque`: a type not known here"
  }),
  network: Schema.Literals(["mainnet", "testnet"]).annotateKey({
    description: "The network that the signature was read for"
  }),
  scheme: Schema.optionalKey(Schema.Literals(["l1", "userSigned", "multiSig"])),
  outer: Schema.optionalKey(InspectedSigner),
  inner: Schema.optionalKey(Schema.Array(InspectedSigner)),
  typedData: Schema.optionalKey(Schema.Unknown).annotateKey({
    description: "What a wallet is asked to sign, EIP-712; integers above 2^53 as decimal strings"
  }),
  canonicalAction: Schema.optionalKey(Schema.Unknown).annotateKey({
    description: "The action as the venue prints it before hashing; integers above 2^53 as decimal strings"
  }),
  msgpack: Schema.optionalKey(Data).annotateKey({
    description: "MessagePack of what is hashed: an L1 action, or a multi-sig wrapper without its type"
  }),
  connectionId: Schema.optionalKey(Hash).annotateKey({
    description: "Hash of an L1 action, or of the one inside a multi-sig"
  }),
  multiSigHash: Schema.optionalKey(Hash).annotateKey({
    description: "Hash of a multi-sig wrapper, which its leader signs"
  }),
  unsigned: Schema.optionalKey(Schema.String).annotateKey({
    description: "Why no signer can be told"
  }),
  otherNetwork: Schema.optionalKey(
    Schema.Struct({ network: Schema.Literals(["mainnet", "testnet"]), ...InspectedSigner.fields })
  ).annotateKey({
    description: "Who signed if the signature is for the other network; absent where the expected signer has signed"
  }),
  nonce: Schema.Struct({
    value: Millis,
    now: Millis,
    earliest: Millis,
    latest: Millis,
    inWindow: Schema.Boolean
  }),
  diagnosis: Schema.optionalKey(SignatureDiagnosis).annotateKey({
    description: "Of a multi-sig, and wherever an expected signer was named"
  }),
  warnings: Schema.Array(Schema.String)
}).annotate({ identifier: "Inspection" })
export type Inspection = typeof Inspection.Type
