/**
 * Windows of bars: where bars begin, how far back the venue retains them, and which bars a response omits.
 *
 * The venue retains the newest 5000 bars of a coin and interval and omits intervals without trades. It silently
 * truncates a window that reaches further back, and returns `[]` for a window that is entirely older. Missing bars can
 * therefore only be determined from the clock and from the bars received.
 */
import * as Predicate from "effect/Predicate"
import type { CachePolicy } from "../operations/Operation.ts"
import type { Candle, CandleInterval, CandleWindowRequest } from "./Candle.ts"
import type { Sources } from "./CandleSources.ts"

/** The number of bars that the venue retains for each coin and interval. It is also the maximum in one response. */
export const retainedBars = 5000

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** The length of each interval in milliseconds; a month has no fixed length. */
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

// starts the year in March, so that a leap day is the last day of the year
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
 * Returns the number of the bar that contains a time; bar 0 contains the epoch.
 *
 * Bars are aligned to the epoch: a week opens on Thursday 00:00 UTC. Months are UTC calendar months.
 */
export const barAt = (interval: CandleInterval, instant: number): number =>
  interval === "1M" ? monthAt(instant) : Math.floor(instant / intervalLengths[interval])

/** Returns the first millisecond of a bar. */
export const openTime = (interval: CandleInterval, bar: number): number =>
  interval === "1M" ? monthOpen(bar) : bar * intervalLengths[interval]

/** Returns the last millisecond of a bar. */
export const closeTime = (interval: CandleInterval, bar: number): number => openTime(interval, bar + 1) - 1

/** Returns the open time of the bar that contains a time. */
export const openTimeAt = (interval: CandleInterval, instant: number): number =>
  openTime(interval, barAt(interval, instant))

/** A series of bars: one coin and interval. */
export interface Series {
  readonly coin: string
  readonly interval: CandleInterval
}

/** Returns the key of a series, unique among all series. */
export const seriesKey = ({ coin, interval }: Series): string => `${interval} ${coin}`

/** Returns whether a bar belongs to a series and has the exact open and close time of its bar number. */
export const belongsTo = ({ coin, interval }: Series, { T, i, s, t }: Candle): boolean => {
  if (s !== coin || i !== interval) return false
  const bar = barAt(interval, t)
  return openTime(interval, bar) === t && closeTime(interval, bar) === T
}

/**
 * Returns the number of the oldest bar that the venue certainly retains at `now`. The venue retains older bars only if
 * some intervals had no trades.
 */
export const oldestRetainedBar = (interval: CandleInterval, now: number): number =>
  barAt(interval, now) - retainedBars + 1

/**
 * Shortens a window to the oldest bars that fit into one response. For a longer window, the venue would return
 * the newest bars.
 */
export const oldestPart = (request: CandleWindowRequest): CandleWindowRequest => {
  const { endTime, interval, startTime } = request
  const close = closeTime(interval, barAt(interval, startTime) + retainedBars - 1)
  return { ...request, endTime: Math.min(endTime ?? close, close) }
}

/**
 * Returns the maximum number of bars in the response for a window. The result includes one extra bar, in case the
 * venue's clock is ahead.
 */
export const maxBars = ({ endTime, interval, startTime }: CandleWindowRequest, now: number): number => {
  const last = barAt(interval, Math.min(now, endTime ?? now))
  return Math.max(0, Math.min(retainedBars, last - barAt(interval, startTime) + 2))
}

/**
 * The part of a window that a response covers.
 *
 * - `complete`: every bar of the window that had a trade;
 * - `truncated`: the oldest bars of the window are missing or may be missing, because the venue does not retain bars
 *   before the first received one;
 * - `agedOut`: the response has no bars, because the whole window is older than the retained bars or precedes the
 *   listing of the coin (the response is the same in both cases).
 */
export type Coverage = "complete" | "truncated" | "agedOut"

/** Bars of a window, oldest first. `coverage` is their completeness; `forming` is the bar that can still change. */
export interface CandleWindow {
  /** Every bar of the response, including the forming one. */
  readonly candles: ReadonlyArray<Candle>
  readonly coverage: Coverage
  /** The last bar, if it has not closed: its prices and volume will change. */
  readonly forming: Candle | undefined
  /** The sources of the bars; absent if all bars are from the venue. */
  readonly sources?: Sources
}

/** One stretch of a walk through a long window: the stretch's bars, and its first and last millisecond. */
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
  // the first bar of the window was received, and no earlier ones were requested
  if (headBar <= first) return "complete"
  // a response of 5000 bars can be truncated, even if the window has fewer bars by our clock
  if (candles.length >= retainedBars) return "truncated"
  // fewer than 5000 bars can follow the first received bar, so the venue would still retain and return an older bar
  if (headBar > oldest) return "complete"
  // if the window ends now, the venue retains fewer than 5000 bars in total; if it ends earlier, newer bars may have
  // displaced older ones
  return last === newest ? "complete" : "truncated"
}

/**
 * Returns the bar number from which a response contains every bar; the venue may have dropped earlier bars.
 *
 * `first` is the number of the first requested bar; `head` is the open time of the oldest received bar. The venue
 * retains the newest `retained` bars that had trades, so it dropped no bar after the oldest received one.
 */
export const firstCompleteBar = (
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
 * Decodes a response to `request`; `now` is the time, in milliseconds, at which the response was received.
 *
 * If a gateway reports the sources of the response, they determine the coverage; otherwise the venue's rules apply, see
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

/**
 * Milliseconds to wait after a bar's close time before its values count as final, because the venue's clock may be
 * behind, or the venue may write the bar late.
 */
const graceMillis = 5000

/**
 * A response is cached only if the venue retains its bars for at least this many milliseconds longer. The value exceeds
 * the longest request deadline plus the difference between the clocks of the gateway and the venue.
 */
const marginMillis = 60_000

/**
 * Returns a cache policy of one day for a window that is in the past: its last bar is closed, and the venue retains its
 * first bar for at least `marginMillis` longer. Returns `undefined` for any other window.
 */
export const cachePolicy = (
  { endTime, interval, startTime }: CandleWindowRequest,
  now: number
): CachePolicy | undefined => {
  if (!Predicate.isNotNullish(endTime) || endTime < startTime || endTime > now) return undefined
  const isClosed = closeTime(interval, barAt(interval, endTime)) + graceMillis < now
  const isRetained = barAt(interval, startTime) >= oldestRetainedBar(interval, now + marginMillis)
  return isClosed && isRetained ? { fresh: day, staleIfError: day } : undefined
}
