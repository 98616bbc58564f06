/**
 * The transport over undici's dispatcher, the fastest HTTP client of Node, with a pool of connections per origin.
 *
 * Some servers compress although the request does not accept compression, so the size limit also applies after
 * decompression.
 */
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { brotliDecompress, gunzip, inflate } from "node:zlib"
import * as Undici from "undici"
import { HttpTransport, timedOut, TransportError } from "./HttpTransport.ts"
import type { TransportRequest, TransportResponse } from "./HttpTransport.ts"

type Decoder = (
  input: Uint8Array,
  options: { readonly maxOutputLength: number },
  done: (error: Error | null, output: Uint8Array) => void
) => void

const decoders: { readonly [encoding: string]: Decoder } = {
  gzip: gunzip,
  "x-gzip": gunzip,
  deflate: inflate,
  br: brotliDecompress
}

/** Decompresses the body of a response. Fails if the decompressed body is longer than `limit` bytes. */
const decompress = (
  answer: TransportResponse & { readonly body: ReadonlyArray<Uint8Array> },
  limit: number
): Effect.Effect<TransportResponse, TransportError> => {
  const encoding = answer.headers["content-encoding"]
  if (encoding === undefined || encoding === "identity" || answer.body.length === 0) return Effect.succeed(answer)
  const decoder = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined
  if (decoder === undefined) {
    return Effect.fail(new TransportError({ sent: "maybe", reason: "Encoding", detail: "Unknown content encoding" }))
  }
  return Effect.callback((resume) => {
    decoder(Utf8.joined(answer.body), { maxOutputLength: limit }, (error, body) => {
      resume(
        error === null
          ? Effect.succeed({ ...answer, body })
          : Effect.fail(
            "code" in error && error.code === "ERR_BUFFER_TOO_LARGE"
              ? new TransportError({
                sent: "maybe",
                reason: "TooLarge",
                detail: `The response is larger than ${limit} bytes`
              })
              : new TransportError({ sent: "maybe", reason: "Encoding", detail: "The response cannot be decompressed" })
          )
      )
    })
  })
}

interface Headers {
  readonly [name: string]: string | ReadonlyArray<string> | undefined
}

const flatten = (headers: Headers) => {
  const flat: { [name: string]: string } = {}
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined) flat[name] = typeof value === "string" ? value : value.join(", ")
  }
  return flat
}

/** Returns an error's code. The code is safe to log; the message is not, because it may quote the URL. */
export const errorCode = (error: Error): string =>
  "code" in error && typeof error.code === "string" ? error.code : error.name

type Resume = (response: Effect.Effect<TransportResponse, TransportError>) => void

/** Maximum bytes of responses that are being read. Beyond, a response above 64 KiB is refused. */
export const maxReading = 128 * 1024 * 1024

const smallResponse = 64 * 1024

/** Responses above this number of bytes are completed one in each turn of the event loop: decoding one takes long. */
const largeResponse = 1024 * 1024

/** The responses that are being read. */
class Reading {
  bytes = 0
  #isWaiting = false
  readonly #complete: Array<() => void> = []

  /** Runs the completions of large responses, one in each turn of the event loop. */
  inTurn(complete: () => void): void {
    this.#complete.push(complete)
    if (!this.#isWaiting) this.#next()
  }

  #next(): void {
    this.#isWaiting = true
    setImmediate(() => {
      this.#isWaiting = this.#complete.length > 1
      if (this.#isWaiting) this.#next()
      this.#complete.shift()?.()
    })
  }
}

/** The handler of one dispatched request; completes once. */
class UndiciAttempt implements Undici.Dispatcher.DispatchHandler {
  readonly #request: TransportRequest
  #resume: Resume
  #timer: ReturnType<typeof setTimeout>
  #chunks: Array<Uint8Array> = []
  #controller: Undici.Dispatcher.DispatchController | undefined
  #isOver = false
  readonly #reading: Reading
  #size = 0
  #status = 0
  #headers: { [name: string]: string } = {}

  constructor(request: TransportRequest, resume: Resume, reading: Reading) {
    this.#request = request
    this.#reading = reading
    this.#resume = resume
    // a plain timer costs a tenth of a sleeping fiber; a test clock could not control the sockets anyway
    //
    // @effect-diagnostics-next-line globalTimers:off -- see above
    this.#timer = setTimeout(
      () => this.#expire(request.sendWithin ?? request.timeout),
      request.sendWithin ?? request.timeout
    )
  }

  #expire(elapsed: number) {
    const left = this.#request.timeout - elapsed
    if (this.#sent === "no" || left <= 0) this.#abort(timedOut(this.#sent, elapsed))
    // @effect-diagnostics-next-line globalTimers:off -- see above
    else this.#timer = setTimeout(() => this.#expire(this.#request.timeout), left)
  }

  // no byte can have been sent before a connected socket has accepted the request
  get #sent(): TransportError["sent"] {
    return this.#controller === undefined ? "no" : "maybe"
  }

  #end(result: Effect.Effect<TransportResponse, TransportError>) {
    if (this.#isOver) return
    const resume = this.#resume
    this.#release()
    resume(result)
  }

  /**
   * Drops the references to the caller and the chunks, because undici's queue retains completed requests until hundreds
   * of later ones have completed.
   */
  #release() {
    this.#isOver = true
    this.#reading.bytes -= this.#size
    this.#resume = constVoid
    this.#chunks = []
    clearTimeout(this.#timer)
  }

  #abort(error: TransportError) {
    this.#end(Effect.fail(error))
    this.#controller?.abort(error)
  }

  /** Aborts the request without reporting a result. */
  interrupt() {
    if (this.#isOver) return
    this.#release()
    this.#controller?.abort(new Error("interrupted"))
  }

  onRequestStart(controller: Undici.Dispatcher.DispatchController) {
    if (this.#isOver) controller.abort(new Error("interrupted before it started"))
    else this.#controller = controller
  }

  onResponseStart(_controller: Undici.Dispatcher.DispatchController, status: number, headers: Headers) {
    this.#status = status
    this.#headers = flatten(headers)
  }

  onResponseData(_controller: Undici.Dispatcher.DispatchController, chunk: Uint8Array) {
    if (this.#isOver) return
    const limit = this.#request.maxAnswerBytes
    this.#size += chunk.length
    this.#reading.bytes += chunk.length
    if (this.#size > limit) this.#refuse(`The response is larger than ${limit} bytes`)
    else if (this.#size > smallResponse && this.#reading.bytes > maxReading) {
      this.#refuse(`The responses that are being read are larger than ${maxReading} bytes`)
    } else this.#chunks.push(chunk)
  }

  #refuse(detail: string) {
    this.#abort(new TransportError({ sent: "maybe", reason: "TooLarge", detail }))
  }

  onResponseEnd() {
    const answer = { status: this.#status, headers: this.#headers, body: this.#chunks }
    const complete = () => this.#end(decompress(answer, this.#request.maxAnswerBytes))
    if (this.#size > largeResponse) this.#reading.inTurn(complete)
    // responses that arrived together are completed together, after the event loop has read all sockets: alternating
    // between reading and completing takes a tenth more processor time
    else setImmediate(complete)
  }

  onResponseError(_controller: Undici.Dispatcher.DispatchController, error: Error) {
    const sent = this.#sent
    this.#end(
      Effect.fail(new TransportError({ sent, reason: sent === "no" ? "Connect" : "Broken", detail: errorCode(error) }))
    )
  }
}

/** Options of the connection pools. */
export interface Options {
  /** Maximum number of sockets per origin. Default: unlimited. */
  readonly connections?: number
}

interface UpstreamLocation {
  readonly origin: string
  readonly path: string
}

// parsed URLs are cached by `Redacted` object, because parsing costs more than the rest of this module; all calls to an
// address pass the same object
const places = new WeakMap<Redacted.Redacted, UpstreamLocation>()

const parseLocation = (address: Redacted.Redacted): UpstreamLocation => {
  const known = places.get(address)
  if (known !== undefined) return known
  const url = new URL(Redacted.value(address))
  const place = { origin: url.origin, path: `${url.pathname}${url.search}` }
  places.set(address, place)
  return place
}

const startOver = (
  dispatcher: Undici.Dispatcher,
  request: TransportRequest,
  resume: Resume,
  reading: Reading
): UndiciAttempt => {
  const attempt = new UndiciAttempt(request, resume, reading)
  const { origin, path } = parseLocation(request.url)
  dispatcher.dispatch({
    origin,
    path,
    method: request.method,
    headers: request.headers,
    body: request.body ?? null,
    // undici may send an idempotent request again on a second socket; only the gateway is allowed to decide that
    idempotent: false,
    // undici's own timers are disabled: they are coarse, and restart with each chunk of the response
    headersTimeout: 0,
    bodyTimeout: 0
  }, attempt)
  return attempt
}

const agent = (options: Options, settings: Undici.Agent.Options) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      new Undici.Agent({
        ...(options.connections === undefined ? {} : { connections: options.connections }),
        connect: { timeout: 5_000 },
        // HTTP/2 is disabled, because over HTTP/2, undici sends a refused or unanswered request again
        allowH2: false,
        ...settings
      })
    ),
    (made) => Effect.promise(() => made.destroy())
  )

/**
 * Provides the transport over undici with its own connection pools, which close with the layer's scope.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { HttpTransportUndici } from "@trigate/upstream"
 *
 * export const transport = HttpTransportUndici.layer({ connections: 64 })
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<HttpTransport> =>
  Layer.effect(
    HttpTransport,
    Effect.gen(function*() {
      const pooled = yield* agent(options, { keepAliveTimeout: 10_000 })
      // opens a new connection for each request: a pooled connection may be closed by the peer just when a request is
      // sent
      const unshared = yield* agent(options, { pipelining: 0 })
      const reading = new Reading()
      return HttpTransport.of({
        send: (request) =>
          Effect.callback((resume) => {
            const dispatcher = request.onNewConnection === true ? unshared : pooled
            const attempt = startOver(dispatcher, request, resume, reading)
            return Effect.sync(() => attempt.interrupt())
          })
      })
    })
  )
