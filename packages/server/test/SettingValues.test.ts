import { assert, describe, it } from "@effect/vitest"
import { all, settings } from "@trigate/server/unstable/settings/Settings"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"

const environment = (values: Record<string, string>) =>
  Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(values))

describe("a deadline", () => {
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
        const duration = yield* settings.readDeadline.pipe(environment({ TRIGATE_READ_DEADLINE: text }))
        assert.strictEqual(Duration.toMillis(duration), millis)
      }))
  }

  for (const text of ["1000", "0 seconds", "-1 seconds", "soon", "10 parsecs", "Infinity"]) {
    it.effect(`refuses ${text}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(settings.readDeadline.pipe(environment({ TRIGATE_READ_DEADLINE: text })))
        assert.strictEqual(error._tag, "ConfigError")
      }))
  }

  it.effect("has its default", () =>
    Effect.gen(function*() {
      const duration = yield* settings.readDeadline.pipe(environment({}))
      assert.strictEqual(Duration.toMillis(duration), 10_000)
    }))
})

describe("base URLs", () => {
  it.effect("reads a list in order, redacted", () =>
    Effect.gen(function*() {
      const urls = yield* settings.layer2Url.pipe(
        environment({ TRIGATE_LAYER2_URL: " https://one.example/KEY-ONE , http://127.0.0.1:8080 " })
      )
      assert.deepStrictEqual(urls.map(Redacted.value), ["https://one.example/KEY-ONE", "http://127.0.0.1:8080"])
      assert.notInclude(JSON.stringify(urls), "KEY-ONE")
    }))

  it.effect("is empty when not set", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* settings.layer2Url.pipe(environment({})), [])
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
        const error = yield* Effect.flip(settings.layer2Url.pipe(environment({ TRIGATE_LAYER2_URL: text })))
        assert.strictEqual(error._tag, "ConfigError")
      }))
  }
})

describe("the table", () => {
  it("has each name once", () => {
    const names = Object.values(settings).map(({ env }) => env)
    assert.strictEqual(new Set(names).size, names.length)
  })

  it.effect("gives the documented defaults", () =>
    Effect.gen(function*() {
      const { accessLog, batchLimit, host, network, port, relayInfo, strict, tradingApiWeight, ...rest } = yield* all
        .pipe(
          environment({})
        )
      assert.deepStrictEqual(
        { accessLog, batchLimit, host, network, port, relayInfo, strict, tradingApiWeight },
        {
          accessLog: true,
          batchLimit: 100,
          host: "127.0.0.1",
          network: "mainnet",
          port: 8080,
          relayInfo: true,
          strict: false,
          tradingApiWeight: 1200
        }
      )
      assert.strictEqual(Duration.toMillis(rest.onceDeadline), 20_000)
      assert.isTrue(Option.isNone(rest.relayActions))
      assert.isTrue(Option.isNone(rest.signers))
      assert.deepStrictEqual(rest.relayMethods, [])
    }))

  for (const { env, unset } of Object.values(settings)) {
    if (unset.startsWith("unset")) continue
    it.effect(`takes its own default as a text: ${env}=${unset}`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* all.pipe(environment({ [env]: unset })), yield* all.pipe(environment({})))
      }))
  }
})

describe("the settings of OpenTelemetry", () => {
  it.effect("read percent-encoded pairs, and redact those of the headers", () =>
    Effect.gen(function*() {
      const text = " authorization=Bearer%20KEY , x-empty=,x=a=b"
      const pairs = yield* settings.otelResourceAttributes.pipe(environment({ OTEL_RESOURCE_ATTRIBUTES: text }))
      assert.deepStrictEqual(pairs, Option.some({ authorization: "Bearer KEY", "x-empty": "", x: "a=b" }))
      const headers = yield* settings.otlpHeaders.pipe(environment({ OTEL_EXPORTER_OTLP_HEADERS: text }))
      assert.notInclude(JSON.stringify(headers), "KEY")
      assert.strictEqual(
        Option.getOrUndefined(
          Option.map(headers, ({ authorization = Redacted.make("") }) => Redacted.value(authorization))
        ),
        "Bearer KEY"
      )
    }))

  it.effect("read an endpoint, redacted, and times in milliseconds", () =>
    Effect.gen(function*() {
      const given = yield* all.pipe(environment({
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318/KEY",
        OTEL_BSP_SCHEDULE_DELAY: "250",
        OTEL_SDK_DISABLED: "true"
      }))
      assert.notInclude(JSON.stringify(given), "KEY")
      assert.strictEqual(Duration.toMillis(given.otelSpanDelay), 250)
      assert.strictEqual(Duration.toMillis(given.otelMetricInterval), 60_000)
      assert.isTrue(given.otelSdkDisabled)
    }))

  it.effect("read the coins that are recorded, also those whose name has a colon", () =>
    Effect.gen(function*() {
      const given = yield* all.pipe(environment({ TRIGATE_ARCHIVE: "BTC:1m, @107:5m,xyz:XYZ100:1M,#50:1m,*:1h" }))
      assert.deepStrictEqual(given.archive, [
        { coin: "BTC", interval: "1m" },
        { coin: "@107", interval: "5m" },
        { coin: "xyz:XYZ100", interval: "1M" },
        { coin: "#50", interval: "1m" },
        { coin: "*", interval: "1h" }
      ])
    }))

  it.effect("read how old answers to queries may be", () =>
    Effect.gen(function*() {
      const given = yield* all.pipe(environment({ TRIGATE_INFO_FRESHNESS: "allMids=1s, l2Book = 500 ms,meta=0s," }))
      assert.deepStrictEqual(given.infoFreshness.map(({ fresh, type }) => [type, Duration.toMillis(fresh)]), [
        ["allMids", 1000],
        ["l2Book", 500],
        ["meta", 0]
      ])
    }))

  for (
    const [text, why] of [
      ["l2book=1s", "l2book is not a known query type"],
      ["toString=1s", "toString is not a known query type"],
      ["allMids", "allMids has no age: write allMids=1s, for example"],
      ["meta=1s,allMids=5", "the age of allMids must be a duration with its unit, like `500ms` or `10 seconds`"],
      ["allMids=1s,allMids=2s", "allMids is listed twice"],
      [
        "orderStatus=1s",
        "The maximum age of orderStatus cannot be set, because this query reports the outcome of an action: only final states are cached"
      ],
      [
        "openOrders=61s",
        "The maximum age of openOrders is at most 1m, because this query returns the state of one user"
      ],
      ["meta=2 hours", "The maximum age of meta is at most 1h, because market data is never cached for longer"]
    ] as const
  ) {
    it.effect(`refuse a freshness in words: ${text}`, () =>
      Effect.gen(function*() {
        const refused = yield* Effect.flip(all.pipe(environment({ TRIGATE_INFO_FRESHNESS: text })))
        assert.strictEqual(refused.message, `SchemaError(${why}\n  at ["TRIGATE_INFO_FRESHNESS"])`)
      }))
  }

  for (
    const [name, text] of [
      ["TRIGATE_ARCHIVE", "BTC"],
      ["TRIGATE_ARCHIVE", "BTC:7m"],
      ["TRIGATE_ARCHIVE", ":1m"],
      ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"],
      ["OTEL_EXPORTER_OTLP_HEADERS", "authorization"],
      ["OTEL_EXPORTER_OTLP_HEADERS", "a=%FF"],
      ["OTEL_RESOURCE_ATTRIBUTES", "=b"],
      ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"],
      ["OTEL_TRACES_SAMPLER", "jaeger_remote"],
      ["OTEL_TRACES_SAMPLER_ARG", "1.5"],
      ["OTEL_BSP_SCHEDULE_DELAY", "5s"],
      ["OTEL_METRICS_EXPORTER", "prometheus"]
    ] as const
  ) {
    it.effect(`refuse ${name}=${text}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(all.pipe(environment({ [name]: text })))
        assert.strictEqual(error._tag, "ConfigError")
        assert.include(error.message, name)
      }))
  }
})
