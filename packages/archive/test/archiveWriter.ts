/** A program that writes 1500 bars after 1500 bars to an archive, says so after each time, and never ends by itself. */
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { barsOf } from "./market.ts"

const origin = 29_800_500
const series = { coin: "BTC", interval: "1m" } as const

const writing = Effect.gen(function*() {
  const archive = yield* CandleArchive
  for (let from = origin;; from += 1500) {
    const range = { from, to: from + 1499 }
    yield* archive.write(series, range, barsOf("BTC", "1m", range))
    yield* Console.log(from)
  }
})

const archive = CandleArchiveSql.layer().pipe(
  Layer.provide(SqliteClient.layer({ file: process.argv[2] ?? "", mode: "create" }))
)

await Effect.runPromise(Effect.provide(writing, archive))
