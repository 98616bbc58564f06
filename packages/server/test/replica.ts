/**
 * A replica that takes part in the election of a recorder, and never ends by itself: `replica.ts <url> <begin>`.
 *
 * When it is elected it records, from a market whose minutes take a tenth of a second since `begin`.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import * as CandleRecorder from "@trigate/archive/unstable/CandleRecorder"
import * as RecorderElection from "@trigate/server/unstable/stores/RecorderElection"
import * as CandleRecording from "@trigate/trading/candles/CandleRecording"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { bars, speed, start } from "./replicaMarket.ts"

const [, , url = "", begin = ""] = process.argv

const fast = Effect.map(Clock.Clock, (real): Clock.Clock => {
  const now = () => start + (real.currentTimeMillisUnsafe() - Number(begin)) * speed
  return {
    currentTimeMillisUnsafe: now,
    currentTimeMillis: Effect.sync(now),
    currentTimeNanosUnsafe: () => real.currentTimeNanosUnsafe(),
    currentTimeNanos: real.currentTimeNanos,
    monotonicTimeNanosUnsafe: () => real.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: real.monotonicTimeNanos,
    sleep: (duration) => real.sleep(Duration.divideUnsafe(duration, speed))
  }
})

const source: CandleRecorder.Source = {
  bars: (request) => Effect.map(Clock.currentTimeMillis, (now) => bars(request, now)),
  coins: Effect.succeed([])
}

const database = Layer.orDie(PgClient.layer({ url: Redacted.make(url), connectTimeout: "2 seconds" }))

const program = Effect.gen(function*() {
  const archive = yield* CandleArchive
  const real = yield* Clock.Clock
  const { whileElected } = yield* CandleRecording.Election
  const clock = yield* fast
  yield* whileElected(
    CandleRecorder.record(source, { wishes: [{ coin: "BTC", interval: "1m" }] }).pipe(
      Effect.provideService(CandleArchive, {
        ...archive,
        // a database takes the time that it takes
        write: (...args) => Effect.provideService(archive.write(...args), Clock.Clock, real),
        read: (...args) => Effect.provideService(archive.read(...args), Clock.Clock, real),
        known: (...args) => Effect.provideService(archive.known(...args), Clock.Clock, real)
      }),
      Effect.provideService(Clock.Clock, clock),
      Effect.orDie
    )
  )
})

const services = Layer.merge(
  RecorderElection.layer({ network: "mainnet", silence: "4 seconds" }),
  CandleArchiveSql.layer()
)

await Effect.runPromise(Effect.provide(program, Layer.provide(services, database)))
