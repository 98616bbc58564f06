/**
 * Windows of bars: where bars begin, how far back the venue retains them, and which bars a response omits.
 *
 * The venue retains the newest 5000 bars of a coin and interval and omits intervals without trades. It truncates a window that
 * reaches further back without notice and returns `[]` for one that is older, so missing bars can only be determined from
 * the clock and from the rows received.
 */
import type { Candle, CandleInterval, CandleWindowRequest } from "./Candle.ts"

/** Bars that the venue keeps of each coin and interval; also the most that one answer holds. */
export const retainedBars = 5000

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** Length of each interval in milliseconds; a month has no fixed one. */
export const intervalLengths: { readonly [Interval in Exclude<CandleInterval, "1M">]: number } = {
  "1m": minute,
  "3m": 3 * minute,
  "5m": 5 * minute,
  "15m": 15 * minute,
  "30m": 30 * minute,
  "1h": hour,
  "2h": 2 * hour,
  "4h": 4 * hour,
  "8h": 8 * hour,
  "12h": 12 * hour,
  "1d": day,
  "3d": 3 * day,
  "1w": 7 * day
}

// a year that begins in March has its leap day at its end
const monthOpen = (index: number): number => {
  const sinceMarch = 1970 * 12 + index - 2
  const year = Math.floor(sinceMarch / 12)
  const month = sinceMarch - year * 12
  const leapDays = Math.floor(year / 4) - Math.floor(year / 100) + Math.floor(year / 400)
  return (365 * year + leapDays + Math.floor((153 * month + 2) / 5) - 719_468) * day
}

const monthAt = (instant: number): number => {
  const guess = Math.round(instant / (30.436_875 * day))
  return instant < monthOpen(guess) ? guess - 1 : instant < monthOpen(guess + 1) ? guess : guess + 1
}

/**
 * Number of the bar that contains an instant; bar 0 contains the epoch.
 *
 * Bars are aligned to the epoch, so that a week opens on Thursday 00:00 UTC; months are those of the UTC calendar.
 */
export const barAt = (interval: CandleInterval, instant: number): number =>
  interval === "1M" ? monthAt(instant) : Math.floor(instant / intervalLengths[interval])

/** First millisecond of a bar. */
export const openTime = (interval: CandleInterval, bar: number): number =>
  interval === "1M" ? monthOpen(bar) : bar * intervalLengths[interval]

/** Last millisecond of a bar. */
export const closeTime = (interval: CandleInterval, bar: number): number => openTime(interval, bar + 1) - 1

/** Open time of the bar that contains an instant. */
export const openTimeAt = (interval: CandleInterval, instant: number): number =>
  openTime(interval, barAt(interval, instant))

/** The bars of one coin and interval. */
export interface Series {
  readonly coin: string
  readonly interval: CandleInterval
}

/** Whether a bar is one of the series, from the first to the last millisecond of its bar number. */
export const belongsTo = ({ coin, interval }: Series, { T, i, s, t }: Candle): boolean => {
  if (s !== coin || i !== interval) return false
  const bar = barAt(interval, t)
  return openTime(interval, bar) === t && closeTime(interval, bar) === T
}

/** The oldest bar that is retained for certain at `now`; older ones are only where bars without trades were left out. */
export const oldestRetainedBar = (interval: CandleInterval, now: number): number =>
  barAt(interval, now) - retainedBars + 1

/** Open time of {@link oldestRetainedBar}, in milliseconds; before the epoch for the long intervals. */
export const retentionHorizon = (interval: CandleInterval, now: number): number =>
  openTime(interval, oldestRetainedBar(interval, now))

/** The part of a window that begins where it does and fits into one answer: the venue itself cuts a longer one to its newest bars. */
export const oldestPart = (request: CandleWindowRequest): CandleWindowRequest => {
  const { endTime, interval, startTime } = request
  const close = closeTime(interval, barAt(interval, startTime) + retainedBars - 1)
  return { ...request, endTime: Math.min(endTime ?? close, close) }
}

/** Bars that an answer to a window can hold, with one more for a venue whose clock is ahead of ours. */
export const mostBars = ({ endTime, interval, startTime }: CandleWindowRequest, now: number): number => {
  const last = barAt(interval, Math.min(now, endTime ?? now))
  return Math.max(0, Math.min(retainedBars, last - barAt(interval, startTime) + 2))
}

/**
 * The part of a window that a response covers.
 *
 * - `complete`: every bar of the window that had a trade;
 * - `truncated`: the oldest bars of the window are, or may be, missing: the venue no longer retains those before the first row;
 * - `agedOut`: nothing, because the whole window is older than the bars that the venue retains (or precedes the listing, which
 * looks the same).
 */
export type Coverage = "complete" | "truncated" | "agedOut"

/** A stretch of time, from its first to its last millisecond. */
export interface Stretch {
  readonly from: number
  readonly to: number
}

/** What a gateway made an answer of, which then holds the newest 5000 bars of the window. */
export interface Sources {
  /** The number of bars that the gateway had stored. */
  readonly held: number
  /** Bars that it asked the venue for. */
  readonly asked: number
  /** The stretches where bars may be missing, oldest first: neither stored nor available upstream. */
  readonly gaps: ReadonlyArray<Stretch>
  /** Whether older bars of the window are stored and were omitted. */
  readonly isCut: boolean
  /** Open times of bars that the venue changed after they had closed, oldest first; an archive keeps them as they were. */
  readonly corrected: ReadonlyArray<number>
}

/** Bars of a window, oldest first, with their completeness (`coverage`) and whether the last may change (`forming`). */
export interface CandleWindow {
  /** Every bar of the answer, the forming one included. */
  readonly candles: ReadonlyArray<Candle>
  readonly coverage: Coverage
  /** The last bar where it is still open at the time of reading: its prices and volume will change. */
  readonly forming: Candle | undefined
  /** What the answer was made of; absent where the venue alone gave it. */
  readonly sources?: Sources
}

/** A window of a walk, with the bounds that it covers, both included, in milliseconds. */
export interface CandleStretch extends CandleWindow {
  readonly startTime: number
  readonly endTime: number
}

const windowCoverage = (request: CandleWindowRequest, candles: ReadonlyArray<Candle>, now: number): Coverage => {
  const { interval } = request
  const newest = barAt(interval, now)
  const oldest = oldestRetainedBar(interval, now)
  const first = barAt(interval, request.startTime)
  const last = Math.min(newest, barAt(interval, request.endTime ?? now))
  const head = candles[0]
  if (head === undefined) return first < oldest && last >= first && last < oldest ? "agedOut" : "complete"
  const headBar = barAt(interval, head.t)
  // the window's own first bar came: nothing before it was asked for
  if (headBar <= first) return "complete"
  // a full answer may have been cut even where our clock says that the window fits
  if (candles.length >= retainedBars) return "truncated"
  // fewer than 5000 bars can follow the first row, so an older one would still be retained and in the response
  if (headBar > oldest) return "complete"
  // up to now fewer than 5000 rows are retained in all; up to an earlier end the newer ones were not counted
  return last === newest ? "complete" : "truncated"
}

/**
 * The first bar from which on an answer holds everything: what precedes it may have been dropped.
 *
 * `first` is the first bar that was asked for, and `head` is when the oldest bar opens of all that came, up to now or to an earlier
 * end. What the venue keeps is the newest `retained` bars that had trades, so that it dropped nothing behind the oldest one that came.
 */
export const heldFrom = (
  interval: CandleInterval,
  first: number,
  head: number | undefined,
  now: number,
  retained = retainedBars
): number => {
  const oldest = barAt(interval, now) - retained + 1
  if (first >= oldest) return first
  return head === undefined ? oldest : Math.max(first, Math.min(barAt(interval, head), oldest))
}

const coverageBy = ({ gaps, isCut }: Sources, candles: ReadonlyArray<Candle>): Coverage =>
  gaps.length === 0 && !isCut ? "complete" : candles.length === 0 ? "agedOut" : "truncated"

/**
 * Reads a response to `request` received at `now`, in milliseconds.
 *
 * If a gateway reports the sources of the response, they decide the coverage; otherwise the venue's rules apply, see
 * {@link Coverage}.
 */
export const fromSnapshot = (
  request: CandleWindowRequest,
  candles: ReadonlyArray<Candle>,
  now: number,
  sources?: Sources
): CandleWindow => {
  const last = candles.at(-1)
  const forming = last !== undefined && last.T >= now ? last : undefined
  return sources === undefined
    ? { candles, coverage: windowCoverage(request, candles, now), forming }
    : { candles, coverage: coverageBy(sources, candles), forming, sources }
}
