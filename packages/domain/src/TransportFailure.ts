/** What sending a call can end in before there is an answer to read. */
import * as Schema from "effect/Schema"
import { OutcomeUnknown, UpstreamMalformed, UpstreamTimeout, UpstreamUnavailable } from "./UpstreamError.ts"

/** A read: failed everywhere, out of time, or answered with what is no answer of the upstream's own. */
export const ReadFailure = Schema.Union([UpstreamUnavailable, UpstreamTimeout, UpstreamMalformed])
export type ReadFailure = typeof ReadFailure.Type

/** A call that is sent at most once: certainly not sent, or sent with an unknown outcome. */
export const OnceFailure = Schema.Union([UpstreamUnavailable, OutcomeUnknown])
export type OnceFailure = typeof OnceFailure.Type
