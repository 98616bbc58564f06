/**
 * The state of an upstream's address: trusted, suspect, ejected, deferred or on a wrong chain. Also updates the metrics
 * of this state.
 */
import type * as Context from "effect/Context"
import type * as Metric from "effect/Metric"
import * as Redacted from "effect/Redacted"
import type { Target } from "../Upstream.ts"
import { metrics } from "../UpstreamMetrics.ts"

/** The cause of an ejection: the last suspicious result before the failed probe, or the wrong chain. */
export type EjectionCause = "not_sent" | "broken" | "timeout" | "server_fault" | "wrong_chain"

// limits the effect of a wrong `Retry-After`
const LONGEST_DEFERRAL = 3_600_000

/** The state of one address. */
export class AddressState {
  readonly target: Target
  /** The number of consecutive suspicious attempts (attempts whose failure may be the fault of the address). */
  suspicions = 0
  /** `suspect`: the probe of the address is running. `ejected`: the probe failed. */
  phase: "trusted" | "suspect" | "ejected" = "trusted"
  #ejectedUntil = 0
  deferredUntil = 0
  chainId: bigint | undefined
  isOnWrongChain = false
  readonly #context: Context.Context<never>
  readonly #labels: { readonly upstream: string; readonly address: string }
  readonly #ejected: Metric.Gauge<number>
  readonly #nextProbe: Metric.Gauge<number>

  constructor(target: Target, context: Context.Context<never>) {
    this.target = target
    this.#context = context
    this.#labels = { upstream: target.label, address: String(target.address) }
    this.#ejected = metrics.upstreamEjected.series(this.#labels)
    this.#ejected.updateUnsafe(0, context)
    this.#nextProbe = metrics.upstreamNextProbe.series(this.#labels)
    this.#nextProbe.updateUnsafe(0, context)
  }

  get isEjected(): boolean {
    return this.phase === "ejected" || this.isOnWrongChain
  }

  /** The time of the next probe of an ejected address, in milliseconds. */
  get ejectedUntil(): number {
    return this.#ejectedUntil
  }

  set ejectedUntil(millis: number) {
    this.#ejectedUntil = millis
    this.#nextProbe.updateUnsafe(millis / 1000, this.#context)
  }

  /** Updates the gauge of the address's state. If `cause` is set, also counts an ejection. */
  report(cause?: EjectionCause) {
    this.#ejected.updateUnsafe(this.isEjected ? 1 : 0, this.#context)
    if (cause === undefined) return
    metrics.upstreamEjections.series({ ...this.#labels, cause }).updateUnsafe(1, this.#context)
  }

  /** Defers the address for some milliseconds, at most one hour: calls prefer other addresses until then. */
  defer(millis: number, now: number) {
    if (this.deferredUntil <= now) {
      metrics.upstreamDeferrals.series(this.#labels).updateUnsafe(1, this.#context)
    }
    this.deferredUntil = Math.max(this.deferredUntil, now + Math.min(millis, LONGEST_DEFERRAL))
  }
}

/**
 * Makes the function that looks up the state of a target's address; two targets with the same base URL share one state.
 */
export const states = (context: Context.Context<never>): (target: Target) => AddressState => {
  const byAddress = new Map<string, AddressState>()
  // each target is made once and reused for every call, so this lookup does not hash the URL
  const byTarget = new WeakMap<Target, AddressState>()
  return (target) => {
    const found = byTarget.get(target)
    if (found !== undefined) return found
    const identity = `${target.label} ${Redacted.value(target.base)}`
    const state = byAddress.get(identity) ?? new AddressState(target, context)
    byAddress.set(identity, state)
    byTarget.set(target, state)
    return state
  }
}
