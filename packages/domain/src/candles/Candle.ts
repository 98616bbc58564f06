/** Candles (OHLCV bars) of the trading chain. */
import * as Schema from "effect/Schema"
import { Millis } from "../Time.ts"

const intervals = ["1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "8h", "12h", "1d", "3d", "1w", "1M"] as const

/** The 14 intervals that the venue serves. */
export const CandleInterval = Schema.Literals(intervals).annotate({ identifier: "CandleInterval" })
export type CandleInterval = typeof CandleInterval.Type

/** Number of coins per page of `GET /candles`, which lists the stored series of bars. */
export const coinsPerPage = 100

/** The pattern of a coin in a list of settings: `BTC`, `PURR/USDC`, `@107`, `dex:COIN`, `#50`. */
export const coinPattern = "[^\\s,=]{1,64}"

/** A decimal number as the venue formats it; never converted to a double. */
export const DecimalString = Schema.String.check(Schema.isPattern(/^-?[0-9]+(?:\.[0-9]+)?$/u)).annotate({
  identifier: "DecimalString"
})

/** One bar: `t` and `T` are its first and last millisecond; prices and base volume are decimal strings. */
export const Candle = Schema.Struct({
  t: Millis.annotateKey({ description: "Open time" }),
  T: Millis.annotateKey({ description: "Close time in milliseconds: open time + length of the interval - 1" }),
  s: Schema.String.annotate({ description: "Coin" }),
  i: CandleInterval,
  o: DecimalString.annotateKey({ description: "Open price" }),
  c: DecimalString.annotateKey({ description: "Close price" }),
  h: DecimalString.annotateKey({ description: "Highest price" }),
  l: DecimalString.annotateKey({ description: "Lowest price" }),
  v: DecimalString.annotateKey({ description: "Volume in the base asset" }),
  n: Schema.Natural.annotate({ description: "Number of trades" })
}).annotate({ identifier: "Candle" })
export type Candle = typeof Candle.Type

/**
 * A window of bars: every bar that closes at or after `startTime` (`T >= startTime`) and opens at or before `endTime`
 * (`t <= endTime`). Default `endTime`: now.
 *
 * `coin` is a perpetual (`BTC`, case-sensitive), a spot pair (`PURR/USDC`, `@107`), a perpetual of a builder-deployed dex
 * (`dex:COIN`) or a side of an outcome (`#50`).
 */
export const CandleWindowRequest = Schema.Struct({
  coin: Schema.String.check(Schema.isBetweenLength(1, 64)),
  interval: CandleInterval,
  startTime: Millis,
  endTime: Schema.optionalKey(Schema.NullOr(Millis))
}).annotate({ identifier: "CandleWindowRequest" })
export type CandleWindowRequest = typeof CandleWindowRequest.Type
