/** The name under which the answers of one upstream are kept: two chains, or two networks of one, share none. */
import * as Digest from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Upstream } from "./Upstream.ts"

const DIGITS = 16

/**
 * The space of an upstream: its label and a digest of its addresses.
 *
 * Replicas with the same addresses share answers; the addresses cannot be read from it.
 */
export const of = ({ addresses, label }: Upstream): Effect.Effect<string, never, Digest.Digest> =>
  Digest.Digest.use((digest) =>
    Effect.map(
      digest.digestHex(Digest.sha256, new TextEncoder().encode(addresses.map(Redacted.value).join("\n"))),
      (hex) => `${label}/${hex.slice(0, DIGITS)}`
    )
  )
