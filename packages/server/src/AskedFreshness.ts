/** What a caller's `Cache-Control` says of the answers that it takes (RFC 9111, section 5.2.1). */
import { Freshness, MaxAge } from "@trigate/upstream/Freshness"
import * as Effect from "effect/Effect"

const notKept = /(?:^|[\s,])(?:no-cache|no-store|max-age=0+)(?:$|[\s,;])/iu
const someAge = /(?:^|[\s,])max-age=(?<seconds>[0-9]{1,9})(?:$|[\s,;])/iu

/** Runs a request with the freshness that its header asks for; a header that says nothing of it changes nothing. */
export const provide = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  cacheControl: string | undefined
): Effect.Effect<A, E, R> => {
  if (cacheControl === undefined) return effect
  if (notKept.test(cacheControl)) return Effect.provideService(effect, Freshness, "none")
  const seconds = someAge.exec(cacheControl)?.groups?.["seconds"]
  if (seconds === undefined) return effect
  return effect.pipe(Effect.provideService(Freshness, "block"), Effect.provideService(MaxAge, Number(seconds)))
}
