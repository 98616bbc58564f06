/** What an upstream allows its streams, as budgets that are spent before the upstream refuses. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/** The limits of an upstream, for all connections of one IP address, and how callers share them. */
export interface Limits {
  /** Connections at the same time. */
  readonly connections: number
  /** New connections in a minute. */
  readonly newConnections: number
  /** Subscriptions over all connections. */
  readonly subscriptions: number
  /** Distinct users over all subscriptions. */
  readonly users: number
  /** Distinct users of one caller. */
  readonly usersOfCaller: number
  /** Messages sent in a minute over all connections. */
  readonly messages: number
  /** How long a subscription stays after its last caller has left. */
  readonly grace: Duration.Duration
}

/** The limits of the venue. */
export const defaults: Limits = {
  connections: 10,
  newConnections: 30,
  subscriptions: 1000,
  users: 10,
  usersOfCaller: 3,
  messages: 2000,
  grace: Duration.seconds(10)
}

/** The minute of an upstream, whose clock may see messages closer together than they were sent. */
const minute = 61_000

/** A sliding-window limit on the events of the last minute; further callers wait. */
export interface MinuteBudget {
  /** Waits until another event is allowed, and counts it. */
  readonly take: Effect.Effect<void>
  /** Counts an event that may not wait. */
  readonly spend: () => void
  /** Allows nothing more for a minute: the upstream has said that the budget is used up. */
  readonly exhaust: () => void
  /** Events that are allowed now. */
  readonly left: () => number
}

/** A budget of events in a minute. */
export const makeMinuteBudget = (most: number): Effect.Effect<MinuteBudget> =>
  Effect.map(Clock.Clock, (clock) => {
    // times of the counted events, oldest first
    let taken: Array<number> = []
    let pausedUntil = 0
    const current = (now: number): number => {
      if (taken.length > 0 && (taken[0] ?? 0) <= now - minute) taken = taken.filter((at) => at > now - minute)
      return most - taken.length
    }
    const take: Effect.Effect<void> = Effect.suspend(() => {
      const now = clock.currentTimeMillisUnsafe()
      if (now >= pausedUntil && current(now) > 0) {
        taken.push(now)
        return Effect.void
      }
      const wait = Math.max(pausedUntil - now, current(now) > 0 ? 0 : (taken[0] ?? now) + minute - now, 1)
      return Effect.andThen(Effect.sleep(Duration.millis(wait)), take)
    })
    return {
      take,
      spend: () => void taken.push(clock.currentTimeMillisUnsafe()),
      exhaust: () => {
        pausedUntil = clock.currentTimeMillisUnsafe() + minute
      },
      left: () => {
        const now = clock.currentTimeMillisUnsafe()
        return now < pausedUntil ? 0 : current(now)
      }
    }
  })
