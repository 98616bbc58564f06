/** What the gateway sees in a signed body: the answer of `POST /exchange/inspect`, which relays nothing. */
import * as Schema from "effect/Schema"
import { Address, Hash } from "./Hex.ts"
import { Millis } from "./Time.ts"

/** An address and the digest that its signature covers; the address of a wrong signature is one that nobody holds. */
export const InspectedSigner = Schema.Struct({ signer: Address, digest: Hash }).annotate({
  identifier: "InspectedSigner"
})

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
  unsigned: Schema.optionalKey(Schema.String).annotateKey({
    description: "Why no signer can be told"
  }),
  nonce: Schema.Struct({
    value: Millis,
    now: Millis,
    earliest: Millis,
    latest: Millis,
    inWindow: Schema.Boolean
  }),
  warnings: Schema.Array(Schema.String)
}).annotate({ identifier: "Inspection" })
export type Inspection = typeof Inspection.Type
