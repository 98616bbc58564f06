/** Asks a store that replicas share, within a deadline. While the store is unreachable, each replica continues alone. */
import { monotonicMillis } from "@trigate/domain/Time"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { metrics } from "./UpstreamMetrics.ts"

/** The shared store cannot be reached, or its answer cannot be read; `detail` says why. */
export class SharedAway extends Schema.TaggedError<SharedAway>()("SharedAway", { detail: Schema.String }) {}

const isSharedAway = Schema.is(SharedAway)

/** What the store is used for, and how long a call waits for it. */
export interface Options {
  /** The label of the metric and the subject of the log lines, such as `rate-limits`. */
  readonly use: string
  /** What the store is called in log lines; `Redis` when not given. */
  readonly store?: string
  /** How long the store may take for one step; 250 milliseconds when not given. */
  readonly deadline?: Duration.Input
  /** How long a store that is unreachable is not asked again; 1 second when not given. */
  readonly pause?: Duration.Input
  /** What happens while the store is unreachable, for the log; `this process continues alone` when not given. */
  readonly meanwhile?: string
}

/** One use of the shared store. */
export interface SharedState {
  /**
   * Runs `shared`. If that fails with `SharedAway` or misses its deadline, runs `local` instead, and only `local` until the
   * pause is over. Other failures of `shared` are the store's answer: they are raised.
   */
  readonly orElse: <A, E, R>(
    shared: Effect.Effect<A, E | SharedAway, R>,
    local: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
}

/** One use of the store, which counts as reachable until it fails. */
export const make = Effect.fnUntraced(function*(
  { meanwhile = "this process continues alone", store = "Redis", ...options }: Options
) {
  const deadline = Duration.fromInputUnsafe(options.deadline ?? "250 millis")
  const pause = Duration.toMillis(Duration.fromInputUnsafe(options.pause ?? "1 second"))
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
    return Effect.logInfo(`${store} is back for ${options.use}`)
  })

  const orElse = <A, E, R>(
    shared: Effect.Effect<A, E | SharedAway, R>,
    local: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => {
      const now = monotonicMillis(fiber.getRef(Clock.Clock))
      if (isAway) {
        if (now < askAgainAt) return local
        // one call asks whether the store is back, and no other call waits for the answer
        askAgainAt = now + pause
      }
      const inTime = Effect.timeoutOrElse(shared, {
        duration: deadline,
        orElse: () => Effect.fail(new SharedAway({ detail: `no answer within ${Duration.format(deadline)}` }))
      })
      return Effect.matchEffect(inTime, {
        onSuccess: (value) => Effect.as(back, value),
        onFailure: (error): Effect.Effect<A, E, R> =>
          isSharedAway(error)
            ? Effect.andThen(away(error.detail), local)
            : Effect.andThen(back, Effect.fail(error))
      })
    })

  const state: SharedState = { orElse }
  return state
})
