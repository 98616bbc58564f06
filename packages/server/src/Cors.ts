/**
 * CORS (Fetch standard): lets the pages of configured origins read the gateway's answers.
 *
 * Effect's own middleware answers every `OPTIONS` request, also of unknown origins (decision 23). Here a request of an unknown
 * origin is handled like any other and gets no CORS header; the browser then keeps the answer from the page.
 */
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"

/** The origins whose pages may read answers: some, or any. */
export type Origins = ReadonlyArray<string> | "*"

/**
 * The headers that a page may send: those that mean something here, and any other.
 *
 * Libraries add headers of their own (`x-ton-client-version`, trace headers), which are not forwarded. For a request without
 * credentials, `*` allows every header but `Authorization`.
 */
const sent = ["cache-control", "content-type", "x-api-key", "x-request-id", "x-trigate-expected-signer", "*"].join(", ")

/** The headers that a page may read besides those that it always may. */
const read = ["age", "retry-after", "x-request-id", "x-trigate-sandbox", "x-trigate-signer", "x-trigate-warning"].join(
  ", "
)

const preflightHeaders = {
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers": sent,
  "access-control-max-age": "600"
}

const varied = (by: string | undefined): string => by === undefined ? "origin" : `${by}, origin`

/** The two steps of CORS for some origins. */
export const make = (origins: Origins) => {
  const known = new Set(origins === "*" ? [] : origins)
  const allowed = (origin: string | undefined): string | undefined => {
    if (origin === undefined) return undefined
    return origins === "*" ? "*" : known.has(origin) ? origin : undefined
  }
  return {
    /** The answer to the preflight of an allowed origin; nothing for any other request. */
    preflight: ({ headers, method }: HttpServerRequest): HttpServerResponse.HttpServerResponse | undefined =>
      method === "OPTIONS" && headers["access-control-request-method"] !== undefined &&
        allowed(headers["origin"]) !== undefined
        ? HttpServerResponse.empty({ status: 204, headers: preflightHeaders })
        : undefined,
    /** Adds the CORS headers for the request's origin to an answer. */
    mark: ({ headers }: HttpServerRequest, response: HttpServerResponse.HttpServerResponse) => {
      const origin = allowed(headers["origin"])
      return HttpServerResponse.setHeaders(response, {
        // a cache must not give the answer for one origin to another
        ...(origins === "*" ? {} : { vary: varied(response.headers["vary"]) }),
        ...(origin === undefined
          ? {}
          : { "access-control-allow-origin": origin, "access-control-expose-headers": read })
      })
    }
  }
}
