/**
 * `AccountVersions` that all processes with the same Redis and key prefix share.
 *
 * Redis contains a hash of versions and a sorted set of searches. While Redis is unreachable, account state is neither
 * cached nor coalesced, because a process would not notice an action that another replica sent.
 */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import * as SharedState from "../SharedState.ts"
import * as AccountVersions from "./AccountVersions.ts"
import { cachedFor, searchFor, versionSlot } from "./AccountVersions.ts"

/** The Redis key prefix of the versions, and the timeout of operations. */
export interface Options {
  /** Prefix of the keys. Default: `trigate:{accounts}:`. */
  readonly prefix?: string
  /** Timeout of one operation in Redis. Default: 250 milliseconds. */
  readonly deadline?: Duration.Input
}

const DAY = 86_400_000

const params = (versions: string, searches: string, ...rest: ReadonlyArray<string | number>) => [
  versions,
  searches,
  ...rest
]

const versionScript = Redis.script(params, {
  numberOfKeys: 2,
  lua: `redis.call('HSET', KEYS[1], 'read', ARGV[1])
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

const make = Effect.fnUntraced(function*({ deadline, prefix = "trigate:{accounts}:" }: Options) {
  const redis = yield* Redis.Redis
  const state = yield* SharedState.make({ use: "account-versions", ...(deadline === undefined ? {} : { deadline }) })
  const evaluateVersion = redis.eval(versionScript)
  const evaluateSearch = redis.eval(searchScript)
  const evaluateChange = redis.eval(changeScript)
  const keys = [`${prefix}versions`, `${prefix}searches`] as const
  let unsharedUntil = 0

  /**
   * Writes to Redis. If that fails, this process neither caches nor coalesces account state until all cached responses
   * have expired.
   */
  const written = (write: Effect.Effect<unknown, Redis.RedisError>) =>
    state.orElse<unknown, never, never>(
      Effect.mapError(write, SharedState.unreachable),
      Effect.map(Clock.currentTimeMillis, (now) => {
        unsharedUntil = now + cachedFor
      })
    )

  const found = (signer: string, accounts: ReadonlyArray<string>) =>
    Effect.asVoid(written(evaluateChange(...keys, signer, ...new Set(accounts.map(versionSlot)))))

  return AccountVersions.make({
    version: (accounts) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        if (now < unsharedUntil) return Effect.undefined
        const version = evaluateVersion(...keys, now, ...accounts.map(versionSlot)).pipe(
          Effect.flatMap(decodeVersions),
          Effect.mapError(SharedState.unreachable),
          Effect.map((versions) => versions.length === 0 ? undefined : AccountVersions.printVersion(versions))
        )
        return state.orElse<AccountVersions.Version, never, never>(version, Effect.undefined)
      }),
    change: (accounts) => found("", accounts),
    search: (signer) =>
      Effect.flatMap(
        Clock.currentTimeMillis,
        (now) => Effect.map(written(evaluateSearch(...keys, now, signer)), (opened) => opened !== 0)
      ),
    found
  })
})

/**
 * Provides versions that are shared through Redis.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { NodeRedis } from "@effect/platform-node"
 * import { AccountVersionsRedis } from "@trigate/upstream"
 * import { Layer } from "effect"
 *
 * export const shared = Layer.provide(AccountVersionsRedis.layer(), NodeRedis.layer({ url: "redis://localhost:6379" }))
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<AccountVersions.AccountVersions, never, Redis.Redis> =>
  Layer.effect(AccountVersions.AccountVersions, make(options))
