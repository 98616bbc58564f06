/** The counters of a stream hub, by topic name. */

/** The counters of a stream hub, since it was made. */
export interface Counts {
  /** Number of frames received from the upstream, by the name of their topic. */
  readonly frames: Map<string, number>
  /** Number of frames delivered to callers, by the name of their topic. */
  readonly deliveries: Map<string, number>
  /** Number of lost connections, by cause. */
  readonly reconnects: Map<string, number>
  /** Number of gaps in streams that could not be refilled, by the name of the stream's topic. */
  readonly gaps: Map<string, number>
  /** Number of rows from refills (queries of data missed while disconnected), by the name of their topic. */
  readonly refilled: Map<string, number>
  /** Number of rows with the ID of another row but other content, by the name of their topic. */
  readonly collisions: Map<string, number>
  /** Number of frames of unknown channels. */
  unknown: number
}

/** Makes the counters, which begin at zero. */
export const make = (): Counts => ({
  frames: new Map(),
  deliveries: new Map(),
  reconnects: new Map(),
  gaps: new Map(),
  refilled: new Map(),
  collisions: new Map(),
  unknown: 0
})

/** Increases the count of a name by `by` (default 1). */
export const countUp = (counts: Map<string, number>, name: string, by = 1): void => {
  counts.set(name, (counts.get(name) ?? 0) + by)
}
