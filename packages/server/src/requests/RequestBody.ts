/**
 * Reads the bodies of requests.
 *
 * A request body has a JSON content type and at most {@link bodyLimit} bytes ({@link signedLimit} for a signed body)
 * before and after decompression. The received bytes are retained. At most one content coding is accepted, because a
 * few bytes with nested codings can decompress to a huge body.
 */
import { CurrentCaller } from "@trigate/domain/Caller"
import type * as Json from "@trigate/domain/encoding/Json"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import type { Overloaded } from "@trigate/domain/errors/CallerError"
import { PayloadTooLarge } from "@trigate/domain/errors/RequestError"
import type { InvalidRequest } from "@trigate/domain/errors/RequestError"
import { invalidRequest, parseRequest } from "@trigate/domain/operations/Operation"
import * as ByteSize from "effect/ByteSize"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import type { HttpServerError } from "effect/http/HttpServerError"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"
import { overloaded } from "../process/Load.ts"
import { header } from "./IncomingRequest.ts"
import type { IncomingRequest } from "./IncomingRequest.ts"
import { CurrentRequestRecord } from "./RequestRecord.ts"

// @effect-diagnostics-next-line nodeBuiltinImport:off -- the message is Node's own
import type { IncomingMessage } from "node:http"
import * as Zlib from "node:zlib"

/** Maximum number of bytes of a body after decompression: 1 MiB. Node providers have a limit of 1 MB too. */
export const bodyLimit = 1024 * 1024

/**
 * Maximum number of bytes of a signed body: 64 KiB. A multi-sig action with ten co-signers has three KiB.
 *
 * The action log stores each body until the venue's response is received. Hashing a larger body would block the event
 * loop.
 */
export const signedLimit = 64 * 1024

const unreadable = (message: string) => Effect.suspend(() => Effect.fail(invalidRequest([{ path: [], message }])))

const notJson = unreadable("The content type must be application/json")
const notText = unreadable("The body is not valid UTF-8")
/** The errors of reading a body. */
export type BodyFailure = InvalidRequest | Overloaded | PayloadTooLarge

const broken: Effect.Effect<never, InvalidRequest | PayloadTooLarge> = unreadable("The body could not be read")
const tooLarge = (limit: number): Effect.Effect<never, InvalidRequest | PayloadTooLarge> =>
  Effect.suspend(() => Effect.fail(new PayloadTooLarge({ limit, detail: `The body is larger than ${limit} bytes` })))

// without a preflight, a page of any site can send a body that has no content type, or that is declared as plain text
const isJson = (contentType: string | undefined): boolean =>
  contentType === "application/json" ||
  contentType !== undefined && /^application\/(?:json|[a-z0-9.-]+\+json)(?:\s*;.*)?$/iu.test(contentType)

const isTooLarge = ({ reason }: HttpServerError): boolean =>
  reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"

type Decoder = (
  input: Uint8Array,
  options: { readonly maxOutputLength: number },
  done: (error: Error | null, output: Uint8Array) => void
) => void

// a zstd frame declares how much memory its decoder needs: RFC 8878 recommends to support 8 MiB (2^23 bytes), while
// zlib would allow 128 MiB
const zstd = { [Zlib.constants.ZSTD_d_windowLogMax]: 23 }

const decoders: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ["gzip", Zlib.gunzip],
  ["x-gzip", Zlib.gunzip],
  ["deflate", Zlib.inflate],
  ["br", Zlib.brotliDecompress],
  ["zstd", (input, options, done) => Zlib.zstdDecompress(input, { ...options, params: zstd }, done)]
])

const otherCoding: Effect.Effect<never, InvalidRequest | PayloadTooLarge> = unreadable(
  "The content encoding must be one of identity, gzip, deflate, br and zstd"
)
const notCoded: Effect.Effect<never, InvalidRequest | PayloadTooLarge> = unreadable(
  "The body cannot be decompressed with its content encoding"
)

const decompressed = (decode: Decoder, body: Uint8Array, limit: number) =>
  Effect.callback<Uint8Array, InvalidRequest | PayloadTooLarge>((resume) => {
    decode(body, { maxOutputLength: limit }, (error, output) => {
      if (error === null) resume(Effect.succeed(output))
      else resume("code" in error && error.code === "ERR_BUFFER_TOO_LARGE" ? tooLarge(limit) : notCoded)
    })
  })

/** Reads a body through Effect's HTTP adapter, which works on any kind of server. */
const portable = (request: HttpServerRequest, limit: number) =>
  request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(limit)),
    Effect.matchEffect({
      onFailure: (error) => isTooLarge(error) ? tooLarge(limit) : broken,
      onSuccess: (buffer) => Effect.succeed(new Uint8Array(buffer))
    })
  )

/**
 * Returns whether the events of Node's message can be used to read the body. They cannot be used if the client expects
 * `100 Continue`, if the body has already been read, or if middleware has decompressed the body.
 */
const isReadable = (message: IncomingMessage, request: IncomingRequest): boolean =>
  !message.readableDidRead && message.headers["content-encoding"] === request.headers["content-encoding"] &&
  message.headers.expect === undefined

/**
 * Maximum number of bytes of a body for which no memory is reserved. Most bodies are this small, and a connection has
 * only a few of them.
 */
const smallBody = 4 * 1024

const joined = (chunks: ReadonlyArray<Uint8Array>): Uint8Array =>
  chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)

/**
 * Reads a body through the events of Node's message.
 *
 * Effect's adapter would read through a stream and copy the chunks. For a small request that would take 13
 * microseconds, more than Node needs for the heads of request and response together.
 */
const fromNode = (message: IncomingMessage, limit: number, mayHave: MayHave) =>
  Effect.callback<Uint8Array, BodyFailure>((resume) => {
    const chunks: Array<Uint8Array> = []
    let size = 0
    let isOver = false
    const end = (read: Effect.Effect<Uint8Array, BodyFailure>) => {
      if (isOver) return
      isOver = true
      resume(read)
    }
    const onData = (chunk: Uint8Array) => {
      size += chunk.length
      const refusal = size > limit ? tooLarge(limit) : mayHave(size) ? undefined : overloaded
      if (refusal === undefined) {
        chunks.push(chunk)
      } else {
        // discards later chunks, so that the client can read the response
        message.off("data", onData)
        end(refusal)
      }
    }
    message.on("data", onData)
    message.on("end", () => end(Exit.succeed(joined(chunks))))
    // `close` follows `end` and every error; only the first event has an effect
    message.on("close", () => end(broken))
    return Effect.sync(() => {
      isOver = true
      message.off("data", onData)
    })
  })

/** Reserves memory for a body of `size` bytes. Returns `false` if too little memory is left. */
type MayHave = (size: number) => boolean

/** Returns whether a body has at most 4 KiB according to its `Content-Length`. */
export const isSmall = ({ "content-length": length }: IncomingMessage["headers"]): boolean =>
  length !== undefined && Number(length) <= smallBody

const sent = (
  request: IncomingRequest,
  limit: number,
  mayHave: MayHave
): Effect.Effect<Uint8Array, BodyFailure> => {
  const { adapted, message } = request
  if (message !== undefined && isReadable(message, request)) return fromNode(message, limit, mayHave)
  if (adapted === undefined) return broken
  // Effect's adapter does not report the size while it reads, so memory for the maximum size is reserved
  return mayHave(limit) ? portable(adapted, limit) : overloaded
}

/**
 * Returns the body's bytes, decompressed. Fails with `PayloadTooLarge` if they exceed the limit. Fails with
 * `Overloaded`, before reading, if not enough memory is left.
 */
export const bytes = (request: IncomingRequest, limit = bodyLimit): Effect.Effect<Uint8Array, BodyFailure> =>
  Effect.contextWith((context: Context.Context<never>): Effect.Effect<Uint8Array, BodyFailure> => {
    const record = Context.get(context, CurrentRequestRecord)
    if (!isJson(header(request, "content-type"))) return notJson
    const declared = Number(header(request, "content-length") ?? 0)
    if (declared > limit) return tooLarge(limit)
    const coding = header(request, "content-encoding")?.toLowerCase()
    const isPlain = coding === undefined || coding === "identity"
    const decode = isPlain ? undefined : decoders.get(coding)
    if (!isPlain && decode === undefined) return otherCoding
    const mayHave: MayHave = (size) => {
      if (size <= (record.body?.bytes ?? smallBody)) return true
      record.body ??= { caller: Context.get(context, CurrentCaller).id, bytes: 0 }
      return record.load.take(record.body, size)
    }
    if (!mayHave(declared)) return overloaded
    if (decode === undefined) return sent(request, limit, mayHave)
    return Effect.flatMap(sent(request, limit, mayHave), (body): Effect.Effect<Uint8Array, BodyFailure> => {
      if (!mayHave(body.length + limit)) return overloaded
      return Effect.map(decompressed(decode, body, limit), (output) => {
        if (record.body !== undefined) record.load.take(record.body, output.length)
        return output
      })
    })
  })

/** Decodes UTF-8. Fails with `InvalidRequest` for invalid bytes. */
export const decodeText = (body: Uint8Array): Effect.Effect<string, InvalidRequest> =>
  Option.match(Utf8.decode(body), { onNone: () => notText, onSome: Exit.succeed })

/** Returns the body as text. */
export const text = (request: IncomingRequest): Effect.Effect<string, BodyFailure> =>
  Effect.flatMap(bytes(request), decodeText)

/** Parses the body strictly as JSON. The result also contains the received bytes. */
export const json = (request: IncomingRequest): Effect.Effect<Json.Json, BodyFailure> =>
  Effect.flatMap(bytes(request), (body) => Effect.flatMap(decodeText(body), (text) => parseRequest(text, body)))
