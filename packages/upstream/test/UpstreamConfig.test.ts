import { assert, describe, it } from "@effect/vitest"
import * as UpstreamConfig from "@trigate/upstream/UpstreamConfig"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"

const environment = (values: Record<string, string>) =>
  Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(values))

describe("deadline", () => {
  for (
    const [text, millis] of Object.entries({
      "500ms": 500,
      "500 millis": 500,
      "2s": 2000,
      "10 seconds": 10_000,
      "1 second": 1000,
      "0.5 seconds": 500,
      "1m": 60_000,
      "2 minutes": 120_000
    })
  ) {
    it.effect(`reads ${text}`, () =>
      Effect.gen(function*() {
        const duration = yield* UpstreamConfig.deadline("D", "1 second").pipe(environment({ D: text }))
        assert.strictEqual(Duration.toMillis(duration), millis)
      }))
  }

  for (const text of ["1000", "0 seconds", "-1 seconds", "soon", "10 parsecs", "Infinity"]) {
    it.effect(`refuses ${text}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(UpstreamConfig.deadline("D", "1 second").pipe(environment({ D: text })))
        assert.strictEqual(error._tag, "ConfigError")
      }))
  }

  it.effect("has its default", () =>
    Effect.gen(function*() {
      const duration = yield* UpstreamConfig.deadline("D", "3 seconds").pipe(environment({}))
      assert.strictEqual(Duration.toMillis(duration), 3000)
    }))
})

describe("baseUrls", () => {
  it.effect("reads a list in order, redacted", () =>
    Effect.gen(function*() {
      const urls = yield* UpstreamConfig.baseUrls("U").pipe(
        environment({ U: " https://one.example/KEY-ONE , http://127.0.0.1:8080 " })
      )
      assert.deepStrictEqual(urls.map(Redacted.value), ["https://one.example/KEY-ONE", "http://127.0.0.1:8080"])
      assert.notInclude(JSON.stringify(urls), "KEY-ONE")
    }))

  it.effect("is empty when not set", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* UpstreamConfig.baseUrls("U").pipe(environment({})), [])
    }))

  for (
    const text of [
      "ftp://one.example",
      "one.example",
      "https://one.example?key=SECRET",
      "https://",
      "http://a b",
      " , "
    ]
  ) {
    it.effect(`refuses ${text}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(UpstreamConfig.baseUrls("U").pipe(environment({ U: text })))
        assert.strictEqual(error._tag, "ConfigError")
      }))
  }
})
