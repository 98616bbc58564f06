/** What the backend answers for errors of the chains: one error of its own for each group, whatever the chain. */
import type { Grouped } from "@trigate/domain/errors/ErrorGroup"
import * as Effect from "effect/Effect"
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

/** An error of a group, with what is read of it here. */
type ErrorOf<Group extends Grouped["group"]> = Grouped<Group> & Error & {
  readonly _tag: string
  readonly retryAfter?: number | undefined
}

export const tryLater = ({ message, retryAfter }: ErrorOf<"retry-later">) =>
  Effect.fail(new TryLater({ detail: message, ...(retryAfter === undefined ? {} : { retryAfter }) }))

export const refused = ({ _tag, message }: ErrorOf<"fix-request">) =>
  Effect.fail(new Refused({ code: _tag, detail: message }))

export const misconfigured = (error: ErrorOf<"fix-setup">) =>
  Effect.andThen(Effect.logError(error._tag, error.message), Effect.fail(new Misconfigured()))

export const stillOpen = ({ message }: ErrorOf<"outcome-unknown">) => Effect.fail(new StillOpen({ detail: message }))
