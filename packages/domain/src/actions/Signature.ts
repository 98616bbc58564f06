/** Schemas of signatures, as the venue encodes them. */
import * as Schema from "effect/Schema"
import { hex } from "../encoding/Hex.ts"

/** The `r` or `s` of a signature: 0x hex of 1 to 64 digits, because inner multi-sig signatures omit leading zeros. */
export const SignaturePart = hex(/^0x[0-9a-fA-F]{1,64}$/u, "SignaturePart", "0x hex of 1 to 64 digits")
  .annotate({ description: "Up to 32 bytes, 0x hex of 1 to 64 digits" })

/** A secp256k1 signature with its recovery bit: `v` is 27 or 28; some signers send 0 or 1. */
export const Signature = Schema.Struct({
  r: SignaturePart,
  s: SignaturePart,
  v: Schema.Literals([27, 28, 0, 1])
}).annotate({ identifier: "Signature" })
export type Signature = typeof Signature.Type
