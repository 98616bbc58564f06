/** When a read may be sent once more: how often in all, after which pause, and how soon beside a slow answer. */
import type { UpstreamLabel } from "../Upstream.ts"

/** How many attempts reads may make besides their first ones, for each upstream. */
export interface Options {
  /** Extra attempts for each read; 0.2 when not given. */
  readonly share?: number
  /** Extra attempts a second besides; 10 when not given. A budget begins with as many. */
  readonly floor?: number
}

/**
 * The retry budget of one upstream, after Envoy's and Finagle's: an upstream in trouble must not be asked twice as much.
 *
 * Each read deposits a fifth of a token, each extra attempt takes one.
 */
export interface RetryBudget {
  /** Counts a read. */
  readonly deposit: () => void
  /** Takes a token where there is one; `now` is in milliseconds. */
  readonly withdraw: (now: number) => boolean
}

// tokens of calm times must not fuel a storm: these are ten seconds of a thousand reads each
const MOST_TOKENS = 2000

const budget = ({ floor = 10, share = 0.2 }: Options = {}): RetryBudget => {
  let fromReads = 0
  let fromTime = floor
  let lastRefill: number | undefined
  return {
    deposit: () => {
      fromReads = Math.min(MOST_TOKENS, fromReads + share)
    },
    withdraw: (now) => {
      const elapsed = Math.max(0, now - (lastRefill ?? now))
      lastRefill = now
      fromTime = Math.min(floor, fromTime + elapsed * floor / 1000)
      if (fromReads >= 1) fromReads -= 1
      else if (fromTime >= 1) fromTime -= 1
      else return false
      return true
    }
  }
}

/** One budget for each upstream: reads of a calm one must not pay for a storm at another. */
export const budgets = (options?: Options): { readonly [L in UpstreamLabel]: RetryBudget } => ({
  "trading-api": budget(options),
  "trading-node": budget(options),
  "token-chain": budget(options),
  layer2: budget(options)
})

const FIRST_BACKOFF = 50
const LONGEST_BACKOFF = 1000

/** The longest pause before the next attempt at the same address, in milliseconds; full jitter makes most shorter. */
export const longestPause = (attempts: number): number => Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (attempts - 1))

const SAMPLES = 128
const ENOUGH = 20

/** The newest latencies of one kind of call. */
export class Latencies {
  readonly #newest: Array<number> = []
  #sinceSorted = 0
  #quantile: number | undefined

  /** Adds the milliseconds that an answer took. */
  add(milliseconds: number) {
    this.#newest.push(milliseconds)
    if (this.#newest.length > SAMPLES) this.#newest.shift()
    this.#sinceSorted++
  }

  /** The 95th percentile in milliseconds; `undefined` while there are less than 20 samples. */
  get p95(): number | undefined {
    if (this.#newest.length < ENOUGH) return undefined
    // sorting for each call would cost more than it tells
    if (this.#quantile === undefined || this.#sinceSorted >= ENOUGH) {
      this.#sinceSorted = 0
      this.#quantile = this.#newest.toSorted((a, b) => a - b)[Math.floor(this.#newest.length * 0.95)]
    }
    return this.#quantile
  }
}
