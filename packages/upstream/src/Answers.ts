/** Turns what came over the wire into an answer that may be shown: without the endpoint key that it may quote. */
import * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Utf8 from "@trigate/domain/Utf8"
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import type { TransportResponse } from "./HttpTransport.ts"
import type { Target } from "./Upstream.ts"

const httpDate = /^[A-Za-z]{3,9}, .+ GMT$/u

const instant = (header: string | undefined) =>
  Option.flatMap(Option.filter(Option.fromNullishOr(header), (text) => httpDate.test(text)), DateTime.make)

/** Seconds of a `Retry-After`; a date counts from the answer's own, so that no clocks have to agree. */
const retryAfterOf = (headers: TransportResponse["headers"]): number | undefined => {
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

/** The answer as it came, its refusal without the endpoint key. */
export const of = (target: Target, answer: TransportResponse): UpstreamResponse.UpstreamResponse => {
  const retryAfter = retryAfterOf(answer.headers)
  const relayed = UpstreamResponse.make({
    upstream: target.label,
    status: answer.status,
    contentType: answer.headers["content-type"] ?? "application/octet-stream",
    body: answer.body,
    ...UpstreamResponse.signerIn(answer.headers),
    ...(retryAfter === undefined ? {} : { retryAfter })
  })
  if (answer.status < 300) return relayed
  // bytes that are not UTF-8 can quote the key as well, and a refusal may lose them
  const text = target.conceal(relayed.text)
  return text === relayed.text ? relayed : relayed.with({ body: Utf8.encode(text) })
}
