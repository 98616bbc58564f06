/**
 * What one exchange of a read means for the call: it is answered, refused for good, or may go better elsewhere.
 *
 * The categories decide whether a read is sent again, so they are told here once, for every protocol.
 */
import { malformed } from "@trigate/domain/Answer"
import type { Operation } from "@trigate/domain/Operation"
import type { UpstreamMalformed } from "@trigate/domain/UpstreamError"
import { UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Answers from "./Answers.ts"
import type { Target } from "./Upstream.ts"

/**
 * Why an exchange may go better at another address or a little later; the closed set that metrics label.
 *
 * `declined` is an address that says in its protocol's own words that it cannot answer this call: it is in good health, and
 * would say so again. `mismatched` is JSON that is no answer to this call, which says little of other calls. `withheld` is one
 * that was not asked.
 */
export type Fault =
  | "not_sent"
  | "broken"
  | "timeout"
  | "server_fault"
  | "rate_limited"
  | "declined"
  | "malformed"
  | "mismatched"
  | "withheld"

/** Answers a call; `rows` is the length of an answer that is a list. */
export interface Answered<A> {
  readonly _tag: "Answered"
  readonly answer: A
  readonly rows: number
}

/** Answers a call with a failure that asking again cannot change. */
export interface Refused<E> {
  readonly _tag: "Refused"
  readonly failure: E
}

/** Leaves the call open: `answer` is what the upstream said all the same, to be given where nothing better comes. */
export interface Retryable<A, E> {
  readonly _tag: "Retryable"
  readonly fault: Fault
  readonly answer: A | undefined
  /** Seconds after which the upstream wants to be asked again. */
  readonly retryAfter: number | undefined
  /** What the call ends in after so many attempts where nothing better comes. */
  readonly failure: (attempts: number) => E
}

/** The reading of one exchange. */
export type AttemptResult<A, E> = Answered<A> | Refused<E> | Retryable<A, E>

/** An answer of the upstream's own. */
export const answered = <A>(answer: A, rows = 0): Answered<A> => ({ _tag: "Answered", answer, rows })

/** A failure that is the upstream's last word. */
export const refused = <E>(failure: E): Refused<E> => ({ _tag: "Refused", failure })

/** An exchange that leaves the call open. */
export const retryable = <A, E>(
  fault: Fault,
  failure: (attempts: number) => E,
  said: { readonly answer?: A; readonly retryAfter?: number | undefined } = {}
): Retryable<A, E> => ({ _tag: "Retryable", fault, answer: said.answer, retryAfter: said.retryAfter, failure })

const unavailable = (upstream: string, detail: string) => (attempts: number): UpstreamUnavailable =>
  new UpstreamUnavailable({ upstream, attempts, detail })

/** An exchange that did not happen or broke off. */
export const unreachable = (upstream: string, fault: Fault, detail: string): Retryable<never, UpstreamUnavailable> =>
  retryable(fault, unavailable(upstream, `${upstream} could not be reached (${detail})`))

/** An answer that does not decode, whatever its status. */
export const unreadable = (upstream: string, issue: string): Retryable<never, UpstreamMalformed> =>
  retryable("malformed", () => malformed(upstream, issue))

/** JSON that is not an answer to the call. */
export const mismatched = (upstream: string, issue: string): Retryable<never, UpstreamMalformed> =>
  retryable("mismatched", () => malformed(upstream, issue))

const startsHtml = /^\s*</u

/** Why an answer is not the upstream's own: HTML from something in between, nothing at all, a redirect. */
export const foreign = (answer: UpstreamResponse.UpstreamResponse): string | undefined => {
  if (answer.status >= 300 && answer.status < 400) return `a redirect (HTTP ${answer.status})`
  if (answer.body.length === 0 && answer.status !== 429) return `an empty body (HTTP ${answer.status})`
  const isHtml = answer.contentType.startsWith("text/html") ||
    // most answers are told by their first byte
    (answer.body[0] !== 0x7b && answer.body[0] !== 0x5b && startsHtml.test(answer.excerpt(8)))
  return isHtml ? `HTML (HTTP ${answer.status})` : undefined
}

/** The verdict on an answer that is not the upstream's own, where it is not. */
export const foreignVerdict = (
  answer: UpstreamResponse.UpstreamResponse
): Retryable<never, UpstreamUnavailable | UpstreamMalformed> | undefined => {
  const issue = foreign(answer)
  if (issue === undefined) return undefined
  return answer.status >= 400
    ? retryable("server_fault", unavailable(answer.upstream, `${answer.upstream} answered with ${issue}`))
    : unreadable(answer.upstream, issue)
}

/** What is said of bytes that are no text. */
export const notText = "what is not UTF-8 (HTTP 200)"

/** Reads an exchange of a plain call (`/info`, REST), whose answer is relayed as it came. */
export const ofPlain = (operation: Pick<Operation, "isFinal" | "recognized" | "refusal">) =>
(
  answer: UpstreamResponse.UpstreamResponse,
  target: Target
): AttemptResult<UpstreamResponse.UpstreamResponse, UpstreamUnavailable | UpstreamMalformed> => {
  if (operation.refusal?.matches(answer) === true || operation.isFinal?.(answer) === true) return answered(answer)
  const verdict = foreignVerdict(answer)
  if (verdict !== undefined) return verdict
  if (answer.status === 429 || answer.status >= 500) {
    return retryable(
      answer.status === 429 ? "rate_limited" : "server_fault",
      unavailable(answer.upstream, `${answer.upstream} answered HTTP ${answer.status}`),
      { answer, retryAfter: answer.retryAfter }
    )
  }
  if (answer.status !== 200) return answered(answer)
  const text = Option.getOrUndefined(answer.utf8)
  if (text === undefined) return unreadable(answer.upstream, notText)
  const rows = operation.recognized?.(text)
  if (rows !== undefined) return answered(answer, rows)
  const value = answer.json
  if (Result.isFailure(value)) return unreadable(answer.upstream, "what is not JSON (HTTP 200)")
  return answered(
    Answers.concealedError(target, answer, text),
    Array.isArray(value.success) ? value.success.length : 0
  )
}
