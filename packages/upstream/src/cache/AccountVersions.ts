/**
 * The versions of accounts: each change of an account, such as an accepted action, gives it a new one.
 *
 * The version is part of the key under which a response is cached and equal reads are coalesced. A change of the
 * account changes that key, so later reads use neither an older cached response nor a read that was in flight.
 *
 * An action also changes the account for which its signer acts, such as the master account of an API wallet. If that
 * account is unknown, the gateway searches for it. During the search, which lasts up to 2 seconds, no read of account
 * state is served from the cache or coalesced. If the search fails, all accounts get a new version.
 *
 * Redis contains a hash of versions, a sorted set of searches, and the accounts for which signers act, since the query
 * for them has a weight of 60. While Redis is unreachable, account state is neither
 * cached nor coalesced, because a process would not notice an action that another replica sent.
 */
import { addMillis, longAgo, millisBetween, type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import * as SharedState from "../SharedState.ts"

/**
 * The version of one or more accounts; empty if none of them has changed. `undefined` while reads of these accounts'
 * states must be neither cached nor coalesced.
 */
export type Version = string | undefined

/**
 * Versions of accounts, by lower-case address.
 *
 * Provided by `AccountVersions.layerMemory` or `AccountVersions.layerRedis`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Encoding } from "@trigate/domain"
 * import { AccountVersions } from "@trigate/upstream"
 * import { Clock, Console, Effect } from "effect"
 *
 * const account = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
 *
 * const program = Effect.gen(function*() {
 *   const { change, version } = yield* AccountVersions.AccountVersions
 *   const isUnknown = yield* change(account, [])
 *   const now = Encoding.monotonicTime(yield* Clock.Clock)
 *   yield* Console.log(typeof (yield* version([account], now)), isUnknown)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, AccountVersions.layerMemory()))
 * ```
 * ```text
 * string false
 * ```
 */
export class AccountVersions extends Context.Service<AccountVersions, {
  /**
   * Returns the version of accounts; `now` is the current time. The effect is synchronous unless it has to query a
   * shared store.
   */
  readonly version: (accounts: ReadonlyArray<string>, now: MonotonicTime) => Effect.Effect<Version>
  /**
   * Sets a new version for the given accounts, and for the accounts for which `signer` acts.
   *
   * If the accounts of the signer are unknown, starts a search for them and returns `true`; the search ends when
   * `learn` names the accounts. Starts no search if no account state was read in the last minute, because no account
   * state is cached then.
   */
  readonly change: (signer: string, accounts: ReadonlyArray<string>) => Effect.Effect<boolean>
  /** Sets a new version for accounts whose state changed without an action of this gateway. */
  readonly invalidate: (accounts: ReadonlyArray<string>) => Effect.Effect<void>
  /**
   * Records the accounts for which a signer acts in addition to its own account, and ends the search for these
   * accounts.
   */
  readonly learn: (signer: string, accounts: ReadonlyArray<string>) => Effect.Effect<void>
}>()("@trigate/upstream/cache/AccountVersions") {}

/** The maximum duration of a search for a signer's accounts, in milliseconds. */
export const searchFor = 2000

/** Maximum milliseconds for which a response about an account can be cached. */
export const cachedFor = 60_000

/**
 * Returns the slot in which the version of an account is stored. There are only 4096 slots, which limits memory. If two
 * accounts share a slot, a change of one account only costs an additional read of the other.
 */
export const versionSlot = (account: string): string => account.slice(-3)

/**
 * Joins stored versions with dots into one version; a missing version is empty text. `versions` contains the version of
 * each account in question, and the version that applies to all accounts. Returns empty text if none of them is stored.
 */
export const printVersion = (versions: ReadonlyArray<number | string | null | undefined>): string =>
  versions.every((version) => version === null || version === undefined)
    ? ""
    : versions.map((version) => version ?? "").join(".")

/** The store of the versions. */
export interface Store extends Pick<AccountVersions["Service"], "version"> {
  readonly change: (accounts: ReadonlyArray<string>) => Effect.Effect<void>
  /**
   * Starts a search for a signer's accounts. Returns `false`, without starting a search, if no account state was read
   * in the last minute.
   */
  readonly search: (signer: string) => Effect.Effect<boolean>
  /** Ends the search for a signer's accounts, and sets a new version for the given accounts. */
  readonly found: (signer: string, accounts: ReadonlyArray<string>) => Effect.Effect<void>
  /** The accounts for which signers act, as stored for all processes. Absent if each process stores only its own. */
  readonly roles?: {
    readonly get: (signer: string) => Effect.Effect<ReadonlyArray<string> | undefined>
    readonly set: (signer: string, accounts: ReadonlyArray<string>) => Effect.Effect<void>
  }
}

/** Milliseconds for which a signer's accounts are cached. The accounts for which a signer acts rarely change. */
const KNOWN_FOR = 3_600_000

const MAX_KNOWN = 10_000

/** Makes the service over a store. */
export const make = ({ change, found, roles, search, ...store }: Store): AccountVersions["Service"] => {
  const known = new Map<string, { readonly accounts: ReadonlyArray<string>; readonly since: MonotonicTime }>()
  const searched = new Set<string>()

  const remember = (signer: string, accounts: ReadonlyArray<string>, since: MonotonicTime): void => {
    known.delete(signer)
    known.set(signer, { accounts, since })
    for (const oldest of known.keys()) {
      if (known.size <= MAX_KNOWN) break
      known.delete(oldest)
    }
  }

  /** Returns the accounts for which a signer acts; `undefined` if they are unknown. */
  const actsFor = Effect.fnUntraced(function*(signer: string, now: MonotonicTime) {
    const own = known.get(signer)
    if (own !== undefined && millisBetween(own.since, now) < KNOWN_FOR) return own.accounts
    const accounts = roles === undefined ? undefined : yield* roles.get(signer)
    if (accounts !== undefined) remember(signer, accounts, now)
    return accounts
  })

  return AccountVersions.of({
    ...store,
    invalidate: change,
    change: Effect.fnUntraced(function*(signer, accounts) {
      const now = monotonicTime(yield* Clock.Clock)
      const others = yield* actsFor(signer, now)
      if (others !== undefined) {
        yield* change([...accounts, ...others])
        return false
      }
      yield* change(accounts)
      if (!(yield* search(signer))) return false
      searched.add(signer)
      return true
    }),
    learn: Effect.fnUntraced(function*(signer, accounts) {
      remember(signer, accounts, monotonicTime(yield* Clock.Clock))
      if (roles !== undefined) yield* roles.set(signer, accounts)
      if (searched.delete(signer)) yield* found(signer, accounts)
    })
  })
}

const memoryStore = (): Store => {
  const versions = new Map<string, number>()
  /** The end time of each search for a signer's accounts, by signer. */
  const searches = new Map<string, MonotonicTime>()
  let ofAll: number | undefined
  let readAt = longAgo

  const endSearches = (now: MonotonicTime) => {
    for (const [signer, until] of searches) {
      if (now < until) continue
      searches.delete(signer)
      ofAll = (ofAll ?? 0) + 1
    }
  }

  const versionAt = (accounts: ReadonlyArray<string>, now: MonotonicTime): Version => {
    readAt = now
    if (searches.size > 0) endSearches(now)
    return searches.size > 0
      ? undefined
      : printVersion([ofAll, ...accounts.map((each) => versions.get(versionSlot(each)))])
  }

  const change = (accounts: ReadonlyArray<string>) =>
    Effect.sync(() => {
      for (const slot of new Set(accounts.map(versionSlot))) versions.set(slot, (versions.get(slot) ?? 0) + 1)
    })

  return {
    version: (accounts, now) => Exit.succeed(versionAt(accounts, now)),
    change,
    search: (signer) =>
      Effect.map(Clock.Clock, (clock) => {
        const now = monotonicTime(clock)
        if (millisBetween(readAt, now) > cachedFor) return false
        endSearches(now)
        searches.set(signer, addMillis(now, searchFor))
        return true
      }),
    found: (signer, accounts) => Effect.andThen(Effect.sync(() => searches.delete(signer)), change(accounts))
  }
}

/**
 * Provides versions in the memory of this process. Each call returns a new layer with separate versions.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (): Layer.Layer<AccountVersions> => Layer.sync(AccountVersions, () => make(memoryStore()))

/** The Redis key prefix of the versions, and the timeout of operations. */
export interface RedisOptions {
  /** Prefix of the keys. Default: `trigate:{accounts}:`. */
  readonly prefix?: string
  /** Timeout of one operation in Redis. Default: 250 milliseconds. */
  readonly deadline?: Duration.Input
}

const DAY = 86_400_000

const params = (...values: ReadonlyArray<string | number>) => values

// the version of all accounts starts with the time, so that a Redis that has lost its data gives no version again
const versionScript = Redis.script(params, {
  numberOfKeys: 2,
  lua: `redis.call('HSET', KEYS[1], 'read', ARGV[1])
redis.call('HSETNX', KEYS[1], 'all', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ${DAY})
if redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[1]) > 0 then redis.call('HINCRBY', KEYS[1], 'all', 1) end
if redis.call('ZCARD', KEYS[2]) > 0 then return {} end
return redis.call('HMGET', KEYS[1], 'all', unpack(ARGV, 2))`
}).withReturnType<unknown>()

const searchScript = Redis.script(params, {
  numberOfKeys: 2,
  lua: `local read = redis.call('HGET', KEYS[1], 'read')
if not read or ARGV[1] - read > ${cachedFor} then return 0 end
redis.call('ZADD', KEYS[2], ARGV[1] + ${searchFor}, ARGV[2])
redis.call('PEXPIRE', KEYS[2], ${DAY})
return 1`
}).withReturnType<unknown>()

const changeScript = Redis.script(params, {
  numberOfKeys: 2,
  lua: `redis.call('ZREM', KEYS[2], ARGV[1])
for i = 2, #ARGV do redis.call('HINCRBY', KEYS[1], ARGV[i], 1) end
redis.call('PEXPIRE', KEYS[1], ${DAY})`
})

const decodeVersions = Schema.decodeUnknownEffect(Schema.Array(Schema.NullOr(Schema.String)))

const decodeRole = Schema.decodeUnknownEffect(Schema.NullOr(Schema.String))

/** The versions, the searches and the accounts of signers, for all replicas. Each operation is atomic. */
export interface SharedVersions {
  /**
   * Records that account state was read, and ends searches that took too long. Returns the version that applies to all
   * accounts, and those of the slots; `undefined` during a search.
   */
  readonly read: (
    now: number,
    slots: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<string | null> | undefined, SharedState.StoreFault>
  /** Starts a search if account state was read in the last minute. Returns whether it did. */
  readonly search: (now: number, signer: string) => Effect.Effect<boolean, SharedState.StoreFault>
  /** Ends the search for the accounts of a signer, and sets new versions. */
  readonly change: (signer: string, slots: Iterable<string>) => Effect.Effect<void, SharedState.StoreFault>
  /** Returns the accounts for which a signer acts, separated by spaces; `null` if they are unknown. */
  readonly role: (signer: string) => Effect.Effect<string | null, SharedState.StoreFault>
  readonly setRole: (
    signer: string,
    accounts: string,
    milliseconds: number
  ) => Effect.Effect<void, SharedState.StoreFault>
}

const sharedIn = (redis: Redis.Redis["Service"], prefix: string): SharedVersions => {
  const evaluateVersion = redis.eval(versionScript)
  const evaluateSearch = redis.eval(searchScript)
  const evaluateChange = redis.eval(changeScript)
  const keys = [`${prefix}versions`, `${prefix}searches`] as const
  const keyOfRole = (signer: string) => `${prefix}role:${signer}`
  return {
    read: (now, slots) =>
      evaluateVersion(...keys, now, ...slots).pipe(
        Effect.flatMap(decodeVersions),
        Effect.map((versions) => versions.length === 0 ? undefined : versions)
      ),
    search: (now, signer) => Effect.map(evaluateSearch(...keys, now, signer), (opened) => opened !== 0),
    change: (signer, slots) => Effect.asVoid(evaluateChange(...keys, signer, ...slots)),
    role: (signer) => Effect.flatMap(redis.send("GET", keyOfRole(signer)), decodeRole),
    setRole: (signer, accounts, milliseconds) =>
      Effect.asVoid(redis.send("SET", keyOfRole(signer), accounts, "PX", String(milliseconds)))
  }
}

/** Makes the service over versions that replicas share. */
const makeShared = Effect.fnUntraced(
  function*({ deadline }: Pick<RedisOptions, "deadline">, shared: SharedVersions) {
    const state = yield* SharedState.make({ use: "account-versions", ...(deadline === undefined ? {} : { deadline }) })
    let unsharedUntil = longAgo

    /**
     * Writes to the store. If that fails, this process neither caches nor coalesces account state until all cached
     * responses have expired.
     */
    const written = <A>(write: Effect.Effect<A, SharedState.StoreFault>, otherwise: A) =>
      state.orElse<A, never, never>(
        write,
        Effect.map(Clock.Clock, (clock) => {
          unsharedUntil = addMillis(monotonicTime(clock), cachedFor)
          return otherwise
        })
      )

    /** The slots whose new versions are being written, each with the number of writes. */
    const pending = new Map<string, number>()
    const notePending = (slots: Iterable<string>, change: 1 | -1): void => {
      for (const slot of slots) {
        const count = (pending.get(slot) ?? 0) + change
        if (count === 0) pending.delete(slot)
        else pending.set(slot, count)
      }
    }

    const found = (signer: string, accounts: ReadonlyArray<string>) =>
      Effect.suspend(() => {
        const slots = new Set(accounts.map(versionSlot))
        notePending(slots, 1)
        return Effect.ensuring(
          written(shared.change(signer, slots), undefined),
          Effect.sync(() => notePending(slots, -1))
        )
      })

    return make({
      version: (accounts) =>
        Effect.clockWith((clock) => {
          const slots = accounts.map(versionSlot)
          // this process knows of a change that the store may not have yet
          if (slots.some((slot) => pending.has(slot)) || monotonicTime(clock) < unsharedUntil) return Effect.undefined
          const version = Effect.map(
            shared.read(clock.currentTimeMillisUnsafe(), slots),
            (versions) => versions === undefined ? undefined : printVersion(versions)
          )
          return state.orElse<Version, never, never>(version, Effect.undefined)
        }),
      change: (accounts) => found("", accounts),
      search: (signer) =>
        Effect.flatMap(
          Clock.currentTimeMillis,
          (now) => written(shared.search(now, signer), true)
        ),
      found,
      roles: {
        get: (signer) =>
          state.orElse<ReadonlyArray<string> | undefined, never, never>(
            Effect.map(
              shared.role(signer),
              (text) => text === null ? undefined : text === "" ? [] : text.split(" ")
            ),
            Effect.undefined
          ),
        set: (signer, accounts) => {
          // a wallet that acts for no other account can be approved as an API wallet at any time
          const lasts = accounts.length === 0 ? KNOWN_FOR : DAY
          return state.orElse<void, never, never>(shared.setRole(signer, accounts.join(" "), lasts), Effect.void)
        }
      }
    })
  }
)

/**
 * Provides versions that replicas share.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerShared = (
  options: Pick<RedisOptions, "deadline">,
  shared: SharedVersions
): Layer.Layer<AccountVersions> => Layer.effect(AccountVersions, makeShared(options, shared))

/**
 * Provides versions that are shared through Redis.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { NodeRedis } from "@effect/platform-node"
 * import { AccountVersions } from "@trigate/upstream"
 * import { Layer } from "effect"
 *
 * export const shared = Layer.provide(AccountVersions.layerRedis(), NodeRedis.layer({ url: "redis://localhost:6379" }))
 * ```
 */
export const layerRedis = (
  { prefix = "trigate:{accounts}:", ...options }: RedisOptions = {}
): Layer.Layer<AccountVersions, never, Redis.Redis> =>
  Layer.effect(
    AccountVersions,
    Effect.flatMap(Redis.Redis, (redis) => makeShared(options, sharedIn(redis, prefix)))
  )
