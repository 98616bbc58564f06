/** The venue's clock: it stands still until a command moves it, and runs what is due on the way. */

/** 2026-09-24T06:43:56.546Z, the time of a recorded frame. */
export const epoch = 1_790_232_236_546

/** Milliseconds of the machine's monotonic clock, which all processes share. */
export const machineTime = (): number => Number(process.hrtime.bigint()) / 1e6

interface Timer {
  readonly at: number
  readonly run: () => void
}

export class VenueClock {
  #now = epoch
  #timers: Array<Timer> = []

  get now(): number {
    return this.#now
  }

  /** Moves the clock without running timers. */
  set(millis: number): void {
    this.#now = millis
  }

  /** Runs at once without a delay, else when the clock has passed it. */
  after(millis: number, run: () => void): void {
    if (millis <= 0) return run()
    this.#timers.push({ at: this.#now + millis, run })
  }

  /** Moves the clock; timers run in the order of their times, each at its own time. */
  advance(millis: number): void {
    const end = this.#now + millis
    for (;;) {
      const due = this.#timers.filter(({ at }) => at <= end).toSorted((left, right) => left.at - right.at)[0]
      if (due === undefined) break
      this.#timers = this.#timers.filter((timer) => timer !== due)
      this.#now = Math.max(this.#now, due.at)
      due.run()
    }
    this.#now = end
  }
}

/** Numbers in [0, 1) that depend on the seed alone (mulberry32). */
export const randomBy = (seed: number): () => number => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
