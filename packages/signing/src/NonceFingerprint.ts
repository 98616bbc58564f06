/** Tells identical bytes from others under one nonce. */
import { type Hex, keccak256, toHex } from "./internal/bytes.ts"

/** keccak-256 of the bytes of a signed body, as they are sent. */
export const fingerprint = (body: Uint8Array): Hex => toHex(keccak256(body))
