/** Turns what came over the wire into an answer that may be shown: without the endpoint key that it may quote. */
import * as JsonText from "@trigate/domain/JsonText"
import * as Relayed from "@trigate/domain/Relayed"
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { Target } from "./Upstream.ts"
import type { WireAnswer } from "./Wire.ts"

const httpDate = /^[A-Za-z]{3,9}, .+ GMT$/u

const instant = (header: string | undefined) =>
  Option.flatMap(Option.filter(Option.fromNullishOr(header), (text) => httpDate.test(text)), DateTime.make)

/** Seconds of a `Retry-After`; a date counts from the answer's own, so that no clocks have to agree. */
const retryAfterOf = (headers: WireAnswer["headers"]): number | undefined => {
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

/**
 * A text without the endpoint key: a node that does not know a path likes to quote it, and the key is a part of it.
 *
 * For refusals only: a result is data and may hold what only looks like a part of an address.
 */
export const concealed = (target: Target, text: string): string =>
  Redacted.value(target.secrets).reduce((left, secret) => left.replaceAll(secret, "…"), text)

const withText = (answer: Relayed.Relayed, text: string): Relayed.Relayed => ({ ...answer, body: Relayed.bytes(text) })

/** A successful answer without the endpoint key where it is an error all the same; `text` is its body. */
export const concealedError = (target: Target, answer: Relayed.Relayed, text: string): Relayed.Relayed =>
  Redacted.value(target.secrets).some((secret) => text.includes(secret)) && JsonText.members(text).has("error")
    ? withText(answer, concealed(target, text))
    : answer

/** The answer as it came, its refusal without the endpoint key. */
export const of = (target: Target, answer: WireAnswer): Relayed.Relayed => {
  const retryAfter = retryAfterOf(answer.headers)
  const relayed: Relayed.Relayed = {
    upstream: target.label,
    status: answer.status,
    contentType: answer.headers["content-type"] ?? "application/octet-stream",
    body: answer.body,
    ...Relayed.signerIn(answer.headers),
    ...(retryAfter === undefined ? {} : { retryAfter })
  }
  if (answer.status < 300 || Redacted.value(target.secrets).length === 0) return relayed
  // bytes that are not UTF-8 can quote the key as well, and a refusal may lose them
  const text = Relayed.text(relayed)
  const left = concealed(target, text)
  return left === text ? relayed : withText(relayed, left)
}
