/**
 * Candles (OHLCV bars) of the venue: where bars begin, how far back the venue retains them, which bars a response
 * omits, and where a gateway's bars are from.
 *
 * The venue retains the newest 5000 bars of a coin and interval and omits intervals without trades. It silently
 * truncates a window that reaches further back, and returns `[]` for a window that is entirely older. Missing bars can
 * therefore only be determined from the clock and from the bars received.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Millis } from "../encoding/Encoding.ts"
import type { CachePolicy } from "../operations/Operation.ts"

const intervals = ["1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "8h", "12h", "1d", "3d", "1w", "1M"] as const

/** The 14 intervals that the venue serves. */
export const CandleInterval = Schema.Literals(intervals).annotate({ identifier: "CandleInterval" })
export type CandleInterval = typeof CandleInterval.Type

/** Number of coins per page of `GET /candles`, which lists the stored series of bars. */
export const coinsPerPage = 100

/** The pattern of a coin in a list of settings: `BTC`, `PURR/USDC`, `@107`, `dex:COIN`, `#50`. */
export const coinPattern = "[^\\s,=]{1,64}"

/** A decimal number as the venue formats it, of at most 200 characters; never converted to a double. */
export const DecimalString = Schema.String.check(
  Schema.isPattern(/^-?[0-9]+(?:\.[0-9]+)?$/u),
  Schema.isMaxLength(200)
).annotate({ identifier: "DecimalString" })

/** One bar: `t` and `T` are its first and last millisecond; prices and base volume are decimal strings. */
export const Candle = Schema.Struct({
  t: Millis.annotateKey({ description: "Open time" }),
  T: Millis.annotateKey({ description: "Close time in milliseconds: open time + length of the interval - 1" }),
  s: Schema.String.annotate({ description: "Coin" }),
  i: CandleInterval,
  o: DecimalString.annotateKey({ description: "Open price" }),
  c: DecimalString.annotateKey({ description: "Close price" }),
  h: DecimalString.annotateKey({ description: "Highest price" }),
  l: DecimalString.annotateKey({ description: "Lowest price" }),
  v: DecimalString.annotateKey({ description: "Volume in the base asset" }),
  n: Schema.Natural.annotate({ description: "Number of trades" })
}).annotate({ identifier: "Candle" })
export type Candle = typeof Candle.Type

/**
 * A window of bars: every bar that closes at or after `startTime` (`T >= startTime`) and opens at or before `endTime`
 * (`t <= endTime`). Default `endTime`: now.
 *
 * `coin` is a perpetual (`BTC`, case-sensitive), a spot pair (`PURR/USDC`, `@107`), a perpetual of a builder-deployed dex
 * (`dex:COIN`) or a side of an outcome (`#50`).
 */
export const CandleWindowRequest = Schema.Struct({
  coin: Schema.String.check(Schema.isBetweenLength(1, 64)),
  interval: CandleInterval,
  startTime: Millis,
  endTime: Schema.optionalKey(Schema.NullOr(Millis))
}).annotate({ identifier: "CandleWindowRequest" })
export type CandleWindowRequest = typeof CandleWindowRequest.Type

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

/** A period of time, from its first to its last millisecond. */
export interface Stretch {
  readonly from: number
  readonly to: number
}

/** The sources of the bars in a gateway's response. A response contains at most the newest 5000 bars of the window. */
export interface Sources {
  /** The number of bars that were in the gateway's store. */
  readonly stored: number
  /** The number of bars that the gateway requested from the venue. */
  readonly asked: number
  /** The periods, oldest first, whose bars the gateway neither stores nor can request from the venue. */
  readonly gaps: ReadonlyArray<Stretch>
  /** Whether the response omits the window's oldest bars, although the gateway stores them. */
  readonly isCut: boolean
  /** Open times, oldest first, of closed bars that the venue changed later. An archive also keeps the earlier values. */
  readonly corrected: ReadonlyArray<number>
}

/** The header in which a gateway reports the sources of the bars; a structured field (RFC 9651). */
export const sourcesHeader = "x-trigate-candles"

/**
 * Maximum number of gaps in the header, and also the maximum number of corrections. This limits the size of the header.
 */
const MAX_REPORTED = 16

const headerMember = (name: string, texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.length === 0 ? [] : [`${name}="${texts.slice(0, MAX_REPORTED).join(" ")}"`]

/** Formats the sources of a response's bars as the value of {@link sourcesHeader}. */
export const printSources = ({ asked, corrected, gaps, isCut, stored }: Sources): string =>
  [
    `held=${stored}`,
    `asked=${asked}`,
    ...(isCut ? ["cut"] : gaps.length === 0 ? ["complete"] : []),
    ...headerMember("gaps", gaps.map(({ from, to }) => `${from}-${to}`)),
    ...headerMember("corrected", corrected.map(String))
  ].join(", ")

const sourcesPattern =
  /^held=(?<held>[0-9]{1,9}), asked=(?<asked>[0-9]{1,9})(?<cut>, cut)?(?:, complete)?(?:, gaps="(?<gaps>[0-9 -]*)")?(?:, corrected="(?<corrected>[0-9 ]*)")?$/u

/** Returns the sources that a header reports; `undefined` if the header is absent or invalid. */
export const readSources = (header: string | undefined): Sources | undefined => {
  const match = header === undefined ? undefined : sourcesPattern.exec(header)?.groups
  return match === undefined ? undefined : {
    stored: Number(match["held"]),
    asked: Number(match["asked"]),
    isCut: match["cut"] !== undefined,
    gaps: Array.from((match["gaps"] ?? "").matchAll(/(?<from>[0-9]+)-(?<to>[0-9]+)/gu), ({ groups }) => ({
      from: Number(groups?.["from"]),
      to: Number(groups?.["to"])
    })),
    corrected: Array.from((match["corrected"] ?? "").matchAll(/[0-9]+/gu), ([time]) => Number(time))
  }
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

/** Options of {@link walk}. */
export interface WalkOptions {
  /** Maximum number of bars in one stretch, from 1 to 5000. Default: 5000. Smaller stretches cost more requests. */
  readonly barsPerStretch?: number
}

interface WalkPosition {
  /** The start of the next stretch, in milliseconds. */
  readonly from: number
  /** The end of the walk, in milliseconds. */
  readonly end: number
  /** Open time of the last emitted bar, in milliseconds. */
  readonly last: number
  /**
   * Whether a gateway stores bars that the venue no longer has. If it does, no stretch is longer than `barsPerStretch`.
   */
  readonly isHeld: boolean
}

const bounded = (bars: number): number => Math.min(retainedBars, Math.max(1, Math.floor(bars)))

/**
 * Streams the stretches of a window, oldest first. Each stretch that the consumer pulls costs one request.
 *
 * Adjacent stretches meet at the boundary of a bar. A bar that is received twice is emitted once. The venue retains only
 * the newest 5000 bars. The first stretch therefore covers all older bars of the window in one request: the venue
 * returns the bars that it still has. Further requests for expired bars would only use up the rate limit.
 *
 * Without an `endTime`, or with one in the future, the walk ends at the bar that was forming when the walk began. A
 * `truncated` stretch lacks its oldest bars. Only the first stretch can be truncated, or a later stretch whose bars
 * expired during a slow walk. If a gateway stores more bars than the venue retains, the walk starts at the beginning of
 * the window.
 */
export const walk = <E, R>(
  request: CandleWindowRequest,
  fetch: (request: CandleWindowRequest) => Effect.Effect<CandleWindow, E, R>,
  options: WalkOptions = {}
): Stream.Stream<CandleStretch, E, R> => {
  const { coin, interval, startTime } = request
  const bars = bounded(options.barsPerStretch ?? retainedBars)
  const begin = Effect.map(Clock.currentTimeMillis, (now): WalkPosition => ({
    from: startTime,
    end: Math.min(request.endTime ?? now, now),
    last: Number.NEGATIVE_INFINITY,
    isHeld: false
  }))
  const step = Effect.fnUntraced(function*(at: WalkPosition) {
    const now = yield* Clock.currentTimeMillis
    const first = barAt(interval, at.from)
    if (openTime(interval, first) > at.end) return [[], Option.none<WalkPosition>()] as const
    const oldest = at.from === startTime && !at.isHeld
      ? Math.max(first, oldestRetainedBar(interval, now))
      : first
    const close = closeTime(interval, oldest + bars - 1)
    const endTime = Math.min(close, at.end)
    const window = yield* fetch({ coin, interval, startTime: at.from, endTime })
    const { sources } = window
    if (sources?.isCut === true && oldest > first) {
      // the gateway stores older bars than the venue, so the walk repeats the request for a shorter window, or skips
      // the gap at the start of the window
      const [gap] = sources.gaps
      if (gap === undefined || gap.from > at.from) {
        return [[], Option.some<WalkPosition>({ ...at, isHeld: true })] as const
      }
      const unknown: CandleStretch = {
        startTime: at.from,
        endTime: gap.to,
        candles: [],
        coverage: "agedOut",
        forming: undefined,
        sources: { stored: 0, asked: 0, isCut: false, gaps: [gap], corrected: [] }
      }
      return [[unknown], Option.some<WalkPosition>({ ...at, from: gap.to + 1, isHeld: true })] as const
    }
    const fresh = window.candles.filter(({ t }) => t > at.last)
    const stretch: CandleStretch = { ...window, startTime: at.from, endTime, candles: fresh }
    return [
      [stretch],
      Option.some<WalkPosition>({ ...at, from: close + 1, last: fresh.at(-1)?.t ?? at.last })
    ] as const
  })
  return Stream.unwrap(Effect.map(begin, (start) => Stream.paginate(start, step)))
}

/** A range of bar numbers, both ends included. */
export interface BarRange {
  readonly from: number
  readonly to: number
}

/** Sorted ranges that neither overlap nor touch, so that equal sets have equal ranges. */
export type BarRanges = ReadonlyArray<BarRange>

/** Adds a range to a set; returns the same set if it already contains the range. */
export const addRange = (ranges: BarRanges, range: BarRange): BarRanges => {
  if (range.to < range.from || ranges.some(({ from, to }) => from <= range.from && range.to <= to)) return ranges
  const before = ranges.filter(({ to }) => to < range.from - 1)
  const after = ranges.filter(({ from }) => from > range.to + 1)
  const joined = ranges.slice(before.length, ranges.length - after.length)
  return [
    ...before,
    {
      from: Math.min(range.from, joined[0]?.from ?? range.from),
      to: Math.max(range.to, joined.at(-1)?.to ?? range.to)
    },
    ...after
  ]
}

/** Returns whether a set contains a bar. */
export const hasBar = (ranges: BarRanges, bar: number): boolean => {
  // binary search for the first range that ends at or after the bar
  let low = 0
  let high = ranges.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ranges[middle]?.to ?? 0) < bar) low = middle + 1
    else high = middle
  }
  const found = ranges[low]
  return found !== undefined && found.from <= bar
}

/** Returns the union of sets. */
export const unionRanges = (sets: Iterable<BarRanges>): BarRanges => {
  const ordered = Array.from(sets).flat().toSorted((a, b) => a.from - b.from)
  const joined: Array<BarRange> = []
  for (const { from, to } of ordered) {
    const last = joined.at(-1)
    if (last === undefined || from > last.to + 1) joined.push({ from, to })
    else joined[joined.length - 1] = { from: last.from, to: Math.max(last.to, to) }
  }
  return joined
}

/** Returns the intersection of a set with a range. */
export const rangesWithin = (ranges: BarRanges, range: BarRange): BarRanges =>
  ranges.flatMap(({ from, to }) => {
    const part = { from: Math.max(from, range.from), to: Math.min(to, range.to) }
    return part.from <= part.to ? [part] : []
  })

/** Returns the parts of a range that are not in a set. */
export const missingRanges = (ranges: BarRanges, range: BarRange): BarRanges => {
  const gaps: Array<BarRange> = []
  let next = range.from
  for (const { from, to } of rangesWithin(ranges, range)) {
    if (from > next) gaps.push({ from: next, to: from - 1 })
    next = to + 1
  }
  return next <= range.to ? [...gaps, { from: next, to: range.to }] : gaps
}

/** Returns the gaps between the ranges of a set. */
export const gapsBetween = (ranges: BarRanges): BarRanges => {
  const [first] = ranges
  const last = ranges.at(-1)
  return first === undefined || last === undefined ? [] : missingRanges(ranges, { from: first.from, to: last.to })
}

/** Returns the number of bars in a set. */
export const countBars = (ranges: BarRanges): number => ranges.reduce((sum, { from, to }) => sum + to - from + 1, 0)

/** Formats a set as `0-99,120-999`, with each bar number relative to `origin`. */
export const printRanges = (ranges: BarRanges, origin: number): string =>
  ranges.map(({ from, to }) => `${from - origin}-${to - origin}`).join(",")

/** Matches text in the format of {@link printRanges}. */
export const rangesPattern = /^(?:[0-9]+-[0-9]+(?:,[0-9]+-[0-9]+)*)?$/u

/** Parses the format of {@link printRanges}; adds `origin` to each number. */
export const readRanges = (text: string, origin: number): BarRanges =>
  Array.from(text.matchAll(/(?<from>[0-9]+)-(?<to>[0-9]+)/gu), ({ groups }) => ({
    from: Number(groups?.["from"]) + origin,
    to: Number(groups?.["to"]) + origin
  }))

/** The stored candle history of one coin and interval. */
export const CandleSeries = Schema.Struct({
  coin: Schema.String,
  interval: CandleInterval,
  bars: Schema.Natural,
  bytes: Schema.Natural.annotateKey({
    description: "Size of the stored bars in bytes, without the database's overhead"
  }),
  known: Schema.Array(Schema.Struct({ from: Millis, to: Millis })).annotateKey({
    description:
      "The periods in which the history is complete, oldest first, each with its first and last millisecond. If a bar is " +
      "missing inside a period, no trade took place. The time between two periods is a gap"
  })
}).annotate({ identifier: "CandleSeries" })
export type CandleSeries = typeof CandleSeries.Type
