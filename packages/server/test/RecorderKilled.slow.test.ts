/** A gateway that records, as a process of its own that is killed in the middle of its work, over and over. */
import { assert, describe, it } from "@effect/vitest"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import type { BarRange, Candle } from "@trigate/domain/candles/Candle"
import { CandleInterval, CandleWindowRequest, openTime } from "@trigate/domain/candles/Candle"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { bars } from "./replicaMarket.ts"

const requestOf = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ type: Schema.String, req: CandleWindowRequest }))
)

/** The closed bars of a range, of which the market has 5000 at a time. */
const marketOf = (interval: CandleInterval, { from, to }: BarRange): ReadonlyArray<Candle> =>
  Array.from({ length: Math.ceil((to - from + 1) / 5000) }, (_, page) => from + page * 5000).flatMap((start) => {
    const end = openTime(interval, Math.min(to, start + 4999) + 1)
    return bars({ coin: "BTC", interval, startTime: openTime(interval, start), endTime: end - 1 }, end)
  })

describe("a gateway that is killed while it records", () => {
  it.live("has every bar that it was offered once and exact, when it was started again", () =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "killed-"))),
        (made) => Effect.sync(() => Fs.rmSync(made, { recursive: true, force: true }))
      )
      const file = Path.join(folder, "trigate.sqlite")
      const clock = yield* Clock.Clock
      let kill = () => {}
      let answers = 0
      let killAt = Number.POSITIVE_INFINITY
      const oldest = new Map<CandleInterval, number>()
      const venue = yield* recordingUpstream(({ body }) => {
        // the recorder also asks which coins are listed, and goes on without an answer
        if (!body.includes(`"candleSnapshot"`)) return { status: 503, body: "" }
        const { req } = requestOf(body)
        answers += 1
        const found = bars(req, clock.currentTimeMillisUnsafe())
        // what a killed gateway has not written, the venue may have dropped when the next one asks
        if (req.startTime === 0) oldest.set(req.interval, found[0]?.t ?? 0)
        // the answer goes out, and the gateway dies while it reads, decodes or writes it
        if (answers === killAt) setTimeout(() => kill(), (answers * 7) % 60)
        return { body: JSON.stringify(found) }
      })
      const environment = {
        TRIGATE_TRADING_API_URL: venue.url,
        TRIGATE_TRADING_API_WEIGHT: "1000000",
        TRIGATE_ARCHIVE: "BTC:1m",
        TRIGATE_DATABASE_URL: file
      }
      for (const after of [1, 2, 3, 2, 1, 4]) {
        killAt = answers + after
        const killed = yield* gatewayProcess(environment)
        kill = () => killed.signal("SIGKILL")
        if (answers >= killAt) kill()
        yield* Effect.promise(() => killed.ended)
      }
      killAt = Number.POSITIVE_INFINITY
      yield* gatewayProcess(environment)
      const archive = CandleArchiveSql.layer().pipe(Layer.provide(SqliteClient.layer({ file, mode: "create" })))
      yield* Effect.gen(function*() {
        const { earlierVersions, list, read } = yield* CandleArchive
        yield* Effect.repeat(Effect.delay(list(), "50 millis"), {
          until: (series) => series.length === CandleInterval.literals.length
        })
        for (const interval of CandleInterval.literals) {
          const series = { coin: "BTC", interval }
          const all = { from: 0, to: 40_000_000 }
          const { bars: held, known } = yield* read(series, all)
          const [stretch, ...others] = known
          assert(stretch !== undefined)
          assert.deepStrictEqual(others, [], `a hole in ${interval}`)
          assert.isAtMost(openTime(interval, stretch.from), oldest.get(interval) ?? 0)
          assert.deepStrictEqual(held, marketOf(interval, stretch))
          assert.deepStrictEqual(yield* earlierVersions(series, all), [])
        }
      }).pipe(Effect.provide(archive))
    }))
})
