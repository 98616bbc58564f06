/** How the client reaches a gateway: any Effect `HttpClient`, whole answers, typed failures. */
import * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Effect from "effect/Effect"
import { constTrue } from "effect/Function"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import type * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"

/** What answers and errors call the gateway. */
export const label = "gateway"

/** Where the gateway is. */
export interface Options {
  /** With or without a path and a slash at the end; in a browser `""` is the page's own origin. */
  readonly baseUrl: string | URL
  /** Uses the node provider's surface behind this key instead of the gateway's own routes. */
  readonly endpointKey?: Redacted.Redacted
}

/** Posts a JSON text, or gets, and reads the whole answer. */
export interface Transport {
  readonly post: (
    path: string,
    body: string
  ) => Effect.Effect<UpstreamResponse.UpstreamResponse, HttpClientError.HttpClientError>
  readonly get: (path: string) => Effect.Effect<UpstreamResponse.UpstreamResponse, HttpClientError.HttpClientError>
}

const relayed = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.map(response.arrayBuffer, (buffer) => {
    const retryAfter = response.headers["retry-after"]
    return UpstreamResponse.make({
      upstream: label,
      status: response.status,
      contentType: response.headers["content-type"] ?? "",
      body: new Uint8Array(buffer),
      ...UpstreamResponse.signerIn(response.headers),
      // the header may also hold a date, which is of no use without the server's clock
      ...(retryAfter !== undefined && /^[0-9]{1,6}$/u.test(retryAfter) ? { retryAfter: Number(retryAfter) } : {})
    })
  })

/**
 * Sends to the address that was named and to none that an answer names.
 *
 * `fetch` alone follows redirects by itself: a 307 would have it send a body again, what is signed included.
 */
const execute = (client: HttpClient.HttpClient, request: HttpClientRequest.HttpClientRequest) =>
  Effect.flatMap(
    Effect.serviceOption(FetchHttpClient.RequestInit),
    (given) =>
      Effect.provideService(client.execute(request), FetchHttpClient.RequestInit, {
        ...Option.getOrUndefined(given),
        redirect: "manual"
      })
  )

/** The gateway's own routes; an endpoint key changes nothing here. */
export const own = (client: HttpClient.HttpClient, { baseUrl }: Options): Transport => {
  const base = String(baseUrl).replace(/\/+$/u, "")
  const send = (request: HttpClientRequest.HttpClientRequest) => Effect.flatMap(execute(client, request), relayed)
  return {
    post: (path, body) =>
      send(HttpClientRequest.bodyText(HttpClientRequest.post(`${base}${path}`), body, "application/json")),
    get: (path) => send(HttpClientRequest.get(`${base}${path}`))
  }
}

/** The routes of the chains: the gateway's own, or those behind the endpoint key where one is given. */
export const make = (client: HttpClient.HttpClient, options: Options): Transport => {
  const routes = own(client, options)
  if (options.endpointKey === undefined) return routes
  const prefix = `/${encodeURIComponent(Redacted.value(options.endpointKey))}`
  // the client's own spans tell the whole URL, and the key is a part of it
  const untraced = Effect.provideService(HttpClient.TracerDisabledWhen, constTrue)
  return {
    post: (path, body) => untraced(routes.post(`${prefix}${path}`, body)),
    get: (path) => untraced(routes.get(`${prefix}${path}`))
  }
}
