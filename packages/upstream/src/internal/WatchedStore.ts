/** A store of circuits that tells the views of this process what it said, so that no call has to ask again. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as AddressView from "./AddressView.ts"

type Store = CircuitBreaker.CircuitBreakerStore["Service"]

const refused = (view: AddressView.AddressView, { reason }: CircuitBreaker.CircuitBreakerError) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    if (reason._tag === "CircuitOpen") AddressView.foundOpen(view, now, now + Duration.toMillis(reason.retryAfter))
    if (reason._tag === "CircuitHalfOpen") AddressView.foundProbed(view, now)
  })

const recording = (
  view: AddressView.AddressView,
  store: Store,
  options: Parameters<Store["record"]>[0]
): ReturnType<Store["record"]> =>
  Effect.suspend(() => {
    const isCurrent = () => options.generation === view.generation
    // whether or not the store is there to be told, this process's probe is over
    if (isCurrent()) view.isProbed = false
    if (options.outcome === "Failure") view.isSuspect = true
    return Effect.tap(store.record(options), (transition) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        if (transition?.to === "Open") AddressView.opened(view, now + Duration.toMillis(transition.retryAfter))
        // the circuit takes no note of a success of an earlier generation
        else if (options.outcome === "Success" && isCurrent()) AddressView.succeeded(view)
      }))
  })

/** The store, watched for the view of each key. */
export const make = (store: Store, viewOf: (key: string) => AddressView.AddressView | undefined): Store =>
  CircuitBreaker.CircuitBreakerStore.of({
    admit: (key) => {
      const view = viewOf(key)
      return view === undefined ? store.admit(key) : store.admit(key).pipe(
        Effect.tap((admission) => Effect.sync(() => AddressView.admitted(view, admission))),
        Effect.tapError((error) => refused(view, error))
      )
    },
    record: (options) => {
      const view = viewOf(options.key)
      return view === undefined ? store.record(options) : recording(view, store, options)
    },
    state: store.state
  })
