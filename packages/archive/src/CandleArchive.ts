/**
 * Candle history without a time limit: each closed bar of a coin and interval is stored once, exactly as the venue
 * formatted it.
 *
 * The bars of a range are written together with the range, which is then *known*. A range that is not known is a gap;
 * if a bar is missing inside a known range, no trade took place in its period. If a bar is written again with other
 * values, the new bar replaces the old bar, which is then stored as an earlier version.
 *
 * The layers differ in their {@link Backend}: a store of chunks in memory, in SQLite or in Postgres.
 */
import * as Candle from "@trigate/domain/candles/Candle"
import { ArchiveUnavailable } from "@trigate/domain/errors/GatewayError"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as BarChunk from "./BarChunk.ts"

/** Bars of a series. */
export type Bars = ReadonlyArray<Candle.Candle>

/** Bars of a range, oldest first, and the known (completely recorded) parts of the range, as bar numbers. */
export interface ArchivedBars {
  readonly bars: Bars
  readonly known: Candle.BarRanges
}

/** The result of a write: the numbers of added and corrected bars. */
export interface Written {
  readonly added: number
  readonly corrected: number
}

/**
 * A difference found by `fill`: the given bar, and the archived bar, which is `undefined` if the archive states that no
 * trade took place.
 */
export interface Differing {
  readonly given: Candle.Candle
  readonly held: Candle.Candle | undefined
}

/** The result of `fill`: the number of added bars, and the bars that differ from archived ones. */
export interface Filled {
  readonly added: number
  readonly differing: ReadonlyArray<Differing>
}

/** The earlier version of a bar that the venue corrected. */
export interface EarlierVersion {
  readonly bar: Candle.Candle
  /** The time at which the correction was written, in milliseconds. */
  readonly replacedAt: number
}

/** A series with information about its archived content. */
export interface SeriesStatus extends Candle.Series {
  readonly bars: number
  /** Size of the encoded bars in bytes, without the database's overhead. */
  readonly bytes: number
  readonly known: Candle.BarRanges
}

const ranks = new Map(Candle.CandleInterval.literals.map((interval, rank) => [interval, rank]))

/** Compares series of one coin by the length of their interval. */
export const byInterval = (a: Candle.Series, b: Candle.Series): number =>
  (ranks.get(a.interval) ?? 0) - (ranks.get(b.interval) ?? 0)

/**
 * Returns the series of the first {@link Candle.coinsPerPage} coins that follow the coin `after`, ordered by coin and
 * interval.
 */
export const page = <One extends Candle.Series>(all: Iterable<One>, after = ""): ReadonlyArray<One> =>
  [...Map.groupBy(all, ({ coin }) => coin)]
    .filter(([coin]) => coin > after)
    .toSorted(([a], [b]) => a < b ? -1 : 1)
    .slice(0, Candle.coinsPerPage)
    .flatMap(([, series]) => series.toSorted(byInterval))

/** The result of an operation on the archive. */
type Archived<A> = Effect.Effect<A, ArchiveUnavailable>

/**
 * Stores candle history. `Candle.barAt` computes bar numbers.
 *
 * Provided by `CandleArchive.layer` or `CandleArchiveSql.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { CandleArchive } from "@trigate/archive"
 * import { Console, Effect } from "effect"
 *
 * const bar = { t: 60_000, T: 119_999, s: "BTC", i: "1m", o: "1", c: "2", h: "3", l: "0.5", v: "7.25", n: 4 } as const
 * const series = { coin: "BTC", interval: "1m" } as const
 *
 * const program = Effect.gen(function*() {
 *   const archive = yield* CandleArchive.CandleArchive
 *   yield* archive.write(series, { from: 1, to: 1 }, [bar])
 *   const { bars } = yield* archive.read(series, { from: 0, to: 10 })
 *   yield* Console.log(bars.map(({ c }) => c))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, CandleArchive.layer()))
 * ```
 * ```text
 * [ '2' ]
 * ```
 */
export class CandleArchive extends Context.Service<CandleArchive, {
  /**
   * Atomically writes all bars that the venue has in a range. All bars must be closed.
   *
   * Dies if a bar is outside of the range or of another series.
   */
  readonly write: (series: Candle.Series, range: Candle.BarRange, bars: Bars) => Archived<Written>
  /**
   * Atomically writes the bars of some ranges, except bars in ranges that are already known (completely recorded). All
   * bars must be closed.
   *
   * Known ranges do not change. Returns the given bars that differ from archived bars. Dies if a bar is outside of the
   * ranges or of another series.
   */
  readonly fill: (series: Candle.Series, ranges: Candle.BarRanges, bars: Bars) => Archived<Filled>
  /** Returns the known (completely recorded) parts of a range, without reading bars. */
  readonly known: (series: Candle.Series, range: Candle.BarRange) => Archived<Candle.BarRanges>
  /** Returns the bars of a range. If `most` is set, returns at least the newest `most` bars instead of all bars. */
  readonly read: (series: Candle.Series, range: Candle.BarRange, most?: number) => Archived<ArchivedBars>
  /** Returns the earlier versions of a range's bars, in the order in which they were replaced. */
  readonly earlierVersions: (series: Candle.Series, range: Candle.BarRange) => Archived<ReadonlyArray<EarlierVersion>>
  /**
   * Returns the series of the first {@link Candle.coinsPerPage} coins that follow the coin `after`, ordered by coin and
   * interval. Default: the first coins.
   */
  readonly list: (after?: string) => Archived<ReadonlyArray<SeriesStatus>>
}>()("@trigate/archive/CandleArchive") {}

/** The metadata of a chunk, without the encoded bars. */
export interface ChunkHead {
  readonly chunk: number
  readonly known: Candle.BarRanges
  readonly bars: number
  /** The number of writes to the chunk. */
  readonly revision: number
}

/** A chunk of a series. The bar number of its first bar is `chunk` times `barsPerChunk`. */
export interface Chunk extends ChunkHead {
  readonly body: Uint8Array
}

/** The storage of chunks. */
export interface Backend {
  /** Returns the chunks of a series from chunk number `from` to `to` (inclusive), in order. */
  readonly chunks: (series: Candle.Series, from: number, to: number) => Archived<ReadonlyArray<Chunk>>
  /** Returns the metadata of chunks, without their bars. */
  readonly heads: (series: Candle.Series, from: number, to: number) => Archived<ReadonlyArray<ChunkHead>>
  /**
   * Writes chunks and earlier versions atomically.
   *
   * The revision of each chunk must be one more than the revision of the stored chunk; a new chunk has revision 1.
   * Otherwise, returns `false` and writes nothing.
   */
  readonly put: (
    series: Candle.Series,
    chunks: ReadonlyArray<Chunk>,
    replaced: ReadonlyArray<EarlierVersion>
  ) => Archived<boolean>
  readonly earlierVersions: CandleArchive["Service"]["earlierVersions"]
  readonly list: CandleArchive["Service"]["list"]
}

const chunkAt = (bar: number): number => Math.floor(bar / BarChunk.barsPerChunk)

const chunkRange = (chunk: number): Candle.BarRange => ({
  from: chunk * BarChunk.barsPerChunk,
  to: (chunk + 1) * BarChunk.barsPerChunk - 1
})

const isSame = Schema.toEquivalence(Candle.Candle)

/**
 * The number of chunks to read at a time if only the newest bars are wanted. This number is enough for 5000 bars
 * without a gap.
 */
const FEW = 6

/** Groups bars by chunk. */
const byChunk = ({ interval }: Candle.Series, bars: Bars): ReadonlyMap<number, Bars> =>
  Map.groupBy(bars, ({ t }) => chunkAt(Candle.barAt(interval, t)))

/** Splits ranges by chunk. */
const splitByChunk = (ranges: Candle.BarRanges): ReadonlyMap<number, Candle.BarRanges> => {
  const parts = new Map<number, Candle.BarRanges>()
  for (const { from, to } of ranges) {
    for (let number = chunkAt(from); number <= chunkAt(to); number++) {
      const own = chunkRange(number)
      const part = { from: Math.max(own.from, from), to: Math.min(own.to, to) }
      parts.set(number, Candle.addRange(parts.get(number) ?? [], part))
    }
  }
  return parts
}

/** Dies if a bar is of another series, or outside of the ranges. */
const checked = (series: Candle.Series, ranges: Candle.BarRanges, bars: Bars): Effect.Effect<void> =>
  bars.every((bar) => Candle.belongsTo(series, bar) && Candle.hasBar(ranges, Candle.barAt(series.interval, bar.t)))
    ? Effect.void
    : Effect.die(new Error("A bar to write is outside of the given ranges or belongs to another series"))

/** The change that a write makes to one chunk; `chunk` is `undefined` if nothing changes. */
interface Change {
  readonly chunk: Chunk | undefined
  readonly added: number
  readonly replaced: Bars
}

/** Merges newly written bars into a chunk. Returns the new chunk, and the earlier versions of the replaced bars. */
const merged = (
  series: Candle.Series,
  number: number,
  old: Chunk | undefined,
  ranges: Candle.BarRanges,
  bars: Bars
): Change => {
  const { from } = chunkRange(number)
  const held = old === undefined ? [] : BarChunk.decode(series, from, old.body)
  const byTime = new Map(held.map((bar) => [bar.t, bar]))
  const replaced: Array<Candle.Candle> = []
  let added = 0
  for (const bar of bars) {
    const before = byTime.get(bar.t)
    if (before === undefined) added += 1
    else if (isSame(before, bar)) continue
    else replaced.push(before)
    byTime.set(bar.t, bar)
  }
  const knownBefore = old?.known ?? []
  const known = ranges.reduce(Candle.addRange, knownBefore)
  if (added === 0 && replaced.length === 0 && known === knownBefore) return { chunk: undefined, added, replaced }
  const all = [...byTime.values()].toSorted((a, b) => a.t - b.t)
  const chunk: Chunk = {
    chunk: number,
    known,
    bars: all.length,
    revision: (old?.revision ?? 0) + 1,
    body: BarChunk.encode(series, from, all)
  }
  return { chunk, added, replaced }
}

/** Divides given bars of a chunk into the bars in unknown ranges and the bars that differ from archived bars. */
const sorted = (series: Candle.Series, number: number, old: Chunk | undefined, bars: Bars) => {
  if (old === undefined) return { unknown: bars, differing: [] }
  const held = new Map(BarChunk.decode(series, chunkRange(number).from, old.body).map((bar) => [bar.t, bar]))
  const isKnown = (bar: Candle.Candle) => Candle.hasBar(old.known, Candle.barAt(series.interval, bar.t))
  return {
    unknown: bars.filter((bar) => !isKnown(bar)),
    differing: bars.filter(isKnown).flatMap((given): ReadonlyArray<Differing> => {
      const own = held.get(given.t)
      return own !== undefined && isSame(own, given) ? [] : [{ given, held: own }]
    })
  }
}

/** Makes the service over a backend. */
export const make = (backend: Backend): CandleArchive["Service"] => {
  const readChunks: Backend["chunks"] = (series, from, to) =>
    Effect.tap(backend.chunks(series, from, to), (chunks) => {
      const other = chunks.find(({ body }) => !BarChunk.isReadable(body))
      return other === undefined ? Effect.void : new ArchiveUnavailable({
        reason: "newer",
        detail: `Chunk ${other.chunk} of ${series.coin} ${series.interval} in the candle archive has format ${
          other.body[0]
        }, which a later version of Trigate wrote: use that version, or another database`
      })
    })

  /**
   * Applies `changeOf` to chunks, and writes the changed chunks. `numbers`, the chunk numbers, must be in ascending
   * order.
   */
  const changing = Effect.fnUntraced(function*<Made extends Change>(
    series: Candle.Series,
    numbers: ReadonlyArray<number>,
    changeOf: (number: number, old: Chunk | undefined) => Made
  ) {
    const [first] = numbers
    const last = numbers.at(-1)
    if (first === undefined || last === undefined) return []
    const replacedAt = yield* Clock.currentTimeMillis
    // after a conflict with another writer, repeats the write on the chunk that the other writer has stored
    for (;;) {
      const old = new Map((yield* readChunks(series, first, last)).map((chunk) => [chunk.chunk, chunk]))
      const changes = numbers.map((number) => changeOf(number, old.get(number)))
      const chunks = changes.flatMap(({ chunk }) => chunk ?? [])
      const replaced = changes.flatMap((change) => change.replaced.map((bar) => ({ bar, replacedAt })))
      if (chunks.length === 0 || (yield* backend.put(series, chunks, replaced))) return changes
    }
  })

  const write: CandleArchive["Service"]["write"] = Effect.fn("CandleArchive.write")(function*(series, range, bars) {
    const ranges = range.to < range.from ? [] : [range]
    yield* checked(series, ranges, bars)
    const parts = splitByChunk(ranges)
    const own = byChunk(series, bars)
    const changes = yield* changing(
      series,
      [...parts.keys()],
      (number, old) => merged(series, number, old, parts.get(number) ?? [], own.get(number) ?? [])
    )
    return {
      added: changes.reduce((sum, { added }) => sum + added, 0),
      corrected: changes.reduce((sum, { replaced }) => sum + replaced.length, 0)
    }
  })

  const fill: CandleArchive["Service"]["fill"] = Effect.fn("CandleArchive.fill")(function*(series, ranges, bars) {
    yield* checked(series, ranges, bars)
    const parts = splitByChunk(ranges)
    const own = byChunk(series, bars)
    const changes = yield* changing(series, [...parts.keys()], (number, old) => {
      const { differing, unknown } = sorted(series, number, old, own.get(number) ?? [])
      return { ...merged(series, number, old, parts.get(number) ?? [], unknown), differing }
    })
    return {
      added: changes.reduce((sum, { added }) => sum + added, 0),
      differing: changes.flatMap(({ differing }) => differing)
    }
  })

  const known: CandleArchive["Service"]["known"] = Effect.fn("CandleArchive.known")(function*(series, range) {
    if (range.to < range.from) return []
    const heads = yield* backend.heads(series, chunkAt(range.from), chunkAt(range.to))
    return Candle.rangesWithin(Candle.unionRanges(heads.map((head) => head.known)), range)
  })

  const read: CandleArchive["Service"]["read"] = Effect.fn("CandleArchive.read")(function*(series, range, most) {
    if (range.to < range.from) return { bars: [], known: [] }
    let first = chunkAt(range.from)
    const last = chunkAt(range.to)
    let heads: ReadonlyArray<ChunkHead> = []
    if (most !== undefined && last - first >= FEW) {
      heads = yield* backend.heads(series, first, last)
      let wanted = most
      first = last
      for (const { bars, chunk } of heads.toReversed()) {
        if (wanted <= 0) break
        // does not count the bars of the last chunk, because some of them can be after the end of the range
        wanted -= chunk === last ? 0 : bars
        first = chunk
      }
    }
    const chunks = yield* readChunks(series, first, last)
    const bars = chunks.flatMap(({ body, chunk }) => {
      const own = chunkRange(chunk)
      const found = BarChunk.decode(series, own.from, body)
      return own.from >= range.from && own.to <= range.to ? found : found.filter(({ t }) => {
        const bar = Candle.barAt(series.interval, t)
        return bar >= range.from && bar <= range.to
      })
    })
    const known = [...heads.filter(({ chunk }) => chunk < first), ...chunks].map((head) => head.known)
    return { bars, known: Candle.rangesWithin(Candle.unionRanges(known), range) }
  })

  return CandleArchive.of({
    write,
    fill,
    known,
    read,
    earlierVersions: backend.earlierVersions,
    list: backend.list
  })
}

/** Memory limits. */
export interface Options {
  /** Maximum total size of the encoded bars, in bytes. Default: 32 MiB, enough for about three million bars. */
  readonly maxBytes?: number
  /** Maximum number of earlier versions of bars. Default: 1000. Beyond this number, the oldest ones are dropped. */
  readonly maxVersions?: number
}

interface Shelf {
  readonly series: Candle.Series
  readonly chunks: Map<number, Chunk>
}

interface Version extends EarlierVersion {
  readonly key: string
}

/** The assumed size of a stored chunk in addition to its encoded bars, in bytes. */
const OVERHEAD = 200

const chunkBytes = ({ body }: Chunk): number => body.length + OVERHEAD

/** Makes an independent store. */
export const makeMemory = ({ maxBytes = 32 * 1024 * 1024, maxVersions = 1000 }: Options = {}): CandleArchive[
  "Service"
] => {
  const shelves = new Map<string, Shelf>()
  // ordered by last use, oldest first
  const used = new Map<Chunk, Shelf>()
  const versions: Array<Version> = []
  let bytes = 0

  const remove = (chunk: Chunk, shelf: Shelf): void => {
    used.delete(chunk)
    shelf.chunks.delete(chunk.chunk)
    if (shelf.chunks.size === 0) shelves.delete(Candle.seriesKey(shelf.series))
    bytes -= chunkBytes(chunk)
  }

  const touch = (chunk: Chunk, shelf: Shelf): void => {
    used.delete(chunk)
    used.set(chunk, shelf)
  }

  const found = (series: Candle.Series, from: number, to: number): ReadonlyArray<Chunk> => {
    const shelf = shelves.get(Candle.seriesKey(series))
    if (shelf === undefined) return []
    // iterates over whichever is smaller: the chunk numbers of the range, or the stored chunks
    const chunks = to - from < shelf.chunks.size
      ? Array.from({ length: to - from + 1 }, (_, index) => shelf.chunks.get(from + index)).filter(
        Predicate.isNotUndefined
      )
      : [...shelf.chunks.values()].filter(({ chunk }) => chunk >= from && chunk <= to)
        .toSorted((a, b) => a.chunk - b.chunk)
    for (const chunk of chunks) touch(chunk, shelf)
    return chunks
  }

  return make({
    chunks: (series, from, to) => Effect.sync(() => found(series, from, to)),
    heads: (series, from, to) => Effect.sync(() => found(series, from, to)),
    put: (series, chunks, replaced) =>
      Effect.sync(() => {
        const key = Candle.seriesKey(series)
        const old = shelves.get(key)
        const follows = chunks.every(({ chunk, revision }) => (old?.chunks.get(chunk)?.revision ?? 0) === revision - 1)
        if (!follows) return false
        const shelf = old ?? { series, chunks: new Map<number, Chunk>() }
        shelves.set(key, shelf)
        for (const chunk of chunks) {
          const before = shelf.chunks.get(chunk.chunk)
          if (before !== undefined) {
            used.delete(before)
            bytes -= chunkBytes(before)
          }
          shelf.chunks.set(chunk.chunk, chunk)
          used.set(chunk, shelf)
          bytes += chunkBytes(chunk)
        }
        for (const [chunk, shelf] of used) {
          if (bytes <= maxBytes) break
          remove(chunk, shelf)
        }
        versions.push(...replaced.map((version) => ({ ...version, key })))
        versions.splice(0, Math.max(0, versions.length - maxVersions))
        return true
      }),
    earlierVersions: (series, { from, to }) =>
      Effect.sync(() =>
        versions.flatMap(({ bar, key, replacedAt }) => {
          const at = Candle.barAt(series.interval, bar.t)
          return key === Candle.seriesKey(series) && at >= from && at <= to ? [{ bar, replacedAt }] : []
        })
      ),
    list: (after) =>
      Effect.sync(() =>
        page([...shelves.values()].map(({ series }) => series), after).map((series) => {
          const chunks = [...shelves.get(Candle.seriesKey(series))?.chunks.values() ?? []]
          return {
            coin: series.coin,
            interval: series.interval,
            bars: chunks.reduce((sum, { bars }) => sum + bars, 0),
            bytes: chunks.reduce((sum, { body }) => sum + body.length, 0),
            known: Candle.unionRanges(chunks.map(({ known }) => known))
          }
        })
      )
  })
}

/**
 * Provides an archive in memory.
 *
 * Each call returns a new layer with a separate archive.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { CandleArchive } from "@trigate/archive"
 * import { Console, Effect } from "effect"
 *
 * const program = CandleArchive.CandleArchive.use((archive) => Effect.flatMap(archive.list(), Console.log))
 *
 * await Effect.runPromise(Effect.provide(program, CandleArchive.layer()))
 * ```
 * ```text
 * []
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<CandleArchive> =>
  Layer.sync(CandleArchive, () => makeMemory(options))
