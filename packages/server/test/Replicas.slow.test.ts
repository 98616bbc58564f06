/** Replicas on one Postgres: one records, whatever is killed, and all can read all the time. */
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleArchiveSql from "@trigate/archive/CandleArchiveSql"
import { CandleInterval, openTime } from "@trigate/domain/candles/Candle"
import { isInstalled, postgresServer } from "@trigate/testing/PostgresServer"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { ChildProcess } from "node:child_process"
import { spawn } from "node:child_process"
import { bars } from "./replicaMarket.ts"

interface Replica {
  readonly process: ChildProcess
  /** Whether it records. */
  readonly isElected: () => boolean
  readonly kill: Effect.Effect<void>
}

const replica = (url: string, begin: number) =>
  Effect.acquireRelease(
    Effect.sync((): Replica => {
      const file = new URL("./replica.ts", import.meta.url).pathname
      const child = spawn(process.execPath, ["--conditions=@trigate/source", file, url, String(begin)], {
        stdio: ["ignore", "pipe", "pipe"]
      })
      let printed = ""
      const isElected = () => printed.includes("This replica records")
      const listeners = new Set<() => void>()
      const read = (chunk: Buffer) => {
        printed += chunk.toString("utf8")
        if (isElected()) { for (const listener of listeners) listener() }
      }
      child.stdout.on("data", read)
      child.stderr.on("data", read)
      const closed = new Promise<void>((resolve) => child.on("close", () => resolve()))
      return {
        process: child,
        isElected: () => printed.lastIndexOf("candles from now on") > printed.lastIndexOf("no longer records candles"),
        kill: Effect.andThen(Effect.sync(() => child.kill("SIGKILL")), Effect.promise(() => closed))
      }
    }),
    ({ kill }) => kill
  )

const all = { from: 0, to: 40_000_000 }
const minutes = { coin: "BTC", interval: "1m" } as const

describe.runIf(isInstalled)("replicas on one Postgres", () => {
  it.live("lose, double and tear no bar while the one that records is killed ten times, and none fails to read", () =>
    Effect.gen(function*() {
      const { url } = yield* postgresServer
      const context = yield* Layer.build(
        CandleArchiveSql.layer().pipe(
          Layer.provide(Layer.orDie(PgClient.layer({ url: Redacted.make(url), connectTimeout: "2 seconds" })))
        )
      )
      const begin = yield* Clock.currentTimeMillis
      let reads = 0
      const reading = CandleArchive.use(({ read }) => read(minutes, all, 5000)).pipe(
        Effect.tap(() => Effect.sync(() => reads += 1)),
        Effect.delay("50 millis"),
        Effect.forever
      )
      const reader = yield* Effect.forkChild(Effect.provide(reading, context))
      let running = [yield* replica(url, begin), yield* replica(url, begin)]
      const recorders = new Set<number | undefined>()
      const lastKnown = Effect.map(
        Effect.provide(CandleArchive.use(({ known }) => known(minutes, all)), context),
        (known) => known.at(-1)?.to ?? 0
      )
      for (let round = 0; round < 10; round++) {
        // in the middle of its work: some bars after the last killing
        const before = yield* lastKnown
        const goneOn = Effect.repeat(Effect.delay(lastKnown, "20 millis"), { until: (last) => last > before + 2 })
        yield* goneOn
        // while one hands over to another, neither records
        const elected = yield* Effect.repeat(
          Effect.delay(Effect.sync(() => running.filter(({ isElected }) => isElected())), "20 millis"),
          { until: ({ length }) => length === 1 }
        )
        const [leader] = elected
        assert(leader !== undefined)
        recorders.add(leader.process.pid)
        yield* leader.kill
        running = [...running.filter((other) => other !== leader), yield* replica(url, begin)]
      }
      assert.strictEqual(recorders.size, 10)
      const status = Effect.provide(CandleArchive.use((archive) => archive.list()), context)
      yield* Effect.repeat(Effect.delay(status, "20 millis"), {
        until: (series) => series.length === CandleInterval.literals.length
      })
      assert.isUndefined(reader.pollUnsafe())
      yield* Fiber.interrupt(reader)
      assert.isAbove(reads, 0)
      for (const { kill } of running) yield* kill
      yield* Effect.gen(function*() {
        const archive = yield* CandleArchive
        for (const interval of CandleInterval.literals) {
          const { bars: held, known } = yield* archive.read({ ...minutes, interval }, all)
          const [first, ...others] = known
          assert(first !== undefined)
          assert.deepStrictEqual(others, [], `a hole in ${interval}`)
          const end = openTime(interval, first.to + 1)
          const inTime = {
            coin: "BTC",
            interval,
            startTime: openTime(interval, first.to - held.length + 1),
            endTime: end - 1
          }
          assert.deepStrictEqual(held.slice(-5000), bars(inTime, end).slice(-held.length))
          assert.deepStrictEqual(yield* archive.earlierVersions({ ...minutes, interval }, all), [])
        }
      }).pipe(Effect.provide(context))
    }))
})
