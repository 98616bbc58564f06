/** Which nonces of which signers this gateway has relayed: what tells a second use before it costs a request. */
import { NonceAlreadyUsed } from "@trigate/domain/ActionError"
import type { Address } from "@trigate/domain/Hex"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

/** An action about to be sent: who signed it, under which nonce, and a hash of its bytes in letters and digits. */
export interface Use {
  readonly signer: Address
  readonly nonce: number
  readonly bytesHash: string
}

/**
 * How sending ended.
 *
 * `known`: the venue said what became of the action, whatever it said. `unknown`: it may have been taken, so only the
 * identical bytes may come again. `released`: it was certainly not taken, so the nonce is free.
 */
export type Settlement = "known" | "unknown" | "released"

/** The right to send one action; the first settlement counts. */
export interface Claim {
  readonly settle: (settlement: Settlement) => Effect.Effect<void>
}

/** What stands in the way of a claim. */
export type Obstacle = "inFlight" | "known" | "unknown"

/** What is kept. */
export interface Options {
  /**
   * How long a nonce is kept after its time, and at least from its use on; 2 days when not given.
   *
   * No shorter than the nonce window reaches back: what is older is refused by the window.
   */
  readonly keep?: Duration.Input
  /**
   * The most nonces kept; 100 000 when not given, about 30 MB.
   *
   * Over it the oldest are forgotten: then the venue, which keeps its own, is the one to refuse them.
   */
  readonly capacity?: number
}

/** Remembers used nonces. */
export class UsedNonces extends Context.Service<UsedNonces, {
  /**
   * Claims a nonce for one sending; a claim that is not settled when its scope closes is settled as `unknown`.
   *
   * Fails with `NonceAlreadyUsed` while another claim is open, after one that settled as `known`, and for other bytes after
   * one that settled as `unknown`. A released claim on bytes that were `unknown` before is `unknown` again.
   */
  readonly claim: (use: Use) => Effect.Effect<Claim, NonceAlreadyUsed, Scope.Scope>
  /** Whether claims are granted without a check, because the store that replicas share is away. */
  readonly degraded: Effect.Effect<boolean>
}>()("@trigate/trading/UsedNonces") {}

const reasons: { readonly [O in Obstacle]: string } = {
  inFlight: "is being sent right now",
  known: "was sent before, and its outcome is known",
  unknown: "was sent with an outcome that is not known: only the identical bytes may be sent again"
}

/** The refusal of a claim. */
export const refusal = ({ nonce, signer }: Use, obstacle: Obstacle): NonceAlreadyUsed =>
  new NonceAlreadyUsed({ signer, nonce, detail: `An action of ${signer} with nonce ${nonce} ${reasons[obstacle]}` })

/** The name under which a use is kept. */
export const keyOf = ({ nonce, signer }: Use): string => `${signer.toLowerCase()}:${nonce}`

/** When a use is forgotten, in milliseconds. */
export const expiryOf = ({ nonce }: Use, now: number, keep: number): number => Math.max(nonce, now) + keep

/** Defaults filled in; `keep` in milliseconds. */
export const limitsOf = ({ capacity = 100_000, keep = "2 days" }: Options) => ({
  capacity,
  keep: Duration.toMillis(Duration.fromInputUnsafe(keep))
})

interface Entry {
  readonly bytesHash: string
  readonly expiry: number
  /** Whether the same bytes were sent before with an unknown outcome. */
  readonly doubtful: boolean
  state: Obstacle
}

/** The nonces of this process alone; a function, so that two gateways in one process share nothing. */
export const layerMemory = (options: Options = {}): Layer.Layer<UsedNonces> =>
  Layer.sync(UsedNonces, () => {
    const { capacity, keep } = limitsOf(options)
    const entries = new Map<string, Entry>()

    // oldest first, by insertion: one whose nonce lies in the future holds up those behind it, never over the capacity
    const sweep = (now: number) => {
      for (const [key, { expiry }] of entries) {
        if (expiry > now && entries.size <= capacity) return
        entries.delete(key)
      }
    }

    const settle = (key: string, entry: Entry, settlement: Settlement) => {
      if (entry.state !== "inFlight" || entries.get(key) !== entry) return
      if (settlement === "released" && !entry.doubtful) entries.delete(key)
      else entry.state = settlement === "released" ? "unknown" : settlement
    }

    const claim = Effect.fnUntraced(function*(use: Use) {
      const now = yield* Clock.currentTimeMillis
      const key = keyOf(use)
      const kept = entries.get(key)
      const found = kept !== undefined && kept.expiry > now ? kept : undefined
      const { bytesHash } = use
      if (found !== undefined && !(found.state === "unknown" && found.bytesHash === bytesHash)) {
        return yield* refusal(use, found.state)
      }
      const entry: Entry = {
        bytesHash,
        expiry: expiryOf(use, now, keep),
        doubtful: found !== undefined,
        state: "inFlight"
      }
      entries.delete(key)
      entries.set(key, entry)
      sweep(now)
      const settled = (settlement: Settlement) => Effect.sync(() => settle(key, entry, settlement))
      yield* Effect.addFinalizer(() => settled("unknown"))
      return { settle: settled }
    })

    return UsedNonces.of({ claim, degraded: Effect.succeed(false) })
  })
