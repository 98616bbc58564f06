/** Graceful shutdown: counts the requests in flight, and waits for them to finish. */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/**
 * The count of requests in flight, for a graceful shutdown.
 *
 * Draining makes readiness fail and waits for the requests in flight. Close the server after that.
 *
 * @since 0.1.0
 * @category services
 */
export class Drain extends Context.Service<Drain, {
  /** Counts a request as in flight until the returned function is called. */
  readonly enter: () => () => void
  readonly isDraining: () => boolean
  /** Waits until the requests in flight at the time of the call have completed. */
  readonly current: Effect.Effect<void>
  /** Makes `/health/ready` fail, then waits, for at most `maxWait`, until no requests are in flight. */
  readonly drain: (maxWait: Duration.Input) => Effect.Effect<void>
}>()("@trigate/server/process/Drain") {}

/**
 * Provides one counter of requests in flight for the process.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Drain> = Layer.effect(
  Drain,
  Effect.gen(function*() {
    const idle = yield* Deferred.make<void>()
    let inFlight = 0
    let draining = false
    const settle = () => {
      if (draining && inFlight === 0) Deferred.doneUnsafe(idle, Effect.void)
    }
    const begin = () => {
      const over = Deferred.makeUnsafe<void>()
      const round = {
        count: 0,
        isLast: true,
        over,
        settle: () => {
          if (!round.isLast && round.count === 0) Deferred.doneUnsafe(over, Effect.void)
        },
        leave: () => {
          inFlight--
          round.count--
          round.settle()
          settle()
        }
      }
      return round
    }
    let round = begin()
    return Drain.of({
      enter: () => {
        inFlight++
        round.count++
        return round.leave
      },
      current: Effect.suspend(() => {
        const last = round
        round = begin()
        last.isLast = false
        last.settle()
        return Deferred.await(last.over)
      }),
      isDraining: () => draining,
      drain: (maxWait) =>
        Effect.suspend(() => {
          draining = true
          settle()
          return Effect.timeoutOrElse(Deferred.await(idle), { duration: maxWait, orElse: () => Effect.void })
        })
    })
  })
)
