import { assert, describe, it } from "@effect/vitest"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import type { Candle } from "@trigate/domain/candles/Candle"
import { closeTime, openTime } from "@trigate/domain/candles/Candle"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { liveGateway } from "./liveGateway.ts"

const quiet = Effect.provide(Logger.layer([]))

const file = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "history-"))),
    (folder) => Effect.sync(() => Fs.rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => Path.join(folder, "trigate.sqlite")
)

const archiveIn = (path: string) =>
  CandleArchiveSql.layer().pipe(Layer.provide(SqliteClient.layer({ file: path, mode: "create" })))

/** A bar of a month that closed long ago. */
const month = (bar: number): Candle => ({
  t: openTime("1M", bar),
  T: closeTime("1M", bar),
  s: "BTC",
  i: "1M",
  o: "1.0",
  c: "2.0",
  h: "3.0",
  l: "0.5",
  v: `${bar}.0`,
  n: bar
})

describe("a gateway that records", () => {
  it.live("keeps what the venue has in the database of the action log, once", () =>
    Effect.gen(function*() {
      const path = yield* file
      const bars = [month(600), month(601), month(603)]
      yield* Effect.scoped(Effect.gen(function*() {
        const { api } = yield* liveGateway({ api: () => ({ body: JSON.stringify(bars) }) }, {
          TRIGATE_ARCHIVE: "BTC:1M",
          TRIGATE_DATABASE_URL: path
        })
        const written = Effect.map(CandleArchive.use(({ list }) => list()), (found) => found.length > 0)
        yield* Effect.repeat(Effect.provide(written, archiveIn(path)), { until: (isWritten) => isWritten })
        assert.deepStrictEqual(
          api.seen.map(({ body }) => body.replace(/"endTime":[0-9]+/u, "\"endTime\":0"))
            // the stream of its bars begins with the venue's lists of coins
            .filter((body) => body.includes("candleSnapshot")),
          ["{\"type\":\"candleSnapshot\",\"req\":{\"coin\":\"BTC\",\"interval\":\"1M\",\"startTime\":0,\"endTime\":0}}"]
        )
      }))
      const held = CandleArchive.use(({ read }) => read({ coin: "BTC", interval: "1M" }, { from: 0, to: 620 }))
      assert.deepStrictEqual(yield* Effect.provide(held, archiveIn(path)), { bars, known: [{ from: 0, to: 620 }] })
    }).pipe(quiet))
})
