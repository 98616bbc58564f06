/** Whether the Redis that replicas share answers; nothing where none is configured. */
import type { Readiness } from "@trigate/api/HealthApi"
import { UsedNonces } from "@trigate/trading/UsedNonces"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** Asks, within a short deadline. */
export const RedisReadiness = Context.Reference<Effect.Effect<Pick<Readiness, "redis">>>(
  "@trigate/server/RedisReadiness",
  { defaultValue: () => Effect.succeed({}) }
)

/** Asks through the store of used nonces, once at the start already, so that its absence is told before the first action. */
export const layer: Layer.Layer<never, never, UsedNonces> = Layer.effect(
  RedisReadiness,
  UsedNonces.pipe(
    Effect.map(({ degraded }) => Effect.map(degraded, (away) => ({ redis: away ? "away" as const : "up" as const }))),
    Effect.tap((ask) => ask)
  )
)
