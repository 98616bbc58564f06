/**
 * The bars of `fixtures/archive-1.sqlite`, a database that was written when chunks had the formats 0 and 1.
 *
 * Run this file to write a database with the present formats: `node packages/archive/test/writtenBars.ts <file>`.
 */
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import type { Candle, Series } from "@trigate/domain/candles/Candle"
import { barAt, Candle as CandleSchema, closeTime, openTime } from "@trigate/domain/candles/Candle"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Fs from "node:fs"

const recorded = (name: string): ReadonlyArray<Candle> => {
  const file = new URL(`../../domain/test/fixtures/candleSnapshot-${name}.json`, import.meta.url)
  const document: unknown = JSON.parse(Fs.readFileSync(file, "utf8"))
  return Schema.decodeUnknownSync(Schema.Struct({ response: Schema.Array(CandleSchema) }))(document).response
}

/** Bars with a number that no column holds, which a chunk has as JSON. */
const odd: ReadonlyArray<Candle> = ["007", "1.0"].map((o, index) => ({
  t: openTime("1m", 29_800_000 + index),
  T: closeTime("1m", 29_800_000 + index),
  s: "ODD",
  i: "1m",
  o,
  c: "1.0",
  h: "8.0",
  l: "0.5",
  v: "12.25",
  n: 3
}))

/** Every series of the database, and the range that was written. */
export const written = [recorded("ETH-1h"), recorded("kPEPE-1h"), recorded("BTC-15m-docs"), odd].flatMap((bars) => {
  const [head] = bars
  const last = bars.at(-1)
  if (head === undefined || last === undefined) return []
  const series: Series = { coin: head.s, interval: head.i }
  return [{ series, range: { from: barAt(head.i, head.t) - 2, to: barAt(head.i, last.t) + 3 }, bars }]
})

const [, program, file] = process.argv
if (program === import.meta.filename && file !== undefined) {
  const archive = CandleArchiveSql.layer().pipe(Layer.provide(SqliteClient.layer({ file, mode: "create" })))
  const writing = CandleArchive.use(({ write }) =>
    Effect.forEach(written, ({ bars, range, series }) => write(series, range, bars))
  )
  await Effect.runPromise(Effect.provide(writing, archive))
}
