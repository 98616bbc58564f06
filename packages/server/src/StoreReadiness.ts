/** Whether the stores that a gateway depends on answer. */
import type { Readiness } from "@trigate/api/HealthApi"
import { ActionLog } from "@trigate/trading/ActionLog"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"

/** Asks each store within its deadline; says nothing about stores that are not configured. */
export const StoreReadiness = Context.Reference<Effect.Effect<Pick<Readiness, "actionLog" | "redis">>>(
  "@trigate/server/StoreReadiness",
  { defaultValue: () => Effect.succeed({}) }
)

const state = (isUp: boolean) => isUp ? "up" as const : "away" as const

const deadline = "250 millis"

const asking = ({ backing, isUp }: ActionLog["Service"], redis: Option.Option<Redis.Redis["Service"]>) => {
  const isRedisUp = Option.match(redis, {
    onNone: () => Effect.succeedNone,
    onSome: ({ send }) => Effect.asSome(Effect.isSuccess(Effect.timeout(send("PING"), deadline)))
  })
  return Effect.zipWith(isUp, isRedisUp, (isLogUp, found) => ({
    actionLog: { backing, state: state(isLogUp) },
    ...(Option.isSome(found) ? { redis: state(found.value) } : {})
  }), { concurrent: true })
}

/** The state of the action log, and of the Redis of the context if there is one. */
export const layer: Layer.Layer<never, never, ActionLog> = Layer.effect(
  StoreReadiness,
  Effect.zipWith(ActionLog, Effect.serviceOption(Redis.Redis), asking).pipe(
    // a store that is away should be reported before the first action
    Effect.tap((ask) => ask)
  )
)
