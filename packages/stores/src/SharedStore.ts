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

/** Whether a store is unreachable, as the steps of this process show. */
export interface Outage<E> {
  readonly isAway: () => boolean
  /** Reports that the store is unreachable. */
  readonly away: (fault: E) => Effect.Effect<void>
  /** Reports that the store is reachable. */
  readonly back: Effect.Effect<void>
  /** Reports whether a step succeeds. */
  readonly observe: <A, R>(step: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/**
 * Makes the state of a store, which counts as reachable at first. At each change, sets the gauge to 1 or 0 and runs one
 * of the two effects, which log it.
 */
export const makeOutage = <E>(
  gauge: Metric.Gauge<number>,
  log: { readonly away: (fault: E) => Effect.Effect<void>; readonly back: Effect.Effect<void> }
): Outage<E> => {
  let isAway = false
  const change = (isNowAway: boolean, logged: () => Effect.Effect<void>) =>
    Effect.suspend(() => {
      if (isAway === isNowAway) return Effect.void
      isAway = isNowAway
      return Effect.andThen(Metric.update(gauge, isAway ? 1 : 0), Effect.suspend(logged))
    })
  const away = (fault: E) => change(true, () => log.away(fault))
  const back = change(false, () => log.back)
  return {
    isAway: () => isAway,
    away,
    back,
    observe: (step) => Effect.tapError(Effect.tap(step, () => back), away)
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

/** The lease of one owner. */
export interface Lease<E> {
  /** Acquires or renews the lease. Returns its fencing token; `undefined` while another owner has the lease. */
  readonly renew: Effect.Effect<number | undefined, E>
  /** Ends the last lease of this owner. The next lease has another token, so the store refuses a late write. */
  readonly release: Effect.Effect<void, E>
  /** Returns whether another owner had the lease when the store last responded. */
  readonly isElsewhere: () => boolean
}

/** Makes the lease of an owner. It is not acquired yet. */
export const makeLease = <E>(store: LeaseStore<E>, owner: string): Lease<E> => {
  let token: number | undefined
  let isElsewhere = false
  return {
    renew: Effect.map(store.lease(owner), (found) => {
      isElsewhere = found === undefined
      return token = found
    }),
    release: Effect.suspend(() => token === undefined ? Effect.void : store.release(token)),
    isElsewhere: () => isElsewhere
  }
}
