/**
 * Which pages of other origins may read the gateway's answers, as browsers ask for it; none, unless a gateway is configured to.
 *
 * A foreign origin is told nothing rather than refused: what keeps its page out is the browser, and a request without an
 * `Origin` is no page's.
 */
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"

/** The origins whose pages may read: some, or any. */
export type Origins = ReadonlyArray<string> | "*"

/** What is done about origins. */
export interface Cors {
  /** The answer to a preflight of an allowed origin; nothing for any other request. */
  readonly preflight: (
    request: HttpServerRequest.HttpServerRequest
  ) => HttpServerResponse.HttpServerResponse | undefined
  /** An answer with what the request's origin has to be told. */
  readonly mark: (
    request: HttpServerRequest.HttpServerRequest,
    response: HttpServerResponse.HttpServerResponse
  ) => HttpServerResponse.HttpServerResponse
}

/**
 * The headers that a page may send beside the plain ones: those that mean something here, and any other.
 *
 * Libraries add headers of their own (`x-ton-client-version`, trace headers); they are not forwarded. Browsers take `*` as any
 * header but `Authorization`, which means nothing here, of a request without credentials, which are never asked for (Fetch standard).
 */
const sent = ["cache-control", "content-type", "x-api-key", "x-request-id", "x-trigate-expected-signer", "*"].join(", ")

/** The headers that a page may read beside the plain ones. */
const read = ["age", "retry-after", "x-request-id", "x-trigate-sandbox", "x-trigate-signer", "x-trigate-warning"].join(
  ", "
)

const preflightHeaders = {
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers": sent,
  "access-control-max-age": "600"
}

/** No page of another origin reads anything. */
export const denied: Cors = { preflight: () => undefined, mark: (_request, response) => response }

/** The pages of some origins read. */
export const make = (origins: Origins): Cors => {
  const known = new Set(origins === "*" ? [] : origins)
  const allowed = (origin: string | undefined): string | undefined => {
    if (origin === undefined) return undefined
    return origins === "*" ? "*" : known.has(origin) ? origin : undefined
  }
  // what is stored for one origin must not be given to another
  const varying = (response: HttpServerResponse.HttpServerResponse) =>
    origins === "*" ? response : HttpServerResponse.setHeader(response, "vary", "origin")
  return {
    preflight: ({ headers, method }) =>
      method === "OPTIONS" && headers["access-control-request-method"] !== undefined &&
        allowed(headers["origin"]) !== undefined
        ? HttpServerResponse.empty({ status: 204, headers: preflightHeaders })
        : undefined,
    mark: ({ headers }, response) => {
      const origin = allowed(headers["origin"])
      return varying(
        origin === undefined ? response : HttpServerResponse.setHeaders(response, {
          "access-control-allow-origin": origin,
          "access-control-expose-headers": read
        })
      )
    }
  }
}
