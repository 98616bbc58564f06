/**
 * `CandleArchive` in memory. When the memory limit is reached, the archive evicts the least recently used bars, whose
 * ranges become gaps.
 */
import type { Series } from "@trigate/domain/candles/Candle"
import { barAt, seriesKey, unionRanges } from "@trigate/domain/candles/Candle"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type { Chunk, EarlierVersion } from "./CandleArchive.ts"
import * as CandleArchive from "./CandleArchive.ts"

/** Memory limits. */
export interface Options {
  /** Maximum total size of the encoded bars, in bytes. Default: 32 MiB, enough for about three million bars. */
  readonly maxBytes?: number
  /** Maximum number of earlier versions of bars. Default: 1000. Beyond this number, the oldest ones are dropped. */
  readonly maxVersions?: number
}

interface Shelf {
  readonly series: Series
  readonly chunks: Map<number, Chunk>
}

interface Version extends EarlierVersion {
  readonly key: string
}

/** The assumed size of a stored chunk in addition to its encoded bars, in bytes. */
const OVERHEAD = 200

const chunkBytes = ({ body }: Chunk): number => body.length + OVERHEAD

/** Makes an independent store. */
export const make = ({ maxBytes = 32 * 1024 * 1024, maxVersions = 1000 }: Options = {}): CandleArchive.CandleArchive[
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
    if (shelf.chunks.size === 0) shelves.delete(seriesKey(shelf.series))
    bytes -= chunkBytes(chunk)
  }

  const touch = (chunk: Chunk, shelf: Shelf): void => {
    used.delete(chunk)
    used.set(chunk, shelf)
  }

  const found = (series: Series, from: number, to: number): ReadonlyArray<Chunk> => {
    const shelf = shelves.get(seriesKey(series))
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

  return CandleArchive.make({
    chunks: (series, from, to) => Effect.sync(() => found(series, from, to)),
    heads: (series, from, to) => Effect.sync(() => found(series, from, to)),
    put: (series, chunks, replaced) =>
      Effect.sync(() => {
        const key = seriesKey(series)
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
          const at = barAt(series.interval, bar.t)
          return key === seriesKey(series) && at >= from && at <= to ? [{ bar, replacedAt }] : []
        })
      ),
    list: (after) =>
      Effect.sync(() =>
        CandleArchive.page([...shelves.values()].map(({ series }) => series), after).map((series) => {
          const chunks = [...shelves.get(seriesKey(series))?.chunks.values() ?? []]
          return {
            coin: series.coin,
            interval: series.interval,
            bars: chunks.reduce((sum, { bars }) => sum + bars, 0),
            bytes: chunks.reduce((sum, { body }) => sum + body.length, 0),
            known: unionRanges(chunks.map(({ known }) => known))
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
 * import { CandleArchive, CandleArchiveMemory } from "@trigate/archive"
 * import { Console, Effect } from "effect"
 *
 * const program = CandleArchive.CandleArchive.use((archive) => Effect.flatMap(archive.list(), Console.log))
 *
 * await Effect.runPromise(Effect.provide(program, CandleArchiveMemory.layer()))
 * ```
 * ```text
 * []
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<CandleArchive.CandleArchive> =>
  Layer.sync(CandleArchive.CandleArchive, () => make(options))
