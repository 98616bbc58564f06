/**
 * What a wire protocol provides to the pipeline: the meaning of an attempt for its call, the reader of responses, and the
 * backend of a chain's checked calls.
 *
 * The embedded services and the typed client read responses with the same functions, so that a response means the same to
 * both. A problem document of a gateway upstream decodes to the original error.
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

/** The error of a response that breaks its protocol; `issue` quotes at most an excerpt. */
export const malformed = (upstream: string, issue: string): UpstreamMalformed =>
  new UpstreamMalformed({ upstream, issue, detail: `${upstream} sent a response that does not decode: ${issue}` })

/** The typed error that a status other than 200 stands for, with the upstream's own words. */
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

/** Reads the typed error of a problem document; none where the response is not one. */
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

/** The typed error of a response that does not follow its protocol: its problem document, or what its status says. */
export const responseFailure = failureReader(Schema.Union(upstreamFailures))

/** The same for the caller of a gateway, whom it can refuse as such. */
export const servedResponseFailure = failureReader(ServedFailure)

/** Returns the error of a response that leaves the outcome of a call (`what`) open that was sent at most once. */
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

/** Reads JSON against a schema; fails with `UpstreamMalformed`. */
export const decodeJson = <S extends AnyCodec>(schema: S) => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (upstream: string, json: Json): Effect.Effect<S["Type"], UpstreamMalformed> =>
    Result.match(json.value, {
      onFailure: (refusal) => Effect.fail(malformed(upstream, refusal.message)),
      onSuccess: (value) => Effect.mapError(decode(value), (error) => malformed(upstream, formatIssue(error)))
    })
}

/** The reader of an operation's responses over plain HTTP; build it once, since it holds compiled decoders. */
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
 * Why another address, or the same one a little later, may answer; a closed set that metrics use as a label.
 *
 * - `declined`: the address reports with an error of its protocol that it cannot serve this call. It is healthy, and would
 * respond the same again.
 * - `mismatched`: JSON that is not a response to this call, which is weak evidence about other calls.
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

/** The upstream responded; `rows` is the length of a response that is a list. */
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

/** The call is still open: another attempt may succeed. */
export interface Retryable<A, E> {
  readonly _tag: "Retryable"
  readonly fault: RetryableFault
  /** What the upstream said, to be given to the caller when no attempt does better. */
  readonly answer: A | undefined
  /** Seconds after which the upstream wants to be asked again. */
  readonly retryAfter: number | undefined
  /** Returns the error of the call if no attempt succeeds, for the number of attempts made. */
  readonly failure: (attempts: number) => E
}

/** The result of one attempt. */
export type AttemptResult<A, E> = Answered<A> | Refused<E> | Retryable<A, E>

/** Returns the result of a completed call. */
export const answered = <A>(answer: A, rows = 0): Answered<A> => ({ _tag: "Answered", answer, rows })

/** A refused call. */
export const refused = <E>(failure: E): Refused<E> => ({ _tag: "Refused", failure })

/** An attempt that leaves the call open. */
export const retryable = <A, E>(
  fault: RetryableFault,
  failure: (attempts: number) => E,
  said: { readonly answer?: A; readonly retryAfter?: number | undefined } = {}
): Retryable<A, E> => ({ _tag: "Retryable", fault, answer: said.answer, retryAfter: said.retryAfter, failure })

/** Returns the error of a read whose attempts all failed. */
export const unavailable = (upstream: string, detail: string) => (attempts: number): UpstreamUnavailable =>
  new UpstreamUnavailable({ upstream, attempts, detail })

/** An attempt that was not made or broke off. */
export const unreachable = (
  upstream: string,
  fault: RetryableFault,
  detail: string
): Retryable<never, UpstreamUnavailable> =>
  retryable(fault, unavailable(upstream, `${upstream} could not be reached (${detail})`))

/** A response that does not decode. */
export const unreadable = (upstream: string, issue: string): Retryable<never, UpstreamMalformed> =>
  retryable("malformed", () => malformed(upstream, issue))

/** JSON that does not answer the call. */
export const mismatched = (upstream: string, issue: string): Retryable<never, UpstreamMalformed> =>
  retryable("mismatched", () => malformed(upstream, issue))

const startsHtml = /^\s*</u

/** Whether HTTP defines a class for a status (RFC 9110, section 15); a server cannot send any other one on. */
const isKnownStatus = (status: number): boolean => status >= 100 && status <= 599

/** Why a response is not the upstream's own: HTML from a proxy, an empty body, a redirect, no status of HTTP; undefined where it is. */
export const foreign = (response: UpstreamResponse): string | undefined => {
  const { contentType, pieces, status } = response
  const first = Utf8.opening(pieces, 1)[0]
  if (!isKnownStatus(status)) return `an unknown status (HTTP ${status})`
  if (status >= 300 && status < 400) return `a redirect (HTTP ${status})`
  if (first === undefined && status !== 429) return `an empty body (HTTP ${status})`
  const isHtml = contentType.startsWith("text/html") ||
    // the first byte decides for most responses
    (first !== 0x7b && first !== 0x5b && startsHtml.test(response.excerpt(8)))
  return isHtml ? `HTML (HTTP ${status})` : undefined
}

/** The result of an attempt whose response is not the upstream's own; undefined where it is. */
export const ofForeign = (
  response: UpstreamResponse
): Retryable<never, UpstreamUnavailable | UpstreamMalformed> | undefined => {
  const issue = foreign(response)
  if (issue === undefined) return undefined
  const { status, upstream } = response
  return status >= 400 && isKnownStatus(status)
    ? retryable("server_fault", unavailable(upstream, `${upstream} answered with ${issue}`))
    : unreadable(upstream, issue)
}

/**
 * Where the checked calls of a chain go: live upstreams, a state in memory, a sandbox.
 *
 * It is the one thing in which the layers of a service differ.
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
 * The party whose fault a response reports.
 *
 * - `upstream`: it only says that the upstream failed, so a stale answer is better.
 * - `caller`: the upstream refused the request as written; an equal one that is written otherwise may succeed.
 */
export type FaultOwner = "upstream" | "caller"

/** How responses of one kind are cached, in the form in which they are sent again. */
export interface CacheCodec<A> {
  /** What to store of an answer; undefined for one that is not a success. */
  readonly store: (answer: A) => CachedContent | undefined
  /** The answer that a content was stored of, `age` seconds ago. */
  readonly restore: (content: CachedContent, age: number) => A
  /** Returns the party whose fault a response reports; `undefined` for a success. */
  readonly faultOf: (answer: A) => FaultOwner | undefined
  /** Whether an answer says that the upstream's rate limit is used up; none does when not given. */
  readonly isRateLimited?: (answer: A) => boolean
}

/** One request as it is sent, and how its response is judged. A body means POST, none means GET. */
export interface Question<A, E> {
  readonly body: Uint8Array | undefined
  readonly judge: (response: UpstreamResponse) => AttemptResult<A, E>
}

/** The answer to a batch: one for each of its calls, or none from a node that takes no batches. */
export type BatchAnswer<Each> =
  | { readonly _tag: "Each"; readonly answers: ReadonlyArray<Each> }
  | { readonly _tag: "NoBatches" }

/** The reads of a protocol. */
export interface ReadProtocol<Call extends { readonly operation: ReadOperation }, A, E> {
  /** Returns the key of a call. Calls of one operation with equal keys are coalesced and cached together. */
  readonly key: (call: Call) => string
  /** How long the answer may be cached; `onRequest` for a caller who asked for an answer at most one block old. */
  readonly cachePolicy: (call: Call, now: number, onRequest: boolean) => CachePolicy | undefined
  /** Whether an answer may be cached at all: no error, no answer to another request. */
  readonly isCacheable: (call: Call, answer: A) => boolean
  /** What the answer to a call can cost, where that depends on the call. */
  readonly costOf?: (call: Call, now: number) => Cost
  /**
   * The accounts whose state a call reads, in lower case; undefined for a call that reads no account.
   *
   * An answer that was read before an action changed one of them is not served after it.
   */
  readonly accountsIn?: (call: Call) => ReadonlyArray<string> | undefined
  readonly codec: CacheCodec<A>
  /** Encodes a call; `id` identifies its response among those of other calls, if the protocol has ids. */
  readonly write: (call: Call, id: number) => Question<A, E>
}
