/**
 * A share of an upstream's budget as a token bucket that keeps its limit in every window, not only in those of a calendar.
 *
 * A bucket of capacity C that gains R tokens in a window lets C + R through in the window after a pause, so both together
 * are the limit. A call may start when one token is there and takes its whole cost, into debt: whoever is expensive waits
 * no longer than who is cheap, and nobody has to hold tokens while waiting. The largest debt counts as capacity does.
 */

/** A share: calls start while it has tokens, of which one comes each `tick`. */
export interface Share {
  /** Names its bucket. */
  readonly key: string
  /** Tokens of a full bucket. */
  readonly capacity: number
  /** Cost up to which one token is enough to start. */
  readonly largest: number
  /** Milliseconds in which one token comes, to the microsecond. */
  readonly tick: number
}

/**
 * The share that lets at most `limit` tokens through in any `window` of milliseconds, its end excluded.
 *
 * A quarter of the limit may go at once, the rest comes evenly: the sustained rate is three quarters of the limit. A call
 * that costs more than half of the limit may bring the sustained rate down to half; one that costs more than the share ever
 * holds starts when the bucket is full, and what follows waits until it is paid.
 */
export const make = (key: string, limit: number, window: number, worst: number): Share => {
  const largest = Math.min(worst, Math.max(1, Math.floor(limit / 2)))
  const capacity = Math.max(1, Math.floor(limit / 4) - largest + 1)
  // the last call of a window starts with a token left, and the window's last token comes when it has ended
  const gain = limit + 2 - capacity - largest
  return { key, capacity, largest, tick: Math.ceil(window / gain * 1000) / 1000 }
}

/** Tokens that must be there before a call of a cost may start. */
export const needed = (share: Share, cost: number): number =>
  Math.min(share.capacity, Math.max(1, cost - share.largest + 1))

/**
 * Tokens to return of what a call did not use, so long after it took them.
 *
 * A bucket that was full meanwhile has gained what it would not have gained with them inside; whoever returns all of it
 * would let more through than the limit. What came since the call took them is therefore left out.
 */
export const returned = (share: Share, unused: number, elapsed: number): number =>
  Math.max(0, Math.floor(unused - elapsed / share.tick))
