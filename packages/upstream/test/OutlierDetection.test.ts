import { assert, describe, it } from "@effect/vitest"
import { local } from "@trigate/domain/Caller"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import type { HealthSignal } from "@trigate/upstream/attempts/OutlierDetection"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import { HttpTransport, timedOut, TransportError } from "@trigate/upstream/transport/HttpTransport"
import * as Upstream from "@trigate/upstream/unstable/Upstream"
import * as Arr from "effect/Array"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"

const targetsOf = (count: number, label: Upstream.UpstreamLabel = "layer2", path = "") => {
  const made = Upstream.targets(
    Upstream.make(label, Arr.makeBy(count, (index) => `http://node-${index}/SECRET-KEY`)),
    path
  )
  assert(Arr.isReadonlyArrayNonEmpty(made))
  return made
}

interface Probe {
  readonly url: string
  readonly body: string
  readonly onNewConnection: boolean
}

type Reply = TransportError | "silence" | readonly [status: number, body: string, contentType?: string]

const sound: Reply = [200, `{"jsonrpc":"2.0","id":1,"result":"0x1"}`]
const reset: Reply = new TransportError({ sent: "maybe", reason: "Broken", detail: "ECONNRESET" })

/** Probes that are answered as `reply` tells; `reply` can be changed. */
const probing = (first: Reply) => {
  const probes: Array<Probe> = []
  const state = { reply: first, hold: Effect.void }
  const transport = Layer.succeed(
    HttpTransport,
    HttpTransport.of({
      send: ({ body, onNewConnection = false, timeout, url }) =>
        Effect.suspend(() => {
          probes.push({ url: Redacted.value(url), body: new TextDecoder().decode(body), onNewConnection })
          const { hold, reply } = state
          if (reply === "silence") return Effect.andThen(Effect.sleep(timeout), Effect.fail(timedOut("maybe", timeout)))
          if ("sent" in reply) return Effect.andThen(hold, Effect.fail(reply))
          const [status, text, contentType = "application/json"] = reply
          return Effect.as(hold, {
            status,
            headers: { "content-type": contentType },
            body: Utf8.encode(text)
          })
        })
    })
  )
  return { probes, state, transport }
}

const detecting =
  ({ transport }: ReturnType<typeof probing>, ...loggers: ReadonlyArray<Logger.Logger<unknown, void>>) =>
  <A, E>(effect: Effect.Effect<A, E, OutlierDetection.OutlierDetection>) =>
    effect.pipe(
      Effect.provide(OutlierDetection.layer().pipe(Layer.provide([transport, Logger.layer(loggers)]))),
      Effect.provideService(Metric.MetricRegistry, new Map())
    )

/** The detection, and the limiter from which its probes take their cost. */
const usingWith = Effect.fnUntraced(function*(limiter: RateLimiter.RateLimiter["Service"]) {
  const outliers = yield* OutlierDetection.OutlierDetection
  return {
    outliers,
    reports: (target: Upstream.Target, signal: HealthSignal, times = 1) => {
      for (let time = 0; time < times; time++) outliers.report(target, signal, limiter)
    },
    places: (targets: Arr.NonEmptyReadonlyArray<Upstream.Target>) =>
      outliers.choose(targets).targets.map(({ address }) => address)
  }
})

const using = Effect.provide(Effect.flatMap(RateLimiter.RateLimiter, usingWith), RateLimiter.layerUnlimited)

/** Lets fibers that can run do so; no time passes. */
const settle = TestClock.adjust(0)

describe("an address", () => {
  it.effect("is ejected after five suspicious attempts in a row and a failed probe", () => {
    const fake = probing(reset)
    return Effect.gen(function*() {
      const { outliers, reports } = yield* using
      const [only] = targetsOf(1)
      reports(only, "broken", 4)
      reports(only, "healthy")
      reports(only, "broken", 4)
      yield* settle
      assert.strictEqual(fake.probes.length, 0)
      fake.state.hold = Effect.yieldNow
      reports(only, "broken")
      // until the probe fails nothing changes
      assert.deepStrictEqual(outliers.choose([only]), { targets: [only], retryAfter: undefined })
      yield* settle
      assert.strictEqual(fake.probes.length, 1)
      assert.deepStrictEqual(outliers.choose([only]), { targets: [], retryAfter: 1000 })
      yield* TestClock.adjust(999)
      assert.deepStrictEqual(outliers.choose([only]), { targets: [], retryAfter: 1 })
      fake.state.reply = sound
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(outliers.choose([only]), { targets: [only], retryAfter: undefined })
      assert.strictEqual(fake.probes.length, 2)
    }).pipe(detecting(fake))
  })

  it.effect("is probed within the rate limit, and stays while the limit has no capacity for a probe", () => {
    const fake = probing(reset)
    return Effect.gen(function*() {
      const limiter = yield* RateLimiter.RateLimiter
      const { outliers, reports } = yield* usingWith(limiter)
      const [only] = targetsOf(1, "trading-api")
      // two units a probe: the limit of four has capacity for one probe beside the unit that is used, and one that is
      // reserved for actions
      yield* limiter.take({
        upstream: "trading-api",
        class: "read",
        cost: { weight: 1, requestUnits: 1 },
        caller: local,
        maxWait: 0
      })
      reports(only, "broken", 5)
      yield* settle
      assert.strictEqual(fake.probes.length, 1)
      assert.deepStrictEqual(outliers.choose([only]), { targets: [], retryAfter: 1000 })
      // the next probes, after one and then two seconds, find no capacity within their five seconds
      yield* TestClock.adjust("50 seconds")
      assert.strictEqual(fake.probes.length, 1)
      fake.state.reply = sound
      yield* TestClock.adjust("40 seconds")
      assert.strictEqual(fake.probes.length, 2)
      assert.deepStrictEqual(outliers.choose([only]), { targets: [only], retryAfter: undefined })
    }).pipe(Effect.provide(RateLimiter.layerMemory({ "trading-api": 4 })), detecting(fake))
  })

  it.effect("stays when its probe is answered, and the count begins anew", () => {
    const fake = probing(sound)
    return Effect.gen(function*() {
      const { places, reports } = yield* using
      const all = targetsOf(1)
      for (const probes of [1, 2, 3]) {
        reports(all[0], "timeout", 4)
        yield* settle
        assert.strictEqual(fake.probes.length, probes - 1)
        reports(all[0], "timeout")
        yield* settle
        assert.strictEqual(fake.probes.length, probes)
        assert.deepStrictEqual(places(all), [0])
      }
    }).pipe(detecting(fake))
  })

  for (
    const [what, reply, stays] of [
      ["a JSON-RPC error", [200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`], true],
      ["a refusal of its own", [422, "Failed to deserialize", "text/plain"], true],
      ["HTTP 429", [429, ""], true],
      ["HTTP 500", [500, "null"], false],
      ["HTTP 503", [503, "{}"], false],
      ["HTML", [200, "<html></html>", "text/html"], false],
      ["nothing", [200, ""], false],
      ["what is not JSON", [200, "ok"], false],
      ["silence", "silence", false]
    ] as const
  ) {
    it.effect(`${stays ? "stays" : "is ejected"} when its probe is answered with ${what}`, () => {
      const fake = probing(reply)
      return Effect.gen(function*() {
        const { places, reports } = yield* using
        const all = targetsOf(1)
        reports(all[0], "broken", 5)
        yield* TestClock.adjust(4999)
        assert.deepStrictEqual(places(all), stays || reply === "silence" ? [0] : [])
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(places(all), stays ? [0] : [])
      }).pipe(detecting(fake))
    })
  }

  it.effect("is probed once however many attempts fail together, and late ones change nothing", () => {
    const fake = probing(reset)
    return Effect.gen(function*() {
      const { outliers, reports } = yield* using
      const [only] = targetsOf(1)
      const answered = yield* Deferred.make<void>()
      fake.state.hold = Deferred.await(answered)
      reports(only, "not_sent", 100)
      yield* settle
      reports(only, "not_sent", 100)
      assert.strictEqual(fake.probes.length, 1)
      yield* Deferred.succeed(answered, undefined)
      yield* settle
      reports(only, "not_sent", 100)
      reports(only, "healthy", 100)
      assert.deepStrictEqual(outliers.choose([only]), { targets: [], retryAfter: 1000 })
      assert.strictEqual(fake.probes.length, 1)
    }).pipe(detecting(fake))
  })

  it.effect("stays when an attempt succeeds while its probe fails", () => {
    const fake = probing("silence")
    return Effect.gen(function*() {
      const { places, reports } = yield* using
      const all = targetsOf(1)
      reports(all[0], "timeout", 5)
      yield* TestClock.adjust("4 seconds")
      reports(all[0], "healthy")
      reports(all[0], "timeout", 4)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(places(all), [0])
    }).pipe(detecting(fake))
  })

  it.effect("is not probed for what says nothing about it", () => {
    const fake = probing(reset)
    return Effect.gen(function*() {
      const { outliers, places, reports } = yield* using
      const all = targetsOf(1)
      reports(all[0], "none", 100)
      for (let time = 0; time < 100; time++) outliers.defer(all[0], 3_600_000)
      reports(all[0], "broken", 4)
      reports(all[0], "none", 100)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(places(all), [0])
      assert.strictEqual(fake.probes.length, 0)
    }).pipe(detecting(fake))
  })

  it.effect("is probed again after 1, 2, 4, 8, 10 and 10 seconds, and after calm times begins at one", () => {
    const fake = probing(reset)
    return Effect.gen(function*() {
      const { outliers, places, reports } = yield* using
      const all = targetsOf(1)
      reports(all[0], "broken", 5)
      yield* settle
      const pauses: Array<number | undefined> = []
      for (let round = 0; round < 6; round++) {
        const { retryAfter } = outliers.choose(all)
        pauses.push(retryAfter)
        if (round === 5) fake.state.reply = sound
        yield* TestClock.adjust(retryAfter ?? 0)
        assert.strictEqual(fake.probes.length, 2 + round)
      }
      assert.deepStrictEqual(pauses, [1000, 2000, 4000, 8000, 10_000, 10_000])
      assert.deepStrictEqual(places(all), [0])
      fake.state.reply = reset
      reports(all[0], "broken", 5)
      yield* settle
      assert.deepStrictEqual(outliers.choose(all), { targets: [], retryAfter: 1000 })
    }).pipe(detecting(fake))
  })

  it.effect("is one for all paths, and another for another upstream at the same URL", () => {
    const fake = probing(reset)
    return Effect.gen(function*() {
      const { places, reports } = yield* using
      reports(targetsOf(1, "trading-node", "/evm")[0], "broken", 5)
      yield* settle
      assert.deepStrictEqual(places(targetsOf(1, "trading-node", "/info")), [])
      assert.deepStrictEqual(places(targetsOf(1, "layer2")), [0])
    }).pipe(detecting(fake))
  })

  for (
    const [label, url, body] of [
      ["trading-api", "http://node-0/SECRET-KEY/info", `{"type":"exchangeStatus"}`],
      [
        "trading-node",
        "http://node-0/SECRET-KEY/evm",
        `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`
      ],
      [
        "token-chain",
        "http://node-0/SECRET-KEY/api/v2/jsonRPC",
        `{"jsonrpc":"2.0","id":1,"method":"getMasterchainInfo","params":{}}`
      ],
      ["layer2", "http://node-0/SECRET-KEY", `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`]
    ] as const
  ) {
    it.effect(`of ${label} is probed with a light call, on a connection of its own`, () => {
      const fake = probing(sound)
      return Effect.gen(function*() {
        const { reports } = yield* using
        reports(targetsOf(1, label)[0], "broken", 5)
        yield* settle
        assert.deepStrictEqual(fake.probes, [{ url, body, onNewConnection: true }])
      }).pipe(detecting(fake))
    })
  }
})

describe("never more than half", () => {
  for (const [count, expected] of [[1, 1], [2, 1], [3, 2], [4, 2], [5, 3]] as const) {
    it.effect(`of ${count} are left out: ${expected} are asked when all are deferred, the soonest first`, () => {
      const fake = probing(sound)
      return Effect.gen(function*() {
        const { outliers, places } = yield* using
        const all = targetsOf(count)
        // the last one comes back first
        for (const [index, target] of all.entries()) outliers.defer(target, 10_000 - index)
        assert.deepStrictEqual(places(all), Arr.makeBy(expected, (index) => count - 1 - index))
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(places(all), all.map((target) => target.address))
      }).pipe(detecting(fake))
    })
  }

  it.effect("leaves one of three out, then two are out and the one that comes back first follows", () => {
    const fake = probing(sound)
    return Effect.gen(function*() {
      const { outliers, places } = yield* using
      const all = targetsOf(3)
      const second = all[1] ?? all[0]
      assert.deepStrictEqual(places(all), [0, 1, 2])
      outliers.defer(all[0], 5000)
      assert.deepStrictEqual(places(all), [1, 2])
      outliers.defer(second, 3000)
      assert.deepStrictEqual(places(all), [2, 1])
      outliers.defer(second, 6000)
      assert.deepStrictEqual(places(all), [2, 0])
    }).pipe(detecting(fake))
  })

  it.effect("keeps the ejected address whose probe comes first as a last resort", () => {
    const fake = probing(reset)
    return Effect.gen(function*() {
      const { places, reports } = yield* using
      const all = targetsOf(2)
      reports(all[0], "broken", 5)
      yield* TestClock.adjust(500)
      assert.deepStrictEqual(places(all), [1])
      reports(all[1] ?? all[0], "broken", 5)
      yield* settle
      assert.deepStrictEqual(places(all), [0])
      // what it answers there moves nothing: only its probe does
      reports(all[0], "healthy", 9)
      assert.deepStrictEqual(places(all), [0])
    }).pipe(detecting(fake))
  })

  it.effect("asks an address that wants a pause before one that is ejected", () => {
    const fake = probing(reset)
    return Effect.gen(function*() {
      const { outliers, places, reports } = yield* using
      const all = targetsOf(2)
      reports(all[1] ?? all[0], "broken", 5)
      yield* settle
      outliers.defer(all[0], 3_600_000)
      assert.deepStrictEqual(places(all), [0])
    }).pipe(detecting(fake))
  })

  it.effect("defers an address for an hour at most", () => {
    const fake = probing(sound)
    return Effect.gen(function*() {
      const { outliers, places } = yield* using
      const all = targetsOf(2)
      outliers.defer(all[0], 999_999_999_000)
      yield* TestClock.adjust(3_599_999)
      assert.deepStrictEqual(places(all), [1])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(places(all), [0, 1])
    }).pipe(detecting(fake))
  })
})

describe("what operators see", () => {
  const series = Effect.map(Metric.snapshot, (all) =>
    all.flatMap((each) => {
      const at = `${each.id} ${Object.values(each.attributes ?? {}).join(" ")}`
      return each.type === "Gauge" ? [[at, each.state.value]] : each.type === "Counter" ? [[at, each.state.count]] : []
    }))

  it.effect("is ejections, deferrals and probes by upstream and place, and no URL", () => {
    const fake = probing(reset)
    return Effect.gen(function*() {
      const { outliers, reports } = yield* using
      const [only] = targetsOf(1)
      outliers.choose([only])
      const ejected = "trigate_upstream_ejected layer2 0"
      const probed = "trigate_upstream_next_probe_seconds layer2 0"
      assert.deepStrictEqual(yield* series, [[ejected, 0], [probed, 0]])
      outliers.defer(only, 500)
      outliers.defer(only, 600)
      const deferred = ["trigate_upstream_deferrals_total layer2 0", 1]
      assert.deepStrictEqual(yield* series, [[ejected, 0], [probed, 0], deferred])
      reports(only, "broken", 4)
      reports(only, "server_fault")
      yield* settle
      const broken = ["trigate_upstream_calls_total layer2 probe broken", 1]
      const unit = "trigate_upstream_request_units_total layer2"
      const caused = ["trigate_upstream_ejections_total layer2 0 server_fault", 1]
      assert.deepStrictEqual(yield* series, [[ejected, 1], [probed, 1], deferred, broken, [unit, 1], caused])
      fake.state.reply = sound
      yield* TestClock.adjust("1 second")
      const answered = ["trigate_upstream_calls_total layer2 probe ok", 1]
      assert.deepStrictEqual(yield* series, [[ejected, 0], [probed, 0], deferred, broken, [unit, 2], caused, answered])
    }).pipe(detecting(fake))
  })

  it.effect("is the next probe by the system clock, also after that clock was set back", () =>
    Effect.gen(function*() {
      const { reports } = yield* using
      yield* TestClock.setTime(7_200_000)
      yield* TestClock.setTime(3_600_000)
      reports(targetsOf(1)[0], "broken", 5)
      yield* settle
      assert.deepInclude(yield* series, ["trigate_upstream_next_probe_seconds layer2 0", 3601])
    }).pipe(detecting(probing(reset))))

  it.effect("is a line for each ejection and each return", () => {
    const fake = probing(reset)
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => {
      lines.push(`${logLevel} ${String(message)}`)
    })
    return Effect.gen(function*() {
      const { reports } = yield* using
      reports(targetsOf(1)[0], "broken", 5)
      yield* TestClock.adjust("3 seconds")
      fake.state.reply = sound
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(lines, [
        "Warn layer2#0 is ejected: 5 consecutive attempts and its probe failed",
        "Info layer2#0 passed its probe and is used again"
      ])
    }).pipe(detecting(fake, logger))
  })
})

describe("layerAlways", () => {
  it.effect("never leaves an address out", () =>
    Effect.gen(function*() {
      const { outliers, reports } = yield* using
      const all = targetsOf(2)
      reports(all[0], "broken", 9)
      outliers.defer(all[0], 1000)
      assert.isUndefined(outliers.ready(all))
      assert.strictEqual(outliers.choose(all).targets, all)
    }).pipe(Effect.provide(OutlierDetection.layerAlways)))
})
