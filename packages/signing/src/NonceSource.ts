/** Issues nonces for actions, unique for each signer. */
import type { Address } from "@trigate/domain/encoding/Encoding"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
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
 * Provided by `NonceSource.layerMemory`, `NonceSourceRedis.layer` or `Trading.layer`.
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
