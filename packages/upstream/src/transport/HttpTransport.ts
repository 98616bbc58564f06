/** The transport: sends one HTTP request. On failure, it reports whether any byte may have reached the peer. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

/** One HTTP request. Its URL is a secret: the path contains the endpoint key. */
export interface TransportRequest {
  readonly method: "GET" | "POST"
  readonly url: Redacted.Redacted
  readonly headers: { readonly [name: string]: string }
  readonly body: Uint8Array | undefined
  /** Maximum number of bytes of a response after decompression. */
  readonly maxAnswerBytes: number
  /** Timeout in milliseconds, from the connection to the last byte of the response. */
  readonly timeout: number
  /** Milliseconds after which no further part of the request is sent. Default: `timeout`. */
  readonly sendWithin?: number
  /** Whether to open a new connection instead of using a pooled one. */
  readonly onNewConnection?: boolean
}

/** The response: status, headers with lower-case names, and the whole body, in one or several chunks. */
export interface TransportResponse {
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  readonly body: Uint8Array | ReadonlyArray<Uint8Array>
}

/**
 * The request failed without a complete response.
 *
 * At-most-once delivery relies on `sent`: it is `"no"` only if it is certain that no byte of the request reached the
 * peer. `detail` never contains the URL.
 */
export class TransportError extends Schema.TaggedError<TransportError>()("TransportError", {
  sent: Schema.Literals(["no", "maybe"]),
  reason: Schema.Literals(["Connect", "Broken", "Timeout", "TooLarge", "Encoding"]),
  detail: Schema.String
}) {}

/** Makes the error for a request that timed out; `sent` states whether a byte may have been sent. */
export const timedOut = (sent: TransportError["sent"], timeout: number): TransportError =>
  new TransportError({ sent, reason: "Timeout", detail: `no response within ${Math.round(timeout)} ms` })

/**
 * Sends one request and reads its whole response within the request's timeout; interruption aborts the socket.
 *
 * Redirects are returned, not followed.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { HttpTransport, TransportLayers } from "@trigate/upstream"
 * import { Console, Effect, Redacted } from "effect"
 *
 * const program = HttpTransport.HttpTransport.use(({ send }) =>
 *   send({
 *     method: "GET",
 *     url: Redacted.make("http://localhost:8080/health/live"),
 *     headers: {},
 *     body: undefined,
 *     maxAnswerBytes: 1024,
 *     timeout: 1000
 *   })
 * ).pipe(
 *   Effect.flatMap(({ status }) => Console.log(status)),
 *   Effect.catchTag("TransportError", ({ sent }) => Console.log(sent))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, TransportLayers.layerUndici()))
 * ```
 * ```text
 * 200
 * ```
 */
export class HttpTransport extends Context.Service<HttpTransport, {
  readonly send: (request: TransportRequest) => Effect.Effect<TransportResponse, TransportError>
}>()("@trigate/upstream/transport/HttpTransport") {}
