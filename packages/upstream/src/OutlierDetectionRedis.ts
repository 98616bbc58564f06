/**
 * `OutlierDetection` whose circuits are shared by the replicas of a gateway: one opens for all, and one of all probes.
 *
 * Benches stay in the process. While Redis is away each replica keeps circuits of its own.
 */
import * as Utf8 from "@trigate/domain/Utf8"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Digest from "effect/crypto/Digest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import type * as Redis from "effect/persistence/Redis"
import * as Schedule from "effect/Schedule"
import * as AddressView from "./internal/AddressView.ts"
import * as Circuits from "./internal/Circuits.ts"
import { identityOf } from "./internal/KnownAddresses.ts"
import type * as TripPolicy from "./internal/TripPolicy.ts"
import { OutlierDetection } from "./OutlierDetection.ts"
import * as SharedState from "./SharedState.ts"
import type { Target } from "./Upstream.ts"

/** When a circuit opens, and what replicas share. */
export interface Options extends TripPolicy.Options {
  /** What the keys begin with; `trigate:circuit:` when not given. A digest of the address follows. */
  readonly prefix?: string
  /** How often a replica looks for circuits that another one opened; 500 milliseconds when not given. */
  readonly poll?: Duration.Input
  /** How long Redis may take for one step; 250 milliseconds when not given. */
  readonly deadline?: Duration.Input
}

type Store = CircuitBreaker.CircuitBreakerStore["Service"]

const sharedStep = <A, R>(
  step: Effect.Effect<A, CircuitBreaker.CircuitBreakerError, R>
): Effect.Effect<A, CircuitBreaker.CircuitBreakerError | SharedState.SharedAway, R> =>
  Effect.mapError(
    step,
    (error) =>
      error.reason._tag === "CircuitBreakerStoreError"
        ? new SharedState.SharedAway({ detail: String(error.reason.cause) })
        : error
  )

/** The shared store while it is there, else the own one. An outcome goes where its call was admitted. */
const storeOf = (state: SharedState.SharedState, shared: Store, own: Store): Store =>
  CircuitBreaker.CircuitBreakerStore.of({
    admit: (key) =>
      state.orElse(
        sharedStep(shared.admit(key)),
        // below zero is no generation of the shared store
        Effect.map(own.admit(key), (admission) => ({ ...admission, generation: -1 - admission.generation }))
      ),
    record: (options) =>
      options.generation < 0
        ? own.record({ ...options, generation: -1 - options.generation })
        : state.orElse(sharedStep(shared.record(options)), Effect.undefined),
    state: (key) => state.orElse(sharedStep(shared.state(key)), own.state(key))
  })

const observe = (view: AddressView.AddressView, state: CircuitBreaker.State) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    // a probe of this process ends by telling the store
    if (view.isProbed) return
    if (state._tag === "Open") AddressView.foundOpen(view, now, now + Duration.toMillis(state.retryAfter))
    else if (state._tag === "HalfOpen" && state.probing) AddressView.foundProbed(view, now)
    else if (state._tag === "Closed" && view.refusedUntil > 0) AddressView.foundClosed(view)
  })

const make = Effect.fnUntraced(function*(options: Options) {
  const digest = yield* Digest.Digest
  const shared = yield* Layer.build(CircuitBreaker.layerStoreRedis({
    prefix: options.prefix ?? "trigate:circuit:",
    // a replica that dies while it probes must not keep the others off for long
    probeLease: "3 seconds"
  }))
  const own = yield* Layer.build(CircuitBreaker.layerStoreMemory())
  const state = yield* SharedState.make({
    use: "breakers",
    ...(options.deadline === undefined ? {} : { deadline: options.deadline })
  })
  const store = storeOf(
    state,
    Context.get(shared, CircuitBreaker.CircuitBreakerStore),
    Context.get(own, CircuitBreaker.CircuitBreakerStore)
  )
  // an address holds an endpoint key, which must not be read out of Redis
  const keyOf = (target: Target) =>
    Effect.map(
      digest.digestHex(Digest.sha256, Utf8.encode(identityOf(target))),
      (hex) => `${target.label}:${hex.slice(0, 32)}`
    )
  const { health, stateOf, views } = yield* Circuits.make(store, keyOf, options)
  const poll = Effect.suspend(() =>
    Effect.forEach(views(), (view) => Effect.flatMap(stateOf(view), (found) => observe(view, found)), { discard: true })
  )
  yield* Effect.forkScoped(
    Effect.repeat(Effect.ignore(poll), Schedule.spaced(options.poll ?? "500 millis"))
  )
  return health
})

/** The circuits of everybody with the same Redis and prefix. */
export const layer = (options: Options = {}): Layer.Layer<OutlierDetection, never, Redis.Redis> =>
  Layer.effect(OutlierDetection, make(options)).pipe(Layer.provide(Digest.layerWebCrypto))
