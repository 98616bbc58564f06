/** A `NonceSource` that several processes share: each nonce is issued atomically in Redis. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import * as NonceSource from "./NonceSource.ts"

/** The limits, the prefix of the Redis keys, and the timeout. */
export interface Options extends NonceSource.Options {
  /** Prefix of the Redis keys. Default: `trigate:nonce:`. Sources with the same prefix share their nonces. */
  readonly prefix?: string
  /** Timeout for issuing one nonce in Redis. Default: 2 seconds. */
  readonly deadline?: Duration.Input
}

const take = Redis.script(
  (key: string, now: number, ahead: number, memory: number) => [key, now, ahead, memory],
  {
    numberOfKeys: 1,
    // %.0f, because Lua prints large numbers with an exponent
    lua: `
local now = tonumber(ARGV[1])
local nonce = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0') + 1)
if nonce - now > tonumber(ARGV[2]) then return {0, nonce} end
local expiry = string.format('%.0f', nonce - now + tonumber(ARGV[3]))
redis.call('SET', KEYS[1], string.format('%.0f', nonce), 'PX', expiry)
return {1, nonce}`
  }
).withReturnType<unknown>()

const decodeTaken = Schema.decodeUnknownEffect(Schema.Tuple([Schema.Literals([0, 1]), Schema.Int]))

const unavailable = (detail: string) => new NonceSource.NonceStoreUnavailable({ detail })

const make = Effect.fnUntraced(function*(options: Options) {
  const redis = yield* Redis.Redis
  const { ahead, memory } = NonceSource.toBounds(options)
  const prefix = options.prefix ?? "trigate:nonce:"
  const deadline = Duration.fromInputUnsafe(options.deadline ?? "2 seconds")
  const evaluate = redis.eval(take)
  const late = () => Effect.fail(unavailable(`no response within ${Duration.format(deadline)}`))
  return NonceSource.NonceSource.of({
    next: Effect.fn("NonceSource.next")(function*(address) {
      const signer = address.toLowerCase()
      const now = yield* Clock.currentTimeMillis
      const [granted, nonce] = yield* evaluate(`${prefix}${signer}`, now, ahead, memory).pipe(
        Effect.flatMap(decodeTaken),
        Effect.mapError((error) => unavailable(error._tag === "RedisError" ? String(error.cause) : error.message)),
        Effect.timeoutOrElse({ duration: deadline, orElse: late })
      )
      return granted === 1
        ? nonce
        : yield* new NonceSource.NonceAhead({ signer, nonce, now, wait: nonce - ahead - now })
    })
  })
})

/**
 * Provides the nonces that all processes with the same Redis and prefix share.
 *
 * Redis stores one number for each signer until the signer has been idle for `memory`. The current time is read from
 * the clock of the calling machine. If that clock is behind, the machine's nonces continue from the last nonce that
 * another machine used. Such nonces are ahead of the clock by at most the option `ahead`.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { NodeRedis } from "@effect/platform-node"
 * import { NonceSourceRedis } from "@trigate/signing"
 * import { Layer } from "effect"
 *
 * export const nonces = Layer.provide(NonceSourceRedis.layer(), NodeRedis.layer({ url: "redis://localhost:6379" }))
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<NonceSource.NonceSource, never, Redis.Redis> =>
  Layer.effect(NonceSource.NonceSource, make(options))
