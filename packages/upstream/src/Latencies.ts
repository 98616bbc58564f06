/** How long answers take: the quantile after which a second address is asked beside a slow one. */

const SAMPLES = 128
const ENOUGH = 20

/** The newest latencies of one kind of call. */
export class Latencies {
  readonly #ring: Array<number> = []
  #next = 0
  #sinceSorted = 0
  #quantile: number | undefined

  /** Adds the milliseconds that an answer took; losers of a race are not answers. */
  add(milliseconds: number) {
    this.#ring[this.#next] = milliseconds
    this.#next = (this.#next + 1) % SAMPLES
    this.#sinceSorted++
  }

  /** The 95th percentile in milliseconds; `undefined` while too little is known. */
  get p95(): number | undefined {
    if (this.#ring.length < ENOUGH) return undefined
    // sorting anew for each call would cost more than it tells
    if (this.#quantile === undefined || this.#sinceSorted >= ENOUGH) {
      this.#sinceSorted = 0
      this.#quantile = this.#ring.toSorted((a, b) => a - b)[Math.floor(this.#ring.length * 0.95)]
    }
    return this.#quantile
  }
}
