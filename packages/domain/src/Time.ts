/** Timestamps in milliseconds, the venue's unit. */
import type * as Clock from "effect/Clock"
import * as Schema from "effect/Schema"

/** Milliseconds since the Unix epoch, for nonces, candle times and clocks. */
export const Millis = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
  identifier: "Millis",
  description: "Milliseconds since the Unix epoch"
})
export type Millis = typeof Millis.Type

/** Returns the time of a monotonic clock, in milliseconds. Only the difference between two such times is meaningful. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
