/** What the backend answers for errors of the chains: one error of its own for each group, whatever the chain. */
import type { Grouped } from "@trigate/domain/errors/Problem"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/** Nothing is wrong with the request. `retryAfter` is in seconds, where the upstream said when. */
export class TryLater extends Schema.TaggedError<TryLater>()("TryLater", {
  detail: Schema.String,
  retryAfter: Schema.optionalKey(Schema.Finite)
}, { httpApiStatus: 503 }) {}

/** The same request would be refused again. `code` is the tag of the chain's error. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  code: Schema.String,
  detail: Schema.String
}, { httpApiStatus: 422 }) {}

/** This backend is set up wrongly. Its log says how; a caller cannot do anything about it. */
export class Misconfigured extends Schema.TaggedError<Misconfigured>()("Misconfigured", {}, { httpApiStatus: 500 }) {}

/** Nobody knows yet whether it took effect. Sending it again as a new request may do it twice. */
export class StillOpen extends Schema.TaggedError<StillOpen>()("StillOpen", {
  detail: Schema.String
}, { httpApiStatus: 504 }) {}

/** The errors that every endpoint declares. */
export const failures = [TryLater, Refused, Misconfigured, StillOpen] as const

/** An error of the chains, or one of this program that declares a group as well. */
type Failure = Grouped & Error & {
  readonly _tag: string
  readonly reason?: unknown
  readonly retryAfter?: number | undefined
}

const tagIn = ({ _tag, reason }: Failure): string => Predicate.hasProperty(reason, "_tag") ? String(reason._tag) : _tag

/** Fails with the backend's own error for the group of another error. */
export const fail = (error: Failure): Effect.Effect<never, (typeof failures)[number]["Type"]> => {
  const { group, message, retryAfter } = error
  switch (group) {
    case "retry-later":
      return Effect.fail(new TryLater({ detail: message, ...(retryAfter === undefined ? {} : { retryAfter }) }))
    case "fix-request":
      return Effect.fail(new Refused({ code: tagIn(error), detail: message }))
    case "fix-setup":
      return Effect.andThen(Effect.logError(tagIn(error), message), Effect.fail(new Misconfigured()))
    case "outcome-unknown":
      return Effect.fail(new StillOpen({ detail: message }))
  }
}
