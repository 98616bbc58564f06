/** How the client reaches a gateway: any Effect `HttpClient`, whole answers, typed failures. */
import type * as Relayed from "@trigate/domain/Relayed"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import type * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Redacted from "effect/Redacted"

/** What answers and errors call the gateway. */
export const label = "gateway"

/** Where the gateway is. */
export interface Options {
  readonly baseUrl: string | URL
  /** Uses the node provider's surface behind this key instead of the gateway's own routes. */
  readonly endpointKey?: Redacted.Redacted
}

/** Posts a JSON text, or gets, and reads the whole answer. */
export interface Transport {
  readonly post: (path: string, body: string) => Effect.Effect<Relayed.Relayed, HttpClientError.HttpClientError>
  readonly get: (path: string) => Effect.Effect<Relayed.Relayed, HttpClientError.HttpClientError>
}

const relayed = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.map(response.arrayBuffer, (buffer): Relayed.Relayed => {
    const retryAfter = Number(response.headers["retry-after"])
    return {
      upstream: label,
      status: response.status,
      contentType: response.headers["content-type"] ?? "",
      body: new Uint8Array(buffer),
      ...(Number.isInteger(retryAfter) ? { retryAfter } : {})
    }
  })

/** A transport over a client. */
export const make = (client: HttpClient.HttpClient, options: Options): Transport => {
  const base = String(options.baseUrl).replace(/\/+$/u, "")
  const prefix = options.endpointKey === undefined
    ? base
    : `${base}/${encodeURIComponent(Redacted.value(options.endpointKey))}`
  const send = (request: HttpClientRequest.HttpClientRequest) => Effect.flatMap(client.execute(request), relayed)
  return {
    post: (path, body) =>
      send(HttpClientRequest.bodyText(HttpClientRequest.post(`${prefix}${path}`), body, "application/json")),
    get: (path) => send(HttpClientRequest.get(`${prefix}${path}`))
  }
}
