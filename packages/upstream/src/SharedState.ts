/**
 * Access to a store that replicas share, with a deadline. While the store is unreachable, each replica continues
 * without it.
 */
import { monotonicMillis } from "@trigate/domain/encoding/Encoding"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { RedisError } from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import { metrics } from "./Upstream.ts"

/** The shared store is unreachable, or its response cannot be decoded; `detail` is the reason. */
export class SharedStoreUnreachable
  extends Schema.TaggedError<SharedStoreUnreachable>()("SharedStoreUnreachable", { detail: Schema.String })
{}

/** Converts an error of Redis, or of decoding a response of Redis, to the failure of a store that is unreachable. */
export const unreachable = (fault: RedisError | Schema.SchemaError): SharedStoreUnreachable =>
  new SharedStoreUnreachable({ detail: fault._tag === "RedisError" ? String(fault.cause) : fault.message })

const isStoreUnreachable = Schema.is(SharedStoreUnreachable)

/** The purpose of the store, and its timeouts. */
export interface Options {
  /** The purpose of the store, such as `rate-limits`: the label of the metric and the subject of the log lines. */
  readonly use: string
  /** The name of the store in log lines. Default: `Redis`. */
  readonly store?: string
  /** Timeout of one operation in the store. Default: 250 milliseconds. */
  readonly deadline?: Duration.Input
  /** Time between a failure and the next attempt to use the store. Default: 1 second. */
  readonly pause?: Duration.Input
  /** The effect of an unreachable store on this process, for the log. Default: `this process continues alone`. */
  readonly meanwhile?: string
}

/** The access to the shared store for one purpose. */
export interface SharedState {
  /**
   * Runs `shared`. If `shared` fails with `SharedStoreUnreachable` or exceeds its deadline, runs `local` instead, and
   * runs only `local` until `pause` has elapsed. Fails with any other failure of `shared`, because such a failure is a
   * response of the store.
   */
  readonly orElse: <A, E, R>(
    shared: Effect.Effect<A, E | SharedStoreUnreachable, R>,
    local: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
}

/** Makes the access to the store for one purpose. The store counts as reachable until it fails. */
export const make = Effect.fnUntraced(function*(
  { meanwhile = "this process continues alone", store = "Redis", ...options }: Options
) {
  const deadline = Duration.fromInputUnsafe(options.deadline ?? "250 millis")
  const pause = Duration.toMillis(options.pause ?? "1 second")
  const gauge = metrics.sharedStateDegraded.series({ use: options.use })
  const context = yield* Effect.context()
  let isAway = false
  let askAgainAt = 0
  gauge.updateUnsafe(0, context)

  const away = Effect.fnUntraced(function*(detail: string) {
    askAgainAt = monotonicMillis(yield* Clock.Clock) + pause
    if (isAway) return
    isAway = true
    gauge.updateUnsafe(1, context)
    yield* Effect.logWarning(`${store} is unreachable for ${options.use}: ${meanwhile} (${detail})`)
  })

  const back = Effect.suspend(() => {
    if (!isAway) return Effect.void
    isAway = false
    gauge.updateUnsafe(0, context)
    return Effect.logInfo(`${store} is reachable again for ${options.use}`)
  })

  const orElse = <A, E, R>(
    shared: Effect.Effect<A, E | SharedStoreUnreachable, R>,
    local: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => {
      const now = monotonicMillis(fiber.getRef(Clock.Clock))
      if (isAway) {
        if (now < askAgainAt) return local
        // one call tests whether the store is reachable again; no other call waits for the result
        askAgainAt = now + pause
      }
      const inTime = Effect.timeoutOrElse(shared, {
        duration: deadline,
        orElse: () =>
          Effect.fail(new SharedStoreUnreachable({ detail: `no response within ${Duration.format(deadline)}` }))
      })
      return Effect.matchEffect(inTime, {
        onSuccess: (value) => Effect.as(back, value),
        onFailure: (error): Effect.Effect<A, E, R> =>
          isStoreUnreachable(error)
            ? Effect.andThen(away(error.detail), local)
            : Effect.andThen(back, Effect.fail(error))
      })
    })

  const state: SharedState = { orElse }
  return state
})
