/**
 * Records candle history: fetches all bars that the venue retains, follows new bars, and fills missed ranges.
 *
 * A stream sends the current bar repeatedly. A bar is final as soon as the stream has sent the bar with the next
 * number. If the stream skips that number, the bar does not become final, and the recorder requests it from the venue.
 *
 * The recorder follows one interval of each coin. It builds larger intervals from the bars of this interval, and
 * compares the built bars with the venue's own bars once a day. It sends one request at a time, and first requests the
 * range that the venue will drop first. If the venue has dropped a range before it was recorded, the range stays a gap
 * and is reported.
 *
 * If the venue's streams are available, the bars of a coin are received from a stream. Once an hour, they are compared
 * with requested bars.
 */
import {
  addRange,
  barAt,
  belongsTo,
  CandleInterval,
  closeTime,
  firstCompleteBar,
  intervalLengths,
  missingRanges,
  openTime,
  retainedBars,
  seriesKey
} from "@trigate/domain/candles/Candle"
import type { BarRange, BarRanges, Candle, CandleWindowRequest, Series } from "@trigate/domain/candles/Candle"
import { addMillis, longAgo, millisBetween, type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
import type { ArchiveUnavailable } from "@trigate/domain/errors/GatewayError"
import { counter, gauge } from "@trigate/domain/unstable/DeclaredMetric"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { CandleArchive } from "./CandleArchive.ts"

/** The metrics, by member name. */
export const metrics = {
  archiveBars: counter("trigate_archive_bars_total", "Bars that the recorder added to the candle archive", [
    "interval"
  ]),
  archiveCorrections: counter(
    "trigate_archive_corrections_total",
    "Closed bars that the venue changed afterwards; the archive keeps both versions",
    ["interval"]
  ),
  archiveDifferences: counter(
    "trigate_archive_differences_total",
    "Bars built from smaller bars and then replaced, because the venue's own bars differed",
    ["interval"]
  ),
  recording: gauge("trigate_archive_recording", "1 while this process records candles, otherwise 0"),
  archiveBehind: gauge(
    "trigate_archive_behind_seconds",
    "Seconds since the last recorded bar closed, for the coin that is furthest behind"
  ),
  archiveDegraded: gauge("trigate_archive_degraded", "1 while the candle archive cannot be used, otherwise 0")
} as const

const day = intervalLengths["1d"]

/** Returns whether every bar of the larger interval begins and ends together with bars of the smaller interval. */
export const builds = (smaller: CandleInterval, larger: CandleInterval): boolean => {
  if (smaller === "1M") return false
  const length = intervalLengths[smaller]
  // a month can begin at any midnight (UTC), so a smaller interval must divide a day
  return larger === "1M"
    ? day % length === 0
    : intervalLengths[larger] > length && intervalLengths[larger] % length === 0
}

/** A decimal as a whole number of units of 10^-scale. */
interface Units {
  readonly units: bigint
  readonly scale: number
}

const parseUnits = (text: string): Units => {
  const point = text.indexOf(".")
  return point < 0
    ? { units: BigInt(text), scale: 0 }
    : { units: BigInt(text.slice(0, point) + text.slice(point + 1)), scale: text.length - point - 1 }
}

const at = ({ scale, units }: Units, larger: number): bigint => units * 10n ** BigInt(larger - scale)

const isMore = (a: string, b: string): boolean => {
  const [left, right] = [parseUnits(a), parseUnits(b)]
  const scale = Math.max(left.scale, right.scale)
  return at(left, scale) > at(right, scale)
}

/** Adds decimals. The sum is formatted like the venue's volumes: no trailing zeros, but at least one decimal place. */
const sum = (texts: ReadonlyArray<string>): string => {
  const all = texts.map(parseUnits)
  const scale = Math.max(1, ...all.map(({ scale }) => scale))
  const total = all.reduce((sum, each) => sum + at(each, scale), 0n)
  const digits = String(total < 0n ? -total : total).padStart(scale + 1, "0")
  const decimals = digits.slice(-scale).replace(/(?<=[0-9])0+$/u, "")
  return `${total < 0n ? "-" : ""}${digits.slice(0, -scale)}.${decimals}`
}

const joined = (interval: CandleInterval, bar: number, first: Candle, bars: ReadonlyArray<Candle>): Candle => ({
  t: openTime(interval, bar),
  T: closeTime(interval, bar),
  s: first.s,
  i: interval,
  o: first.o,
  c: bars.at(-1)?.c ?? first.c,
  h: bars.reduce((high, { h }) => isMore(h, high) ? h : high, first.h),
  l: bars.reduce((low, { l }) => isMore(low, l) ? l : low, first.l),
  v: sum(bars.map(({ v }) => v)),
  n: bars.reduce((count, { n }) => count + n, 0)
})

/**
 * Builds the bars of an interval from bars of a smaller interval, which must be in order. If there are no smaller bars
 * in the period of a larger bar, the larger bar is omitted.
 */
export const buildBars = (interval: CandleInterval, bars: ReadonlyArray<Candle>): ReadonlyArray<Candle> =>
  [...Map.groupBy(bars, ({ t }) => barAt(interval, t))].flatMap(([bar, parts]) => {
    const [first] = parts
    return first === undefined ? [] : [joined(interval, bar, first, parts)]
  })

/** Converts a range of larger bars to the range of smaller bars with the same period. */
export const smallerRange = (smaller: CandleInterval, larger: CandleInterval, { from, to }: BarRange): BarRange => ({
  from: barAt(smaller, openTime(larger, from)),
  to: barAt(smaller, closeTime(larger, to))
})

/** Returns the ranges of larger bars that can be built: those whose smaller bars are all in the ranges `known`. */
export const wholeBars = (smaller: CandleInterval, larger: CandleInterval, known: BarRanges): BarRanges =>
  known.flatMap(({ from, to }) => {
    const open = openTime(smaller, from)
    const first = barAt(larger, open)
    const range = {
      from: openTime(larger, first) === open ? first : first + 1,
      to: barAt(larger, closeTime(smaller, to) + 1) - 1
    }
    return range.from <= range.to ? [range] : []
  })

/** Returns the stream of a series' bars. The stream also sends the current bar, each time that it changes. */
export type Listen = (series: Series) => Stream.Stream<Candle, { readonly message: string }>

/** The bars received for followed series. */
export interface LiveBars {
  /**
   * Follows a series until the scope ends. Does nothing if the maximum number of series is already followed. After a
   * failure, subscribes again.
   */
  readonly follow: (series: Series) => Effect.Effect<void, never, Scope.Scope>
  /** Returns whether the stream of a series is open and has sent at least one bar. */
  readonly isLive: (series: Series) => boolean
  /** Removes and returns the final bars of a series up to the bar number `last`, oldest first. */
  readonly takeFinal: (series: Series, last: number) => ReadonlyArray<Candle>
}

/** Maximum number of pending bars of a series. Beyond this number, bars are dropped and requested later. */
const mostPending = 100

/** The pause before a failed stream is opened again. */
const pause = "1 minute"

/** Makes the `LiveBars`. If `listen` is `undefined`, no series is live. */
export const make = (listen: Listen | undefined, maxSeries: number): LiveBars => {
  const followed = new Set<string>()
  /** The pending bars of each live series (one whose stream has sent a bar), by bar number. */
  const live = new Map<string, Map<number, Candle>>()

  const receive = (series: Series, bar: Candle): void => {
    if (!belongsTo(series, bar)) return
    const key = seriesKey(series)
    const bars = live.get(key) ?? new Map<number, Candle>()
    live.set(key, bars)
    bars.set(barAt(series.interval, bar.t), bar)
    if (bars.size > mostPending) bars.delete(Math.min(...bars.keys()))
  }

  return {
    follow: (series) => {
      const key = seriesKey(series)
      if (listen === undefined || followed.has(key) || followed.size >= maxSeries) return Effect.void
      followed.add(key)
      const listening = Effect.suspend(() =>
        Stream.runForEach(listen(series), (bar) => Effect.sync(() => receive(series, bar)))
      ).pipe(
        Effect.catch(({ message }) =>
          Effect.logDebug(`The recorder has no stream of ${series.coin} ${series.interval}: ${message}`)
        ),
        Effect.ensuring(Effect.sync(() => live.delete(key))),
        Effect.andThen(Effect.sleep(pause))
      )
      return Effect.asVoid(Effect.forkScoped(Effect.forever(listening)))
    },
    isLive: (series) => live.has(seriesKey(series)),
    takeFinal: (series, last) => {
      const bars = live.get(seriesKey(series))
      if (bars === undefined) return []
      const final = [...bars].filter(([number]) => number <= last && bars.has(number + 1)).toSorted(([a], [b]) => a - b)
      for (const [number] of final) bars.delete(number)
      return final.map(([, bar]) => bar)
    }
  }
}

/** The coin to record, or all coins, and the interval to follow. */
export interface Wish {
  /** `*` selects every coin that the configuration does not name. */
  readonly coin: string
  readonly interval: CandleInterval
}

/**
 * The recorder's access to the venue. `bars` and `coins` wait until callers' requests leave enough of the rate limit
 * for a request.
 */
export interface Source {
  /**
   * Returns the bars of a window; `undefined` for a coin that the venue does not know. Fails with a description of the
   * error.
   */
  readonly bars: (request: CandleWindowRequest) => Effect.Effect<ReadonlyArray<Candle> | undefined, string>
  /** Returns all traded coins. */
  readonly coins: Effect.Effect<ReadonlyArray<string>, string>
  /** Returns the stream of a series. If this member is absent, the recorder requests each closed bar. */
  readonly listen?: Listen
}

/** The series to record, and the venue's retention. */
export interface Options {
  readonly wishes: ReadonlyArray<Wish>
  /** The number of bars of each series that the venue retains. Default: 5000. */
  readonly retained?: number
  /** Maximum number of series that are received from streams instead of requests. Default: 500. */
  readonly maxLive?: number
}

/** Tolerance, in milliseconds, for a venue whose clock is behind or that writes a bar late. */
const GRACE = 5000

/**
 * The number of already recorded bars, directly before the missing ones, that are requested again to detect
 * corrections.
 */
const OVERLAP = 5

/**
 * Safety margin in bars. The venue has dropped no bars of a series if the response for a window from the beginning of
 * the series has fewer bars than the venue retains, minus this margin. The margin allows for retained bars that are
 * newer than the response.
 */
const NEWEST = 5

const MAX_LIVE = 500

/** The number of smaller bars that are read at a time to build larger bars. */
const PARTS = 20_000

const HOUR = 3_600_000
const DAY = 24 * HOUR

/**
 * The pause, in milliseconds, after a failure of the venue or the archive. Each consecutive failure doubles the pause.
 */
const PAUSE = 5000
/** The maximum pause, in milliseconds, after consecutive failures. */
const LONGEST_PAUSE = 60_000

/** A recorded series. */
interface Track extends Series {
  /** The interval from which the bars of this series are built; `undefined` for a followed interval. */
  readonly base: CandleInterval | undefined
  known: BarRanges
  /** The earliest time of the next request for the series. */
  notBefore: MonotonicTime
  /** The time at which the venue's own bars were last requested, in milliseconds. */
  comparedAt: number
}

/** A range of bars to request. At `lostAt`, in milliseconds, the venue drops the oldest bar in the range. */
interface Task {
  readonly track: Track
  readonly range: BarRange
  readonly lostAt: number
}

const isFirst = ({ known }: Track): boolean => known.length === 0

const lastKnown = ({ known }: Track): number => known.at(-1)?.to ?? -1

const behind = metrics.archiveBehind.series({})
const away = metrics.archiveDegraded.series({})

/** Formats a time as its minute in UTC. */
export const formatMinute = (time: number): string => `${DateTime.formatIso(DateTime.makeUnsafe(time)).slice(0, 16)}Z`

const start = Effect.fnUntraced(function*(
  source: Source,
  { maxLive = MAX_LIVE, retained = retainedBars, wishes }: Options
) {
  const archive = yield* CandleArchive
  const live = make(source.listen, maxLive)
  const tracks = new Map<string, Track>()
  const everyCoin = wishes.find(({ coin }) => coin === "*")
  const named = new Map(wishes.flatMap(({ coin, interval }) => coin === "*" ? [] : [[coin, interval]]))
  const reported = new Set<string>()
  let coinsAt = longAgo
  const clock = yield* Clock.Clock
  const elapsed = (): MonotonicTime => monotonicTime(clock)

  /** Returns the number of the last bar that has certainly closed. */
  const lastClosed = (interval: CandleInterval, now: number): number => barAt(interval, now - GRACE) - 1

  const oldest = (interval: CandleInterval, now: number): number => Math.max(0, barAt(interval, now) - retained + 1)

  const tellGaps = Effect.fnUntraced(function*(track: Track, now: number) {
    const { coin, interval, known } = track
    const lost = { from: known[0]?.from ?? 0, to: oldest(interval, now) - 1 }
    // times before the first recorded bar are not gaps
    for (const { from, to } of known.length === 0 ? [] : missingRanges(known, lost)) {
      const key = `${seriesKey(track)} ${from}`
      if (reported.has(key)) continue
      reported.add(key)
      yield* Effect.logWarning(
        `The candle archive has a gap that the venue cannot fill: ${coin} ${interval} from ${
          formatMinute(openTime(interval, from))
        } to ${formatMinute(openTime(interval, to + 1))}`
      )
    }
  })

  const add = Effect.fnUntraced(function*(coin: string, followed: CandleInterval, now: number) {
    if (tracks.has(seriesKey({ coin, interval: followed }))) return
    for (const interval of CandleInterval.literals) {
      const isFollowed = interval === followed
      if (!isFollowed && !builds(followed, interval)) continue
      const track: Track = {
        coin,
        interval,
        base: isFollowed ? undefined : followed,
        known: yield* archive.known({ coin, interval }, { from: 0, to: barAt(interval, now) }),
        notBefore: longAgo,
        // the first check of a followed series is due immediately, because its stream does not send bars from before
        // the recording began
        comparedAt: isFollowed ? now - HOUR : now
      }
      tracks.set(seriesKey(track), track)
      if (isFollowed) yield* live.follow(track)
      yield* tellGaps(track, now)
    }
  })

  /** Adds the coins of the configuration and, every hour, newly listed coins. */
  const findCoins = Effect.fnUntraced(function*(now: number) {
    for (const [coin, interval] of named) yield* add(coin, interval, now)
    if (everyCoin === undefined || millisBetween(coinsAt, elapsed()) < HOUR) return
    for (const coin of yield* source.coins) if (!named.has(coin)) yield* add(coin, everyCoin.interval, now)
    coinsAt = elapsed()
  })

  const followedTrack = ({ base, coin }: Track): Track | undefined =>
    base === undefined ? undefined : tracks.get(seriesKey({ coin, interval: base }))

  /**
   * Returns a task to check a series that is received from a stream, if the last check was at least an hour ago. The
   * task's range contains the missing bars and the bars received since the last check.
   */
  const checkTask = (track: Track, missing: BarRange | undefined, now: number): Task | undefined => {
    const { comparedAt, interval } = track
    if (now < comparedAt + HOUR) return undefined
    const to = lastClosed(interval, now)
    const from = Math.max(oldest(interval, now), Math.min(missing?.from ?? to, barAt(interval, comparedAt)))
    const lostAt = missing === undefined ? Number.POSITIVE_INFINITY : openTime(interval, missing.from + retained)
    return from > to ? undefined : { track, range: { from, to }, lostAt }
  }

  /**
   * Returns a task for the first bars that the venue retains and that the archive does not contain; `undefined` if
   * there are no such bars.
   */
  const missingTask = (track: Track, now: number): Task | undefined => {
    const { interval } = track
    if (elapsed() < track.notBefore) return undefined
    const followed = followedTrack(track)
    const closed = lastClosed(interval, now)
    // larger bars that end after the last recorded smaller bar are not requested, because they will be built from
    // smaller bars
    const last = followed === undefined || isFirst(track)
      ? closed
      : Math.min(closed, barAt(interval, closeTime(followed.interval, lastKnown(followed)) + 1) - 1)
    const [range] = missingRanges(track.known, { from: oldest(interval, now), to: last })
    if (live.isLive(track) && !isFirst(track)) return checkTask(track, range, now)
    return range === undefined ? undefined : { track, range, lostAt: openTime(interval, range.from + retained) }
  }

  /**
   * Returns a task to compare built bars with the venue's own bars, if the last comparison was at least a day ago. The
   * task's range contains the bars since that comparison.
   */
  const comparisonTask = (track: Track, now: number): Task | undefined => {
    const { base, comparedAt, interval, notBefore } = track
    if (base === undefined || isFirst(track) || now < comparedAt + DAY || elapsed() < notBefore) {
      return undefined
    }
    const to = Math.min(lastClosed(interval, now), lastKnown(track))
    const from = Math.max(oldest(interval, now), Math.min(to, barAt(interval, comparedAt)))
    return from > to ? undefined : { track, range: { from, to }, lostAt: Number.POSITIVE_INFINITY }
  }

  const next = (now: number): Task | undefined => {
    let first: Task | undefined
    for (const track of tracks.values()) {
      const task = missingTask(track, now) ?? comparisonTask(track, now)
      if (task !== undefined && (first === undefined || task.lostAt < first.lostAt)) first = task
    }
    return first
  }

  const write = Effect.fnUntraced(function*(track: Track, range: BarRange, bars: ReadonlyArray<Candle>) {
    const { added, corrected } = yield* archive.write(track, range, bars)
    track.known = addRange(track.known, range)
    const { base, interval } = track
    const replaced = base === undefined ? metrics.archiveCorrections : metrics.archiveDifferences
    yield* Metric.update(metrics.archiveBars.series({ interval }), added)
    yield* Metric.update(replaced.series({ interval }), corrected)
    if (corrected === 0) return
    yield* Effect.logWarning(
      track.base === undefined
        ? `The venue corrected ${corrected} of the bars of ${track.coin} ${track.interval}`
        : `Replaced ${corrected} bars of ${track.coin} ${track.interval}, built from smaller bars, because the venue's own bars differed`
    )
  })

  /**
   * Builds the larger bars for which all smaller bars are known. Does nothing for a larger interval until the venue's
   * own bars of this interval have been requested.
   */
  const build = Effect.fnUntraced(function*(followed: Track) {
    for (const larger of tracks.values()) {
      if (larger.coin !== followed.coin || larger.base !== followed.interval || isFirst(larger)) continue
      const { interval, known } = larger
      const whole = wholeBars(followed.interval, interval, followed.known)
      for (const { from, to } of whole.flatMap((range) => missingRanges(known, range))) {
        const parts = smallerRange(followed.interval, interval, { from, to: from })
        const few = Math.max(1, Math.floor(PARTS / (parts.to - parts.from + 1)))
        const range = { from, to: Math.min(to, from + few - 1) }
        const { bars } = yield* archive.read(followed, smallerRange(followed.interval, interval, range))
        yield* write(larger, range, buildBars(interval, bars))
      }
    }
  })

  /** Writes the received bars of a series that are final, that is, whose next bar the stream has also sent. */
  const writeLive = Effect.fnUntraced(function*(track: Track, now: number) {
    if (track.base !== undefined || isFirst(track)) return
    const bars = live.takeFinal(track, lastClosed(track.interval, now))
    for (const bar of bars) {
      const at = barAt(track.interval, bar.t)
      yield* write(track, { from: at, to: at }, [bar])
    }
    if (bars.length > 0) yield* build(track)
  })

  const leaveOut = (track: Track, why: string) => {
    track.notBefore = addMillis(elapsed(), HOUR)
    return Effect.logWarning(`Recording of ${track.coin} ${track.interval} pauses for an hour: ${why}`)
  }

  /**
   * Requests the bars of a task, and writes the response. If the venue might have dropped the oldest bars of the range,
   * only the remaining part of the range is written as known.
   */
  const carryOut = Effect.fnUntraced(function*({ range, track }: Task) {
    const { coin, interval } = track
    const from = isFirst(track) ? 0 : Math.max(0, range.from - OVERLAP)
    const request = { coin, interval, startTime: openTime(interval, from), endTime: closeTime(interval, range.to) }
    const rows = yield* source.bars(request)
    const now = yield* Clock.currentTimeMillis
    if (rows === undefined) return yield* leaveOut(track, "the venue does not know the coin")
    if (!rows.every((bar) => belongsTo(track, bar))) {
      return yield* leaveOut(track, "the venue's bars do not begin at the boundaries of the interval")
    }
    const isAll = from === 0 && rows.length < retained - NEWEST
    const held = { from: isAll ? from : firstCompleteBar(interval, from, rows[0]?.t, now, retained), to: range.to }
    if (held.from <= held.to) {
      const inside = rows.filter(({ t }) => barAt(interval, t) >= held.from && barAt(interval, t) <= held.to)
      yield* write(track, held, inside)
    }
    track.comparedAt = now
    yield* tellGaps(track, now)
    if (track.base === undefined) yield* build(track)
  })

  const report = (now: number) => {
    let most = 0
    for (const track of tracks.values()) {
      const last = lastClosed(track.interval, now)
      if (track.base === undefined && lastKnown(track) < last) {
        most = Math.max(most, now - Math.max(openTime(track.interval, lastKnown(track) + 1), 0))
      }
    }
    return Metric.update(behind, Math.min(most, now) / 1000)
  }

  const step = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    yield* findCoins(now)
    for (const track of tracks.values()) yield* writeLive(track, now)
    const task = next(now)
    yield* report(now)
    if (task !== undefined) return yield* carryOut(task)
    const closing = [...tracks.values()].flatMap(({ base, interval }) =>
      base === undefined ? openTime(interval, barAt(interval, now - GRACE) + 1) + GRACE - now : []
    )
    yield* Effect.sleep(Math.max(1, Math.min(HOUR, ...closing)))
  })

  return {
    /** Sends one request, or pauses until the next bar has closed. */
    step
  }
})

/**
 * Records until it is interrupted. Failures of the venue, and an unreachable archive, do not end the recording.
 *
 * Fails with `ArchiveUnavailable` if this version of the program must not write to the archive.
 */
export const record = (
  source: Source,
  options: Options
): Effect.Effect<never, ArchiveUnavailable, CandleArchive> => {
  let isAway = false
  const logVenueState = Effect.fnUntraced(function*(why: string | undefined) {
    if (isAway === (why !== undefined)) return
    isAway = why !== undefined
    yield* Metric.update(away, isAway ? 1 : 0)
    yield* why === undefined ? Effect.logInfo("The candle archive is reachable again") : Effect.logError(why)
  })
  let failures = 0
  const pause = Effect.suspend(() => Effect.sleep(Math.min(LONGEST_PAUSE, PAUSE * 2 ** failures++)))
  const succeeded = Effect.suspend(() => {
    failures = 0
    return logVenueState(undefined)
  })
  return Effect.gen(function*() {
    const { step } = yield* start(source, options)
    return yield* step.pipe(
      Effect.tap(succeeded),
      Effect.catchIf(
        (error) => typeof error === "string",
        (why) => Effect.andThen(Effect.logDebug(`The recorder could not query the venue: ${why}`), pause)
      ),
      Effect.forever
    )
  }).pipe(
    Effect.scoped,
    Effect.catchIf(
      ({ reason }) => reason === "away",
      ({ message }) => Effect.andThen(logVenueState(message), pause)
    ),
    Effect.forever
  )
}
