/**
 * The key that a caller of the token chain sends beside a path without one: `X-API-Key`, or `api_key` in the query.
 *
 * Stock clients are configured with such a key. It is the caller's key here, as the first word of a keyed path is: it is
 * checked, and no upstream ever sees it. A request without it is no business of this module.
 */
import type { Unauthorized } from "@trigate/domain/CallerError"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Redacted from "effect/Redacted"
import type { CallerKeys } from "./CallerKeys.ts"

const QUERY_NAME = "api_key"

/** Whether a query names the caller's key: it is none of a method's params. */
export const isQueryName = (name: string): boolean => name === QUERY_NAME

/** The keys in the query of a URL; its names are read decoded, as those of a method's params are. */
const inQuery = (url: string): ReadonlyArray<string> => {
  const start = url.indexOf("?")
  return start < 0 ? [] : new URLSearchParams(url.slice(start + 1)).getAll(QUERY_NAME)
}

/** Whether a URL holds a caller's key in its query. */
export const isInQuery = (url: string): boolean => inQuery(url).length > 0

/** The check of every key that a request brings; nothing to check when it brings none. */
export const admission = (
  keys: CallerKeys["Service"],
  { headers, url }: HttpServerRequest.HttpServerRequest
): Effect.Effect<void, Unauthorized> => {
  const header = headers["x-api-key"]
  const brought = header === undefined ? inQuery(url) : [header, ...inQuery(url)]
  return brought.length === 0
    ? Effect.void
    : Effect.forEach(brought, (key) => keys.check(Redacted.make(key)), { discard: true })
}
