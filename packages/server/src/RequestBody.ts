/** Reads a request's body: JSON by its content type, at most {@link bodyLimit} bytes, kept as the bytes that came. */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { invalidRequest, parseRequest } from "@trigate/domain/Decode"
import type { Json } from "@trigate/domain/Json"
import { PayloadTooLarge } from "@trigate/domain/RequestError"
import type { InvalidRequest } from "@trigate/domain/RequestError"
import * as Utf8 from "@trigate/domain/Utf8"
import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import type { HttpServerError } from "effect/http/HttpServerError"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"

// @effect-diagnostics-next-line nodeBuiltinImport:off -- the message is Node's own
import { IncomingMessage } from "node:http"

/** The most bytes that a body may have after decompression: 1 MiB. Node providers stop at 1 MB too. */
export const bodyLimit = 1024 * 1024

const unreadable = (message: string) => Effect.suspend(() => Effect.fail(invalidRequest([{ path: [], message }])))

const notJson = unreadable("The content type must be application/json")
const notText = unreadable("The body is not valid UTF-8")
const broken: Effect.Effect<never, InvalidRequest | PayloadTooLarge> = unreadable("The body could not be read")
const tooLarge: Effect.Effect<never, InvalidRequest | PayloadTooLarge> = Effect.suspend(() =>
  Effect.fail(new PayloadTooLarge({ limit: bodyLimit, detail: `The body is larger than ${bodyLimit} bytes` }))
)

const isJson = (contentType: string | undefined): boolean =>
  contentType === undefined || contentType === "application/json" ||
  /^application\/(?:json|[a-z0-9.-]+\+json)(?:\s*;.*)?$/iu.test(contentType)

const isTooLarge = ({ reason }: HttpServerError): boolean =>
  reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"

/** Reads by the platform's own way: on any server, decompressing, after `100 Continue`, or a second time. */
const portable = (request: HttpServerRequest) =>
  request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(bodyLimit)),
    Effect.matchEffect({
      onFailure: (error) => isTooLarge(error) ? tooLarge : broken,
      onSuccess: (buffer) => Effect.succeed(new Uint8Array(buffer))
    })
  )

/** The request's message on Node's HTTP server, unless the platform has to read it: see {@link portable}. */
const messageOf = (request: HttpServerRequest): IncomingMessage | undefined => {
  const message = NodeHttpServerRequest.toIncomingMessage(request)
  return message instanceof IncomingMessage && !message.readableDidRead &&
      message.headers["content-encoding"] === undefined && message.headers.expect === undefined
    ? message
    : undefined
}

const joined = (chunks: ReadonlyArray<Uint8Array>): Uint8Array =>
  chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)

/**
 * Reads a message by its events.
 *
 * The platform reads through a stream and copies what came. That takes 13 microseconds of a small request, more than Node
 * spends on its head and its answer together.
 */
const fromNode = (message: IncomingMessage) =>
  Effect.callback<Uint8Array, InvalidRequest | PayloadTooLarge>((resume) => {
    const chunks: Array<Uint8Array> = []
    let size = 0
    const onData = (chunk: Uint8Array) => {
      size += chunk.length
      if (size <= bodyLimit) {
        chunks.push(chunk)
      } else {
        // the rest is read and dropped, so that the caller gets to read the answer
        message.off("data", onData)
        resume(tooLarge)
      }
    }
    message.on("data", onData)
    message.on("end", () => resume(Effect.succeed(joined(chunks))))
    // follows the end as well as every error and abort; only the first call of `resume` counts
    message.on("close", () => resume(broken))
    return Effect.sync(() => {
      message.off("data", onData)
    })
  })

/** The body's bytes. */
export const bytes = (request: HttpServerRequest): Effect.Effect<Uint8Array, InvalidRequest | PayloadTooLarge> => {
  if (!isJson(request.headers["content-type"])) return notJson
  if (Number(request.headers["content-length"]) > bodyLimit) return tooLarge
  const message = messageOf(request)
  return message === undefined ? portable(request) : fromNode(message)
}

/** Bytes as text; fails where they are not UTF-8. */
export const textOf = (body: Uint8Array): Effect.Effect<string, InvalidRequest> =>
  Option.match(Utf8.decode(body), { onNone: () => notText, onSome: Effect.succeed })

/** The body as text. */
export const text = (request: HttpServerRequest): Effect.Effect<string, InvalidRequest | PayloadTooLarge> =>
  Effect.flatMap(bytes(request), textOf)

/** The body as JSON, parsed strictly; it keeps the bytes that came. */
export const json = (request: HttpServerRequest): Effect.Effect<Json, InvalidRequest | PayloadTooLarge> =>
  Effect.flatMap(bytes(request), (body) => Effect.flatMap(textOf(body), (text) => parseRequest(text, body)))
