/** The upstream did not answer, answered too late, or answered nonsense; `upstream` is a label, never an address. */
import * as HttpApiError from "effect/http-api/HttpApiError"
import * as Schema from "effect/Schema"
import { Address } from "./Hex.ts"
import { declare, RetryAfter, tagged } from "./Problem.ts"
import { Millis } from "./Time.ts"

const upstream = Schema.String.annotate({ description: "Label of the upstream: trading-api, trading-node, …" })

/** Nothing was sent, or a read failed at every address; asking again is safe. `retryAfter` is in seconds. */
export class UpstreamUnavailable extends HttpApiError.Problem<UpstreamUnavailable>()(
  "UpstreamUnavailable",
  declare("UpstreamUnavailable", 503, "Upstream unavailable"),
  { ...tagged("UpstreamUnavailable"), upstream, retryAfter: Schema.optionalKey(RetryAfter), attempts: Schema.Natural }
) {}

/** The upstream's budget is used up; `retryAfter` is in seconds where the upstream told it. */
export class UpstreamRateLimited extends HttpApiError.Problem<UpstreamRateLimited>()(
  "UpstreamRateLimited",
  declare("UpstreamRateLimited", 429, "Upstream rate limited"),
  { ...tagged("UpstreamRateLimited"), upstream, retryAfter: Schema.optionalKey(RetryAfter) }
) {}

/** A read ran out of its deadline, given in milliseconds; the deadline covers the answer's body. */
export class UpstreamTimeout extends HttpApiError.Problem<UpstreamTimeout>()(
  "UpstreamTimeout",
  declare("UpstreamTimeout", 504, "Upstream timeout"),
  { ...tagged("UpstreamTimeout"), upstream, deadline: Schema.Natural }
) {}

/** The upstream's answer does not decode: HTML, half a body, a wrong id, a wrong shape. */
export class UpstreamMalformed extends HttpApiError.Problem<UpstreamMalformed>()(
  "UpstreamMalformed",
  declare("UpstreamMalformed", 502, "Upstream malformed"),
  { ...tagged("UpstreamMalformed"), upstream, issue: Schema.String }
) {}

/**
 * A call that must happen at most once broke after a byte may have reached the upstream.
 *
 * Whether it took effect is unknown. Resending the identical bytes is safe: a duplicate-nonce answer then means that the
 * first one landed. A fresh nonce could execute twice.
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
) {}
