/**
 * Lists of bars as the venue's JSON text, oldest first. Only the open time of each bar is decoded.
 *
 * A list consists of runs: consecutive bars in one text. A response is assembled from these texts without copying them.
 */
import type { Candle } from "@trigate/domain/candles/Candle"
import type { BarPlaces } from "@trigate/domain/candles/CandleAnswer"
import * as CandleAnswer from "@trigate/domain/candles/CandleAnswer"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import { candleSnapshot } from "@trigate/domain/info/InfoOperations"
import * as Schema from "effect/Schema"

/** Consecutive bars in one JSON text, from one index to another; the second index is excluded. */
interface Run {
  readonly text: BarPlaces
  readonly from: number
  readonly to: number
}

/** A list of bars, oldest first, without duplicates; as runs of consecutive bars. */
export type BarTexts = ReadonlyArray<Run>

/** The empty list. */
export const empty: BarTexts = []

/** The maximum number of runs in a list. A list with more runs is copied into one text. */
const MAX_RUNS = 16

/** Makes a list of all the bars in a JSON text. */
export const make = (text: BarPlaces): BarTexts =>
  text.times.length === 0 ? [] : [{ text, from: 0, to: text.times.length }]

/** Encodes bars as JSON, in the venue's format. */
export const fromBars = (bars: ReadonlyArray<Candle>): BarTexts => {
  const starts = [0]
  const texts = bars.map((bar) => {
    const text = Utf8.encode(`${CandleAnswer.write([bar]).slice(1, -1)},`)
    starts.push((starts.at(-1) ?? 0) + text.length)
    return text
  })
  return make({ bytes: Utf8.joined(texts), starts, times: bars.map(({ t }) => t) })
}

const timeAt = ({ text }: Run, index: number): number => text.times[index] ?? Number.NaN

/** Returns the number of bars. */
export const size = (list: BarTexts): number => list.reduce((sum, { from, to }) => sum + to - from, 0)

/** Returns the open times of the bars. */
export const times = (list: BarTexts): ReadonlyArray<number> =>
  list.flatMap(({ from, text, to }) => text.times.slice(from, to))

/** Returns the open time of the oldest bar. */
export const oldest = ([first]: BarTexts): number | undefined => first && timeAt(first, first.from)

/** Returns the open time of the newest bar. */
export const newest = (list: BarTexts): number | undefined => {
  const last = list.at(-1)
  return last && timeAt(last, last.to - 1)
}

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

/** Returns the bars with an open time in a range, both ends included. */
export const between = (list: BarTexts, from: number, to: number): BarTexts =>
  list.flatMap((run) => {
    const part = { text: run.text, from: barIndex(run, from), to: barIndex(run, to + 1) }
    return part.from < part.to ? [part] : []
  })

/** Returns the newest bars, up to `most` of them. */
export const takeNewest = (list: BarTexts, most: number): BarTexts => {
  let left = most
  return list.toReversed().flatMap((run) => {
    const part = { ...run, from: Math.max(run.from, run.to - left) }
    left -= part.to - part.from
    return part.from < part.to ? [part] : []
  }).toReversed()
}

const sliceBytes = ({ from, text, to }: Run): Uint8Array =>
  text.bytes.subarray(text.starts[from], (text.starts[to] ?? 0) - 1)

const [OPEN, COMMA, CLOSE] = ["[", ",", "]"].map(Utf8.encode)

/** Encodes a list of bars as JSON, in chunks. */
export const write = (list: BarTexts): ReadonlyArray<Uint8Array> => {
  const pieces: Array<Uint8Array | undefined> = [OPEN]
  for (const [index, run] of list.entries()) pieces.push(index === 0 ? undefined : COMMA, sliceBytes(run))
  return [...pieces, CLOSE].filter((piece) => piece !== undefined)
}

/** Copies the bars of all runs into one text. */
const copied = (list: BarTexts): BarTexts => {
  const starts = [0]
  for (const { from, text, to } of list) {
    for (let index = from; index < to; index++) {
      starts.push((starts.at(-1) ?? 0) + (text.starts[index + 1] ?? 0) - (text.starts[index] ?? 0))
    }
  }
  return make({ bytes: Utf8.joined(write(list)).subarray(1), starts, times: times(list) })
}

/** Merges two lists. If both contain a bar with the same open time, the bar of the second list is used. */
export const joined = (first: BarTexts, second: BarTexts): BarTexts => {
  const last = newest(first)
  const next = oldest(second)
  if (last === undefined || next === undefined) return last === undefined ? second : first
  // the usual case: the fetched bars are newer than the stored ones
  if (last < next) {
    const all = [...first, ...second]
    return all.length > MAX_RUNS ? copied(all) : all
  }
  const byTime = new Map<number, Run>()
  for (const { from, text, to } of [...first, ...second]) {
    for (let index = from; index < to; index++) byTime.set(text.times[index] ?? 0, { text, from: index, to: index + 1 })
  }
  return copied([...byTime].toSorted(([a], [b]) => a - b).map(([, run]) => run))
}

const decode = Schema.decodeEffect(Schema.fromJsonString(candleSnapshot.response))

/** Decodes the bars of a list. */
export const decoded = (list: BarTexts) => decode(Utf8.decodeLossy(Utf8.joined(write(list))))
