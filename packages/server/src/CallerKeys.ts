/**
 * The keys of callers: where a request carries one, and whether it may pass.
 *
 * The node provider's surface has the key as the first segment of its path. Stock clients of the token chain send theirs as
 * `X-API-Key`, or as `api_key` in the query, beside a path without one. No upstream ever sees a caller's key.
 */
import { Unauthorized } from "@trigate/domain/CallerError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

/** Checks a caller's key. `check` fails with `Unauthorized`, which never holds the key. */
export class CallerKeys extends Context.Service<CallerKeys, {
  readonly check: (key: Redacted.Redacted) => Effect.Effect<void, Unauthorized>
}>()("@trigate/server/CallerKeys") {}

// a caller that forgets the key in `/{key}/…` would otherwise use a route's name as one
const reserved: ReadonlySet<string> = new Set(["api", "docs", "evm", "exchange", "health", "info", "l2", "metrics"])

/** Lets every well-formed key pass: whoever reaches the gateway may use it. */
export const layerOpen: Layer.Layer<CallerKeys> = Layer.succeed(
  CallerKeys,
  CallerKeys.of({
    check: (key) =>
      reserved.has(Redacted.value(key))
        ? Effect.fail(new Unauthorized({ detail: "The name of a route is no endpoint key" }))
        : Effect.void
  })
)

const queryName = "api_key"

/** Whether a query parameter is the caller's key, and so none of a method's params. */
export const isQueryName = (name: string): boolean => name === queryName

// names are read decoded, as those of a method's params are
const inQuery = (url: string): ReadonlyArray<string> => {
  const start = url.indexOf("?")
  return start < 0 ? [] : new URLSearchParams(url.slice(start + 1)).getAll(queryName)
}

/** Checks every key that a request without a keyed path carries; a request without any passes. */
export const admission = (
  keys: CallerKeys["Service"],
  { headers, url }: HttpServerRequest
): Effect.Effect<void, Unauthorized> => {
  const header = headers["x-api-key"]
  const found = header === undefined ? inQuery(url) : [header, ...inQuery(url)]
  return found.length === 0
    ? Effect.void
    : Effect.forEach(found, (key) => keys.check(Redacted.make(key)), { discard: true })
}
