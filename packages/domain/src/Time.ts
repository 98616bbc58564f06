/** Instants as the venue counts them. */
import * as Schema from "effect/Schema"

/** Milliseconds since the Unix epoch: nonces, candle times, clocks. */
export const Millis = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
  identifier: "Millis",
  description: "Milliseconds since the Unix epoch"
})
export type Millis = typeof Millis.Type
