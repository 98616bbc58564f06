/**
 * Simulated stores that replicas share.
 *
 * A store consists of a state, as on its disk, and of operations. An operation runs atomically at one point of time, as
 * a Lua script in Redis or a statement in Postgres does. The policy around the operations, such as deadlines and the
 * behaviour during an outage, is production code. The tests of the drivers for Redis and Postgres run over each store,
 * too.
 *
 * A replica reaches a store through an {@link Access}, which adds latency and faults.
 */
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { RedisError } from "effect/persistence/Redis"
import { ConnectionError, SqlError } from "effect/sql/SqlError"

/** The store did not confirm an operation: it is unreachable, or the connection was lost. `detail` is the reason. */
export class StoreAway extends Data.TaggedError("StoreAway")<{ readonly detail: string }> {}

/**
 * Runs an operation of a store over a simulated connection. The operation is committed at one point of time; its result
 * can be lost. `now` is the wall clock of the store, in milliseconds since 1970, as `TIME` of Redis and `now()` of
 * Postgres are.
 */
export type Access = <A>(operation: (now: number) => A) => Effect.Effect<A, StoreAway>

/** The access of a test: without latency, by the `Clock` of the context. */
export const direct: Access = (operation) => Effect.map(Clock.currentTimeMillis, operation)

/** Runs an operation of a simulated Redis. */
export const redis = <A>(access: Access, operation: (now: number) => A): Effect.Effect<A, RedisError> =>
  Effect.mapError(access(operation), ({ detail }) => new RedisError({ cause: detail }))

/** Runs a statement of a simulated Postgres. */
export const sql = <A>(access: Access, statement: (now: number) => A): Effect.Effect<A, SqlError> =>
  Effect.mapError(
    access(statement),
    ({ detail }) => new SqlError({ reason: new ConnectionError({ cause: detail, message: detail }) })
  )

/** The state of a store, as on its disk. */
export interface Disk<State> {
  /** Returns the current state, which operations change in place. */
  readonly current: () => State
  /** Returns a copy of the state. */
  readonly snapshot: () => State
  /** Replaces the state, as a restart from an old snapshot does. */
  readonly restore: (snapshot: State) => void
  /** Empties the store, as a restart without data does. */
  readonly clear: () => void
}

/** Makes the state of a store. Its members must be plain data, maps and sets. */
export const makeDisk = <State>(empty: () => State): Disk<State> => {
  let state = empty()
  return {
    current: () => state,
    snapshot: () => structuredClone(state),
    restore: (snapshot) => {
      state = structuredClone(snapshot)
    },
    clear: () => {
      state = empty()
    }
  }
}

/** Rounds a number as a script of Redis does where it converts the number to text. */
export const asText = (value: number): number => Number(value.toPrecision(14))

/** The keys of a simulated Redis whose values are of one kind, with the times at which they expire. */
export type Keys<A> = Map<string, { value: A; diesAt: number }>

/** Returns the value of a key; `undefined` if it does not exist, or has expired. */
export const getKey = <A>(keys: Keys<A>, key: string, now: number): A | undefined => {
  const found = keys.get(key)
  if (found === undefined || now <= found.diesAt) return found?.value
  keys.delete(key)
  return undefined
}

/** Sets a value, as `SET` with `PX`. */
export const setKey = <A>(keys: Keys<A>, key: string, value: A, diesAt: number): void => {
  keys.set(key, { value, diesAt })
}

/**
 * Changes the members of a key. A key that does not exist is created without an expiry; a key without members ceases to
 * exist.
 */
export const changeKey = <A extends { readonly size: number }>(
  keys: Keys<A>,
  key: string,
  now: number,
  empty: () => A,
  change: (members: A) => void
): void => {
  const value = getKey(keys, key, now) ?? empty()
  change(value)
  if (value.size === 0) keys.delete(key)
  else setKey(keys, key, value, keys.get(key)?.diesAt ?? Infinity)
}

/** Sets the expiry of a key if the key exists, as `PEXPIRE`. */
export const expireKey = <A>(keys: Keys<A>, key: string, now: number, diesAt: number): void => {
  const value = getKey(keys, key, now)
  if (value !== undefined) setKey(keys, key, value, diesAt)
}

/** Sets the expiry of a key that expires earlier, or never. */
export const prolongKey = <A>(keys: Keys<A>, key: string, diesAt: number): void => {
  const found = keys.get(key)
  if (found !== undefined && (found.diesAt === Infinity || found.diesAt < diesAt)) found.diesAt = diesAt
}

/** An access that a test controls, as it controls the process of a real server. */
export interface Switched {
  readonly access: Access
  /** Ends the store: operations fail until `restart`. Those that wait fail, too. */
  readonly kill: Effect.Effect<void>
  readonly restart: Effect.Effect<void>
  /** Suspends the store: operations wait, and are committed at `thaw`, even if their caller no longer waits. */
  readonly freeze: Effect.Effect<void>
  readonly thaw: Effect.Effect<void>
}

/** Makes an access that a test controls. */
export const makeSwitched = (): Switched => {
  let state: "away" | "frozen" | "running" = "running"
  let waiting: Array<(isAway: boolean) => void> = []
  const away = new StoreAway({ detail: "the connection was refused" })
  const change = (next: typeof state) =>
    Effect.sync(() => {
      state = next
      if (state === "frozen") return
      const ended = waiting
      waiting = []
      for (const end of ended) end(state === "away")
    })
  return {
    access: <A>(operation: (now: number) => A) => {
      const committed = Effect.clockWith((clock) =>
        Effect.callback<A, StoreAway>((resume) => {
          const end = (isAway: boolean) =>
            resume(isAway ? Exit.fail(away) : Exit.succeed(operation(clock.currentTimeMillisUnsafe())))
          if (state === "frozen") waiting.push(end)
          else end(state === "away")
        })
      )
      // no connection returns a result at once, and a command without a connection is never carried out
      return Effect.suspend(() => Effect.andThen(Effect.yieldNow, state === "away" ? Effect.fail(away) : committed))
    },
    kill: change("away"),
    restart: change("running"),
    freeze: change("frozen"),
    thaw: change("running")
  }
}
