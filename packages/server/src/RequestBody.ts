/** Reads a request's body: JSON by its content type, bounded, and kept as the bytes that came. */
import { invalidRequest } from "@trigate/domain/Decode"
import { PayloadTooLarge } from "@trigate/domain/RequestError"
import type { InvalidRequest } from "@trigate/domain/RequestError"
import * as Utf8 from "@trigate/domain/Utf8"
import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import type { HttpServerError } from "effect/http/HttpServerError"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"
import * as NodeBody from "./NodeBody.ts"

/** Bytes of a request body, counted after decompression; node providers stop at 1 MB too. */
export const bodyLimit = 1024 * 1024

const unreadable = (message: string) => Effect.suspend(() => Effect.fail(invalidRequest([{ path: [], message }])))

const notJson = unreadable("The content type must be application/json")
const notText = unreadable("The body is not valid UTF-8")

const bounds: NodeBody.Bounds<InvalidRequest | PayloadTooLarge> = {
  limit: bodyLimit,
  tooLarge: Effect.suspend(() =>
    Effect.fail(new PayloadTooLarge({ limit: bodyLimit, detail: `The body is larger than ${bodyLimit} bytes` }))
  ),
  broken: unreadable("The body could not be read")
}

const isJson = (contentType: string | undefined): boolean =>
  contentType === undefined || contentType === "application/json" ||
  /^application\/(?:json|[a-z0-9.-]+\+json)(?:\s*;.*)?$/iu.test(contentType)

const isTooLarge = ({ reason }: HttpServerError): boolean =>
  reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"

/** By the platform's own way, which is the same for every server. */
const portable = (request: HttpServerRequest.HttpServerRequest) =>
  request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(bodyLimit)),
    Effect.matchEffect({
      onFailure: (error) => isTooLarge(error) ? bounds.tooLarge : bounds.broken,
      onSuccess: (buffer) => Effect.succeed(new Uint8Array(buffer))
    })
  )

/** The body's bytes. */
export const bytes = (
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<Uint8Array, InvalidRequest | PayloadTooLarge> => {
  if (!isJson(request.headers["content-type"])) return notJson
  if (Number(request.headers["content-length"]) > bodyLimit) return bounds.tooLarge
  const message = NodeBody.messageOf(request)
  return message === undefined ? portable(request) : NodeBody.bytes(message, bounds)
}

/** What bytes say; those that are not UTF-8 are refused. */
export const textOf = (body: Uint8Array): Effect.Effect<string, InvalidRequest> =>
  Option.match(Utf8.decode(body), { onNone: () => notText, onSome: Effect.succeed })

/** The body as text. */
export const text = (
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<string, InvalidRequest | PayloadTooLarge> => Effect.flatMap(bytes(request), textOf)
