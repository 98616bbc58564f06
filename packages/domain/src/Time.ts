/** Instants as the venue counts them. */
import type * as Clock from "effect/Clock"
import * as Schema from "effect/Schema"

/** Milliseconds since the Unix epoch: nonces, candle times, clocks. */
export const Millis = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
  identifier: "Millis",
  description: "Milliseconds since the Unix epoch"
})
export type Millis = typeof Millis.Type

/** Milliseconds of a clock that never goes back; only differences mean something. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
