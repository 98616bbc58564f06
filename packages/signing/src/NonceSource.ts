/** Issues nonces for actions, unique for each signer. */
import type { Address } from "@trigate/domain/encoding/Encoding"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"

/**
 * The next nonce would be too far ahead of the clock; no nonce was issued.
 *
 * Retry after `wait` milliseconds: `nonce` is then within the limit. Nonces run ahead of the clock if a signer uses
 * more than one nonce per millisecond for a long time, or shares a store with a machine whose clock is ahead.
 */
export class NonceAhead extends Schema.TaggedError<NonceAhead>()("NonceAhead", {
  signer: Schema.String,
  nonce: Schema.Int,
  now: Schema.Int,
  wait: Schema.Int
}) {
  get group() {
    return "retry-later" as const
  }
  override get message() {
    return `The next nonce of ${this.signer} is too far ahead of the clock: wait ${this.wait} ms`
  }
}

/** The shared store failed or timed out. The store could have issued a nonce that no caller received. */
export class NonceStoreUnavailable extends Schema.TaggedError<NonceStoreUnavailable>()("NonceStoreUnavailable", {
  detail: Schema.String
}) {
  get group() {
    return "retry-later" as const
  }
  override get message() {
    return `The nonce store is unavailable: ${this.detail}`
  }
}

/** The limits of a nonce source. */
export interface Options {
  /**
   * Maximum time by which an issued nonce is ahead of the clock. Default: 1 hour. The venue accepts nonces less than 1
   * day ahead.
   */
  readonly ahead?: Duration.Input
  /**
   * How long a signer's last nonce is stored, counted from the time that the nonce represents. Default: 2 days.
   *
   * The venue refuses nonces of that age, so a nonce that is issued again after this time does no harm.
   */
  readonly memory?: Duration.Input
}

/** {@link Options} in milliseconds. */
export interface Bounds {
  readonly ahead: number
  readonly memory: number
}

/** Converts options to milliseconds. */
export const toBounds = ({ ahead = "1 hour", memory = "2 days" }: Options): Bounds => ({
  ahead: Duration.toMillis(ahead),
  memory: Duration.toMillis(memory)
})

/**
 * Issues nonces, unique for each signer.
 *
 * Provided by `NonceSource.layerMemory`, `NonceSource.layerRedis` or `Trading.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { NonceSource } from "@trigate/signing"
 * import { Console, Effect } from "effect"
 *
 * const signer = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
 *
 * const program = Effect.gen(function*() {
 *   const { next } = yield* NonceSource.NonceSource
 *   const first = yield* next(signer)
 *   const second = yield* next(signer)
 *   yield* Console.log(second > first)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, NonceSource.layerMemory()))
 * ```
 * ```text
 * true
 * ```
 */
export class NonceSource extends Context.Service<NonceSource, {
  /**
   * Returns the next nonce of a signer, in milliseconds: the current time, or the last nonce plus one if that is later.
   *
   * The letter case of the address does not matter. Fails with `NonceAhead` if the nonce would be too far ahead of the
   * clock. With a shared store, it fails with `NonceStoreUnavailable` if the store fails or exceeds the deadline.
   */
  readonly next: (signer: Address) => Effect.Effect<number, NonceAhead | NonceStoreUnavailable>
}>()("@trigate/signing/NonceSource") {}

// the sweep runs whenever the map has doubled in size, so its amortized cost per nonce is constant
const firstSweep = 1024

/**
 * Provides nonces that are unique among all users of the layer. Each call returns a new layer with a separate
 * `NonceSource`. Use one layer for all programs that sign with the same keys.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (options: Options = {}): Layer.Layer<NonceSource> =>
  Layer.sync(NonceSource, () => {
    const { ahead, memory } = toBounds(options)
    const last = new Map<string, number>()
    let sweepAt = firstSweep
    const sweep = (now: number) => {
      for (const [signer, nonce] of last) if (nonce + memory < now) last.delete(signer)
      sweepAt = Math.max(firstSweep, last.size * 2)
    }
    return NonceSource.of({
      next: Effect.fnUntraced(function*(address) {
        const signer = address.toLowerCase()
        const now = yield* Clock.currentTimeMillis
        const nonce = Math.max(now, (last.get(signer) ?? 0) + 1)
        if (nonce - now > ahead) return yield* new NonceAhead({ signer, nonce, now, wait: nonce - ahead - now })
        last.set(signer, nonce)
        if (last.size >= sweepAt) sweep(now)
        return nonce
      })
    })
  })

/** The limits, the prefix of the Redis keys, and the timeout. */
export interface RedisOptions extends Options {
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

const unavailable = (detail: string) => new NonceStoreUnavailable({ detail })

const makeRedis = Effect.fnUntraced(function*(options: RedisOptions) {
  const redis = yield* Redis.Redis
  const { ahead, memory } = toBounds(options)
  const prefix = options.prefix ?? "trigate:nonce:"
  const deadline = Duration.fromInputUnsafe(options.deadline ?? "2 seconds")
  const evaluate = redis.eval(take)
  const late = () => Effect.fail(unavailable(`no response within ${Duration.format(deadline)}`))
  return NonceSource.of({
    next: Effect.fn("next")(function*(address) {
      const signer = address.toLowerCase()
      const now = yield* Clock.currentTimeMillis
      const [granted, nonce] = yield* evaluate(`${prefix}${signer}`, now, ahead, memory).pipe(
        Effect.flatMap(decodeTaken),
        Effect.mapError((error) => unavailable(error._tag === "RedisError" ? String(error.cause) : error.message)),
        Effect.timeoutOrElse({ duration: deadline, orElse: late })
      )
      return granted === 1
        ? nonce
        : yield* new NonceAhead({ signer, nonce, now, wait: nonce - ahead - now })
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
 * import { NonceSource } from "@trigate/signing"
 * import { Layer } from "effect"
 *
 * export const nonces = Layer.provide(NonceSource.layerRedis(), NodeRedis.layer({ url: "redis://localhost:6379" }))
 * ```
 */
export const layerRedis = (options: RedisOptions = {}): Layer.Layer<NonceSource, never, Redis.Redis> =>
  Layer.effect(NonceSource, makeRedis(options))
