/** Which answers to a window of bars never change: those with closed bars only that the venue still has in full. */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type { CandleWindowRequest } from "./Candle.ts"
import * as CandleText from "./CandleText.ts"
import { barAt, closeOf, oldestRetainedBar } from "./CandleWindow.ts"
import type { Json } from "./Json.ts"
import type { CachePolicy } from "./Operation.ts"
import { Millis } from "./Time.ts"

/** Room for a venue whose clock is behind ours, or that writes a bar late. */
const graceMillis = 5000

/** How long the venue must keep the whole window: longer than any deadline, and than clocks differ. */
const marginMillis = 60_000

const day = 24 * 60 * 60_000

/** No calendar has a later instant. */
const lastInstant = 8_640_000_000_000_000

/** A day for a window whose last bar is closed and whose first bar the venue will keep for a while; else not cached. */
export const cachePolicy = (
  { endTime, interval, startTime }: CandleWindowRequest,
  now: number
): CachePolicy | undefined => {
  if (!Predicate.isNotNullish(endTime) || endTime < startTime || endTime > now) return undefined
  const isClosed = closeOf(interval, barAt(interval, endTime)) + graceMillis < now
  const isRetained = barAt(interval, startTime) >= oldestRetainedBar(interval, now + marginMillis)
  return isClosed && isRetained ? { fresh: day, staleIfError: day } : undefined
}

const isMillis = Schema.is(Millis)

const isNumber = (value: unknown): value is number => Predicate.isNumber(value)

/** Open times of parsed bars; undefined unless all are bars of the coin and the interval. */
const timesIn = (rows: unknown, { coin, interval }: CandleWindowRequest): ReadonlyArray<number> | undefined => {
  if (!Array.isArray(rows)) return undefined
  const times = rows.map((row: unknown): unknown =>
    Predicate.isObject(row) && "t" in row && "s" in row && "i" in row && row.s === coin && row.i === interval
      ? row.t
      : undefined
  )
  return times.every(isNumber) ? times : undefined
}

/** Whether an answer holds bars of the coin and interval that were asked for, in order and inside of the window. */
export const isCacheable = (request: CandleWindowRequest, answer: Json): boolean => {
  const { coin, endTime, interval, startTime } = request
  if (!Predicate.isNotNullish(endTime) || endTime < startTime || endTime > lastInstant) return false
  const times = CandleText.openTimesIn(answer.text, coin, interval) ?? timesIn(answer.valueOrUndefined, request)
  let before = barAt(interval, startTime) - 1
  return times?.every((time) => {
    if (!isMillis(time) || time > endTime) return false
    const bar = barAt(interval, time)
    const follows = bar > before
    before = bar
    return follows
  }) ?? false
}
