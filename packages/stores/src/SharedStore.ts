/**
 * Access to a store that several processes share, in Redis or SQL: steps with a deadline, outages that are reported
 * once, and leases, each of which gives one process the right to write.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

/** Limits the time of a step. Calls `toError` with the detail if the store does not respond in time. */
export const within =
  <E>(deadline: Duration.Input, toError: (detail: string) => E) =>
  <A, E1, R>(step: Effect.Effect<A, E1, R>): Effect.Effect<A, E | E1, R> =>
    Effect.timeoutOrElse(step, {
      duration: deadline,
      orElse: () => Effect.fail(toError(`no response within ${Duration.format(Duration.fromInputUnsafe(deadline))}`))
    })

/**
 * Makes the state of a store, whether it is unreachable, as the steps of this process show: it counts as reachable at
 * first. At each change, sets the gauge to 1 or 0 and runs one
 * of the two effects, which log it.
 */
export const makeOutage = <E>(
  gauge: Metric.Gauge<number>,
  log: { readonly away: (fault: E) => Effect.Effect<void>; readonly back: Effect.Effect<void> }
) => {
  let isAway = false
  const change = (isNowAway: boolean, logged: () => Effect.Effect<void>) =>
    Effect.suspend(() => {
      if (isAway === isNowAway) return Effect.void
      isAway = isNowAway
      return Effect.andThen(Metric.update(gauge, isAway ? 1 : 0), Effect.suspend(logged))
    })
  const away = (fault: E): Effect.Effect<void> => change(true, () => log.away(fault))
  const back: Effect.Effect<void> = change(false, () => log.back)
  return {
    isAway: () => isAway,
    /** Reports that the store is unreachable. */
    away,
    /** Reports that the store is reachable. */
    back,
    /** Reports whether a step succeeds. */
    observe: <A, R>(step: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.tapError(Effect.tap(step, () => back), away)
  }
}

/** Stores the lease of something that only one process may write. */
export interface LeaseStore<E> {
  /**
   * Acquires the lease for an owner, or renews it. Returns the fencing token of the lease; `undefined` while another
   * owner has it.
   */
  readonly lease: (owner: string) => Effect.Effect<number | undefined, E>
  /** Ends the lease with the given fencing token, so that another owner can acquire it immediately. */
  readonly release: (token: number) => Effect.Effect<void, E>
}

/** Makes the lease of an owner. It is not acquired yet. */
export const makeLease = <E>(store: LeaseStore<E>, owner: string) => {
  let token: number | undefined
  let isElsewhere = false
  return {
    /** Acquires or renews the lease. Returns its fencing token; `undefined` while another owner has the lease. */
    renew: Effect.map(store.lease(owner), (found) => {
      isElsewhere = found === undefined
      return token = found
    }),
    /** Ends the last lease of this owner. The next lease has another token, so the store refuses a late write. */
    release: Effect.suspend(() => token === undefined ? Effect.void : store.release(token)),
    /** Returns whether another owner had the lease when the store last responded. */
    isElsewhere: (): boolean => isElsewhere
  }
}
