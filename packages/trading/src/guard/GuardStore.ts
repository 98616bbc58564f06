/**
 * The store that guards of several replicas share, and that outlives a process: the halts, the reservations of each
 * account, and the dead man's switches. It stores documents by key, and replaces a document only if no other process has replaced it before.
 */
import { within } from "@trigate/stores/unstable/SharedStore"
import { SharedStoreUnreachable } from "@trigate/upstream/unstable/SharedState"
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
   * document that is not replaced for a day ceases to exist, unless it {@link isLasting}.
   */
  readonly put: (key: string, version: number, text: string) => Effect.Effect<boolean, E>
}

/** The key of the halts, and that of the list of dead man's switches. */
export const haltsKey = "halts"
export const switchesKey = "switches"

const lasting: ReadonlySet<string> = new Set([haltsKey, switchesKey])

/** Returns whether a document lasts until it is replaced. */
export const isLasting = (key: string): boolean => lasting.has(key)

/** The time after which a document that is not replaced ceases to exist, in milliseconds. */
export const storedFor = 86_400_000

/** The longest wait for a store; a guard then refuses the action. */
const deadline = "500 millis"

/**
 * The store of guards. Without this service, a guard keeps its state in its process.
 *
 * Provided by `GuardStore.layerRedis` or `GuardStoreSql.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { NodeRedis } from "@effect/platform-node"
 * import { GuardStore } from "@trigate/trading"
 * import { Console, Effect, Layer } from "effect"
 *
 * // the halts of all replicas, as one text
 * export const program = GuardStore.GuardStore.use(({ get }) => get("halts")).pipe(
 *   Effect.flatMap((document) => Console.log(document?.text)),
 *   Effect.provide(Layer.provide(GuardStore.layerRedis(), NodeRedis.layer({ url: "redis://localhost:6379" })))
 * )
 * ```
 */
export class GuardStore extends Context.Service<GuardStore, Documents<SharedStoreUnreachable>>()(
  "@trigate/trading/guard/GuardStore"
) {}

/** Makes a store in the memory of this process. */
export const makeMemory = (): GuardStore["Service"] => {
  const documents = new Map<string, Document>()
  return GuardStore.of({
    get: (key) => Effect.sync(() => documents.get(key)),
    put: (key, version, text) =>
      Effect.sync(() => {
        if ((documents.get(key)?.version ?? 0) !== version) return false
        documents.set(key, { version: version + 1, text })
        return true
      })
  })
}

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
 * import { GuardStore } from "@trigate/trading"
 * import { Layer } from "effect"
 *
 * export const shared = Layer.provide(GuardStore.layerRedis(), NodeRedis.layer({ url: "redis://localhost:6379" }))
 * ```
 */
export const layerRedis = (
  { prefix = "trigate:{guard}:" }: Options = {}
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
          Effect.map(
            putHash(prefix + key, version, text, isLasting(key) ? 0 : storedFor),
            (done) =>
              done === 1
          )
      })
    })
  )
