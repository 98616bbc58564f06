/** What a caller's `Cache-Control` says of the answers that it takes (RFC 9111, section 5.2.1). */
import { Freshness } from "@trigate/upstream/Freshness"
import * as Effect from "effect/Effect"

const notKept = /(?:^|[\s,])(?:no-cache|no-store|max-age=0+)(?:$|[\s,;])/iu
const someAge = /(?:^|[\s,])max-age=[0-9]{1,9}(?:$|[\s,;])/iu

/** The freshness that a header asks for; nothing where it asks for none in particular. */
export const of = (cacheControl: string): Freshness | undefined =>
  notKept.test(cacheControl) ? "none" : someAge.test(cacheControl) ? "block" : undefined

/** Runs a request with the freshness that its header asks for. */
export const provide = <A, E, R>(effect: Effect.Effect<A, E, R>, cacheControl: string | undefined) => {
  const freshness = cacheControl === undefined ? undefined : of(cacheControl)
  return freshness === undefined ? effect : Effect.provideService(effect, Freshness, freshness)
}
