/** The one small contract through which every byte leaves: bytes in, bytes out, and on failure whether any may have gone. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

/** One HTTP exchange to make; the URL holds the endpoint key and is a secret. */
export interface TransportRequest {
  readonly method: "GET" | "POST"
  readonly url: Redacted.Redacted
  readonly headers: { readonly [name: string]: string }
  readonly body: Uint8Array | undefined
  /** Bytes of answer to accept, counted after decompression. */
  readonly maxAnswerBytes: number
  /** Milliseconds for the whole exchange: connecting, sending, and the answer to its last byte. */
  readonly timeout: number
  /** Milliseconds of those after which nothing may be sent any more; all of them when not given. */
  readonly sendWithin?: number
  /** Whether to use a connection that nobody has used before, where the wire keeps connections. */
  readonly onNewConnection?: boolean
}

/** The answer: status, headers with lower-case names, and the whole body. */
export interface TransportResponse {
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  readonly body: Uint8Array
}

/**
 * The exchange broke.
 *
 * `sent` is the fact that the once rule rests on: `"no"` only when it is certain that no byte of the request can have
 * reached the peer. `detail` never holds the URL.
 */
export class TransportError extends Schema.TaggedError<TransportError>()("TransportError", {
  sent: Schema.Literals(["no", "maybe"]),
  reason: Schema.Literals(["Connect", "Broken", "Timeout", "TooLarge", "Encoding"]),
  detail: Schema.String
}) {}

/** The exchange took longer than it may; what had left by then is told by `sent`. */
export const timedOut = (sent: TransportError["sent"], timeout: number): TransportError =>
  new TransportError({ sent, reason: "Timeout", detail: `no answer within ${Math.round(timeout)} ms` })

/**
 * Sends one request and reads its whole answer within the request's time; interruption aborts the socket.
 *
 * Redirects are answers, never followed.
 */
export class HttpTransport extends Context.Service<HttpTransport, {
  readonly send: (request: TransportRequest) => Effect.Effect<TransportResponse, TransportError>
}>()("@trigate/upstream/HttpTransport") {}
