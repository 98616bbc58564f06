/**
 * Storage of the filters of `eth_newFilter` and similar methods: in this process, or in a Redis that the replicas of a
 * gateway share.
 *
 * A filter expires after five minutes without a poll. Each caller has a maximum number of filters.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as SharedState from "../SharedState.ts"

/** The lifetime of a filter after its last poll. */
export const idle = Duration.minutes(5)

/** The owner and the ID of a filter. */
export interface FilterKey {
  readonly caller: string
  readonly id: string
}

/**
 * Stores the filters of all callers, as text.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { FilterStore } from "@trigate/upstream"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { add, get } = yield* FilterStore.FilterStore
 *   yield* add({ caller: "desk", id: "0x1" }, "filter", 10)
 *   yield* Console.log(yield* get({ caller: "desk", id: "0x1" }), yield* get({ caller: "other", id: "0x1" }))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, FilterStore.layerMemory()))
 * ```
 * ```text
 * filter undefined
 * ```
 */
export class FilterStore extends Context.Service<FilterStore, {
  /** Stores a new filter. Returns `false`, and stores nothing, if the caller already has `most` filters. */
  readonly add: (key: FilterKey, text: string, most: number) => Effect.Effect<boolean>
  /** Returns a filter; `undefined` if it does not exist or belongs to another caller. */
  readonly get: (key: FilterKey) => Effect.Effect<string | undefined>
  /** Replaces an existing filter; this counts as a poll. */
  readonly set: (key: FilterKey, text: string) => Effect.Effect<void>
  /** Removes a filter. Returns whether it existed. */
  readonly remove: (key: FilterKey) => Effect.Effect<boolean>
}>()("@trigate/upstream/evm/FilterStore") {}

interface Entry {
  text: string
  until: number
}

/** Makes a store in this process. */
export const makeMemory: Effect.Effect<FilterStore["Service"]> = Effect.map(Clock.Clock, (clock) => {
  const callers = new Map<string, Map<string, Entry>>()
  const now = () => clock.currentTimeMillisUnsafe()
  const until = () => now() + Duration.toMillis(idle)
  const sweep = (caller: string): Map<string, Entry> => {
    const own = callers.get(caller) ?? new Map<string, Entry>()
    for (const [id, entry] of own) if (entry.until <= now()) own.delete(id)
    if (own.size === 0) callers.delete(caller)
    return own
  }
  let sweepAt = 0
  /** Removes expired filters of all callers, because some callers do not send another call. */
  const sweepAll = (): void => {
    if (now() < sweepAt) return
    sweepAt = until()
    for (const caller of callers.keys()) sweep(caller)
  }
  return FilterStore.of({
    add: ({ caller, id }, text, most) =>
      Effect.sync(() => {
        sweepAll()
        const own = sweep(caller)
        if (own.size >= most) return false
        callers.set(caller, own.set(id, { text, until: until() }))
        return true
      }),
    get: ({ caller, id }) => Effect.sync(() => sweep(caller).get(id)?.text),
    set: ({ caller, id }, text) =>
      Effect.sync(() => {
        if (sweep(caller).has(id)) callers.get(caller)?.set(id, { text, until: until() })
      }),
    remove: ({ caller, id }) =>
      Effect.sync(() => {
        const isThere = sweep(caller).delete(id)
        if (callers.get(caller)?.size === 0) callers.delete(caller)
        return isThere
      })
  })
})

/**
 * Provides a store in the memory of this process. Each call returns a new layer with a separate store.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (): Layer.Layer<FilterStore> => Layer.effect(FilterStore, makeMemory)

const keys = (key: string, own: string, ...rest: ReadonlyArray<string | number>) => [key, own, ...rest]

const addScript = Redis.script(keys, {
  numberOfKeys: 2,
  lua: `redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[3])
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[3] + ARGV[2], KEYS[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1`
}).withReturnType<unknown>()

const setScript = Redis.script(keys, {
  numberOfKeys: 2,
  lua: `if not redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'XX') then return 0 end
redis.call('ZADD', KEYS[2], ARGV[3] + ARGV[2], KEYS[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1`
}).withReturnType<unknown>()

const removeScript = Redis.script(keys, {
  numberOfKeys: 2,
  lua: `redis.call('ZREM', KEYS[2], KEYS[1])
return redis.call('DEL', KEYS[1])`
}).withReturnType<unknown>()

/** The location of the filters in Redis. */
export interface RedisOptions {
  /** Prefix of the keys. Default: `trigate:{evm-filters}:`. */
  readonly prefix?: string
}

const makeRedis = Effect.fnUntraced(function*({ prefix = "trigate:{evm-filters}:" }: RedisOptions) {
  const redis = yield* Redis.Redis
  const local = yield* makeMemory
  const shared = yield* SharedState.make({ use: "evm-filters" })
  const millis = Duration.toMillis(idle)
  // the key contains the caller, so that no other caller can use the ID
  const keyNames = ({ caller, id }: FilterKey) => [`${prefix}${caller}:${id}`, `${prefix}${caller}`] as const
  const add = redis.eval(addScript)
  const set = redis.eval(setScript)
  const remove = redis.eval(removeScript)
  return FilterStore.of({
    add: (key, text, most) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        shared.orElse(
          Effect.map(
            Effect.mapError(add(...keyNames(key), text, millis, now, most), SharedState.unreachable),
            (added) => added === 1
          ),
          local.add(key, text, most)
        )),
    get: (key) =>
      Effect.map(
        shared.orElse(
          Effect.mapError(redis.send<string | null>("GET", keyNames(key)[0]), SharedState.unreachable),
          local.get(key)
        ),
        (text) => text ?? undefined
      ),
    set: (key, text) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        shared.orElse(
          Effect.asVoid(Effect.mapError(set(...keyNames(key), text, millis, now), SharedState.unreachable)),
          local.set(key, text)
        )),
    remove: (key) =>
      shared.orElse(
        Effect.map(Effect.mapError(remove(...keyNames(key)), SharedState.unreachable), (removed) => removed === 1),
        local.remove(key)
      )
  })
})

/**
 * Provides a store that all processes with the same Redis and prefix share. While Redis is unreachable, each process
 * uses its own store.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerRedis = (options: RedisOptions = {}): Layer.Layer<FilterStore, never, Redis.Redis> =>
  Layer.effect(FilterStore, makeRedis(options))
