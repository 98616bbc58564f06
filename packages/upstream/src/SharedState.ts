/**
 * Access to a store that replicas share, with a deadline. While the store is unreachable, each replica continues
 * without it.
 */
import { addMillis, longAgo, type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
import * as SharedStore from "@trigate/stores/unstable/SharedStore"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type { RedisError } from "effect/persistence/Redis"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { metrics } from "./Upstream.ts"

/** The shared store is unreachable, or its response cannot be decoded; `detail` is the reason. */
export class SharedStoreUnreachable
  extends Schema.TaggedError<SharedStoreUnreachable>()("SharedStoreUnreachable", { detail: Schema.String })
{}

/** A step in a shared store failed: the store is unreachable, or its response cannot be decoded. */
export type StoreFault = SharedStoreUnreachable | RedisError | Schema.SchemaError

/** Returns why a store counts as unreachable. */
const formatFault = (fault: StoreFault): string =>
  fault._tag === "SharedStoreUnreachable"
    ? fault.detail
    : fault._tag === "RedisError"
    ? String(fault.cause)
    : fault.message

const isStoreFault = (error: unknown): error is StoreFault =>
  ["SharedStoreUnreachable", "RedisError", "SchemaError"].some((tag) => Predicate.isTagged(error, tag))

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

/** Makes the access to the store for one purpose. The store counts as reachable until it fails. */
export const make = Effect.fnUntraced(function*(
  { meanwhile = "this process continues alone", store = "Redis", ...options }: Options
) {
  const inTime = SharedStore.within(
    options.deadline ?? "250 millis",
    (detail) => new SharedStoreUnreachable({ detail })
  )
  const pause = Duration.toMillis(options.pause ?? "1 second")
  const gauge = metrics.sharedStateDegraded.series({ use: options.use })
  const outage = SharedStore.makeOutage<StoreFault>(gauge, {
    away: (fault) =>
      Effect.logWarning(`${store} is unreachable for ${options.use}: ${meanwhile} (${formatFault(fault)})`),
    back: Effect.logInfo(`${store} is reachable again for ${options.use}`)
  })
  let retryAt = longAgo
  yield* Metric.update(gauge, 0)

  /** Returns whether every call runs without the store at a time. */
  const isPaused = (now: MonotonicTime): boolean => outage.isAway() && now < retryAt

  /**
   * Runs `shared`. If `shared` fails with a `StoreFault` or exceeds its deadline, runs `local` instead, and
   * runs only `local` until `pause` has elapsed. Fails with any other failure of `shared`, because such a failure is a
   * response of the store.
   */
  const orElse = <A, E, R>(
    shared: Effect.Effect<A, E | StoreFault, R>,
    local: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => {
      const clock = fiber.getRef(Clock.Clock)
      if (outage.isAway()) {
        const now = monotonicTime(clock)
        if (isPaused(now)) return local
        // one call tests whether the store is reachable again; no other call waits for the result
        retryAt = addMillis(now, pause)
      }
      // the end of a scope must not wait for an uninterruptible step
      return Effect.matchEffect(inTime(Effect.interruptible(shared)), {
        onSuccess: (value) => Effect.as(outage.back, value),
        onFailure: (error): Effect.Effect<A, E, R> => {
          if (!isStoreFault(error)) return Effect.andThen(outage.back, Effect.fail(error))
          retryAt = addMillis(monotonicTime(clock), pause)
          return Effect.andThen(outage.away(error), local)
        }
      })
    })

  return { isPaused, orElse }
})
