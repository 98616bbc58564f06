/**
 * What this process knows of one address without asking the store of circuits.
 *
 * An address is clear until its first fault: its calls then go around the circuit, which costs them nothing. From a fault
 * on it is suspect, and its calls go through the circuit, until one of them succeeds there.
 */
import type * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import type { Target } from "../Upstream.ts"
import type { HealthMetrics } from "./HealthMetrics.ts"

/** How long others keep off an address while one probe is under way. */
export const PROBE_WAIT = 1000

/** The view of one address; the functions of this module change it. */
export interface AddressView {
  readonly target: Target
  readonly metrics: HealthMetrics
  isSuspect: boolean
  /** Until when the circuit is known to admit nobody. */
  refusedUntil: number
  /** Whether a probe of this process is under way. */
  isProbed: boolean
  benchedUntil: number
  /** Counts the openings: a call that began before one must change nothing after it. */
  openings: number
  /** The generation of the circuit that last admitted a call; none after an opening. */
  generation: number | undefined
}

/** A clear address. */
export const make = (target: Target, metrics: HealthMetrics): AddressView => {
  metrics.circuit("closed")
  return {
    target,
    metrics,
    isSuspect: false,
    refusedUntil: 0,
    isProbed: false,
    benchedUntil: 0,
    openings: 0,
    generation: undefined
  }
}

/** When the circuit may admit a call again, as far as this process knows; not after `now` if it may. */
export const admitsAt = (view: AddressView, now: number): number => view.isProbed ? now + PROBE_WAIT : view.refusedUntil

/** The circuit opened, here or at another replica. */
export const opened = (view: AddressView, until: number): void => {
  view.isSuspect = true
  view.isProbed = false
  view.refusedUntil = until
  view.openings += 1
  view.generation = undefined
  view.metrics.circuit("open")
  view.metrics.benched("circuit")
}

/** The circuit refused a call or was found open; `until` not after `now` where it waits for its probe. */
export const foundOpen = (view: AddressView, now: number, until: number): void => {
  if (!view.isSuspect || (now < until && view.refusedUntil <= now)) return opened(view, until)
  view.refusedUntil = until
  view.metrics.circuit("open")
}

/** Another replica's probe is under way. */
export const foundProbed = (view: AddressView, now: number): void => {
  view.isSuspect = true
  view.refusedUntil = now + PROBE_WAIT
  view.metrics.circuit("half-open")
}

/** Another replica closed the circuit; the next success of this one makes the address clear. */
export const foundClosed = (view: AddressView): void => {
  view.refusedUntil = 0
  view.metrics.circuit("closed")
}

/** The circuit admitted a call. */
export const admitted = (view: AddressView, admission: CircuitBreaker.Admission): void => {
  view.generation = admission.generation
  view.isProbed = admission.probe
  if (admission.probe) view.metrics.circuit("half-open")
}

/** The circuit took note of a success of its present generation: the address is clear. */
export const succeeded = (view: AddressView): void => {
  view.isSuspect = false
  view.isProbed = false
  view.refusedUntil = 0
  view.generation = undefined
  view.metrics.circuit("closed")
}
