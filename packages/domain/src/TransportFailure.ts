/** What sending a call can end in before there is an answer to read. */
import * as Schema from "effect/Schema"
import {
  OutcomeUnknown,
  UpstreamMalformed,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamUnavailable
} from "./UpstreamError.ts"

/** A read: failed everywhere, out of budget or time, or answered with what is no answer of the upstream's own. */
export const ReadFailure = Schema.Union([UpstreamUnavailable, UpstreamRateLimited, UpstreamTimeout, UpstreamMalformed])
export type ReadFailure = typeof ReadFailure.Type

/** A call that is sent at most once: certainly not sent, or sent with an unknown outcome. */
export const OnceFailure = Schema.Union([UpstreamUnavailable, UpstreamRateLimited, OutcomeUnknown])
export type OnceFailure = typeof OnceFailure.Type
