/** Unwraps the errors of methods to the form in which they are sent. */
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as Effect from "effect/Effect"

/** `Effect.flip` that returns the reason of an `UpstreamError` or a `RequestError`. */
export const flipReason = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.map(Effect.flip(self), unwrapReason)
