/** The upstream did not answer, answered too late, or answered nonsense. `upstream` is a label, never an address. */
import * as HttpApiError from "effect/http-api/HttpApiError"
import * as Schema from "effect/Schema"
import { Address } from "./Hex.ts"
import { declare, RetryAfter, tagged } from "./Problem.ts"
import { Millis } from "./Time.ts"

const upstream = Schema.String.annotate({ description: "Label of the upstream: trading-api, trading-node, …" })

/** Nothing was sent, or a read failed at every address. It is safe to try again, after `retryAfter` seconds. */
export class UpstreamUnavailable extends HttpApiError.Problem<UpstreamUnavailable>()(
  "UpstreamUnavailable",
  declare("UpstreamUnavailable", 503, "Upstream unavailable"),
  { ...tagged("UpstreamUnavailable"), upstream, retryAfter: Schema.optionalKey(RetryAfter), attempts: Schema.Natural }
) {
  get group() {
    return "retry-later" as const
  }
}

/** The rate limit of the upstream is reached. Try again after `retryAfter` seconds, if it is given. */
export class UpstreamRateLimited extends HttpApiError.Problem<UpstreamRateLimited>()(
  "UpstreamRateLimited",
  declare("UpstreamRateLimited", 429, "Upstream rate limited"),
  { ...tagged("UpstreamRateLimited"), upstream, retryAfter: Schema.optionalKey(RetryAfter) }
) {
  get group() {
    return "retry-later" as const
  }
}

/** A read did not finish within its deadline, in milliseconds. The deadline includes the response's body. */
export class UpstreamTimeout extends HttpApiError.Problem<UpstreamTimeout>()(
  "UpstreamTimeout",
  declare("UpstreamTimeout", 504, "Upstream timeout"),
  { ...tagged("UpstreamTimeout"), upstream, deadline: Schema.Natural }
) {
  get group() {
    return "retry-later" as const
  }
}

/** The upstream's response cannot be decoded: HTML, half a body, a wrong id, a wrong shape. */
export class UpstreamMalformed extends HttpApiError.Problem<UpstreamMalformed>()(
  "UpstreamMalformed",
  declare("UpstreamMalformed", 502, "Upstream malformed"),
  { ...tagged("UpstreamMalformed"), upstream, issue: Schema.String }
) {
  get group() {
    return "retry-later" as const
  }
}

/**
 * A call that changes state failed after a byte may have reached the upstream. It may or may not have taken effect.
 *
 * You may resend the identical bytes: if the answer is "duplicate nonce", the first sending was accepted. Do not sign
 * again with a new nonce: both could execute.
 */
export class OutcomeUnknown extends HttpApiError.Problem<OutcomeUnknown>()(
  "OutcomeUnknown",
  declare("OutcomeUnknown", 504, "Outcome unknown"),
  {
    ...tagged("OutcomeUnknown"),
    upstream,
    nonce: Schema.optionalKey(Millis),
    signer: Schema.optionalKey(Address),
    advice: Schema.String
  }
) {
  get group() {
    return "outcome-unknown" as const
  }
}
