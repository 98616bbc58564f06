/** Prints bars on standard output in one of four forms. */
import type { Candle } from "@trigate/domain/Candle"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as CandleText from "./CandleText.ts"

/** The forms that are files. */
export const formats = ["csv", "json", "ndjson"] as const

/** A form: a file's, or a table for people. */
export type Format = (typeof formats)[number] | "table"

/** Prints bars: those of CSV and lines of JSON as they come, the others when all are there. */
export const make = (format: Format) => {
  const lines = (texts: ReadonlyArray<string>) => texts.length === 0 ? Effect.void : Console.log(texts.join("\n"))
  const nothing = () => Effect.void
  switch (format) {
    case "csv":
      return {
        begin: Console.log(CandleText.csvHeader),
        stretch: (candles: ReadonlyArray<Candle>) => lines(candles.map(CandleText.csv)),
        end: nothing
      }
    case "ndjson":
      return {
        begin: Effect.void,
        stretch: (candles: ReadonlyArray<Candle>) => lines(candles.map(CandleText.json)),
        end: nothing
      }
    case "json":
      return {
        begin: Effect.void,
        stretch: nothing,
        end: (all: ReadonlyArray<Candle>) => Console.log(`[${all.map(CandleText.json).join(",\n ")}]`)
      }
    case "table":
      return {
        begin: Effect.void,
        stretch: nothing,
        end: (all: ReadonlyArray<Candle>) => Console.log(CandleText.table(all))
      }
  }
}
