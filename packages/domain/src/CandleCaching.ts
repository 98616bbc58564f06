/** Which answers to a window of bars never change: closed bars only, all of them still with the venue. */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { CandleWindowRequest } from "./Candle.ts"
import { barAt, closeOf, oldestRetainedBar } from "./CandleWindow.ts"
import * as JsonText from "./JsonText.ts"
import type { CachePolicy } from "./Operation.ts"
import { Millis } from "./Time.ts"

/** A venue whose clock is behind ours, or that writes a bar late, has closed the bar by then. */
const graceMillis = 5000

/** So long the whole window is still with the venue: longer than any deadline, and than clocks differ. */
const marginMillis = 60_000

const day = 24 * 60 * 60_000

/** Later ones are in no calendar. */
const lastInstant = 8_640_000_000_000_000

/** A day for a window whose last bar is closed and whose first one is not about to be dropped; else nothing is kept. */
export const cachePolicy = (
  { endTime, interval, startTime }: CandleWindowRequest,
  now: number
): CachePolicy | undefined => {
  if (!Predicate.isNotNullish(endTime) || endTime < startTime || endTime > now) return undefined
  const isClosed = closeOf(interval, barAt(interval, endTime)) + graceMillis < now
  const isRetained = barAt(interval, startTime) >= oldestRetainedBar(interval, now + marginMillis)
  return isClosed && isRetained ? { fresh: day, stale: day } : undefined
}

const isMillis = Schema.is(Millis)

/** Bars of the coin and interval that were asked for, in order, none of them outside of the window. */
export const isCacheable = (request: CandleWindowRequest, answer: string): boolean => {
  const rows = Result.getOrElse(JsonText.parse(answer), () => undefined)
  const { coin, endTime, interval, startTime } = request
  if (!Array.isArray(rows) || !Predicate.isNotNullish(endTime)) return false
  if (endTime < startTime || endTime > lastInstant) return false
  let before = barAt(interval, startTime) - 1
  return rows.every((row: unknown) => {
    if (!Predicate.isObject(row) || !("t" in row) || !("s" in row) || !("i" in row)) return false
    if (!isMillis(row.t) || row.t > endTime || row.s !== coin || row.i !== interval) return false
    const bar = barAt(interval, row.t)
    const follows = bar > before
    before = bar
    return follows
  })
}
