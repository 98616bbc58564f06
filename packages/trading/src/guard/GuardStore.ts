/**
 * Where guards keep what outlives a process and what replicas share: the halts, and for each account what was reserved.
 * A store knows documents by key and nothing of their content; a document is replaced only if nobody replaced it before.
 */
import { SharedStoreUnreachable } from "@trigate/upstream/unstable/SharedState"
import { within } from "@trigate/stores/unstable/SharedStore"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"

/** A stored text, and the number of times that it was replaced. */
export interface Document {
  readonly version: number
  readonly text: string
}

/** The operations of a store. `E` is the error of its driver. */
export interface Documents<E> {
  /** Returns a document; `undefined` if there is none. */
  readonly get: (key: string) => Effect.Effect<Document | undefined, E>
  /**
   * Replaces a document if its version is still `version`, which is 0 if there is none. Returns whether it did. A
   * document that is not replaced for a day ceases to exist, unless its key is {@link haltsKey}.
   */
  readonly put: (key: string, version: number, text: string) => Effect.Effect<boolean, E>
}

/** The key of the halts, which last until they are ended. */
export const haltsKey = "halts"

/** The time after which a document that is not replaced ceases to exist, in milliseconds. */
export const keptFor = 86_400_000

/** The longest wait for a store; a guard then refuses what it cannot reserve. */
const deadline = "500 millis"

/**
 * The store of guards. Without this service, a guard keeps its state in its process.
 *
 * @since 0.1.0
 * @category services
 */
export class GuardStore extends Context.Service<GuardStore, Documents<SharedStoreUnreachable>>()(
  "@trigate/trading/guard/GuardStore"
) {}

/** Makes the store over a driver: limits the time of its operations. */
export const make = <E>({ get, put }: Documents<E>): GuardStore["Service"] => {
  const toError = (detail: string) => new SharedStoreUnreachable({ detail })
  const bounded = <A>(operation: Effect.Effect<A, E>) =>
    within(deadline, toError)(Effect.mapError(operation, (error) => toError(String(error))))
  return GuardStore.of({
    get: (key) => bounded(get(key)),
    put: (key, version, text) => bounded(put(key, version, text))
  })
}

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

const decodeFound = Schema.decodeUnknownEffect(Schema.Tuple([Schema.NullOr(Schema.String), Schema.NullOr(Schema.String)]))

/** The prefix of the keys in Redis. */
export interface RedisOptions {
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
 * import { GuardStore } from "@trigate/trading"
 * import { Layer } from "effect"
 *
 * export const shared = Layer.provide(GuardStore.layerRedis(), NodeRedis.layer({ url: "redis://localhost:6379" }))
 * ```
 */
export const layerRedis = (
  { prefix = "trigate:{guard}:" }: RedisOptions = {}
): Layer.Layer<GuardStore, never, Redis.Redis> =>
  Layer.effect(
    GuardStore,
    Effect.map(Redis.Redis, (redis) => {
      const getHash = redis.eval(getScript)
      const putHash = redis.eval(putScript)
      return make({
        get: (key) =>
          Effect.map(Effect.flatMap(getHash(prefix + key), decodeFound), ([version, text]) =>
            version === null || text === null ? undefined : { version: Number(version), text }),
        put: (key, version, text) =>
          Effect.map(putHash(prefix + key, version, text, key === haltsKey ? 0 : keptFor), (done) => done === 1)
      })
    })
  )
