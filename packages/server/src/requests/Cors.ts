/**
 * CORS (Fetch standard): allows pages of configured origins to read the gateway's responses, and detects pages of other
 * origins.
 *
 * Effect's own middleware responds to every `OPTIONS` request, including those of unknown origins (decision 23). Here a
 * request of an unknown origin is handled as usual, but without CORS headers, so the browser does not show the response
 * to the page.
 */
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Predicate from "effect/Predicate"
import { header } from "./IncomingRequest.ts"
import type { IncomingRequest } from "./IncomingRequest.ts"

/** The origins whose pages are allowed to read responses: a list, or `*` for any origin. */
export type Origins = ReadonlyArray<string> | "*"

/**
 * The headers that a page is allowed to send: the headers that the gateway reads, and `*` for all others.
 *
 * Libraries add their own headers (`x-ton-client-version`, trace headers), which are not forwarded. For a request
 * without credentials, `*` allows every header except `Authorization`, which can contain a caller's key.
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

/** The headers that a page is allowed to read in addition to the CORS-safelisted ones. */
const read = [
  "age",
  "ratelimit",
  "ratelimit-policy",
  "retry-after",
  "x-request-id",
  "x-trigate-candles",
  "x-trigate-sandbox",
  "x-trigate-signer",
  "x-trigate-upstream",
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
 * Makes a function that returns the origin of the requesting page, if this origin is neither the gateway's own nor an
 * allowed one. If the page is of another site, but its origin is unknown, the function returns `another site`. For any
 * other request, it returns `undefined`.
 *
 * A page of another origin cannot read the response, but its request would take effect. Browsers send the origin with
 * every `POST`, and `Sec-Fetch-Site` with other requests.
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

/** Makes the functions that respond to preflights and add CORS headers, for the allowed origins. */
export const make = (origins: Origins) => {
  const allowed = allowing(origins)
  return {
    /** Returns the response to a preflight of an allowed origin; `undefined` for any other request. */
    preflight: ({ headers, method }: HttpServerRequest): HttpServerResponse.HttpServerResponse | undefined =>
      method === "OPTIONS" && headers["access-control-request-method"] !== undefined &&
        allowed(headers["origin"]) !== undefined
        ? HttpServerResponse.empty({ status: 204, headers: preflightHeaders })
        : undefined,
    /** Returns the CORS headers of a response; `vary` is the response's own `Vary`. */
    headersFor: (
      { origin: asking }: { readonly [name: string]: string | ReadonlyArray<string> | undefined },
      vary: string | undefined
    ): { readonly [name: string]: string } => {
      const origin = allowed(Predicate.isString(asking) ? asking : undefined)
      return {
        // a cache must not serve the response for one origin to another origin
        ...(origins === "*" ? {} : { vary: varied(vary) }),
        ...(origin === undefined
          ? {}
          : { "access-control-allow-origin": origin, "access-control-expose-headers": read })
      }
    }
  }
}
