/** Errors of calls without a decoded response: the call was not sent, or no response was received and decoded. */
import * as Schema from "effect/Schema"
import { QuotaExceeded } from "./CallerError.ts"
import {
  OutcomeUnknown,
  UpstreamMalformed,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamUnavailable
} from "./UpstreamError.ts"

/**
 * The failures of a read: no upstream URL responded, the rate limit or the deadline was exceeded, or the response does
 * not decode.
 */
export const ReadFailure = Schema.Union([
  UpstreamUnavailable,
  UpstreamRateLimited,
  QuotaExceeded,
  UpstreamTimeout,
  UpstreamMalformed
])
export type ReadFailure = typeof ReadFailure.Type

/** The failures of a call that is sent at most once: either the call was not sent, or its outcome is unknown. */
export const OnceFailure = Schema.Union([UpstreamUnavailable, UpstreamRateLimited, QuotaExceeded, OutcomeUnknown])
export type OnceFailure = typeof OnceFailure.Type
