/** Which addresses of one call are asked while some are out: never more than half of them are passed over. */
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Arr from "effect/Array"
import * as Order from "effect/Order"
import type { Usable } from "../OutlierDetection.ts"
import type { Target } from "../Upstream.ts"

/** When an address comes back, in milliseconds; not after the present where it is not out. */
export interface Absence {
  /** The end of its bench. */
  readonly bench: number
  /** When its circuit admits a call again. */
  readonly circuit: number
}

interface Candidate<T> {
  readonly target: T
  readonly circuit: number
  readonly back: number
}

const soonest = Order.mapInput(Order.Number, (candidate: Candidate<unknown>) => candidate.back)

const alone = <T extends Target>(
  targets: NonEmptyReadonlyArray<T>,
  { circuit }: Absence,
  now: number
): Usable<T> => circuit > now ? { targets: [], retryAfter: circuit - now } : { targets, retryAfter: undefined }

/**
 * The targets to ask, best first.
 *
 * `outside` marks a target whose exchange must not ask its circuit: it is asked although the circuit is open.
 */
export const choose = <T extends Target>(
  targets: NonEmptyReadonlyArray<T>,
  absenceOf: (target: T) => Absence,
  now: number,
  outside: (target: T) => T
): Usable<T> => {
  if (targets.length === 1) return alone(targets, absenceOf(targets[0]), now)
  const candidates = targets.map((target): Candidate<T> => {
    const { bench, circuit } = absenceOf(target)
    return { target, circuit, back: Math.max(bench, circuit) }
  })
  const present = candidates.filter((each) => each.back <= now)
  const absent = candidates.filter((each) => each.back > now)
  if (absent.length === 0) return { targets, retryAfter: undefined }
  const needed = absent.length - Math.floor(targets.length / 2)
  const admitted = needed > 0 ? Arr.sort(absent, soonest).slice(0, needed) : []
  return {
    targets: [
      ...present.map((each) => each.target),
      ...admitted.map((each) => each.circuit > now ? outside(each.target) : each.target)
    ],
    retryAfter: undefined
  }
}
