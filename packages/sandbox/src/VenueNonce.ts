/** The venue's nonce rule: inside a window around its time, never used, above the lowest of the 100 highest. */
import type { Address } from "@trigate/domain/Hex"
import * as Result from "effect/Result"
import { withEntry } from "./Entries.ts"
import * as VenueRefusal from "./VenueRefusal.ts"
import type { VenueState } from "./VenueState.ts"

/** Nonces kept of each signer. */
export const kept = 100

const day = 86_400_000

/** Uses up a nonce of a signer at the instant `now`; the failure is the venue's refusal. */
export const use = (
  state: VenueState,
  signer: Address,
  nonce: number,
  now: number
): Result.Result<VenueState, string> => {
  const used = state.nonces.get(signer) ?? []
  const earliest = now - 2 * day
  const latest = now + day
  const lowest = used.length < kept ? undefined : used[0]
  if (nonce < earliest) return Result.fail(VenueRefusal.nonceTooLow(nonce, earliest))
  if (nonce > latest) return Result.fail(VenueRefusal.nonceTooHigh(nonce, latest))
  if (used.includes(nonce)) return Result.fail(VenueRefusal.duplicateNonce(nonce))
  if (lowest !== undefined && nonce < lowest) return Result.fail(VenueRefusal.nonceTooLow(nonce, lowest))
  const next = [...used, nonce].toSorted((a, b) => a - b).slice(-kept)
  return Result.succeed({ ...state, nonces: withEntry(state.nonces, signer, next) })
}
