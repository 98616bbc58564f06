/** Bars as text: a table for people, CSV, JSON; digits are printed as they came. */
import type { Candle } from "@trigate/domain/Candle"
import * as JsonText from "@trigate/domain/JsonText"
import { instant } from "./CandleWalkText.ts"
import * as Table from "./Table.ts"

/** The first line of a CSV file. */
export const csvHeader = "open_time,close_time,open,high,low,close,volume,trades"

/** A bar as a line of CSV; times are milliseconds, volume is in the base asset. */
export const csv = ({ T, c, h, l, n, o, t, v }: Candle): string => [t, T, o, h, l, c, v, n].join(",")

/** A bar as one line of JSON, as the venue spells it. */
export const json = (candle: Candle): string => JsonText.stringify(candle)

/** Bars as a table. */
export const table = (candles: ReadonlyArray<Candle>): string =>
  Table.rows(
    [
      { heading: "OPEN TIME", align: "left" },
      { heading: "OPEN", align: "right" },
      { heading: "HIGH", align: "right" },
      { heading: "LOW", align: "right" },
      { heading: "CLOSE", align: "right" },
      { heading: "VOLUME", align: "right" },
      { heading: "TRADES", align: "right" }
    ],
    candles.map(({ c, h, l, n, o, t, v }) => [instant(t), o, h, l, c, v, String(n)])
  )
