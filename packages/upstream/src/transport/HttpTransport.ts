/** The transport: sends the bytes of one HTTP request, and says on failure whether any byte may have reached the peer. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

/** One HTTP request. Its URL is a secret: the path holds the endpoint key. */
export interface TransportRequest {
  readonly method: "GET" | "POST"
  readonly url: Redacted.Redacted
  readonly headers: { readonly [name: string]: string }
  readonly body: Uint8Array | undefined
  /** Bytes of a response to accept, counted after decompression. */
  readonly maxAnswerBytes: number
  /** Milliseconds for all of it: connecting, sending, and the response to its last byte. */
  readonly timeout: number
  /** Milliseconds after which nothing may be sent any more; all of `timeout` when not given. */
  readonly sendWithin?: number
  /** Whether to use a connection that was not used before, where the transport pools connections. */
  readonly onNewConnection?: boolean
}

/** The response: status, headers with lower-case names, and the whole body, in one piece or in those in which it came. */
export interface TransportResponse {
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  readonly body: Uint8Array | ReadonlyArray<Uint8Array>
}

/**
 * The request failed without a complete response.
 *
 * At-most-once delivery relies on `sent`: `"no"` only if certainly no byte of the request reached
 * the peer. `detail` never contains the URL.
 */
export class TransportError extends Schema.TaggedError<TransportError>()("TransportError", {
  sent: Schema.Literals(["no", "maybe"]),
  reason: Schema.Literals(["Connect", "Broken", "Timeout", "TooLarge", "Encoding"]),
  detail: Schema.String
}) {}

/** The request took longer than it may; `sent` says whether a byte may have left by then. */
export const timedOut = (sent: TransportError["sent"], timeout: number): TransportError =>
  new TransportError({ sent, reason: "Timeout", detail: `no answer within ${Math.round(timeout)} ms` })

/**
 * Sends one request and reads its whole response within the request's time; interruption aborts the socket.
 *
 * Redirects are not followed: they are responses like any other. A transport whose effect is suspended (see `Continuation`) spares
 * a read the fiber.
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
