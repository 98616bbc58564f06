/** The health of addresses over any store of circuits. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { AddressClosed, OutlierDetection } from "../OutlierDetection.ts"
import type { Sign } from "../OutlierDetection.ts"
import { nameOf } from "../Upstream.ts"
import type { Target } from "../Upstream.ts"
import * as AddressView from "./AddressView.ts"
import * as EjectionLimit from "./EjectionLimit.ts"
import * as HealthMetrics from "./HealthMetrics.ts"
import * as KnownAddresses from "./KnownAddresses.ts"
import * as TripPolicy from "./TripPolicy.ts"
import * as WatchedStore from "./WatchedStore.ts"

const outcomes: { readonly [S in Sign]: CircuitBreaker.Outcome } = {
  healthy: CircuitBreaker.success,
  faulty: CircuitBreaker.failure(),
  neutral: CircuitBreaker.ignored
}

const isRefusal = Schema.is(CircuitBreaker.CircuitBreakerError)

const isInterruption = <A, E>(exit: Exit.Exit<A, E>): boolean =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)

// a slip of the upstream's, or somebody's in between, must not take an address out of use for good
const LONGEST_BENCH = 3_600_000

/** The service, and what a poll of a shared store needs. */
export const make = Effect.fnUntraced(function*(
  store: CircuitBreaker.CircuitBreakerStore["Service"],
  keyOf: (target: Target) => Effect.Effect<string>,
  options: TripPolicy.Options
) {
  const context = yield* Effect.context()
  const known = KnownAddresses.make((target) => AddressView.make(target, HealthMetrics.make(target, context)))
  const byKey = new Map<string, AddressView.AddressView>()
  const breaker = yield* CircuitBreaker.make(TripPolicy.of(options)).pipe(
    Effect.provideService(
      CircuitBreaker.CircuitBreakerStore,
      WatchedStore.make(store, (key) => byKey.get(key))
    )
  )
  /** Tells who reads the log that an address is in trouble, and that it is not any more. */
  const tell = (transition: CircuitBreaker.Transition) => {
    const view = byKey.get(transition.key)
    if (view === undefined) return Effect.void
    const name = nameOf(view.target)
    switch (transition.to) {
      case "Open":
        return Effect.logWarning(
          `${name} fails again and again: it is passed over for ${Duration.format(transition.retryAfter)}`
        )
      case "Closed":
        return Effect.logInfo(`${name} is well again`)
      case "HalfOpen":
        return Effect.void
    }
  }
  yield* Effect.forkScoped(Stream.runForEach(breaker.transitions, tell), { startImmediately: true })
  const keys = new WeakMap<AddressView.AddressView, string>()
  const keyed = (view: AddressView.AddressView): Effect.Effect<string> => {
    const key = keys.get(view)
    return key === undefined
      ? Effect.tap(keyOf(view.target), (key) =>
        Effect.sync(() => {
          keys.set(view, key)
          byKey.set(key, view)
        }))
      : Effect.succeed(key)
  }
  // copies of targets, made for one call
  const outside = new WeakSet<Target>()
  const outsideOf = <T extends Target>(target: T): T => {
    const copy = { ...target }
    outside.add(copy)
    return copy
  }

  const isClear = (target: Target): boolean => {
    const view = known.of(target)
    return !view.isSuspect && view.benchedUntil === 0
  }

  const absenceAt = (now: number) => (target: Target): EjectionLimit.Absence => {
    const view = known.of(target)
    if (view.benchedUntil <= now) view.benchedUntil = 0
    return { bench: view.benchedUntil, circuit: AddressView.admitsAt(view, now) }
  }

  const closed = (view: AddressView.AddressView, retryAfter: number) =>
    Effect.fail(
      new AddressClosed({ upstream: view.target.label, address: view.target.address, retryAfter })
    )

  const execute = <A, E>(
    view: AddressView.AddressView,
    exchange: Effect.Effect<A, E>,
    signOf: (exit: Exit.Exit<A, E>) => Sign
  ): Effect.Effect<A, E | AddressClosed> =>
    Effect.flatMap(
      keyed(view),
      (key) =>
        breaker.execute(exchange, { key, classify: (exit) => outcomes[signOf(exit)] }).pipe(
          Effect.catchIf(isRefusal, () =>
            Effect.flatMap(
              Clock.currentTimeMillis,
              (now) => closed(view, Math.max(0, AddressView.admitsAt(view, now) - now))
            ))
        )
    )

  const throughCircuit: typeof execute = (view, exchange, signOf) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const at = AddressView.admitsAt(view, now)
      return at > now ? closed(view, at - now) : execute(view, exchange, signOf)
    })

  /** Counts an exchange that began while the address was clear. */
  const count = (view: AddressView.AddressView, sign: Sign) => {
    // whoever comes next has to ask the circuit, also while this is being written down
    view.isSuspect = true
    return Effect.ignore(execute(view, Effect.void, () => sign))
  }

  const health = OutlierDetection.of({
    usable: (targets) =>
      Effect.suspend(() =>
        targets.every(isClear)
          ? Effect.succeed({ targets, retryAfter: undefined })
          : Effect.map(Clock.currentTimeMillis, (now) => EjectionLimit.choose(targets, absenceAt(now), now, outsideOf))
      ),
    guard: (target, exchange, signOf) =>
      Effect.suspend(() => {
        const view = known.of(target)
        if (view.isSuspect) return outside.has(target) ? exchange : throughCircuit(view, exchange, signOf)
        const { openings } = view
        return Effect.flatMap(Effect.exit(exchange), (exit) => {
          const sign = signOf(exit)
          const changesNothing = sign === "neutral" || (sign === "healthy" && !view.isSuspect) ||
            view.openings !== openings || isInterruption(exit)
          return changesNothing ? exit : Effect.andThen(count(view, sign), exit)
        })
      }),
    bench: (target, millis) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const view = known.of(target)
        if (view.benchedUntil <= now) view.metrics.benched("retry_after")
        view.benchedUntil = Math.max(view.benchedUntil, now + Math.min(millis, LONGEST_BENCH))
      })
  })

  return {
    health,
    views: known.all,
    stateOf: (view: AddressView.AddressView) => Effect.flatMap(keyed(view), breaker.state)
  }
})
