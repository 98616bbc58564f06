/** Until when the venue takes a multi-sig action. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { ProposalExpired } from "./MultiSigRefusal.ts"

/** The last instant, in milliseconds, and which of the two bounds it comes from. */
export interface MultiSigDeadline {
  readonly at: number
  readonly because: ProposalExpired["because"]
}

/** A nonce is taken while it is less than two days old (the venue's documentation). */
const nonceLife = 2 * 86_400_000

/** The earlier of the expiry, where there is one, and the end of the nonce's window. */
export const of = (
  { expiresAfter, nonce }: { readonly nonce: number; readonly expiresAfter?: number }
): MultiSigDeadline =>
  expiresAfter !== undefined && expiresAfter < nonce + nonceLife
    ? { at: expiresAfter, because: "expiresAfter" }
    : { at: nonce + nonceLife, because: "nonceWindow" }

/** Fails with `ProposalExpired` from the deadline on. */
export const check = Effect.fnUntraced(function*(
  bounds: Parameters<typeof of>[0]
): Effect.fn.Return<void, ProposalExpired> {
  const { at, because } = of(bounds)
  const now = yield* Clock.currentTimeMillis
  return now < at ? undefined : yield* new ProposalExpired({ because, deadline: at, now })
})
