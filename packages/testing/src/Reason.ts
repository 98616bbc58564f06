/** Unwraps the errors of service methods: returns the reason that an error contains. */
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as Effect from "effect/Effect"

/** Like `Effect.flip`, but returns the reason that an `UpstreamError` or a `RequestError` contains. */
export const flipReason = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.map(Effect.flip(self), unwrapReason)
