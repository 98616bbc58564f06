/**
 * Graceful shutdown: readiness turns first, requests in flight finish, then the server goes.
 *
 * The layer's finalizer does the draining, so it must be built above the server that it protects.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** Counts requests in flight and knows whether the gateway drains. */
export class Drain extends Context.Service<Drain, {
  /** Runs a request as one in flight. */
  readonly track: <A, E, R>(request: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly isDraining: () => boolean
  /** Turns readiness off and waits until nothing is in flight, at most `maxWait`. */
  readonly drain: (maxWait: Duration.Input) => Effect.Effect<void>
}>()("@trigate/server/Drain") {}

/** One count for the process. */
export const layer: Layer.Layer<Drain> = Layer.effect(
  Drain,
  Effect.gen(function*() {
    const idle = yield* Deferred.make<void>()
    let inFlight = 0
    let draining = false
    const settle = () => {
      if (draining && inFlight === 0) Deferred.doneUnsafe(idle, Effect.void)
    }
    const leave = () => {
      inFlight--
      settle()
      return Effect.void
    }
    return Drain.of({
      track: (request) =>
        Effect.suspend(() => {
          inFlight++
          return Effect.onExit(request, leave)
        }),
      isDraining: () => draining,
      drain: (maxWait) =>
        Effect.gen(function*() {
          draining = true
          settle()
          yield* Effect.timeoutOrElse(Deferred.await(idle), { duration: maxWait, orElse: () => Effect.void })
        })
    })
  })
)
