/** Nonces for actions: one for each call, never the same twice for one signer. */
import type { Address } from "@trigate/domain/Hex"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

/**
 * The next nonce would lie further ahead of the clock than the bound allows; none was taken.
 *
 * `wait` milliseconds from `now` on, `nonce` is within the bound. Nonces come this far ahead when a signer asks for more
 * than one a millisecond for long, or shares its nonces with a machine whose clock is ahead.
 */
export class NonceAhead extends Schema.TaggedError<NonceAhead>()("NonceAhead", {
  signer: Schema.String,
  nonce: Schema.Int,
  now: Schema.Int,
  wait: Schema.Int
}) {
  override get message() {
    return `The next nonce of ${this.signer} is too far ahead of the clock: wait ${this.wait} ms`
  }
}

/** The store that several processes share did not answer as it should; a nonce may have been used up for nobody. */
export class NonceStoreUnavailable extends Schema.TaggedError<NonceStoreUnavailable>()("NonceStoreUnavailable", {
  detail: Schema.String
}) {
  override get message() {
    return `The store of nonces is not available: ${this.detail}`
  }
}

/** Bounds of a source. */
export interface Options {
  /** How far a nonce may lie ahead of the clock; 1 hour when not given, while the venue takes less than 1 day. */
  readonly ahead?: Duration.Input
  /**
   * How long a signer's last nonce is remembered after its time has come; 2 days when not given.
   *
   * The venue refuses nonces that are older, so what is forgotten then cannot be given out again to any effect.
   */
  readonly memory?: Duration.Input
}

/** {@link Options} in milliseconds. */
export interface Bounds {
  readonly ahead: number
  readonly memory: number
}

/** The bounds of some options. */
export const boundsOf = ({ ahead = "1 hour", memory = "2 days" }: Options): Bounds => ({
  ahead: Duration.toMillis(Duration.fromInputUnsafe(ahead)),
  memory: Duration.toMillis(Duration.fromInputUnsafe(memory))
})

/** Gives out nonces. */
export class NonceSource extends Context.Service<NonceSource, {
  /**
   * The next nonce of a signer, in milliseconds: the time of the clock, or one more than the last where that is later.
   *
   * Letter case of the address does not matter. Fails with `NonceAhead` rather than run ahead of the clock by more than
   * the bound, and, where processes share a store, with `NonceStoreUnavailable` within a deadline.
   */
  readonly next: (signer: Address) => Effect.Effect<number, NonceAhead | NonceStoreUnavailable>
}>()("@trigate/signing/NonceSource") {}

// sweeping at a doubled size costs a constant a call, however many signers come and go
const firstSweep = 1024

/** The nonces of this process alone; a function, so that two programs in one process share nothing. */
export const layerMemory = (options: Options = {}): Layer.Layer<NonceSource> =>
  Layer.sync(NonceSource, () => {
    const { ahead, memory } = boundsOf(options)
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
