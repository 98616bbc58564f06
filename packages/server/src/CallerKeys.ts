/** Who may use the node provider's surface: checks the endpoint key of a caller. */
import { Unauthorized } from "@trigate/domain/CallerError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

/** Lets a key pass or fails with `Unauthorized`; the key never reaches an error. */
export class CallerKeys extends Context.Service<CallerKeys, {
  readonly check: (key: Redacted.Redacted) => Effect.Effect<void, Unauthorized>
}>()("@trigate/server/CallerKeys") {}

// a caller that forgets the key in `/{key}/…` would otherwise use a route's name as one
const reserved: ReadonlySet<string> = new Set(["api", "docs", "evm", "exchange", "health", "info", "l2", "metrics"])

/** Every well-formed key passes: whoever reaches the gateway may use it. */
export const layerOpen: Layer.Layer<CallerKeys> = Layer.succeed(
  CallerKeys,
  CallerKeys.of({
    check: (key) =>
      reserved.has(Redacted.value(key))
        ? Effect.fail(new Unauthorized({ detail: "The path has no endpoint key" }))
        : Effect.void
  })
)
