/**
 * Serves candle queries with unlimited history: closed bars come from the cache, and only the forming bar and missing
 * bars are requested from the venue.
 *
 * Queries with equal missing bars share one request, even if their time windows differ. If no bar of a time window is
 * cached, the query is relayed unchanged, and its closed bars are then cached. Each response reports the sources of its
 * bars.
 *
 * Bars are cached in this process and, if there is one, in the {@link CandleArchive}. In this process, the least
 * recently used series (the bars of one coin and interval) is evicted first.
 */
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as Candle from "@trigate/domain/candles/Candle"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import type { ReadFailure } from "@trigate/domain/errors/GatewayError"
import * as InfoOperations from "@trigate/domain/info/InfoOperations"
import * as Operation from "@trigate/domain/operations/Operation"
import * as CandleText from "@trigate/domain/unstable/candles/CandleText"
import { formingFresh } from "@trigate/domain/unstable/info/InfoQueries"
import { Freshness } from "@trigate/upstream/cache/ResponseCache"
import { metrics } from "@trigate/upstream/unstable/Upstream"
import * as Clock from "effect/Clock"
import { toMillis } from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/** Tolerance, in milliseconds, for the venue: its clock may be behind, or it may write a bar late. */
const GRACE = 5000

/**
 * Maximum number of separate requests for gaps in the cached bars. If there are more gaps, one request covers
 * everything from the first gap on.
 */
const MAX_GAPS = 3

/** Maximum number of bars cached in this process: about 15 MB. */
const MAX_BARS = 100_000

/** Milliseconds for which an archive is not used after a failure, so that callers do not wait for it. */
const ARCHIVE_PAUSE = 10_000

/**
 * Milliseconds for which bars are cached in this process if there is an archive. After that time, they are read from
 * the archive again, because another process may have corrected them there.
 */
const CACHED_FOR = 60_000

/** Milliseconds for which bars are cached in this process if there is no archive. */
const CACHED_ALONE_FOR = 24 * 3_600_000

/** The text of a list of bars: its bytes, the start offset of each bar, and its open time. */
interface Text extends Pick<CandleText.BarIndex, "starts" | "times"> {
  readonly bytes: Uint8Array
}

/** Consecutive bars in one text, from one index to another; the second index is excluded. */
interface Run {
  readonly text: Text
  readonly from: number
  readonly to: number
}

const timeAt = ({ text }: Run, index: number): number => text.times[index] ?? Number.NaN

/** Returns the index, within a run, of the first bar that opens at or after the given time. */
const barIndex = (run: Run, time: number): number => {
  let low = run.from
  let high = run.to
  while (low < high) {
    const middle = (low + high) >>> 1
    if (timeAt(run, middle) < time) low = middle + 1
    else high = middle
  }
  return low
}

const sliceBytes = ({ from, text, to }: Run): Uint8Array =>
  text.bytes.subarray(text.starts[from], (text.starts[to] ?? 0) - 1)

const [OPEN, COMMA, CLOSE] = ["[", ",", "]"].map(Encoding.encode)

const decode = Schema.decodeEffect(Schema.fromJsonString(InfoOperations.candleSnapshot.response))

/** The maximum number of runs in a list. A list with more runs is copied into one text. */
const MAX_RUNS = 16

/**
 * A list of bars as the venue's JSON text, oldest first, without duplicates. Only the open time of each bar is decoded.
 *
 * The list consists of runs: consecutive bars in one text. A response is assembled from these texts without copying
 * them.
 */
export class BarTexts {
  readonly runs: ReadonlyArray<Run>

  constructor(runs: ReadonlyArray<Run>) {
    this.runs = runs
  }

  /** Makes a list of all the bars in a text. */
  static make(text: Text): BarTexts {
    return text.times.length === 0 ? noBars : new BarTexts([{ text, from: 0, to: text.times.length }])
  }

  /** Makes a list of the bars of a response; `undefined` if it contains anything but bars of the series. */
  static fromResponse(series: Candle.Series, response: Operation.UpstreamResponse): BarTexts | undefined {
    const index = response.status === 200 ? CandleText.indexSeries(response.pieces, series) : undefined
    return index && BarTexts.make({ bytes: Encoding.owned(response.body), starts: index.starts, times: index.times })
  }

  /** Encodes bars as JSON, in the venue's format. */
  static fromBars(bars: ReadonlyArray<Candle.Candle>): BarTexts {
    const starts = [0]
    const texts = bars.map((bar) => {
      const text = Encoding.encode(`${CandleText.write([bar]).slice(1, -1)},`)
      starts.push((starts.at(-1) ?? 0) + text.length)
      return text
    })
    return BarTexts.make({ bytes: Encoding.joined(texts), starts, times: bars.map(({ t }) => t) })
  }

  /** The number of bars. */
  get size(): number {
    return this.runs.reduce((sum, { from, to }) => sum + to - from, 0)
  }

  /** The open times of the bars. */
  get times(): ReadonlyArray<number> {
    return this.runs.flatMap(({ from, text, to }) => text.times.slice(from, to))
  }

  /** The open time of the oldest bar. */
  get oldest(): number | undefined {
    const [first] = this.runs
    return first && timeAt(first, first.from)
  }

  /** The open time of the newest bar. */
  get newest(): number | undefined {
    const last = this.runs.at(-1)
    return last && timeAt(last, last.to - 1)
  }

  /** Returns the bars with an open time in a range, both ends included. */
  between(from: number, to: number): BarTexts {
    return new BarTexts(this.runs.flatMap((run) => {
      const part = { text: run.text, from: barIndex(run, from), to: barIndex(run, to + 1) }
      return part.from < part.to ? [part] : []
    }))
  }

  /** Returns the newest bars, up to `most` of them. */
  takeNewest(most: number): BarTexts {
    let left = most
    return new BarTexts(
      this.runs.toReversed().flatMap((run) => {
        const part = { ...run, from: Math.max(run.from, run.to - left) }
        left -= part.to - part.from
        return part.from < part.to ? [part] : []
      }).toReversed()
    )
  }

  /** Merges two lists. If both contain a bar with the same open time, the bar of the second list is used. */
  merge(newer: BarTexts): BarTexts {
    const last = this.newest
    const next = newer.oldest
    if (last === undefined || next === undefined) return last === undefined ? newer : this
    const runs = [...this.runs, ...newer.runs]
    // the usual case: the fetched bars are newer than the stored ones
    if (last < next) {
      const all = new BarTexts(runs)
      return runs.length > MAX_RUNS ? all.#copied() : all
    }
    const byTime = new Map<number, Run>()
    for (const { from, text, to } of runs) {
      for (let index = from; index < to; index++) {
        byTime.set(text.times[index] ?? 0, { text, from: index, to: index + 1 })
      }
    }
    return new BarTexts([...byTime].toSorted(([a], [b]) => a - b).map(([, run]) => run)).#copied()
  }

  /** Copies the bars of all runs into one text. */
  #copied(): BarTexts {
    const starts = [0]
    for (const { from, text, to } of this.runs) {
      for (let index = from; index < to; index++) {
        starts.push((starts.at(-1) ?? 0) + (text.starts[index + 1] ?? 0) - (text.starts[index] ?? 0))
      }
    }
    return BarTexts.make({ bytes: Encoding.joined(this.write()).subarray(1), starts, times: this.times })
  }

  /** Encodes the list as JSON, in chunks. */
  write(): ReadonlyArray<Uint8Array> {
    const pieces: Array<Uint8Array | undefined> = [OPEN]
    for (const [index, run] of this.runs.entries()) pieces.push(index === 0 ? undefined : COMMA, sliceBytes(run))
    return [...pieces, CLOSE].filter((piece) => piece !== undefined)
  }

  /** Decodes the bars. */
  get decoded() {
    return decode(Encoding.decodeLossy(Encoding.joined(this.write())))
  }
}

/**
 * The cached bars of a coin and interval, oldest first; the ranges in which all bars are known; and the open times of
 * bars that the venue corrected.
 */
interface CachedSeries {
  readonly bars: BarTexts
  readonly known: Candle.BarRanges
  readonly corrected: ReadonlyArray<number>
}

/** An empty list of bars. */
export const noBars = new BarTexts([])

const nothing: CachedSeries = { bars: noBars, known: [], corrected: [] }

/** Merges lists of times into one sorted list without duplicates. */
const mergeTimes = (...lists: ReadonlyArray<ReadonlyArray<number>>): ReadonlyArray<number> =>
  lists.every(({ length }) => length === 0) ? [] : [...new Set(lists.flat())].toSorted((a, b) => a - b)

/** The closed bars cached in this process. */
class Recent {
  readonly #series = new Map<string, CachedSeries & { readonly since: Encoding.MonotonicTime }>()
  readonly #lifetime: number
  #count = 0

  constructor(lifetime: number) {
    this.#lifetime = lifetime
  }

  read(series: Candle.Series, range: Candle.BarRange, now: Encoding.MonotonicTime): CachedSeries {
    const key = Candle.seriesKey(series)
    const held = this.#series.get(key)
    if (held === undefined) return nothing
    this.#series.delete(key)
    if (Encoding.millisBetween(held.since, now) >= this.#lifetime) {
      this.#count -= held.bars.size
      return nothing
    }
    this.#series.set(key, held)
    const known = Candle.rangesWithin(held.known, range)
    if (known.length === 0) return nothing
    const from = Candle.openTime(series.interval, range.from)
    const to = Candle.openTime(series.interval, range.to)
    const isInside = (t: number) => t >= from && t <= to
    return { bars: held.bars.between(from, to), known, corrected: held.corrected.filter(isInside) }
  }

  write(
    series: Candle.Series,
    range: Candle.BarRange,
    bars: BarTexts,
    now: Encoding.MonotonicTime,
    corrected: ReadonlyArray<number> = []
  ): void {
    const key = Candle.seriesKey(series)
    const held = this.#series.get(key)
    const all = {
      bars: (held?.bars ?? noBars).merge(bars),
      known: Candle.addRange(held?.known ?? [], range),
      corrected: mergeTimes(held?.corrected ?? [], corrected)
    }
    this.#count += all.bars.size - (held?.bars.size ?? 0)
    this.#series.delete(key)
    this.#series.set(key, { ...all, since: held?.since ?? now })
    for (const [oldest, { bars }] of this.#series) {
      if (this.#count <= MAX_BARS) break
      this.#series.delete(oldest)
      this.#count -= bars.size
    }
  }
}

/**
 * The bars to serve for a query: the indexes of the first bar, of the last bar that has certainly closed, and of the
 * last bar.
 */
interface Plan {
  readonly series: Candle.Series
  readonly first: number
  readonly closed: number
  readonly last: number
}

const makePlan = (
  { coin, endTime, interval, startTime }: Candle.CandleWindowRequest,
  now: number
): Plan | undefined => {
  const end = endTime ?? now
  const first = Candle.barAt(interval, startTime)
  const last = Math.min(Candle.barAt(interval, now), Candle.barAt(interval, end))
  const closed = Math.min(last, Candle.barAt(interval, now - GRACE) - 1)
  return end < startTime || closed < first ? undefined : { series: { coin, interval }, first, closed, last }
}

/**
 * Returns the ranges to request from the venue: gaps in the cached bars that the venue can still fill, and bars that
 * may not have closed.
 *
 * The whole gap is requested even if the venue probably lacks a part of it: for a coin with few trades, the venue
 * retains older bars than usual.
 */
const rangesToRequest = (
  { closed, first, last, series }: Plan,
  known: Candle.BarRanges,
  now: number
): Candle.BarRanges => {
  const oldest = Candle.oldestRetainedBar(series.interval, now)
  const holes = Candle.unionRanges([
    Candle.missingRanges(known, { from: Math.max(first, 0), to: closed }).filter(({ to }) => to >= oldest),
    last > closed ? [{ from: closed + 1, to: last }] : []
  ])
  const [head] = holes
  return head === undefined || holes.length <= MAX_GAPS ? holes : [{ from: head.from, to: last }]
}

/**
 * The query for a gap in the cached bars. If the gap includes a bar that has not closed, `closed` is the index of the
 * last closed bar (its open time divided by the interval).
 */
export interface GapCall extends InfoOperations.CandleCall {
  readonly closed: number | undefined
}

/**
 * Returns the query for a gap in the cached bars. If the gap includes a bar that has not closed, the query has no end
 * time: queries with the same start are then equal, and coalesce.
 */
const callFor = ({ closed, series }: Plan, { from, to }: Candle.BarRange): GapCall => {
  const { coin, interval } = series
  const startTime = Candle.openTime(interval, from)
  const isOpen = to > closed
  const request = isOpen
    ? { coin, interval, startTime }
    : { coin, interval, startTime, endTime: Candle.closeTime(interval, to) }
  return {
    closed: isOpen ? closed : undefined,
    operation: InfoOperations.candleSnapshot,
    request,
    body: Encoding.write({ type: InfoOperations.candleSnapshot.name, req: request }),
    surface: "gateway"
  }
}

/**
 * Returns the protocol of the queries for gaps in the cached bars. `options` determines how long a response with an
 * unclosed bar is cached.
 *
 * A response that was received before all bars of a gap had closed never fills that gap.
 */
export const gapReadsWith = (
  options: InfoOperations.CacheOptions = {}
): Operation.ReadProtocol<GapCall, Operation.UpstreamResponse, ReadFailure> => {
  const chosen = options.freshness?.find(({ type }) => type === InfoOperations.candleSnapshot.name)
  const forming = InfoOperations.cachePolicyWith(options)(chosen === undefined ? formingFresh : toMillis(chosen.fresh))
  return {
    ...InfoOperations.reads,
    key: (call) => `hole ${call.closed ?? ""} ${InfoOperations.reads.key(call)}`,
    cachePolicy: ({ closed }) => closed === undefined ? undefined : forming,
    isCacheable: (_, { pieces }) => CandleText.indexBars(pieces) !== null
  }
}

const heldQueries = metrics.cache.series({
  upstream: "trading-api",
  operation: InfoOperations.candleSnapshot.name,
  outcome: "held"
})
const heldWeight = metrics.upstreamWeightSaved.series({ upstream: "trading-api", outcome: "held" })

/** Serves a query, from the cache if it is a candle query; `straight` relays the query to the venue unchanged. */
export type ServeQuery<E> = (
  call: InfoOperations.InfoCall,
  straight: Effect.Effect<Operation.UpstreamResponse, E>
) => Effect.Effect<Operation.UpstreamResponse, E>

/** Reads the newest bars of a range from an archive. */
const readArchive = Effect.fnUntraced(
  function*(archive: CandleArchive["Service"], series: Candle.Series, range: Candle.BarRange) {
    const { bars, known } = yield* archive.read(series, range, Candle.retainedBars)
    const versions = known.length === 0 ? [] : yield* archive.earlierVersions(series, range)
    return { bars: BarTexts.fromBars(bars), known, corrected: mergeTimes(versions.map(({ bar }) => bar.t)) }
  }
)

/**
 * Makes the candle cache of one network; `send` sends the query for a gap in the cached bars. If the context has an
 * archive, the cache also reads from it and writes to it.
 */
export const make = Effect.fnUntraced(function*<E>(
  send: (call: GapCall) => Effect.Effect<Operation.UpstreamResponse, E>
) {
  const archive = Option.getOrUndefined(yield* Effect.serviceOption(CandleArchive))
  const scope = yield* Effect.scope
  const recent = new Recent(archive === undefined ? CACHED_ALONE_FOR : CACHED_FOR)

  let archiveFrom = Encoding.longAgo

  /** Returns the archive, unless it failed recently. */
  const archiveAt = (now: Encoding.MonotonicTime) => now < archiveFrom ? undefined : archive

  const leaveArchive = Effect.map(Clock.Clock, (clock) => {
    archiveFrom = Encoding.addMillis(Encoding.monotonicTime(clock), ARCHIVE_PAUSE)
    return nothing
  })

  /** Reads the bars of a range from this process's cache, and the missing bars from the archive if it is reachable. */
  const readBars = Effect.fnUntraced(function*(series: Candle.Series, range: Candle.BarRange) {
    const now = Encoding.monotonicTime(yield* Clock.Clock)
    const here = recent.read(series, range, now)
    const lacking = Candle.missingRanges(here.known, range)
    const [head] = lacking
    const from = archiveAt(now)
    if (from === undefined || head === undefined) return here
    const rest = { from: head.from, to: lacking.at(-1)?.to ?? head.to }
    const there = yield* readArchive(from, series, rest).pipe(Effect.catch(() => leaveArchive))
    // for a long range the archive returns only the newest bars
    const isCut = there.bars.size >= Candle.retainedBars
    const since = isCut ? there.bars.oldest ?? 0 : 0
    for (const part of isCut ? [] : there.known) {
      recent.write(
        series,
        part,
        there.bars.between(Candle.openTime(series.interval, part.from), Candle.openTime(series.interval, part.to)),
        now,
        there.corrected
      )
    }
    return {
      bars: there.bars.merge(here.bars.between(since, Number.POSITIVE_INFINITY)),
      known: Candle.unionRanges([there.known, here.known]),
      corrected: mergeTimes(there.corrected, here.corrected)
    }
  })

  /**
   * Caches the closed bars of a response, and writes them to the archive in the background. `range` is the range of the
   * query.
   *
   * The venue can be late in writing a bar that has no trades, so bars after the last one in the response remain
   * unknown.
   */
  const hold = Effect.fnUntraced(
    function*({ closed, series }: Plan, { from, to }: Candle.BarRange, bars: BarTexts) {
      const clock = yield* Clock.Clock
      const now = Encoding.monotonicTime(clock)
      const last = bars.newest
      const given = to < closed ? to : last === undefined ? from - 1 : Candle.barAt(series.interval, last)
      const range = {
        from: Candle.firstCompleteBar(series.interval, from, bars.oldest, clock.currentTimeMillisUnsafe()),
        to: Math.min(given, closed)
      }
      if (range.to < range.from) return
      const inside = bars.between(
        Candle.openTime(series.interval, range.from),
        Candle.openTime(series.interval, range.to)
      )
      recent.write(series, range, inside, now)
      const into = archiveAt(now)
      if (into === undefined) return
      yield* inside.decoded.pipe(
        Effect.flatMap((bars) => into.write(series, range, bars)),
        Effect.catch(() => leaveArchive),
        Effect.forkIn(scope)
      )
    }
  )

  /** Relays a query to the venue, and caches the response after the caller has received it. */
  const relayed = (straight: Effect.Effect<Operation.UpstreamResponse, E>, plan: Plan) =>
    Effect.tap(straight, (response) => {
      const later = Effect.suspend(() => {
        const bars = BarTexts.fromResponse(plan.series, response)
        return bars === undefined ? Effect.void : hold(plan, { from: plan.first, to: plan.closed }, bars)
      })
      return response.status === 200 ? Effect.forkIn(later, scope) : Effect.void
    })

  const serveQuery: ServeQuery<E> = Effect.fnUntraced(function*(call, straight) {
    // a caller that requires the venue's current response bypasses the cache
    if (call.surface === "node" || !InfoOperations.isCandleCall(call) || (yield* Freshness) === "none") {
      return yield* straight
    }
    const { request } = call
    const now = yield* Clock.currentTimeMillis
    const plan = makePlan(request, now)
    if (plan === undefined) return yield* straight
    const { closed, first, series } = plan
    const held = yield* readBars(series, { from: first, to: closed })
    if (held.known.length === 0) return yield* relayed(straight, plan)

    let known = held.known
    let age: number | undefined
    let requested = noBars
    let requests = 0
    let spent = 0
    for (const hole of rangesToRequest(plan, known, now)) {
      const response = yield* send(callFor(plan, hole))
      if (response.status !== 200) return response
      const bars = BarTexts.fromResponse(series, response)
      if (bars === undefined) return yield* straight
      requested = requested.merge(bars)
      requests += 1
      spent += Operation.responseWeight(InfoOperations.candleSnapshot, bars.size)
      if (response.age !== undefined) age = Math.max(age ?? 0, response.age)
      const from = Candle.firstCompleteBar(series.interval, hole.from, bars.oldest, yield* Clock.currentTimeMillis)
      known = Candle.addRange(known, { from, to: Math.min(hole.to, closed) })
      if (hole.from <= closed) yield* hold(plan, hole, bars)
    }

    const end = request.endTime ?? Number.POSITIVE_INFINITY
    const all = held.bars.merge(requested).between(Candle.openTimeAt(series.interval, request.startTime), end)
    const bars = all.takeNewest(Candle.retainedBars)
    const { size } = bars
    const oldest = bars.oldest ?? Number.POSITIVE_INFINITY
    const count = requested.between(oldest, end).size
    const times = new Set(held.corrected.length === 0 ? [] : bars.times)
    if (requests === 0) yield* Metric.update(heldQueries, 1)
    yield* Metric.update(heldWeight, Math.max(0, Operation.responseWeight(InfoOperations.candleSnapshot, size) - spent))
    return Operation.make({
      upstream: "trading-api",
      status: 200,
      contentType: "application/json",
      body: bars.write(),
      ...(age === undefined ? {} : { age }),
      candles: Candle.printSources({
        stored: size - count,
        asked: count,
        isCut: all.size > size,
        corrected: held.corrected.filter((time) => times.has(time)),
        gaps: Candle.missingRanges(known, { from: first, to: closed }).map(({ from, to }) => ({
          from: Candle.openTime(series.interval, from),
          to: Candle.closeTime(series.interval, to)
        }))
      })
    })
  })
  return serveQuery
})
