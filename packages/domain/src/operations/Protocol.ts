/**
 * The interface between a wire protocol and the request pipeline: the classification of attempts to call an upstream,
 * the decoders of responses, and the backend of a chain.
 *
 * The embedded services and the typed client decode responses with the same functions. If the upstream is a gateway,
 * its problem document decodes to the error that the gateway encoded.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Json } from "../encoding/Json.ts"
import * as Utf8 from "../encoding/Utf8.ts"
import type { CommonFailure } from "../errors/GatewayError.ts"
import { ServedFailure, upstreamFailures } from "../errors/GatewayError.ts"
import { InvalidRequest } from "../errors/RequestError.ts"
import {
  OutcomeUnknown,
  UpstreamForbidden,
  UpstreamMalformed,
  UpstreamRateLimited,
  UpstreamUnavailable
} from "../errors/UpstreamError.ts"
import type { AnyCodec, CachePolicy, Cost, MethodClass, Operation } from "./Operation.ts"
import type { UpstreamResponse } from "./UpstreamResponse.ts"

/**
 * Makes the error for a response that does not decode. `issue` is the reason; it quotes at most an excerpt of the
 * response.
 */
export const malformed = (upstream: string, issue: string): UpstreamMalformed =>
  new UpstreamMalformed({ upstream, issue, detail: `${upstream} sent a response that does not decode: ${issue}` })

/** Maps an HTTP status other than 200 to a typed error with the upstream's message. */
export const failureOfStatus = (response: UpstreamResponse): CommonFailure => {
  const { retryAfter, status, upstream } = response
  const words = response.excerpt()
  const detail = words === ""
    ? `${upstream} responded with HTTP ${status}`
    : `${upstream} responded with HTTP ${status}: ${words}`
  const retry = retryAfter === undefined ? {} : { retryAfter }
  if (status === 429) return new UpstreamRateLimited({ upstream, detail, ...retry })
  if (status === 401 || status === 403) return new UpstreamForbidden({ upstream, detail })
  if (status === 400 || status === 422) {
    return new InvalidRequest({ errors: [{ path: [], message: words }], detail })
  }
  return new UpstreamUnavailable({ upstream, attempts: 1, detail, ...retry })
}

/** Makes a decoder of problem documents. The decoder returns `None` if the response is not a problem document. */
export const problemReader = <S extends AnyCodec>(schema: S) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (response: UpstreamResponse): Option.Option<S["Type"]> =>
    response.isProblem
      ? Option.flatMap(Result.getSuccess(response.json.value), (body) => decode(body))
      : Option.none()
}

const failureReader = <S extends AnyCodec>(schema: S) => {
  const readProblem = problemReader(schema)
  return (response: UpstreamResponse): S["Type"] | CommonFailure =>
    Option.getOrElse(readProblem(response), () => failureOfStatus(response))
}

/** Returns the typed error that a response reports: the error in its problem document, or the error for its status. */
export const responseFailure = failureReader(Schema.Union(upstreamFailures))

/** Like {@link responseFailure}, but also decodes a gateway's errors about the caller, such as `Unauthorized`. */
export const servedResponseFailure = failureReader(ServedFailure)

/** Makes the error for a response after which the outcome of an at-most-once call (`what`) is unknown. */
export const outcomeUnknown = (
  response: UpstreamResponse,
  what: string,
  known: Pick<OutcomeUnknown, "advice" | "nonce" | "signer">
): OutcomeUnknown => {
  const { status, upstream } = response
  const detail =
    `${upstream} responded with HTTP ${status}, which leaves the outcome of the ${what} open: ${response.excerpt()}`
  return new OutcomeUnknown({ upstream, ...known, detail })
}

const formatIssue = (error: Schema.SchemaError): string => error.message.split("\n").slice(0, 3).join(" ").slice(0, 240)

/** Makes a JSON decoder for a schema. The decoder fails with `UpstreamMalformed`. */
export const decodeJson = <S extends AnyCodec>(schema: S) => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (upstream: string, json: Json): Effect.Effect<S["Type"], UpstreamMalformed> =>
    Result.match(json.value, {
      onFailure: (refusal) => Effect.fail(malformed(upstream, refusal.message)),
      onSuccess: (value) => Effect.mapError(decode(value), (error) => malformed(upstream, formatIssue(error)))
    })
}

/**
 * Makes the decoder of an operation's responses over HTTP without JSON-RPC. Reuse the decoder, because it contains
 * compiled schemas.
 */
export const makeReader = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  Failures extends ReadonlyArray<AnyCodec>
>(operation: Operation<string, MethodClass, Request, Response, Failures>) => {
  const readProblem = problemReader(Schema.Union([...upstreamFailures, ...operation.failures]))
  const decodeResponse = decodeJson(operation.response)
  return (
    request: Request["Type"],
    response: UpstreamResponse
  ): Effect.Effect<Response["Type"], Failures[number]["Type"] | CommonFailure> => {
    const problem = readProblem(response)
    if (Option.isSome(problem)) return Effect.fail(problem.value)
    if (operation.refusal?.matches(response) === true) return Effect.fail(operation.refusal.failure(request, response))
    return response.status === 200
      ? decodeResponse(response.upstream, response.json)
      : Effect.fail(failureOfStatus(response))
  }
}

/**
 * The fault of an attempt, if the call might succeed later or at a different upstream URL. This is a closed set, which
 * metrics use as a label.
 *
 * - `declined`: the upstream URL reports a protocol error because it cannot serve this call. The URL is healthy, and
 *   would respond to the call in the same way again.
 * - `mismatched`: the response is JSON, but not a response to this call. This indicates only weakly that other calls to
 *   the URL fail too.
 * - `withheld`: no attempt was made.
 */
export type RetryableFault =
  | "not_sent"
  | "broken"
  | "timeout"
  | "server_fault"
  | "rate_limited"
  | "declined"
  | "malformed"
  | "mismatched"
  | "withheld"

/** The upstream responded; `rows` is the length of the response if it is a list. */
export interface Answered<A> {
  readonly _tag: "Answered"
  readonly answer: A
  readonly rows: number
}

/** The upstream refused the call, and would refuse it again. */
export interface Refused<E> {
  readonly _tag: "Refused"
  readonly failure: E
}

/** The call is unresolved: another attempt might succeed. */
export interface Retryable<A, E> {
  readonly _tag: "Retryable"
  readonly fault: RetryableFault
  /** The upstream's response, which the caller receives if all attempts fail. */
  readonly answer: A | undefined
  /** Seconds to wait before the next attempt, as the upstream requests. */
  readonly retryAfter: number | undefined
  /** Makes the error that the caller receives if all attempts fail; `attempts` is the number of attempts. */
  readonly failure: (attempts: number) => E
}

/** The result of one attempt. */
export type AttemptResult<A, E> = Answered<A> | Refused<E> | Retryable<A, E>

/** Returns the result of a completed call. */
export const answered = <A>(answer: A, rows = 0): Answered<A> => ({ _tag: "Answered", answer, rows })

/** Makes the result of a refused call. */
export const refused = <E>(failure: E): Refused<E> => ({ _tag: "Refused", failure })

/** Makes the result of an attempt that leaves the call unresolved. */
export const retryable = <A, E>(
  fault: RetryableFault,
  failure: (attempts: number) => E,
  said: { readonly answer?: A; readonly retryAfter?: number | undefined } = {}
): Retryable<A, E> => ({ _tag: "Retryable", fault, answer: said.answer, retryAfter: said.retryAfter, failure })

/** Returns the error of a read whose attempts all failed. */
export const unavailable = (upstream: string, detail: string) => (attempts: number): UpstreamUnavailable =>
  new UpstreamUnavailable({ upstream, attempts, detail })

/** Makes the result of an attempt that was not made or was interrupted. */
export const unreachable = (
  upstream: string,
  fault: RetryableFault,
  detail: string
): Retryable<never, UpstreamUnavailable> =>
  retryable(fault, unavailable(upstream, `${upstream} could not be reached (${detail})`))

/** Makes the result of an attempt whose response does not decode. */
export const unreadable = (upstream: string, issue: string): Retryable<never, UpstreamMalformed> =>
  retryable("malformed", () => malformed(upstream, issue))

/** Makes the result of an attempt whose JSON is not a response to the call. */
export const mismatched = (upstream: string, issue: string): Retryable<never, UpstreamMalformed> =>
  retryable("mismatched", () => malformed(upstream, issue))

const startsHtml = /^\s*</u

/**
 * Returns whether a status is in a class that HTTP defines (RFC 9110, section 15); a server cannot forward any other
 * status.
 */
const isKnownStatus = (status: number): boolean => status >= 100 && status <= 599

/**
 * Returns why a response is not from the upstream itself: it is a proxy's HTML, an empty body or a redirect, or has an
 * invalid status. Otherwise returns `undefined`.
 */
export const foreign = (response: UpstreamResponse): string | undefined => {
  const { contentType, pieces, status } = response
  const first = Utf8.opening(pieces, 1)[0]
  if (!isKnownStatus(status)) return `an unknown status (HTTP ${status})`
  if (status >= 300 && status < 400) return `a redirect (HTTP ${status})`
  if (first === undefined && status !== 429) return `an empty body (HTTP ${status})`
  const isHtml = contentType.startsWith("text/html") ||
    // for most responses, the first byte alone shows that the body is not HTML
    (first !== 0x7b && first !== 0x5b && startsHtml.test(response.excerpt(8)))
  return isHtml ? `HTML (HTTP ${status})` : undefined
}

/** Returns the result of an attempt if its response is not from the upstream itself; otherwise `undefined`. */
export const ofForeign = (
  response: UpstreamResponse
): Retryable<never, UpstreamUnavailable | UpstreamMalformed> | undefined => {
  const issue = foreign(response)
  if (issue === undefined) return undefined
  const { status, upstream } = response
  return status >= 400 && isKnownStatus(status)
    ? retryable("server_fault", unavailable(upstream, `${upstream} responded with ${issue}`))
    : unreadable(upstream, issue)
}

/**
 * The destination of a chain's validated calls: live upstreams, an in-memory state, or a sandbox.
 *
 * The layers of a service differ only in their backend.
 */
export interface Backend<Read, Once, Answer> {
  readonly read: (call: Read) => Effect.Effect<Answer, CommonFailure>
  /** Sends a call at most once. */
  readonly once: (call: Once) => Effect.Effect<Answer, CommonFailure | OutcomeUnknown>
}

/** The declaration of a read. */
export type ReadOperation = Operation<string, "read">

/** The stored content of a response: its body, as bytes or as text, and its metadata. */
export interface CachedContent {
  readonly head: string
  readonly body: string | Uint8Array
}

/**
 * The party that caused the error in a response.
 *
 * - `upstream`: the upstream failed, so a stale cached response is preferable.
 * - `caller`: the upstream refused the request as written; an equivalent request in another format might succeed.
 */
export type FaultOwner = "upstream" | "caller"

/** The cache encoding of one kind of response. */
export interface CacheCodec<A> {
  /** Returns the content to store; `undefined` for an unsuccessful response. */
  readonly store: (answer: A) => CachedContent | undefined
  /** Restores a response from content that was stored `age` seconds ago. */
  readonly restore: (content: CachedContent, age: number) => A
  /** Returns the party that caused the error in a response; `undefined` for a success. */
  readonly faultOf: (answer: A) => FaultOwner | undefined
  /** Returns whether a response reports that the rate limit is exhausted. Default: never. */
  readonly isRateLimited?: (answer: A) => boolean
}

/**
 * One request as sent, and the classification of its response. The request is a POST if it has a body, otherwise a GET.
 */
export interface Question<A, E> {
  readonly body: Uint8Array | undefined
  readonly judge: (response: UpstreamResponse) => AttemptResult<A, E>
}

/**
 * The response to a batch: one response for each of its calls, or `NoBatches` if the node does not accept the batch.
 *
 * `most` is the maximum number of calls in a batch, if the node's error states it.
 */
export type BatchAnswer<Each> =
  | { readonly _tag: "Each"; readonly answers: ReadonlyArray<Each> }
  | { readonly _tag: "NoBatches"; readonly most?: number | undefined }

/** The functions that encode, classify and cache the read calls of a protocol. */
export interface ReadProtocol<Call extends { readonly operation: ReadOperation }, A, E> {
  /** Returns the cache key of a call. Calls of one operation with equal keys are coalesced and cached together. */
  readonly key: (call: Call) => string
  /**
   * Returns the cache policy of the response to a call; `undefined` if the response is not cached. `onRequest` is true
   * for a caller that accepts a response that is one block old.
   */
  readonly cachePolicy: (call: Call, now: number, onRequest: boolean) => CachePolicy | undefined
  /** Returns whether a response is cacheable: it is not an error, and it is the response to this call. */
  readonly isCacheable: (call: Call, answer: A) => boolean
  /** Returns the maximum cost of a call, for a protocol in which the cost depends on the call. */
  readonly costOf?: (call: Call, now: number) => Cost
  /**
   * Returns the accounts whose state a call reads, in lower case; empty if it reads the state of an account that it
   * does not name. Returns `undefined` if it reads no account.
   *
   * After an action that changes one of these accounts, responses from before the action are not served.
   */
  readonly accountsIn?: (call: Call) => ReadonlyArray<string> | undefined
  readonly codec: CacheCodec<A>
  /** Encodes a call; `id` identifies the response to this call, if the protocol has IDs. */
  readonly write: (call: Call, id: number) => Question<A, E>
}
