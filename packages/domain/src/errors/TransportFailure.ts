/** What sending a call can end in before there is an answer to read. */
import * as Schema from "effect/Schema"
import { QuotaExceeded } from "./CallerError.ts"
import {
  OutcomeUnknown,
  UpstreamMalformed,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamUnavailable
} from "./UpstreamError.ts"

/** A read that failed everywhere, found no room in the rate limit or no time, or got a response that does not decode. */
export const ReadFailure = Schema.Union([
  UpstreamUnavailable,
  UpstreamRateLimited,
  QuotaExceeded,
  UpstreamTimeout,
  UpstreamMalformed
])
export type ReadFailure = typeof ReadFailure.Type

/** A call that is sent at most once: certainly not sent, or sent with an unknown outcome. */
export const OnceFailure = Schema.Union([UpstreamUnavailable, UpstreamRateLimited, QuotaExceeded, OutcomeUnknown])
export type OnceFailure = typeof OnceFailure.Type
