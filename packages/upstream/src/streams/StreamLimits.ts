/** The upstream's limits on streams. The gateway enforces them itself, before the upstream would refuse a request. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/** The limits of an upstream, over all connections of one IP address, and how callers share them. */
export interface Limits {
  /** Maximum number of concurrent connections. */
  readonly connections: number
  /** Maximum number of new connections per minute. */
  readonly newConnections: number
  /** Maximum number of subscriptions over all connections. */
  readonly subscriptions: number
  /** Maximum number of distinct users over all subscriptions. */
  readonly users: number
  /** Maximum number of distinct users in all subscriptions of one caller. */
  readonly usersOfCaller: number
  /** Maximum number of messages sent per minute over all connections. */
  readonly messages: number
  /** How long a subscription is retained after its last caller has left. */
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

/**
 * The length of a minute in milliseconds, with a margin, because messages may arrive at shorter intervals than the
 * intervals at which they are sent.
 */
const minute = 61_000

/** A limit on the events in any minute. Events beyond the limit wait. */
export interface MinuteBudget {
  /** Waits until the next event is allowed, and counts that event. */
  readonly take: Effect.Effect<void>
  /** Counts an event that cannot wait. */
  readonly spend: () => void
  /** Blocks further events for a minute, because the upstream reported that the limit is reached. */
  readonly exhaust: () => void
  /** Returns the number of events that are allowed now. */
  readonly left: () => number
}

/** Makes a limit on events per minute. */
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
