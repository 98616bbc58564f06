import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import * as NonceSource from "@trigate/signing/NonceSource"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import { isInstalled, redisServer } from "@trigate/testing/RedisServer"
import { isExhaustive } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

const signer = "0x14791697260e4c9a71f18484c9f997b308e59325"
const hour = 3_600_000

/** Nonces that each process takes. */
const each = isExhaustive ? 2500 : 500

const next = (address: `0x${string}` = signer) => NonceSource.NonceSource.use((source) => source.next(address))

const over = (url: string, options: NonceSource.RedisOptions = {}) =>
  NonceSource.layerRedis(options).pipe(
    Layer.provideMerge(NodeRedis.layer({ url, disableOfflineQueue: true })),
    // the driver logs each connection that a killed server refuses
    Layer.provideMerge(Logger.layer([]))
  )

const decodeTaken = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Schema.Int)))

const worker = fileURLToPath(new URL("./nonceWorker.ts", import.meta.url))

const nonceProcess = (url: string, count: number, offset: number) =>
  Effect.callback<ReadonlyArray<number>>((resume) => {
    const child = spawn(process.execPath, [worker, url, signer, String(count), String(offset)], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    let text = ""
    child.stdout.on("data", (chunk: Buffer) => text += chunk.toString())
    child.once("close", (code) => {
      resume(Effect.succeed(code === 0 ? decodeTaken(text) : []))
    })
  })

describe.runIf(isInstalled)("NonceSource over Redis", () => {
  it.live("1000 concurrent fibres never get the same one", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      yield* Effect.gen(function*() {
        const before = yield* Clock.currentTimeMillis
        const taken = yield* Effect.all(Array.from({ length: 1000 }, () => next()), { concurrency: "unbounded" })
        assert.strictEqual(new Set(taken).size, 1000)
        assert.isAtLeast(Math.min(...taken), before)
        assert.deepStrictEqual([...taken], taken.toSorted((a, b) => a - b))
      }).pipe(Effect.provide(over(url)))
    }))

  const offsets = isExhaustive ? [0, 0, -60_000, 60_000] : [-60_000, 60_000]

  it.live(`${offsets.length} processes with different clocks never get the same one`, () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      const parts = yield* Effect.forEach(
        offsets,
        (offset) => nonceProcess(url, each, offset),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(parts.map((part) => part.length), offsets.map(() => each))
      assert.strictEqual(new Set(parts.flat()).size, offsets.length * each)
    }))

  it.live("counts for each signer and prefix, and stops at the bound", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      const program = Effect.gen(function*() {
        const redis = yield* Redis.Redis
        const now = yield* Clock.currentTimeMillis
        yield* redis.send("SET", `trigate:nonce:${signer}`, String(now + 2 * hour))
        const error = yield* Effect.flip(next(`0x${signer.slice(2).toUpperCase()}`))
        assert(error._tag === "NonceAhead")
        assert.strictEqual(error.nonce, now + 2 * hour + 1)
        assert.strictEqual(error.wait, error.nonce - hour - error.now)
        assert.strictEqual(yield* redis.send("GET", `trigate:nonce:${signer}`), String(now + 2 * hour))
        const free = yield* next("0x0000000000000000000000000000000000000001")
        assert.isBelow(free, now + hour)
        const elsewhere = yield* next().pipe(Effect.provide(NonceSource.layerRedis({ prefix: "elsewhere:" })))
        assert.isBelow(elsewhere, now + hour)
        assert.strictEqual(yield* redis.send("GET", `elsewhere:${signer}`), String(elsewhere))
      })
      yield* program.pipe(Effect.provide(over(url)))
    }))

  it.live("forgets a signer that has been idle, and goes on after scripts are flushed", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      yield* Effect.gen(function*() {
        const redis = yield* Redis.Redis
        const first = yield* next()
        const expiry = yield* redis.send<number>("PTTL", `trigate:nonce:${signer}`)
        assert.isAtMost(expiry, 60_000)
        assert.isAbove(expiry, 50_000)
        yield* redis.send("SCRIPT", "FLUSH")
        assert.isAbove(yield* next(), first)
      }).pipe(Effect.provide(over(url, { memory: "1 minute" })))
    }))

  it.live("a value that is no nonce is a typed error, and is left alone", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      yield* Effect.gen(function*() {
        const redis = yield* Redis.Redis
        yield* redis.send("SET", `trigate:nonce:${signer}`, "words")
        assert.strictEqual((yield* Effect.flip(next()))._tag, "NonceStoreUnavailable")
        assert.strictEqual(yield* redis.send("GET", `trigate:nonce:${signer}`), "words")
      }).pipe(Effect.provide(over(url)))
    }))

  it.effect("Redis killed in the middle: every call ends, with a nonce or a typed error", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      yield* Effect.gen(function*() {
        const many = (before: Effect.Effect<void>) =>
          Effect.forEach(
            Array.from({ length: each }),
            (_, index) => Effect.andThen(index === 0 ? before : Effect.void, Effect.result(next())),
            { concurrency: 50 }
          )
        const results = [...yield* many(Effect.void), ...yield* advancingClock(many(redis.kill))]
        const taken = results.flatMap((result) => result._tag === "Success" ? [result.success] : [])
        const failed = results.flatMap((result) => result._tag === "Failure" ? [result.failure._tag] : [])
        assert.strictEqual(new Set(taken).size, taken.length)
        assert.isAtLeast(taken.length, each)
        assert.isAtLeast(failed.length, 1)
        assert.deepStrictEqual(new Set(failed), new Set(["NonceStoreUnavailable"]))
        yield* redis.restart
        yield* advancingClock(next().pipe(Effect.eventually))
      }).pipe(Effect.provide(over(redis.url, { deadline: "500 millis" })))
    }))

  it.effect("a Redis that hangs is given up at the deadline", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      yield* Effect.gen(function*() {
        yield* next()
        yield* redis.freeze
        const error = yield* advancingClock(Effect.flip(next()))
        assert.strictEqual(error._tag === "NonceStoreUnavailable" && error.detail, "no response within 200ms")
        yield* redis.thaw
        yield* next()
      }).pipe(Effect.provide(over(redis.url, { deadline: "200 millis" })))
    }))
})
