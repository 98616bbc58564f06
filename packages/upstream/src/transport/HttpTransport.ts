/**
 * The transport: sends one HTTP request. On failure, it reports whether any byte may have reached the peer. Responses
 * are without the endpoint key of their address.
 *
 * A server can quote an unknown path in responses with any status, and in any JSON field. Every response passes this
 * module before it is parsed, relayed, cached or quoted, so no later step has to handle keys.
 */
import type { Caller } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import { constTrue } from "effect/Function"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import type * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Target } from "../Upstream.ts"

/** One HTTP request. Its URL is a secret: the path contains the endpoint key. */
export interface TransportRequest {
  /** The owner of the request: the caller to whom it is charged, or the background work that sends it. */
  readonly owner: Caller
  readonly method: "GET" | "POST"
  readonly url: Redacted.Redacted
  readonly headers: { readonly [name: string]: string }
  readonly body: Uint8Array | undefined
  /** Maximum number of bytes of a response after decompression. */
  readonly maxAnswerBytes: number
  /** Timeout in milliseconds, from the connection to the last byte of the response. */
  readonly timeout: number
  /** Milliseconds after which no further part of the request is sent. Default: `timeout`. */
  readonly sendWithin?: number | undefined
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
 * Provided by `HttpTransport.layerFetch`, `HttpTransport.layerUndici` or `HttpTransport.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Caller } from "@trigate/domain"
 * import { HttpTransport } from "@trigate/upstream"
 * import { Console, Effect, Redacted } from "effect"
 *
 * const program = HttpTransport.HttpTransport.use(({ send }) =>
 *   send({
 *     owner: Caller.background("example"),
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
 * await Effect.runPromise(Effect.provide(program, HttpTransport.layerUndici()))
 * ```
 * ```text
 * 200
 * ```
 */
export class HttpTransport extends Context.Service<HttpTransport, {
  readonly send: (request: TransportRequest) => Effect.Effect<TransportResponse, TransportError>
}>()("@trigate/upstream/transport/HttpTransport") {}

/** Removes an address's endpoint key from the text of a response with the given status. */
export type Conceal = (status: number, text: string) => string

/** Removes one endpoint key from a text. Only a text that includes one of the candidates can contain the key. */
interface Step {
  readonly candidates: ReadonlyArray<string>
  readonly remove: (text: string) => string
}

/** Minimum length of an endpoint key that does not occur by chance inside a longer word. */
const LONG_KEY = 8

/** Length below which an endpoint key may be a common word, and is removed only from quoted paths. */
const SHORT_KEY = 4

/** Path segments that name routes, networks and versions. These segments stay readable in error messages. */
const routeName = /^(?:api|bsc|eth|evm|exchange|info|jsonrpc|l2|mainnet|polygon|rpc|sepolia|testnet|ton|v[0-9]+)$/iu

/** A path segment that may be an English word, the name of a network, or a number. */
const likeWord = /^(?:[a-z_-]{1,24}|[0-9]{1,24})$/u

const decodedPart = Schema.decodeOption(Schema.StringFromUriComponent)

const literal = (text: string): string => text.replace(/[/.*+?^$(){}|[\]\\]/gu, "\\$&")

const hex = (code: number, digits: number): string =>
  code.toString(16).padStart(digits, "0").replace(/[a-f]/gu, (digit) => `[${digit}${digit.toUpperCase()}]`)

// each level of quoting escapes these characters once more
const backslash = String.raw`(?:\\|%(?:25)*5[cC])+`
const percent = String.raw`(?:%|\\+u0025)(?:25)*`

const percentBytes = (letter: string): string =>
  Array.from(Encoding.encode(letter), (byte) => `${percent}${hex(byte, 2)}`).join("")

const codeUnits = (letter: string): string =>
  Array.from({ length: letter.length }, (_, at) => `${backslash}u${hex(letter.charCodeAt(at), 4)}`).join("")

/** Returns a pattern that matches a letter, either plain or escaped for JSON or a URL. */
const letterPattern = (letter: string): string => {
  const itself = /["/\\]/u.test(letter) ? `(?:${backslash})?${literal(letter)}` : literal(letter)
  return `(?:${itself}|${codeUnits(letter)}|${percentBytes(letter)}${letter === " " ? String.raw`|\+` : ""})`
}

/** Returns the pattern of a text in which any letter may be escaped. */
const textPattern = (text: string): string => Array.from(text, letterPattern).join("")

/** Number of bytes in a base64 group, which encodes them as four characters. */
const GROUP = 3

/**
 * Returns the base64 groups inside the endpoint key, for each of the three possible alignments. Any base64 text that
 * contains the key contains one of these texts.
 */
const base64Cores = (key: Uint8Array): ReadonlyArray<string> =>
  [0, 1, 2].flatMap((skipped) => {
    const length = Math.floor((key.length - skipped) / GROUP) * GROUP
    const core = Base64.encode(key.subarray(skipped, skipped + length))
    return [core, core.replaceAll("+", "-").replaceAll("/", "_")]
  })

const around = "[A-Za-z0-9+/_-]{0,4}"

const isEscaped = (text: string, at: number): boolean => {
  let start = at
  while (text[start - 1] === "\\") start--
  return (at - start) % 2 === 1
}

/** Makes a step over a pattern that is made on first use. */
const step = (makePattern: () => RegExp, candidates: ReadonlyArray<string>): Step => {
  let pattern: RegExp | undefined
  return {
    candidates,
    remove: (text) => {
      if (!mayContain(text, candidates)) return text
      pattern ??= makePattern()
      // a backslash before the match must not escape the replacement
      return text.replace(pattern, (_, at: number) => isEscaped(text, at) ? "\\…" : "…")
    }
  }
}

/** A cheap scan, which excludes most texts. */
const mayContain = (text: string, candidates: ReadonlyArray<string>): boolean => {
  for (const candidate of candidates) if (text.includes(candidate)) return true
  return false
}

/**
 * Returns prefixes of escape sequences. Any text in which a letter of the path segment is escaped contains one of these
 * prefixes.
 */
const escapePrefixes = (part: string): ReadonlyArray<string> => ["%", /["/\\]/u.test(part) ? "\\" : "\\u"]

/** Returns the longest run of base64 text without `+` and `/`, which servers may escape. */
const plainest = (core: string): string =>
  core.split(/[+/]/u).reduce((longest, piece) => piece.length > longest.length ? piece : longest)

const matchSteps = (part: string): ReadonlyArray<Step> => {
  const escapes = escapePrefixes(part)
  if (part.length < LONG_KEY) {
    const before = part.length < SHORT_KEY ? "(?<=/|%2[fF])" : "(?<![\\p{L}\\p{N}_])"
    const word = () => new RegExp(`${before}${textPattern(part)}(?![\\p{L}\\p{N}_])`, "gu")
    return [step(word, [part, ...escapes])]
  }
  const cores = [...new Set(base64Cores(Encoding.encode(part)))]
  return [
    step(() => new RegExp(textPattern(part), "gu"), [part, ...escapes]),
    // servers escape neither letters nor digits of base64
    step(() => new RegExp(`${around}(?:${cores.map(textPattern).join("|")})${around}=*`, "gu"), cores.map(plainest))
  ]
}

const inTurn = (parts: ReadonlyArray<string>): Step["remove"] => {
  const steps = parts.flatMap(matchSteps)
  const candidates = [...new Set(steps.flatMap((step) => step.candidates))]
  return (text) => mayContain(text, candidates) ? steps.reduce((left, { remove }) => remove(left), text) : text
}

const refusing: ReadonlyArray<string> = ["error", "errors", "message", "detail"]

/** Returns whether a JSON object is an error despite its successful status. */
const refuses = (text: string): boolean => {
  const members = Encoding.members(text)
  const says = (name: string, value: string) => {
    const span = members.get(name)
    return span !== undefined && text.slice(span.start, span.end) === value
  }
  return refusing.some((name) => members.has(name)) || says("status", `"err"`) || says("ok", "false")
}

/**
 * Makes the function that removes the endpoint key of a base URL from responses; `undefined` if the URL's path contains
 * no possible key.
 *
 * From an error message, every segment of the path that does not name a route is removed. Other responses may contain a
 * path segment by chance, so only segments that cannot be words are removed from them.
 */
export const make = (address: string): Conceal | undefined => {
  const path = URL.canParse(address) ? new URL(address).pathname : ""
  const parts = path.split("/")
    .map((part) => Option.getOrElse(decodedPart(part), () => part))
    .filter((part) => part !== "" && !routeName.test(part))
    // longer segments are removed first, because they may contain shorter ones
    .toSorted((one, other) => other.length - one.length)
  if (parts.length === 0) return undefined
  const refusal = inTurn(parts)
  const data = inTurn(parts.filter((part) => part.length >= LONG_KEY && !likeWord.test(part)))
  const withinData = (text: string): string => refuses(text) ? refusal(text) : data(text)
  return (status, text) => {
    const concealed = refusal(text)
    if (status >= 300 || concealed === text) return concealed
    const elements = Encoding.elements(text)
    return elements === undefined ? withinData(text) : `[${elements.map(withinData).join(",")}]`
  }
}

const httpDate = /^[A-Za-z]{3,9}, .+ GMT$/u

const instant = (header: string | undefined) =>
  Option.flatMap(Option.filter(Option.fromNullishOr(header), (text) => httpDate.test(text)), DateTime.make)

/**
 * Returns the seconds of a `Retry-After` header. If the header contains a date, compares it with the `Date` header of
 * the response, so that clock differences do not matter.
 */
const parseRetryAfter = (headers: TransportResponse["headers"]): number | undefined => {
  const header = headers["retry-after"]
  if (header === undefined) return undefined
  if (/^[0-9]{1,9}$/u.test(header)) return Number(header)
  const between = Option.zipWith(
    instant(header),
    instant(headers["date"]),
    (then, now) => Math.max(0, Math.ceil((DateTime.toEpochMillis(then) - DateTime.toEpochMillis(now)) / 1000))
  )
  return Option.getOrUndefined(between)
}

const unknownType = "application/octet-stream"

/** Removes the address's endpoint key from a response, before any other module reads it. */
export const receive = (
  { conceal, label }: Target,
  { body, headers, status }: TransportResponse
): UpstreamResponse.UpstreamResponse => {
  const retryAfter = parseRetryAfter(headers)
  const contentType = headers["content-type"] ?? unknownType
  const received = UpstreamResponse.make({
    upstream: label,
    status,
    contentType,
    body,
    signer: UpstreamResponse.signerIn(headers),
    retryAfter
  })
  if (conceal === undefined) return received
  // invalid UTF-8 can contain the key too; removing the key may also replace the invalid bytes
  const text = conceal(status, received.text)
  const type = conceal(status, contentType) === contentType ? contentType : unknownType
  return text === received.text && type === contentType
    ? received
    : received.with({ body: Encoding.encode(text), contentType: type })
}

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
 * import { HttpTransport } from "@trigate/upstream"
 * import { Layer } from "effect"
 *
 * export const transport = Layer.provide(HttpTransport.layer, NodeHttpClient.layerNodeHttp)
 * ```
 */
export const layer: Layer.Layer<HttpTransport, never, HttpClient.HttpClient> = Layer.effect(
  HttpTransport,
  Effect.map(HttpClient.HttpClient, (client) => HttpTransport.of({ send: send(client) }))
)

/**
 * Provides the transport over Effect's fetch client, for browsers, Bun, Deno and workers.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { HttpTransport, Pipeline } from "@trigate/upstream"
 * import { Layer } from "effect"
 *
 * export const pipeline = Layer.provide(Pipeline.layer(), HttpTransport.layerFetch)
 * ```
 */
export const layerFetch: Layer.Layer<HttpTransport> = Layer.provide(
  layer,
  FetchHttpClient.layer
)

/**
 * Provides the transport over undici with its own pools. It is the fastest transport in Node.
 *
 * undici is loaded when the layer is built, so that a program with another client is bundled without it.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerUndici = (): Layer.Layer<HttpTransport> =>
  Layer.unwrap(Effect.map(Effect.promise(() => import("./HttpTransportUndici.ts")), ({ layer }) => layer()))
