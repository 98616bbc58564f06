/** What the hub counts, by the names of topics. */

/** What the hub has counted since it was made. */
export interface Counts {
  /** Frames of the upstream, by the name of their topic. */
  readonly frames: Map<string, number>
  /** Frames delivered to callers, by the name of their topic. */
  readonly deliveries: Map<string, number>
  /** Lost connections, by cause. */
  readonly reconnects: Map<string, number>
  /** Holes in a stream that could not be refilled, by the name of its topic. */
  readonly gaps: Map<string, number>
  /** Rows that came from a refill, by the name of their topic. */
  readonly refilled: Map<string, number>
  /** Frames of unknown channels. */
  unknown: number
}

/** Returns counts of zero. */
export const make = (): Counts => ({
  frames: new Map(),
  deliveries: new Map(),
  reconnects: new Map(),
  gaps: new Map(),
  refilled: new Map(),
  unknown: 0
})

/** Adds to the count of a name. */
export const countUp = (counts: Map<string, number>, name: string, by = 1): void => {
  counts.set(name, (counts.get(name) ?? 0) + by)
}
