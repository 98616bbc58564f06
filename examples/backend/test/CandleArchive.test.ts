/** Bars go from the venue to the file in stretches, and no faster than the file takes them. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { CandleWindowRequest } from "@trigate/domain/candles/Candle"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Sink from "effect/Sink"
import * as TestClock from "effect/testing/TestClock"
import { CandleArchive } from "../src/CandleArchive.ts"
import { answered, over, rateLimited, type Reaction } from "./upstreams.ts"

const minute = 60_000
const now = Date.UTC(2026, 0, 10, 12) + minute / 2

const decodeQuery = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ type: Schema.Literal("candleSnapshot"), req: CandleWindowRequest }))
)

/** A venue with a bar for every minute, of which it keeps the newest 5000. */
const venue: Reaction = (_path, body) => {
  const { endTime, startTime } = decodeQuery(body).req
  const first = Math.max(Math.ceil(startTime / minute), Math.floor(now / minute) - 4999)
  const bars = Array.from({ length: Math.floor((endTime ?? now) / minute) - first + 1 }, (_, index) => {
    const t = (first + index) * minute
    return { t, T: t + minute - 1, s: "BTC", i: "1m", o: "1.0", c: "1.0", h: "1.0", l: "1.0", v: "2", n: 3 }
  })
  return answered(JSON.stringify(bars))
}

const archiveIn = (folder: string, react: Reaction) => {
  const { layer, sent } = over(react)
  return { archive: CandleArchive.layer(folder).pipe(Layer.provide(layer)), sent }
}

const window = (bars: number) => ({ coin: "BTC", interval: "1m" as const, startTime: now - minute / 2 - bars * minute })

/** A folder that goes away with the test. */
const temporary = FileSystem.FileSystem.use((files) => files.makeTempDirectoryScoped())

const write = (request: CandleWindowRequest) => CandleArchive.use((archive) => archive.write(request))

describe("an archive of bars", () => {
  it.effect("holds every closed bar of a window that takes several answers, each bar once", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const folder = yield* temporary
      const { archive, sent } = archiveIn(folder, venue)
      const written = yield* Effect.provide(write(window(2500)), archive)
      assert.deepStrictEqual(written, {
        file: `${folder}/BTC-1m-${window(2500).startTime}.ndjson`,
        bars: 2500,
        isWhole: true
      })
      assert.deepStrictEqual(sent.map(({ path }) => path), ["/info", "/info", "/info"])
      const files = yield* FileSystem.FileSystem
      const lines = (yield* files.readFileString(written.file)).trimEnd().split("\n")
      const times = lines.map((line) => Number(/^\{"t":(\d+),/u.exec(line)?.[1]))
      assert.deepStrictEqual(times, Array.from({ length: 2500 }, (_, index) => window(2500).startTime + index * minute))
      assert.deepStrictEqual(yield* files.readDirectory(folder), [`BTC-1m-${window(2500).startTime}.ndjson`])
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("says that it is not whole if the venue no longer keeps the oldest bars", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const { archive } = archiveIn(yield* temporary, venue)
      const { bars, isWhole } = yield* Effect.provide(write(window(6000)), archive)
      assert.deepStrictEqual({ bars, isWhole }, { bars: 4999, isWhole: false })
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("asks for no stretch before the file has taken the one before it", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const reached = yield* Latch.make()
      const isFree = yield* Latch.make()
      // a disk that takes nothing until the test frees it
      const slow = Layer.effect(
        FileSystem.FileSystem,
        Effect.map(FileSystem.FileSystem, (files) =>
          FileSystem.FileSystem.of({
            ...files,
            sink: () => Sink.forEach(() => Effect.andThen(reached.open, isFree.await))
          }))
      )
      const { archive, sent } = archiveIn(yield* temporary, venue)
      const writing = yield* Effect.forkChild(
        Effect.provide(write(window(2500)), Layer.provide(archive, slow))
      )
      yield* reached.await
      yield* TestClock.adjust("1 second")
      assert.lengthOf(sent, 1)
      yield* isFree.open
      yield* Fiber.join(writing)
      assert.lengthOf(sent, 3)
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("leaves no file if the venue refuses on the way", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const folder = yield* temporary
      let answers = 0
      const { archive } = archiveIn(folder, (path, body) => ++answers === 1 ? venue(path, body) : rateLimited)
      const error = yield* Effect.flip(Effect.provide(write(window(2500)), archive))
      assert.strictEqual(error._tag === "UpstreamError" && error.retryAfter, 60)
      assert.strictEqual(answers, 2)
      assert.deepStrictEqual(yield* FileSystem.FileSystem.use((files) => files.readDirectory(folder)), [])
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("is a fault of the set-up if it cannot be written", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const { archive, sent } = archiveIn("/dev/null/no-folder", venue)
      const error = yield* Effect.flip(Effect.provide(write(window(10)), archive))
      assert.deepInclude(error, { _tag: "ArchiveUnwritable", group: "fix-setup" })
      assert.lengthOf(sent, 0)
    }).pipe(Effect.provide(NodeServices.layer)))
})
