/**
 * A request: as the routes receive it, its body, its record, and its response.
 *
 * To save memory while it is idle, a WebSocket from `ws` has no fiber, and does not retain its handshake request.
 *
 * The fields that become metric labels have values from limited sets. The path is not recorded, because it can contain
 * an endpoint key.
 *
 * A request body has a JSON content type and at most {@link bodyLimit} bytes ({@link signedLimit} for a signed body)
 * before and after decompression. The received bytes are retained. At most one content coding is accepted, because a
 * few bytes with nested codings can decompress to a huge body.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import * as NodeWS from "@effect/platform-node/NodeWS"
import type { Fields } from "@trigate/callers/Quotas"
import { type Caller, unowned } from "@trigate/domain/Caller"
import { sourcesHeader } from "@trigate/domain/candles/Candle"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { GatewayError as GatewayErrorType, NotPermitted, PayloadTooLarge } from "@trigate/domain/errors/GatewayError"
import type { InvalidRequest, Overloaded, QuotaExceeded } from "@trigate/domain/errors/GatewayError"
import { invalidRequest, parseRequest } from "@trigate/domain/operations/Operation"
import type { UpstreamResponse } from "@trigate/domain/operations/Operation"
import { remembered } from "@trigate/domain/unstable/DeclaredMetric"
import * as ByteSize from "effect/ByteSize"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Body from "effect/http/HttpBody"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import type { HttpServerError } from "effect/http/HttpServerError"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as ProblemDetails from "effect/http/ProblemDetails"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Socket from "effect/socket/Socket"
import type * as Tracer from "effect/Tracer"
import { isAscii } from "node:buffer"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the message is Node's own
import { IncomingMessage, type ServerResponse } from "node:http"
import type * as Net from "node:net"
import * as Zlib from "node:zlib"
import { type BodyReservation, type Load, overloaded, unlimited } from "../process/Load.ts"
import { metrics } from "../process/Metrics.ts"

/** Why a socket ended: the client closed it, or sent an invalid frame, such as a frame that exceeds the size limit. */
export type Ending = "client" | "size"

/** The reader of a WebSocket. */
export interface SocketReader {
  /** Called with each frame; a text frame is a string. */
  receive(frame: string | Uint8Array): void
  /** Called after the last of several frames that were received together. */
  flush(): void
  /** Called once, when the socket is closed. */
  closed(ending: Ending): void
}

/** The connection of a caller's WebSocket, to which encoded frames can be written: a socket of Node, for example. */
export interface CallerConnection {
  readonly bytesRead: number
  readonly bytesWritten: number
  /** The number of written bytes that wait in the connection's buffer. */
  readonly writableLength: number
  /** Writes bytes. Returns `false` if the buffer is full; the connection then emits `drain` when it is empty. */
  readonly write: (bytes: Uint8Array) => boolean
  readonly on: (event: "drain", drained: () => void) => unknown
  readonly off: (event: "drain", drained: () => void) => unknown
  /** Collects the written bytes until `uncork` is called. */
  readonly cork: () => void
  readonly uncork: () => void
  /** Closes the connection at once. */
  readonly destroy: () => unknown
}

/** An open WebSocket of a caller. */
export interface CallerSocket {
  /** The underlying connection, to which encoded frames can be written. */
  readonly connection: CallerConnection
  /** Passes frames to a reader until the socket is closed. Call it once, synchronously after the handshake. */
  read(reader: SocketReader): void
  /** Sends a close frame. */
  close(code: number, reason: string): void
}

/** Maximum number of bytes of a WebSocket frame from a caller. */
const maxFrameBytes = 64 * 1024

/** The options of callers' WebSockets. */
export const options = {
  maxPayload: maxFrameBytes,
  perMessageDeflate: false,
  clientTracking: false,
  // one message of each socket in a turn of the event loop: a read can contain a thousand
  allowSynchronousEvents: false
} as const

/** A socket from the package `ws`. */
class WsSocket implements CallerSocket {
  readonly connection: CallerConnection
  readonly #ws: NodeWS.WebSocket
  #isFlushing = false
  #ending: Ending = "client"

  constructor(ws: NodeWS.WebSocket, connection: CallerConnection) {
    this.connection = connection
    this.#ws = ws
  }

  read(reader: SocketReader): void {
    this.#ws.on("message", (data, isBinary) => {
      // messages are buffers by default
      reader.receive(!Buffer.isBuffer(data) || isBinary ? new Uint8Array() : data.toString())
      if (this.#isFlushing) return
      this.#isFlushing = true
      queueMicrotask(() => {
        this.#isFlushing = false
        reader.flush()
      })
    })
    this.#ws.on("error", () => {
      this.#ending = "size"
    })
    this.#ws.on("close", () => reader.closed(this.#ending))
  }

  close(code: number, reason: string): void {
    this.#ws.close(code, reason)
  }
}

/** Makes a function that completes handshakes on Node's connections. */
export const makeAcceptor = () => {
  const server = new NodeWS.WebSocketServer({ ...options, noServer: true })
  return (request: IncomingMessage, head: Buffer): CallerSocket | undefined => {
    const { socket } = request
    let accepted: CallerSocket | undefined
    // `handleUpgrade` calls back synchronously, or never if the client has disconnected
    if (!socket.destroyed) {
      server.handleUpgrade(request, socket, head, (ws) => {
        accepted = new WsSocket(ws, socket)
      })
    }
    return accepted
  }
}

/** Completes the handshake of a request from Effect's HTTP adapter. A fiber reads the socket. */
export const socketFromAdapter = (request: HttpServerRequest): Effect.Effect<CallerSocket | undefined> =>
  Effect.gen(function*() {
    const upgraded = yield* Effect.orDie(request.upgrade)
    const scope = yield* Scope.make()
    const reader = yield* Effect.orElseSucceed(Scope.provide(upgraded.reader, scope), () => undefined)
    // the client disconnected before the handshake
    if (reader === undefined) return undefined
    const { write } = yield* Scope.provide(upgraded.writer, scope)
    const run = Effect.runForkWith(yield* Effect.context())
    return {
      connection: NodeHttpServerRequest.toIncomingMessage(request).socket,
      read: (to) => {
        const receive = Effect.map(reader.pull, (frames) => {
          for (const frame of frames) to.receive(frame)
          to.flush()
        })
        const reading = Effect.forever(receive).pipe(
          Effect.catch((error): Effect.Effect<Ending> =>
            Effect.succeed(error.reason._tag === "SocketReadError" ? "size" : "client")
          ),
          Effect.ensuring(Scope.close(scope, Exit.void))
        )
        run(Effect.map(reading, (ending) => to.closed(ending)))
      },
      close: (code, reason) => void run(Effect.ignore(write(new Socket.CloseEvent(code, reason))))
    }
  })

/** A request. */
export interface IncomingRequest {
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  /** The caller's key in the path; absent if the path does not contain a key. */
  readonly keyInPath: Redacted.Redacted | undefined
  /** Node's message; absent if the server is not Node's HTTP server. */
  readonly message: IncomingMessage | undefined
  /** The request of Effect's HTTP adapter; absent if the request came directly from Node's server. */
  readonly adapted: HttpServerRequest | undefined
  /** Completes the handshake of a WebSocket; returns `undefined` if the client has disconnected. Absent for other requests. */
  readonly upgrade: (() => Effect.Effect<CallerSocket | undefined>) | undefined
  readonly record: RequestRecord
}

const isUpgrade = ({ upgrade }: HttpServerRequest["headers"]): boolean => upgrade?.toLowerCase() === "websocket"

/** The key that each open connection sent last. */
const lastKeys = new WeakMap<Net.Socket, Redacted.Redacted>()

/**
 * Redacts a caller's key. Successive requests of a connection with the same key share the result, because a new
 * `Redacted` for each request would cost more than the check of the key.
 */
export const redactKey = (key: string, message: IncomingMessage | undefined): Redacted.Redacted => {
  if (message === undefined) return Redacted.make(key)
  const last = lastKeys.get(message.socket)
  if (last !== undefined && Redacted.value(last) === key) return last
  const redacted = Redacted.make(key)
  lastKeys.set(message.socket, redacted)
  return redacted
}

/** Makes a request from Node's message. */
export const fromNode = (
  message: IncomingMessage,
  record: RequestRecord,
  keyInPath?: Redacted.Redacted,
  upgrade?: IncomingRequest["upgrade"]
): IncomingRequest => ({
  method: record.method,
  url: record.url,
  headers: record.headers,
  keyInPath,
  message,
  adapted: undefined,
  upgrade,
  record
})

/** Makes a request from Effect's HTTP adapter. */
export const fromAdapter = (
  adapted: HttpServerRequest,
  keyInPath?: Redacted.Redacted
): Effect.Effect<IncomingRequest> =>
  Effect.map(CurrentRequestRecord, (record) => {
    const message = NodeHttpServerRequest.toIncomingMessage(adapted)
    return {
      method: adapted.method,
      url: adapted.url,
      headers: adapted.headers,
      keyInPath,
      message: message instanceof IncomingMessage ? message : undefined,
      adapted,
      upgrade: isUpgrade(adapted.headers) ? () => socketFromAdapter(adapted) : undefined,
      record
    }
  })

/** Returns the value of a request header; `undefined` if the header is absent or has several values. */
export const header = ({ headers }: Pick<IncomingRequest, "headers">, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : undefined
}

/** Returns all `Authorization` headers; Node's `headers` contains only the first. */
export const authorizations = (request: IncomingRequest): ReadonlyArray<string> => {
  const first = header(request, "authorization")
  if (first === undefined) return []
  return request.message?.headersDistinct["authorization"] ?? [first]
}

/** Returns the address of the connection's peer; empty if unknown. */
export const peer = ({ adapted, message }: IncomingRequest): string =>
  adapted === undefined
    ? message?.socket.remoteAddress ?? ""
    : Option.getOrElse(adapted.remoteAddress, () => "")

/** Returns the request target as sent, before the router removed a prefix. */
export const sentTarget = ({ source, url }: HttpServerRequest): string =>
  Predicate.hasProperty(source, "url") && Predicate.isString(source.url)
    ? source.url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/iu, "")
    : url

/** An admitted request, counted against its caller's quota. */
export interface Admitted {
  readonly caller: Caller
  /**
   * Provides the caller to an effect of the request. Also provides `CurrentKeepCounted`: work that outlives the request
   * uses it to keep the request counted.
   */
  readonly provide: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /**
   * Counts further calls of the request. If the quota does not allow all of them, fails and counts none. Absent if the
   * caller has no quota.
   */
  readonly countMore?: (calls: number) => Effect.Effect<void, QuotaExceeded>
  /**
   * Charges the request as several requests, without counting them as concurrent. Absent if the caller has no quota.
   */
  readonly charge?: (requests: number) => Effect.Effect<void, QuotaExceeded>
  /** Ends the request. Later calls have no effect. */
  readonly end: () => void
}

/** The head of a request, and Node's response to it. */
export interface Head {
  readonly method: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  readonly url: string
  /** Returns the request target as sent, before the router removed a prefix from the URL. */
  readonly target?: (() => string) | undefined
  readonly response: ServerResponse | undefined
}

/** The record of one request. */
export interface RequestRecord extends Head {
  /** The ID of the request; absent if the request is not observed. */
  readonly id: string | undefined
  /**
   * The name of the request's endpoint in the API definition, such as `exchange.submit`; `other` for requests that
   * match no endpoint.
   */
  route: string
  /** The caller; `undefined` if unknown, or if the route does not determine it. */
  caller: Caller | undefined
  /** The declared operations of the request with their results: `ok`, `upstream_error`, or the tag of a typed error. */
  readonly operations: Array<{ readonly operation: string; readonly outcome: string }>
  /** Tag of the request's typed error. */
  error: string | undefined
  /** The quota headers of the response; `undefined` if the caller has no quota of requests. */
  quota: Fields | undefined
  /** The upstream whose response is relayed; `undefined` for a response of the gateway. */
  upstream: string | undefined
  /** Age in seconds of the oldest cached response that was used; `undefined` if no cached response was used. */
  age: number | undefined
  /** The origin of the page that sent the request, if that origin is not allowed: see `Cors.foreignTo`. */
  foreign: string | undefined
  /** The span of the request; `undefined` without a tracer, or if the route has no spans. */
  span: Tracer.Span | undefined
  readonly load: Load["Service"]
  /** The memory reserved for the body; `undefined` before it is read. */
  body: BodyReservation | undefined
  /** The caller and its quota, if they were determined before the request reached its route. */
  admitted: Admitted | undefined
  /** The key in the request, if keys are required. */
  key: Redacted.Redacted | undefined
}

/** Records the age of a response. */
export const noteAge = (record: RequestRecord, age: number | undefined): void => {
  if (age !== undefined) record.age = Math.max(record.age ?? 0, age)
}

/** Makes the record of a request that has not reached a route yet. */
export const make = (
  load: Load["Service"] = unlimited,
  id?: string,
  { headers, method, response, target, url }: Head = { method: "", headers: {}, url: "", response: undefined }
): RequestRecord => ({
  method,
  headers,
  url,
  target,
  response,
  id,
  route: "other",
  caller: undefined,
  operations: [],
  error: undefined,
  quota: undefined,
  upstream: undefined,
  age: undefined,
  foreign: undefined,
  span: undefined,
  load,
  body: undefined,
  admitted: undefined,
  key: undefined
})

/** The record of the request that the current fiber serves. The gateway sets it for each request: see `Observe`. */
export const CurrentRequestRecord = Context.Reference<RequestRecord>("@trigate/server/CurrentRequestRecord", {
  defaultValue: () => make()
})

/** Returns the error for a page of an origin that is not allowed; `undefined` for any other request. */
export const foreignRefusal = ({ foreign }: RequestRecord): NotPermitted | undefined =>
  foreign === undefined ? undefined : new NotPermitted({
    missing: "origins",
    needed: foreign.slice(0, 128),
    detail:
      "A page of another site is not allowed to sign or send; TRIGATE_CORS_ORIGINS lists the origins whose pages are allowed"
  })

/** Returns the tag of the request's error, otherwise the result of the first operation that failed. */
export const recordedError = ({ error, operations }: RequestRecord): string | undefined =>
  error ?? operations.find(({ outcome }) => outcome !== "ok")?.outcome

/** Maximum number of key names that metrics distinguish. */
const maxGroups = 100

const groups = new Set<string>()

/**
 * Returns the label of a caller's group, from the `id` of the caller: the name of the caller's key. The label is `address` for a caller without a
 * key, and `others` for further names beyond the first 100.
 */
export const callerGroup = (id: string): string => {
  if (!id.startsWith("key:")) return "address"
  if (!groups.has(id) && groups.size >= maxGroups) return "others"
  groups.add(id)
  return id.slice(id.indexOf(":") + 1)
}

/** Makes the function that counts completed requests in the metric registry of a context. */
export const makeCount = (context: Context.Context<never>) => {
  const requests = metrics.requests.updates(context)
  const seconds = metrics.requestSeconds.updates(context)
  const callers = metrics.callerRequests.updates(context)
  const operations = metrics.operations.updates(context)
  const ofRoute = remembered((route: string) => ({
    requests: remembered((status: number) =>
      remembered((outcome: string) => requests({ route, status: String(status), outcome }))
    ),
    seconds: seconds({ route })
  }))
  const ofCaller = remembered((group: string) => remembered((limited: string) => callers({ group, limited })))
  const ofOperation = remembered((operation: string) =>
    remembered((outcome: string) => operations({ operation, outcome }))
  )
  return (record: RequestRecord, status: number, milliseconds: number): void => {
    const { caller, error } = record
    const route = ofRoute(record.route)
    route.requests(status)(error ?? (status < 400 ? "ok" : "refused"))(1)
    route.seconds(milliseconds / 1000)
    if (caller !== undefined) ofCaller(callerGroup(caller.id))(status === 429 ? "yes" : "no")(1)
    for (const { operation, outcome } of record.operations) ofOperation(operation)(outcome)(1)
  }
}

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

/** Returns a body that Node has received as a whole. */
const received = (
  message: IncomingMessage,
  limit: number,
  mayHave: MayHave
): Effect.Effect<Uint8Array, BodyFailure> => {
  const size = message.readableLength
  if (size > limit) return tooLarge(limit)
  if (!mayHave(size)) return overloaded
  const body: unknown = message.read()
  return Exit.succeed(body instanceof Uint8Array ? body : new Uint8Array())
}

/**
 * Reads a body through the events of Node's message.
 *
 * Effect's adapter would read through a stream and copy the chunks. For a small request that would take 13
 * microseconds, more than Node needs for the heads of request and response together.
 */
const bytesFromNode = (message: IncomingMessage, limit: number, mayHave: MayHave) =>
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
  if (message !== undefined && isReadable(message, request)) {
    return message.complete ? received(message, limit, mayHave) : bytesFromNode(message, limit, mayHave)
  }
  if (adapted === undefined) return broken
  // Effect's adapter does not report the size while it reads, so memory for the maximum size is reserved
  return mayHave(limit) ? portable(adapted, limit) : overloaded
}

/**
 * Returns the body's bytes, decompressed. Fails with `PayloadTooLarge` if they exceed the limit. Fails with
 * `Overloaded`, before reading, if not enough memory is left.
 */
export const bytes = (request: IncomingRequest, limit = bodyLimit): Effect.Effect<Uint8Array, BodyFailure> => {
  const { record } = request
  if (!isJson(header(request, "content-type"))) return notJson
  const declared = Number(header(request, "content-length") ?? 0)
  if (declared > limit) return tooLarge(limit)
  const coding = header(request, "content-encoding")?.toLowerCase()
  const isPlain = coding === undefined || coding === "identity"
  const decode = isPlain ? undefined : decoders.get(coding)
  if (!isPlain && decode === undefined) return otherCoding
  const mayHave: MayHave = (size) => {
    if (size <= (record.body?.bytes ?? smallBody)) return true
    record.body ??= { caller: (record.caller ?? unowned).id, bytes: 0 }
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
}

/** Decodes UTF-8. Fails with `InvalidRequest` for invalid bytes. */
export const decodeText = (body: Uint8Array): Effect.Effect<string, InvalidRequest> =>
  // most bodies are ASCII, which needs no decoder
  isAscii(body)
    ? Exit.succeed(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1"))
    : Option.match(Encoding.decode(body), { onNone: () => notText, onSome: Exit.succeed })

/** Returns the body as text. */
export const text = (request: IncomingRequest): Effect.Effect<string, BodyFailure> =>
  Effect.flatMap(bytes(request), decodeText)

/** Parses the body strictly as JSON. The result also contains the received bytes. */
export const json = (request: IncomingRequest): Effect.Effect<Encoding.Json, BodyFailure> =>
  Effect.flatMap(bytes(request), (body) => Effect.flatMap(decodeText(body), (text) => parseRequest(text, body)))

const encode = Schema.encodeResult(GatewayErrorType)

const encodeProblem = (error: GatewayErrorType): object => Result.getOrElse(encode(error), () => ({}))

/**
 * Marks a request as not executed, so that a load balancer can send it to another replica even if it is not idempotent.
 */
const tryAnother = { "x-trigate-try-another": "true" }

/**
 * Returns the response headers for an error: when to retry (`Retry-After`), whether another replica can be tried, and
 * how to authenticate (RFC 9110, section 11.6.1).
 */
export const problemHeaders = (error: GatewayErrorType): { readonly [name: string]: string } => {
  if (error._tag === "Unauthorized") return { "www-authenticate": "Bearer" }
  return {
    ...("retryAfter" in error && error.retryAfter !== undefined ? { "retry-after": String(error.retryAfter) } : {}),
    ...(error._tag === "Overloaded" || error._tag === "UpstreamUnavailable" ? tryAnother : {})
  }
}

/**
 * Returns the JSON fields in which clients of the venue and of the token chain expect an error.
 *
 * Without `code`, the venue's Python SDK raises a `KeyError`, and its Go SDK prints only "API error 0". If the body has
 * no string field `error`, ccxt retries after most statuses and treats some statuses as success. A refusal for which a
 * retry is useless therefore has the field `error`.
 */
const nativeMembers = (path: string, status: number, message: string, isFinal: boolean): object => {
  if (path.includes("/api/v2/")) return { ok: false, error: message, code: status }
  if (!/\/(?:exchange|info)$/u.test(path)) return {}
  return { code: status, msg: message, ...(isFinal ? { error: message } : {}) }
}

// excludes 401, because clients recognize it by the status alone
const isFinalStatus = (status: number): boolean => status >= 400 && status < 500 && ![401, 408, 429].includes(status)

const isFinalError = ({ group, status }: GatewayErrorType): boolean =>
  (group === "fix-request" || group === "fix-setup") && status !== 401

/** Returns the problem document of a typed error on a path, with its headers. */
export const problem = (error: GatewayErrorType, path: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(
    Encoding.stringify({
      ...encodeProblem(error),
      ...nativeMembers(path, error.status, error.message, isFinalError(error))
    }),
    {
      status: error.status,
      contentType: ProblemDetails.contentType,
      headers: problemHeaders(error)
    }
  )

/** Responds to a request with a typed error, and records the error for the log and the metrics. */
export const answerProblem = (
  error: GatewayErrorType,
  path: string
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.contextWith((context) => {
    Context.get(context, CurrentRequestRecord).error = error._tag
    return Exit.succeed(problem(error, path))
  })

/**
 * Makes a problem document of the type `about:blank`: for an unknown route, a wrong method, or a defect of the gateway.
 */
export const plainProblem = (
  status: number,
  title: string,
  detail: string,
  { headers = {}, path = "" }: { readonly headers?: { readonly [name: string]: string }; readonly path?: string } = {}
): HttpServerResponse.HttpServerResponse => {
  const native = nativeMembers(path, status, detail, isFinalStatus(status))
  const members = { type: ProblemDetails.blankType, title, status, detail, ...native }
  return HttpServerResponse.text(JSON.stringify(members), { status, contentType: ProblemDetails.contentType, headers })
}

/**
 * Returns a content type that no browser executes or renders, without an upstream's parameters: JSON is
 * `application/json` or a problem document, plain text has at most the charset UTF-8, any other type is bytes.
 */
const inertType = (contentType: string): string => {
  if (contentType === "application/json" || /^text\/plain(?:; ?charset=utf-8)?$/iu.test(contentType)) return contentType
  const [type = ""] = contentType.toLowerCase().split(";")
  switch (type.trim()) {
    case "application/problem+json":
      return ProblemDetails.contentType
    case "text/plain":
      return "text/plain"
    default:
      return /^application\/(?:json|[a-z0-9.-]+\+json)$/u.test(type.trim())
        ? "application/json"
        : "application/octet-stream"
  }
}

/** The body of an upstream's response, in chunks. The chunks are joined only for a writer that needs one chunk. */
export class PiecedBody extends Body.Uint8Array {
  readonly #response: UpstreamResponse

  constructor(response: UpstreamResponse, contentType: string) {
    super(undefined, contentType, response.pieces.reduce((sum, { length }) => sum + length, 0))
    this.#response = response
  }

  get pieces(): ReadonlyArray<Uint8Array> {
    return this.#response.pieces
  }

  override get body(): Uint8Array {
    return this.#response.body
  }
}

/** The header with warnings for the sender of a request. */
const warningHeader = "x-trigate-warning"

/**
 * Returns the headers of a relayed response. If the response is a problem document of an upstream gateway, the warning
 * header explains which gateway the document means by "this gateway".
 */
const headersBeside = (
  { isProblem, retryAfter, upstream }: UpstreamResponse,
  headers: { readonly [name: string]: string } | undefined
): { readonly [name: string]: string } | undefined => {
  const all = retryAfter === undefined ? headers : { ...headers, "retry-after": String(retryAfter) }
  if (!isProblem) return all
  const given = all?.[warningHeader]
  const whose =
    `This response is from ${upstream}, which is also a gateway: in it, "this gateway" and the names of settings refer to ${upstream}`
  return { ...all, [warningHeader]: given === undefined ? whose : `${given}; ${whose}` }
}

/** Relays an operation's upstream response unchanged: status, content type, bytes. Records the operation for log and metrics. */
export const relayedIn = (
  record: RequestRecord,
  operation: string,
  response: UpstreamResponse,
  headers: { readonly [name: string]: string } | undefined = response.candles === undefined
    ? undefined
    : { [sourcesHeader]: response.candles }
): HttpServerResponse.HttpServerResponse => {
  const { age, contentType, status, upstream } = response
  record.operations.push({ operation, outcome: status === 200 ? "ok" : "upstream_error" })
  record.upstream = upstream
  noteAge(record, age)
  const beside = headersBeside(response, headers)
  const options = { status, contentType: inertType(contentType), ...(beside && { headers: beside }) }
  return response.pieces.length < 2
    ? HttpServerResponse.uint8Array(response.body, options)
    : HttpServerResponse.setBody(HttpServerResponse.empty(options), new PiecedBody(response, options.contentType))
}

/** Relays an operation's upstream response for the current request: see {@link relayedIn}. */
export const relayed = (
  operation: string,
  response: UpstreamResponse,
  headers?: { readonly [name: string]: string }
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.map(CurrentRequestRecord, (record) => relayedIn(record, operation, response, headers))

/** Makes a response from JSON text that the gateway encoded. */
export const jsonResponse = (
  body: string,
  status = 200,
  headers?: { readonly [name: string]: string }
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(body, { status, contentType: "application/json", ...(headers && { headers }) })
