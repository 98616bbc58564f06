/** Where bars begin: every interval is aligned to the epoch, so that weeks open on a Thursday; months follow the calendar. */
import type { CandleInterval } from "@trigate/domain/Candle"
import * as DateTime from "effect/DateTime"

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

const lengths: { readonly [Interval in Exclude<CandleInterval, "1M">]: number } = {
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

const monthAt = (time: number): number => {
  const { month, year } = DateTime.toPartsUtc(DateTime.makeUnsafe(time))
  return (year - 1970) * 12 + month - 1
}

const monthOpen = (index: number): number =>
  DateTime.toEpochMillis(
    DateTime.makeUnsafe({ year: 1970 + Math.floor(index / 12), month: index - Math.floor(index / 12) * 12 + 1, day: 1 })
  )

/** Number of the bar that contains an instant, in milliseconds; bar 0 contains the epoch. */
export const indexAt = (interval: CandleInterval, time: number): number =>
  interval === "1M" ? monthAt(time) : Math.floor(time / lengths[interval])

/** First millisecond of a bar. */
export const openOf = (interval: CandleInterval, index: number): number =>
  interval === "1M" ? monthOpen(index) : index * lengths[interval]

/** Last millisecond of a bar. */
export const closeOf = (interval: CandleInterval, index: number): number => openOf(interval, index + 1) - 1
