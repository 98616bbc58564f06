/**
 * CORS (Fetch standard): lets the pages of configured origins read the gateway's responses, and detects foreign pages.
 *
 * Effect's own middleware responds to every `OPTIONS` request, also of unknown origins (decision 23). Here a request of an unknown
 * origin is handled like any other and gets no CORS header; the browser then withholds the response from the page.
 */
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Predicate from "effect/Predicate"
import { header } from "./IncomingRequest.ts"
import type { IncomingRequest } from "./IncomingRequest.ts"

/** The origins whose pages may read responses: some, or any. */
export type Origins = ReadonlyArray<string> | "*"

/**
 * The headers that a page may send: those that mean something here, and any other.
 *
 * Libraries add headers of their own (`x-ton-client-version`, trace headers), which are not forwarded. For a request without
 * credentials, `*` allows every header but `Authorization`, in which a caller's key may stand.
 */
const sent = [
  "authorization",
  "cache-control",
  "content-type",
  "x-api-key",
  "x-request-id",
  "x-trigate-expected-signer",
  "*"
].join(", ")

/** The headers that a page may read besides those that it always may. */
const read = [
  "age",
  "ratelimit",
  "ratelimit-policy",
  "retry-after",
  "x-request-id",
  "x-trigate-candles",
  "x-trigate-sandbox",
  "x-trigate-signer",
  "x-trigate-warning"
].join(
  ", "
)

const preflightHeaders = {
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers": sent,
  "access-control-max-age": "600"
}

const varied = (by: string | undefined): string => by === undefined ? "origin" : `${by}, origin`

const allowing = (origins: Origins) => {
  const known = new Set(origins === "*" ? [] : origins)
  return (origin: string | undefined): string | undefined => {
    if (origin === undefined) return undefined
    return origins === "*" ? "*" : known.has(origin) ? origin : undefined
  }
}

/**
 * Returns the origin of the requesting page, if the browser states one that is neither the gateway's nor allowed.
 *
 * Such a page cannot read the response, but the request would have taken effect. Browsers send the origin with every `POST`, and
 * for other requests whether they cross sites (`Sec-Fetch-Site`).
 */
export const foreignTo = (origins: Origins | undefined) => {
  const allowed = allowing(origins ?? [])
  return (headers: IncomingRequest["headers"], host: string | undefined): string | undefined => {
    const origin = header({ headers }, "origin")
    if (origin === undefined) return headers["sec-fetch-site"] === "cross-site" ? "another site" : undefined
    const isOwn = origin === `http://${host}` || origin === `https://${host}`
    return isOwn || allowed(origin) !== undefined ? undefined : origin
  }
}

/** The two steps of CORS for some origins. */
export const make = (origins: Origins) => {
  const allowed = allowing(origins)
  return {
    /** The answer to the preflight of an allowed origin; nothing for any other request. */
    preflight: ({ headers, method }: HttpServerRequest): HttpServerResponse.HttpServerResponse | undefined =>
      method === "OPTIONS" && headers["access-control-request-method"] !== undefined &&
        allowed(headers["origin"]) !== undefined
        ? HttpServerResponse.empty({ status: 204, headers: preflightHeaders })
        : undefined,
    /** The CORS headers of an answer for the request's origin; `vary` is what the answer varies by. */
    headersFor: (
      { origin: asking }: { readonly [name: string]: string | ReadonlyArray<string> | undefined },
      vary: string | undefined
    ): { readonly [name: string]: string } => {
      const origin = allowed(Predicate.isString(asking) ? asking : undefined)
      return {
        // a cache must not give the answer for one origin to another
        ...(origins === "*" ? {} : { vary: varied(vary) }),
        ...(origin === undefined
          ? {}
          : { "access-control-allow-origin": origin, "access-control-expose-headers": read })
      }
    }
  }
}
