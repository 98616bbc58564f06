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

/** Whether a path begins with an endpoint key instead of one of the gateway's own words. */
export const isKeyed = (path: string): boolean => {
  const [, first = ""] = path.split(/[/?#]/u, 2)
  return first !== "" && first !== "openapi.json" && !reserved.has(first)
}

/** Every well-formed key passes: whoever reaches the gateway may use it. */
export const layerOpen: Layer.Layer<CallerKeys> = Layer.succeed(
  CallerKeys,
  CallerKeys.of({
    check: (key) =>
      reserved.has(Redacted.value(key))
        ? Effect.fail(new Unauthorized({ detail: "The name of a route is no endpoint key" }))
        : Effect.void
  })
)
