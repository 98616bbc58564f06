/**
 * The body of a request on Node's own HTTP server, read by the events of its message.
 *
 * The platform reads it through a stream, watches the stream's end and copies what came: 13 microseconds of a small request,
 * which is more than Node spends on its head and its answer together. What that way does besides (waiting for `100 Continue`,
 * decompressing, remembering the body for a second reader) is left to it: see {@link messageOf}.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the message is Node's own
import { IncomingMessage } from "node:http"

/** The message whose events are the body as the handler has to see it: unread, not encoded, and already on its way. */
export const messageOf = (request: HttpServerRequest.HttpServerRequest): IncomingMessage | undefined => {
  const message = NodeHttpServerRequest.toIncomingMessage(request)
  return message instanceof IncomingMessage && !message.readableDidRead &&
      message.headers["content-encoding"] === undefined && message.headers.expect === undefined
    ? message
    : undefined
}

const joined = (chunks: ReadonlyArray<Uint8Array>): Uint8Array =>
  chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)

/** What a body may end in instead of its bytes: it is longer than the limit, or broke off before its end. */
export interface Bounds<E> {
  readonly limit: number
  readonly tooLarge: Effect.Effect<never, E>
  readonly broken: Effect.Effect<never, E>
}

/** The body's bytes. */
export const bytes = <E>(message: IncomingMessage, { broken, limit, tooLarge }: Bounds<E>) =>
  Effect.callback<Uint8Array, E>((resume) => {
    const chunks: Array<Uint8Array> = []
    let size = 0
    const onData = (chunk: Uint8Array) => {
      size += chunk.length
      if (size <= limit) {
        chunks.push(chunk)
      } else {
        // the rest flows on unheard, so that the caller can read the answer
        message.off("data", onData)
        resume(tooLarge)
      }
    }
    message.on("data", onData)
    message.on("end", () => resume(Effect.succeed(joined(chunks))))
    // follows the end as well as every error and abort; only the first one counts
    message.on("close", () => resume(broken))
    return Effect.sync(() => {
      message.off("data", onData)
    })
  })
