/**
 * What one attempt of a read means for the call: it is answered, refused for good, or may succeed elsewhere.
 *
 * These categories decide whether a read is sent again. They are defined here once, for every protocol.
 */
import type { UpstreamMalformed } from "../UpstreamError.ts"
import { UpstreamUnavailable } from "../UpstreamError.ts"
import type { UpstreamResponse } from "../UpstreamResponse.ts"
import { malformed } from "./Answer.ts"

/**
 * Why another address, or the same one a little later, may answer; a closed set that metrics use as a label.
 *
 * - `declined`: the address says in the words of its protocol that it cannot answer this call. It is healthy, and would
 *   say the same again.
 * - `mismatched`: JSON that does not answer this call, which says little about other calls.
 * - `withheld`: no attempt was made.
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

/** The upstream answered; `rows` is the length of an answer that is a list. */
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

/** The call is still open: another attempt may be answered. */
export interface Retryable<A, E> {
  readonly _tag: "Retryable"
  readonly fault: Fault
  /** What the upstream said, to be given to the caller when no attempt does better. */
  readonly answer: A | undefined
  /** Seconds after which the upstream wants to be asked again. */
  readonly retryAfter: number | undefined
  /** The error of the call when no attempt does better, after so many of them. */
  readonly failure: (attempts: number) => E
}

/** The result of one attempt. */
export type AttemptResult<A, E> = Answered<A> | Refused<E> | Retryable<A, E>

/** Takes the endpoint key out of a text that an upstream wrote. */
export type Conceal = (text: string) => string

/** An answered call. */
export const answered = <A>(answer: A, rows = 0): Answered<A> => ({ _tag: "Answered", answer, rows })

/** A refused call. */
export const refused = <E>(failure: E): Refused<E> => ({ _tag: "Refused", failure })

/** An attempt that leaves the call open. */
export const retryable = <A, E>(
  fault: Fault,
  failure: (attempts: number) => E,
  said: { readonly answer?: A; readonly retryAfter?: number | undefined } = {}
): Retryable<A, E> => ({ _tag: "Retryable", fault, answer: said.answer, retryAfter: said.retryAfter, failure })

/** The error of a read that no attempt answered. */
export const unavailable = (upstream: string, detail: string) => (attempts: number): UpstreamUnavailable =>
  new UpstreamUnavailable({ upstream, attempts, detail })

/** An attempt that was not made or broke off. */
export const unreachable = (upstream: string, fault: Fault, detail: string): Retryable<never, UpstreamUnavailable> =>
  retryable(fault, unavailable(upstream, `${upstream} could not be reached (${detail})`))

/** A response that does not decode. */
export const unreadable = (upstream: string, issue: string): Retryable<never, UpstreamMalformed> =>
  retryable("malformed", () => malformed(upstream, issue))

/** JSON that does not answer the call. */
export const mismatched = (upstream: string, issue: string): Retryable<never, UpstreamMalformed> =>
  retryable("mismatched", () => malformed(upstream, issue))

const startsHtml = /^\s*</u

/** Why a response is not the upstream's own: HTML from a proxy, an empty body, a redirect; undefined where it is. */
export const foreign = (response: UpstreamResponse): string | undefined => {
  const { body, contentType, status } = response
  if (status >= 300 && status < 400) return `a redirect (HTTP ${status})`
  if (body.length === 0 && status !== 429) return `an empty body (HTTP ${status})`
  const isHtml = contentType.startsWith("text/html") ||
    // the first byte decides for most responses
    (body[0] !== 0x7b && body[0] !== 0x5b && startsHtml.test(response.excerpt(8)))
  return isHtml ? `HTML (HTTP ${status})` : undefined
}

/** The result of an attempt whose response is not the upstream's own; undefined where it is. */
export const ofForeign = (
  response: UpstreamResponse
): Retryable<never, UpstreamUnavailable | UpstreamMalformed> | undefined => {
  const issue = foreign(response)
  if (issue === undefined) return undefined
  const { status, upstream } = response
  return status >= 400
    ? retryable("server_fault", unavailable(upstream, `${upstream} answered with ${issue}`))
    : unreadable(upstream, issue)
}
