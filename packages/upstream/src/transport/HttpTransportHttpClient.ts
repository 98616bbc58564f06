/** The transport over any Effect `HttpClient`: for embedding, and for tests that replace the client. */
import * as Effect from "effect/Effect"
import { constTrue } from "effect/Function"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import type * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { HttpTransport, timedOut, TransportError } from "./HttpTransport.ts"
import type { TransportRequest } from "./HttpTransport.ts"

const unsent: ReadonlySet<HttpClientError.HttpClientError["reason"]["_tag"]> = new Set([
  "EncodeError",
  "InvalidUrlError"
])

// the client hides the state of its socket: if the request could be built, a byte may have been sent
const broken = (error: HttpClientError.HttpClientError): TransportError =>
  new TransportError({
    sent: unsent.has(error.reason._tag) ? "no" : "maybe",
    reason: "Broken",
    detail: error.reason._tag
  })

const tooLarge = (limit: number) =>
  new TransportError({ sent: "maybe", reason: "TooLarge", detail: `The response is larger than ${limit} bytes` })

const toHttp = (request: TransportRequest): HttpClientRequest.HttpClientRequest => {
  const base = HttpClientRequest.make(request.method)(Redacted.value(request.url), { headers: request.headers })
  return request.body === undefined
    ? base
    : HttpClientRequest.bodyUint8Array(base, request.body, request.headers["content-type"])
}

const attempt = (client: HttpClient.HttpClient) =>
  Effect.fnUntraced(function*(request: TransportRequest) {
    const response = yield* client.execute(toHttp(request)).pipe(
      Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
      // the tracing of the client is disabled, because a span would contain the URL, and therefore the endpoint key
      Effect.provideService(HttpClient.TracerDisabledWhen, constTrue),
      Effect.mapError(broken)
    )
    const chunks: Array<Uint8Array> = []
    let size = 0
    yield* response.stream.pipe(
      Stream.mapError(broken),
      Stream.runForEach((chunk) => {
        size += chunk.length
        if (size > request.maxAnswerBytes) return Effect.fail(tooLarge(request.maxAnswerBytes))
        chunks.push(chunk)
        return Effect.void
      })
    )
    return { status: response.status, headers: response.headers, body: chunks }
  })

const send = (client: HttpClient.HttpClient) => {
  const begin = attempt(client)
  return (request: TransportRequest) =>
    Effect.timeoutOrElse(begin(request), {
      duration: request.timeout,
      orElse: () => Effect.fail(timedOut("maybe", request.timeout))
    })
}

/**
 * Provides the transport over the `HttpClient` of the context.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { NodeHttpClient } from "@effect/platform-node"
 * import { HttpTransportHttpClient } from "@trigate/upstream"
 * import { Layer } from "effect"
 *
 * export const transport = Layer.provide(HttpTransportHttpClient.layer, NodeHttpClient.layerNodeHttp)
 * ```
 */
export const layer: Layer.Layer<HttpTransport, never, HttpClient.HttpClient> = Layer.effect(
  HttpTransport,
  Effect.map(HttpClient.HttpClient, (client) => HttpTransport.of({ send: send(client) }))
)
