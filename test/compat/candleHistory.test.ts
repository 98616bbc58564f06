/**
 * Stock clients fetch four times as many bars as the venue keeps, from a gateway that has recorded them: only their base URL is changed.
 *
 * The gateway is in this process, so that its clock stands still.
 */
import { assert, describe, it } from "@effect/vitest"
import { HttpTransport, InfoClient } from "@nktkas/hyperliquid"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import * as Connection from "@trigate/client/Connection"
import * as Info from "@trigate/client/Info"
import type { Candle } from "@trigate/domain/candles/Candle"
import { barAt, CandleWindowRequest, openTime, retainedBars } from "@trigate/domain/candles/Candle"
import * as CandleText from "@trigate/domain/unstable/candles/CandleText"
import { gateway } from "@trigate/testing/Gateway"
import type { Seen } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as FakeVenue from "../../packages/archive/test/fakeVenue.ts"
import { exchangeAt } from "./ccxtVenue.ts"
import { info } from "./venue.ts"

const minute = 60_000
const now = Date.UTC(2026, 8, 1, 10, 2, 30)
const newest = barAt("1m", now)
const count = 20_000
const first = newest - count + 1
/** What was recorded before the gateway was away for a while; the venue has all that it missed. */
const recorded = { from: first, to: newest - 100 }

const market = FakeVenue.make({ retained: retainedBars, listed: openTime("1m", first - 10_000) })
const all = market.existing("BTC", "1m", first, newest)

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ type: Schema.Literal("candleSnapshot"), req: CandleWindowRequest }))
)

/** A venue that keeps the newest 5000 bars. */
const respond = (request: Seen) =>
  Option.match(decode(request.body), {
    onNone: () => info(request),
    onSome: ({ req: { coin, endTime, startTime } }) =>
      coin === "BTC"
        ? {
          body: CandleText.write(
            all.slice(-retainedBars).filter(({ T, t }) => T >= startTime && t <= (endTime ?? now))
          )
        }
        : { status: 500, body: "null" }
  })

const folder = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "history-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

/** A gateway over a database of what was recorded; the venue does not know the coin that it records now. */
const recording = Effect.gen(function*() {
  yield* TestClock.setTime(now)
  const file = Path.join(yield* folder, "trigate.sqlite")
  yield* CandleArchive.use(({ write }) =>
    write({ coin: "BTC", interval: "1m" }, recorded, market.existing("BTC", "1m", recorded.from, recorded.to))
  ).pipe(Effect.provide(CandleArchiveSql.layer().pipe(Layer.provide(SqliteClient.layer({ file, mode: "create" })))))
  const upstream = yield* recordingUpstream(respond)
  const { url } = yield* gateway({
    TRIGATE_TRADING_API_URL: upstream.url,
    TRIGATE_DATABASE_URL: file,
    TRIGATE_ARCHIVE: "GONE:1m"
  })
  /** The windows of the coin that the venue was asked for. */
  const asked = () =>
    upstream.seen.flatMap(({ body }) =>
      Option.match(decode(body), { onNone: () => [], onSome: ({ req }) => req.coin === "BTC" ? [req] : [] })
    )
  return { url, asked }
})

/** What was missed, and the bar that is forming. */
const rest = [{ coin: "BTC", interval: "1m", startTime: openTime("1m", recorded.to + 1) }]

const starts = Array.from({ length: count / retainedBars }, (_, page) => openTime("1m", first + page * retainedBars))
const quiet = Effect.provide(Logger.layer([]))

describe("20 000 bars of a venue that keeps 5000", () => {
  it.effect("come to ccxt, page by page", () =>
    Effect.gen(function*() {
      const { asked, url } = yield* recording
      const exchange = exchangeAt(url)
      const rows = yield* Effect.promise(async () => {
        const pages: Array<ReadonlyArray<unknown>> = []
        for (const since of starts) {
          const until = since + retainedBars * minute - 1
          pages.push(...await exchange.fetchOHLCV("BTC/USDC:USDC", "1m", since, retainedBars, { until }))
        }
        return pages
      })
      const row = ({ c, h, l, o, t, v }: Candle): ReadonlyArray<unknown> => [t, ...[o, h, l, c, v].map(Number)]
      assert.deepStrictEqual(rows, all.map(row))
      assert.deepStrictEqual(asked(), rest)
    }).pipe(quiet))

  it.effect("come to ccxt as it pages forward, where it says that it does", () =>
    Effect.gen(function*() {
      const { asked, url } = yield* recording
      const exchange = exchangeAt(url)
      exchange.headers = { Prefer: "candles=oldest" }
      const times = yield* Effect.promise(async () => {
        const found: Array<number | undefined> = []
        for (let since = openTime("1m", first); since <= now;) {
          const page = await exchange.fetchOHLCV("BTC/USDC:USDC", "1m", since, retainedBars)
          found.push(...page.map(([time]) => time))
          since = (found.at(-1) ?? now) + minute
        }
        return found
      })
      assert.deepStrictEqual(times, all.map(({ t }) => t))
      assert.deepStrictEqual(asked(), rest)
    }).pipe(quiet))

  it.effect("come to @nktkas/hyperliquid, from the newest back", () =>
    Effect.gen(function*() {
      const { asked, url } = yield* recording
      const client = new InfoClient({ transport: new HttpTransport({ apiUrl: url }) })
      const bars = yield* Effect.promise(async () => {
        const pages: Array<ReadonlyArray<unknown>> = []
        let endTime = now
        for (const _ of starts) {
          const page = await client.candleSnapshot({
            coin: "BTC",
            interval: "1m",
            startTime: openTime("1m", first),
            endTime
          })
          pages.unshift(page)
          endTime = (page[0]?.t ?? 0) - 1
        }
        return pages.flat()
      })
      assert.deepStrictEqual<unknown>(bars, all)
      assert.deepStrictEqual(asked(), rest)
    }).pipe(quiet))

  it.effect("come to the typed client, which says that they are complete", () =>
    Effect.gen(function*() {
      const { asked, url } = yield* recording
      const client = Connection.layer({ baseUrl: url }).pipe(Layer.provide(FetchHttpClient.layer))
      const request = { coin: "BTC", interval: "1m", startTime: openTime("1m", first) } as const
      const stretches = yield* Stream.runCollect(Info.candles(request)).pipe(Effect.provide(client))
      assert.deepStrictEqual(stretches.flatMap(({ candles }) => candles), all)
      assert.deepStrictEqual(
        stretches.map((
          { candles, coverage, forming, sources }
        ) => [candles.length, coverage, forming?.t, sources?.stored]),
        [
          [5000, "complete", undefined, 5000],
          [5000, "complete", undefined, 5000],
          [5000, "complete", undefined, 5000],
          [5000, "complete", all.at(-1)?.t, 4999]
        ]
      )
      // the first request finds out that the gateway has more than the venue, and the last one takes the bar that is forming
      assert.deepStrictEqual(asked(), [...rest, { coin: "BTC", interval: "1m", startTime: openTime("1m", newest) }])
    }).pipe(quiet))
})
