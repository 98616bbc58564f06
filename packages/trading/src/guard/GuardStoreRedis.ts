/** The store of guards in a Redis that replicas share. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import * as GuardStore from "./GuardStore.ts"

const getScript = Redis.script((key: string) => [key], {
  numberOfKeys: 1,
  lua: "return redis.call('HMGET', KEYS[1], 'version', 'text')"
}).withReturnType<unknown>()

const putScript = Redis.script(
  (key: string, version: number, text: string, ttl: number) => [key, version, text, ttl],
  {
    numberOfKeys: 1,
    lua: `if (redis.call('HGET', KEYS[1], 'version') or '0') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[1] + 1, 'text', ARGV[2])
if ARGV[3] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1`
  }
).withReturnType<unknown>()

const decodeFound = Schema.decodeUnknownEffect(
  Schema.Tuple([Schema.NullOr(Schema.String), Schema.NullOr(Schema.String)])
)

/** The prefix of the keys in Redis. */
export interface Options {
  /** Guards with the same prefix share their state. Default: `trigate:{guard}:`. */
  readonly prefix?: string
}

/**
 * Provides the store in the Redis of the context.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { NodeRedis } from "@effect/platform-node"
 * import { GuardStoreRedis } from "@trigate/trading"
 * import { Layer } from "effect"
 *
 * export const shared = Layer.provide(GuardStoreRedis.layer(), NodeRedis.layer({ url: "redis://localhost:6379" }))
 * ```
 */
export const layer = (
  { prefix = "trigate:{guard}:" }: Options = {}
): Layer.Layer<GuardStore.GuardStore, never, Redis.Redis> =>
  Layer.effect(
    GuardStore.GuardStore,
    Effect.map(Redis.Redis, (redis) => {
      const getHash = redis.eval(getScript)
      const putHash = redis.eval(putScript)
      return GuardStore.make({
        get: (key) =>
          Effect.map(Effect.flatMap(getHash(prefix + key), decodeFound), ([version, text]) =>
            version === null || text === null ? undefined : { version: Number(version), text }),
        put: (key, version, text) =>
          Effect.map(
            putHash(prefix + key, version, text, GuardStore.isLasting(key) ? 0 : GuardStore.storedFor),
            (done) =>
              done === 1
          )
      })
    })
  )
