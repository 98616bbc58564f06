/** A response as received from an address: without the endpoint key of the address, and with its `Retry-After` in seconds. */
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as UpstreamResponse from "@trigate/domain/operations/UpstreamResponse"
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import type { Target } from "../Upstream.ts"
import type { TransportResponse } from "./HttpTransport.ts"

const httpDate = /^[A-Za-z]{3,9}, .+ GMT$/u

const instant = (header: string | undefined) =>
  Option.flatMap(Option.filter(Option.fromNullishOr(header), (text) => httpDate.test(text)), DateTime.make)

/** Seconds of a `Retry-After`; a date counts from the answer's own, so that no clocks have to agree. */
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

/** The response without the endpoint key of its address: nothing later sees what the upstream wrote of it. */
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
    ...UpstreamResponse.signerIn(headers),
    ...(retryAfter === undefined ? {} : { retryAfter })
  })
  if (conceal === undefined) return received
  // bytes that are not UTF-8 can quote the key as well, and what quotes it may lose them
  const text = conceal(status, received.text)
  const type = conceal(status, contentType) === contentType ? contentType : unknownType
  return text === received.text && type === contentType
    ? received
    : received.with({ body: Utf8.encode(text), contentType: type })
}
