/**
 * A response as received from an address, but without the address's endpoint key, and with its `Retry-After` in
 * seconds.
 */
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as UpstreamResponse from "@trigate/domain/operations/UpstreamResponse"
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import type { Target } from "../Upstream.ts"
import type { TransportResponse } from "./HttpTransport.ts"

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
    ...UpstreamResponse.signerIn(headers),
    ...(retryAfter === undefined ? {} : { retryAfter })
  })
  if (conceal === undefined) return received
  // invalid UTF-8 can contain the key too; removing the key may also replace the invalid bytes
  const text = conceal(status, received.text)
  const type = conceal(status, contentType) === contentType ? contentType : unknownType
  return text === received.text && type === contentType
    ? received
    : received.with({ body: Utf8.encode(text), contentType: type })
}
