/**
 * Candle history: each closed bar of a coin and interval once, exactly as the venue spelled it, for good.
 *
 * What the venue had in a range of bars is written together with the range. A range that was never written is a gap; a bar
 * that is missing inside of one had no trade. A bar that comes again with other values replaces the old one, which is kept as an
 * earlier version.
 *
 * The layers differ in their {@link Backend}: a store of chunks in memory, in SQLite or in Postgres.
 */
import type { BarRange, BarRanges } from "@trigate/domain/BarRanges"
import * as BarRanges_ from "@trigate/domain/BarRanges"
import { Candle, CandleInterval } from "@trigate/domain/Candle"
import type { Series } from "@trigate/domain/CandleWindow"
import { barAt, isOf } from "@trigate/domain/CandleWindow"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as BarChunk from "./BarChunk.ts"

/**
 * The archive cannot be used.
 *
 * - `away`: the database cannot be reached or written at the moment;
 * - `newer`: a later version of this program has changed the database; this one neither reads nor writes it;
 * - `damaged`: it holds what this program cannot have written.
 */
export class ArchiveUnavailable extends Schema.TaggedError<ArchiveUnavailable>()("ArchiveUnavailable", {
  reason: Schema.Literals(["away", "newer", "damaged"]),
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/** Bars of a range, oldest first, and which bar numbers of the range the archive knows. */
export interface Held {
  readonly bars: ReadonlyArray<Candle>
  readonly known: BarRanges
}

/** What a write changed. */
export interface Written {
  readonly added: number
  readonly corrected: number
}

/** A bar as it was before the venue corrected it. */
export interface EarlierVersion {
  readonly bar: Candle
  /** When the corrected bar was written, in milliseconds. */
  readonly replacedAt: number
}

/** What the archive holds of a series. */
export interface SeriesStatus extends Series {
  readonly bars: number
  /** Bytes of the chunks, without what the database adds. */
  readonly bytes: number
  readonly known: BarRanges
}

const places = new Map(CandleInterval.literals.map((interval, place) => [interval, place]))

/** Orders series by coin, then by the length of a bar. */
export const byName = (a: Series, b: Series): number =>
  a.coin < b.coin ? -1 : a.coin > b.coin ? 1 : (places.get(a.interval) ?? 0) - (places.get(b.interval) ?? 0)

/** Keeps candle history. Bars are counted as `CandleWindow.barAt` counts them. */
export class CandleArchive extends Context.Service<CandleArchive, {
  /**
   * Writes all bars that the venue has in a range, which have to be closed; all of it or nothing.
   *
   * Bars outside of the range, or of another series, are a mistake of the program.
   */
  readonly write: (
    series: Series,
    range: BarRange,
    bars: ReadonlyArray<Candle>
  ) => Effect.Effect<Written, ArchiveUnavailable>
  /** The bars of a range, or of those only the newest `most` and perhaps a few before them. */
  readonly read: (series: Series, range: BarRange, most?: number) => Effect.Effect<Held, ArchiveUnavailable>
  /** The earlier versions of the bars of a range, in the order in which they were replaced. */
  readonly earlierVersions: (
    series: Series,
    range: BarRange
  ) => Effect.Effect<ReadonlyArray<EarlierVersion>, ArchiveUnavailable>
  /** Every series, by coin and interval. */
  readonly status: Effect.Effect<ReadonlyArray<SeriesStatus>, ArchiveUnavailable>
}>()("@trigate/archive/CandleArchive") {}

/** What is known of a chunk without reading its bars. */
export interface ChunkHead {
  readonly chunk: number
  readonly known: BarRanges
  readonly bars: number
  /** Goes up by one with each write. */
  readonly revision: number
}

/** A chunk of a series. Its first bar number is `chunk` times `barsPerChunk`. */
export interface Chunk extends ChunkHead {
  readonly body: Uint8Array
}

/** Where chunks are kept. */
export interface Backend {
  /** The chunks of a series from one to another, both included, in order. */
  readonly chunks: (
    series: Series,
    from: number,
    to: number
  ) => Effect.Effect<ReadonlyArray<Chunk>, ArchiveUnavailable>
  /** The same without the bars. */
  readonly heads: (
    series: Series,
    from: number,
    to: number
  ) => Effect.Effect<ReadonlyArray<ChunkHead>, ArchiveUnavailable>
  /**
   * Writes chunks and earlier versions together.
   *
   * Answers false, and writes nothing, unless each chunk follows the revision that is stored; revision 1 follows none.
   */
  readonly put: (
    series: Series,
    chunks: ReadonlyArray<Chunk>,
    replaced: ReadonlyArray<EarlierVersion>
  ) => Effect.Effect<boolean, ArchiveUnavailable>
  readonly earlierVersions: CandleArchive["Service"]["earlierVersions"]
  readonly status: CandleArchive["Service"]["status"]
}

const chunkAt = (bar: number): number => Math.floor(bar / BarChunk.barsPerChunk)

const rangeOf = (chunk: number): BarRange => ({
  from: chunk * BarChunk.barsPerChunk,
  to: (chunk + 1) * BarChunk.barsPerChunk - 1
})

const isSame = Schema.toEquivalence(Candle)

/** Chunks that are read at once even where only the newest bars are wanted; as many as 5000 bars without a gap need. */
const FEW = 6

/** The service over a backend. */
export const make = (backend: Backend): CandleArchive["Service"] => {
  /** A chunk with what was written of it, and the bars that were replaced; undefined where nothing changes. */
  const merged = (
    series: Series,
    number: number,
    old: Chunk | undefined,
    range: BarRange,
    bars: ReadonlyArray<Candle>
  ) => {
    const { from } = rangeOf(number)
    const held = old === undefined ? [] : BarChunk.decode(series, from, old.body)
    const byTime = new Map(held.map((bar) => [bar.t, bar]))
    const replaced: Array<Candle> = []
    let added = 0
    for (const bar of bars) {
      const before = byTime.get(bar.t)
      if (before === undefined) added += 1
      else if (isSame(before, bar)) continue
      else replaced.push(before)
      byTime.set(bar.t, bar)
    }
    const knownBefore = old?.known ?? []
    const known = BarRanges_.add(knownBefore, range)
    if (added === 0 && replaced.length === 0 && known === knownBefore) return undefined
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

  const write: CandleArchive["Service"]["write"] = Effect.fn("CandleArchive.write")(function*(series, range, bars) {
    const first = chunkAt(range.from)
    const last = chunkAt(range.to)
    if (range.to < range.from) return { added: 0, corrected: 0 }
    const parts = new Map<number, Array<Candle>>()
    for (const bar of bars) {
      const at = barAt(series.interval, bar.t)
      if (at < range.from || at > range.to || !isOf(series, bar)) {
        return yield* Effect.die(new Error("A bar was written that is not one of its range"))
      }
      const part = parts.get(chunkAt(at))
      if (part === undefined) parts.set(chunkAt(at), [bar])
      else part.push(bar)
    }
    const replacedAt = yield* Clock.currentTimeMillis
    const attempt = Effect.gen(function*() {
      const old = new Map((yield* backend.chunks(series, first, last)).map((chunk) => [chunk.chunk, chunk]))
      const changes = Array.from({ length: last - first + 1 }, (_, index) => first + index).flatMap((number) => {
        const own = rangeOf(number)
        const part = { from: Math.max(own.from, range.from), to: Math.min(own.to, range.to) }
        return merged(series, number, old.get(number), part, parts.get(number) ?? []) ?? []
      })
      const replaced = changes.flatMap((change) => change.replaced)
      const isWritten = changes.length === 0 || (yield* backend.put(
        series,
        changes.map(({ chunk }) => chunk),
        replaced.map((bar) => ({ bar, replacedAt }))
      ))
      return isWritten
        ? { added: changes.reduce((sum, { added }) => sum + added, 0), corrected: replaced.length }
        : undefined
    })
    // another writer may have been faster; then its bars are read first
    for (;;) {
      const written = yield* attempt
      if (written !== undefined) return written
    }
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
        // what of the last chunk lies behind the range is not known here
        wanted -= chunk === last ? 0 : bars
        first = chunk
      }
    }
    const chunks = yield* backend.chunks(series, first, last)
    const bars = chunks.flatMap(({ body, chunk }) => {
      const own = rangeOf(chunk)
      const found = BarChunk.decode(series, own.from, body)
      return own.from >= range.from && own.to <= range.to ? found : found.filter(({ t }) => {
        const bar = barAt(series.interval, t)
        return bar >= range.from && bar <= range.to
      })
    })
    const known = [...heads.filter(({ chunk }) => chunk < first), ...chunks].map((head) => head.known)
    return { bars, known: BarRanges_.within(BarRanges_.union(known), range) }
  })

  return CandleArchive.of({ write, read, earlierVersions: backend.earlierVersions, status: backend.status })
}
