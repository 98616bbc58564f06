import { assert, describe, it } from "@effect/vitest"
import { background, CurrentCaller, local } from "@trigate/domain/Caller"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import * as Operation from "@trigate/domain/operations/Operation"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as Pipeline from "@trigate/upstream/Pipeline"
import { HttpTransport, TransportError } from "@trigate/upstream/transport/HttpTransport"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Scripted from "./scripted.ts"

const lookUp = Operation.read({
  name: "lookUp",
  chain: "layer2",
  protocol: "layer2",
  summary: "",
  sources: ["node"],
  cost: { weight: 0, requestUnits: 1 },
  request: Schema.Unknown,
  response: Schema.Unknown,
  failures: []
})

const body = Utf8.encode("{}")

const read = (first: string, ...others: ReadonlyArray<string>) =>
  Pipeline.Pipeline.use((calls) =>
    calls.attempt({ operation: lookUp, targets: Scripted.targets(first, ...others) }, {
      body,
      judge: InfoProtocol.judge(lookUp)
    })
  )

const over = (transport: ReturnType<typeof Scripted.make>, options: Pipeline.Options = {}) =>
  Layer.provide(Pipeline.layer({ readDeadline: "1 second", ...options }), transport.layer)

/** Runs under the test clock until it has an answer, or for so long. */
const within = <A, E, R>(duration: `${number} millis` | `${number} seconds`, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
    yield* TestClock.adjust(duration)
    return yield* Fiber.join(fiber)
  })

const ok = Scripted.answer(200, "\"ok\"")
const isOk = (answer: Operation.UpstreamResponse) => assert.strictEqual(answer.text, "\"ok\"")

describe("a read with two addresses", () => {
  for (
    const [fault, reaction] of Object.entries({
      "refused": Scripted.refused,
      "reset": Scripted.reset,
      "a server fault": Scripted.answer(503, "null"),
      "a reached rate limit": Scripted.answer(429, "null"),
      "HTML": Scripted.html,
      "cut JSON": Scripted.answer(200, "{\"a\":"),
      "nothing at all": Scripted.answer(200, "")
    })
  ) {
    it.effect(`is answered by the second after ${fault}, at once`, () => {
      const transport = Scripted.make(({ host }) => host === "a" ? reaction : ok)
      return Effect.gen(function*() {
        isOk(yield* within("0 millis", read("a", "b")))
        assert.deepStrictEqual(transport.hosts(), ["a", "b"])
      }).pipe(Effect.provide(over(transport)))
    })
  }

  it.effect("passes an address over for an hour at most, whatever its Retry-After says", () => {
    let isFull = true
    const transport = Scripted.make(({ host }) =>
      host === "a" && isFull ? Scripted.answer(429, "null", { "retry-after": "999999999" }) : ok
    )
    return Effect.gen(function*() {
      isOk(yield* read("a", "b"))
      isFull = false
      yield* TestClock.adjust("59 minutes")
      isOk(yield* read("a", "b"))
      yield* TestClock.adjust("1 minutes")
      isOk(yield* read("a", "b"))
      assert.deepStrictEqual(transport.hosts(), ["a", "b", "b", "a"])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("leaves a silent address after half of its time", () => {
    const transport = Scripted.make(({ host }) => host === "a" ? Scripted.silence : ok)
    return Effect.gen(function*() {
      isOk(yield* within("500 millis", read("a", "b")))
      assert.deepStrictEqual(transport.seen.map(({ at, host, timeout }) => ({ host, at, timeout })), [
        { host: "a", at: 0, timeout: 500 },
        { host: "b", at: 500, timeout: 500 }
      ])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("ends with its deadline when both are silent", () => {
    const transport = Scripted.make(() => Scripted.silence)
    return Effect.gen(function*() {
      const error = yield* within("1 seconds", Effect.flip(read("a", "b")))
      assert.strictEqual(error._tag, "UpstreamTimeout")
      if (error._tag === "UpstreamTimeout") assert.strictEqual(error.deadline, 1000)
      assert.deepStrictEqual(transport.hosts(), ["a", "b"])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("gives the upstream's own words where nothing better comes", () => {
    const transport = Scripted.make(({ host }) => host === "a" ? Scripted.answer(500, "\"own words\"") : Scripted.html)
    return Effect.gen(function*() {
      const answer = yield* within("0 millis", read("a", "b"))
      assert.strictEqual(answer.status, 500)
      assert.strictEqual(answer.text, "\"own words\"")
    }).pipe(Effect.provide(over(transport, { attempts: 1 })))
  })
})

describe("a read with one address", () => {
  it.effect("is asked again after a pause of full jitter, three times at most", () => {
    const transport = Scripted.make(() => Scripted.reset)
    return Effect.gen(function*() {
      const error = yield* within("1 seconds", Effect.flip(read("a")))
      assert.strictEqual(error._tag, "UpstreamUnavailable")
      if (error._tag === "UpstreamUnavailable") assert.strictEqual(error.attempts, 3)
      const [first, second, third] = transport.seen.map(({ at }) => at)
      assert.deepStrictEqual([first, second, third], [0, 25, 75])
      // a kept connection may have been closed by the other side just then
      assert.deepStrictEqual(transport.seen.map(({ isOnNewConnection }) => isOnNewConnection), [false, true, true])
    }).pipe(
      Effect.provide(over(transport)),
      // the middle of every range: 50 and 100 milliseconds
      Effect.provideService(Random.Random, { nextDoubleUnsafe: () => 0.5, nextIntUnsafe: () => 0 })
    )
  })

  it.effect("is not asked again after what would not change", () => {
    const transport = Scripted.make(() => Scripted.html)
    return Effect.gen(function*() {
      const error = yield* within("1 seconds", Effect.flip(read("a")))
      assert.strictEqual(error._tag, "UpstreamMalformed")
      assert.strictEqual(transport.seen.length, 1)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("is asked again when the upstream said so, within its deadline", () => {
    const transport = Scripted.make(({ nth }) => nth === 0 ? Scripted.answer(429, "null", { "retry-after": "2" }) : ok)
    return Effect.gen(function*() {
      isOk(yield* within("2 seconds", read("a")))
      assert.deepStrictEqual(transport.seen.map(({ at }) => at), [0, 2000])
    }).pipe(Effect.provide(over(transport, { readDeadline: "3 seconds" })))
  })

  for (
    const headers of [{ "retry-after": "3600" }, {
      "retry-after": "Sat, 21 Nov 2026 18:00:00 GMT",
      date: "Sat, 21 Nov 2026 17:00:00 GMT"
    }]
  ) {
    it.effect(`gives the refusal when its Retry-After lies behind the deadline: ${headers["retry-after"]}`, () => {
      const transport = Scripted.make(() => Scripted.answer(429, "null", headers))
      return Effect.gen(function*() {
        const answer = yield* within("0 millis", read("a"))
        assert.strictEqual(answer.status, 429)
        assert.strictEqual(answer.retryAfter, 3600)
        assert.strictEqual(transport.seen.length, 1)
      }).pipe(Effect.provide(over(transport)))
    })
  }

  it.effect("does not give the endpoint key away in a refusal that is not UTF-8", () => {
    const latin1 = Uint8Array.from("no /KEY-OF-a, d\u00e9sol\u00e9", (letter) => letter.charCodeAt(0))
    const transport = Scripted.make(() => ({
      result: { status: 404, headers: { "content-type": "text/plain" }, body: latin1 }
    }))
    return Effect.gen(function*() {
      const answer = yield* read("a")
      assert.strictEqual(answer.text, "no /\u2026, d\ufffdsol\ufffd")
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("is not asked again without a token", () => {
    const transport = Scripted.make(() => Scripted.reset)
    return Effect.gen(function*() {
      yield* within("1 seconds", Effect.flip(read("a")))
      assert.strictEqual(transport.seen.length, 1)
    }).pipe(Effect.provide(over(transport, { retries: { share: 0, floor: 0 } })))
  })

  it.effect("is given up with its caller", () => {
    const transport = Scripted.make(() => Scripted.silence)
    return Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(read("a"), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(transport.seen.map(({ isAborted }) => isAborted), [true])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("is not sent when the rate limiter took all of its time", () => {
    const transport = Scripted.make(() => ok)
    const given: Array<number> = []
    const slow = Layer.succeed(
      RateLimiter.RateLimiter,
      RateLimiter.RateLimiter.of({
        pacerOf: () => undefined,
        tryTake: () => undefined,
        take: () => Effect.delay(Effect.succeed({ refund: (units: number) => void given.push(units) }), "1 second")
      })
    )
    return Effect.gen(function*() {
      const error = yield* within("1 seconds", Effect.flip(read("a")))
      assert.strictEqual(error._tag, "UpstreamTimeout")
      assert.strictEqual(transport.seen.length, 0)
      assert.deepStrictEqual(given, [1])
    }).pipe(Effect.provide(
      Pipeline.layerNoDeps({ owner: local, readDeadline: "1 second" }).pipe(
        Layer.provide([transport.layer, slow, OutlierDetection.layerAlways, ResponseCache.layer()])
      )
    ))
  })
})

describe("a call without an owner", () => {
  it.effect("is a defect of a gateway, and nothing is sent", () => {
    const transport = Scripted.make(() => ok)
    return Effect.gen(function*() {
      const defect = yield* Effect.flip(Effect.sandbox(read("a")))
      assert.strictEqual(
        String(Cause.squash(defect)),
        "Error: The call of lookUp has no owner: provide CurrentCaller"
      )
      assert.strictEqual(transport.seen.length, 0)
      yield* Effect.provideService(read("a"), CurrentCaller, background("work"))
      assert.strictEqual(transport.seen.length, 1)
    }).pipe(Effect.provide(
      Pipeline.layerNoDeps().pipe(
        Layer.provide([
          transport.layer,
          RateLimiter.layerUnlimited,
          OutlierDetection.layerAlways,
          ResponseCache.layer()
        ])
      )
    ))
  })
})

describe("a storm", () => {
  it.effect("of server faults is answered with a fifth more attempts than calls, and ten a second", () => {
    const transport = Scripted.make(() => Scripted.answer(500, "null"))
    return Effect.gen(function*() {
      yield* within(
        "2 seconds",
        Effect.forEach(Array.from({ length: 1000 }), () => read("a"), {
          concurrency: "unbounded"
        })
      )
      assert.isAtMost(transport.seen.length, 1000 + 200 + 30)
      assert.isAtLeast(transport.seen.length, 1000 + 200)
    }).pipe(Effect.provide(
      Pipeline.layerNoDeps({ owner: local, readDeadline: "1 second" }).pipe(
        Layer.provide([
          transport.layer,
          RateLimiter.layerUnlimited,
          OutlierDetection.layerAlways,
          ResponseCache.layer()
        ])
      )
    ))
  })

  it.effect("at one upstream has no tokens of the calls to another", () => {
    const transport = Scripted.make(({ host }) => host === "calm" ? ok : Scripted.answer(500, "null"))
    const [{ url: _, ...target }] = Scripted.targets("troubled")
    const troubled = { ...target, label: "token-chain", url: Redacted.make("http://troubled/") } as const
    const times = (count: number, one: ReturnType<typeof read>) =>
      within("1 seconds", Effect.forEach(Array.from({ length: count }), () => one, { concurrency: "unbounded" }))
    return Effect.gen(function*() {
      yield* times(1000, read("calm"))
      transport.seen.length = 0
      const { attempt: ask } = yield* Pipeline.Pipeline
      yield* times(100, ask({ operation: lookUp, targets: [troubled] }, { body, judge: InfoProtocol.judge(lookUp) }))
      assert.isAtMost(transport.seen.length, 100 + 20 + 20)
      assert.isAtLeast(transport.seen.length, 100 + 20)
    }).pipe(Effect.provide(
      Pipeline.layerNoDeps({ owner: local, readDeadline: "1 second" }).pipe(
        Layer.provide([
          transport.layer,
          RateLimiter.layerUnlimited,
          OutlierDetection.layerAlways,
          ResponseCache.layer()
        ])
      )
    ))
  })

  it.effect("is left alone once five resets in a row and a failed probe have ejected its address", () => {
    const transport = Scripted.make(() => Scripted.reset)
    return Effect.gen(function*() {
      yield* within("0 millis", Effect.forEach(Array.from({ length: 20 }), () => Effect.exit(read("a"))))
      // five calls and the probe
      assert.strictEqual(transport.seen.length, 6)
      const error = yield* Effect.flip(read("a"))
      assert.strictEqual(error._tag, "UpstreamUnavailable")
      if (error._tag === "UpstreamUnavailable") assert.strictEqual(error.attempts, 0)
      if (error._tag === "UpstreamUnavailable") assert.strictEqual(error.retryAfter, 1)
    }).pipe(Effect.provide(over(transport, { attempts: 1 })))
  })
})

describe("what callers ask", () => {
  const bad: ReadonlyArray<readonly [what: string, reaction: Scripted.Reaction]> = [
    ["HTTP 500", Scripted.answer(500, "null")],
    ["HTTP 500 in HTML", Scripted.answer(500, "<html></html>", { "content-type": "text/html" })],
    ["HTTP 503 in JSON", Scripted.answer(503, "{\"error\":\"busy\"}")],
    ["cut JSON", Scripted.answer(200, "{\"a\":")],
    ["HTML", Scripted.html],
    ["nothing at all", Scripted.answer(200, "")],
    ["a reached rate limit", Scripted.answer(429, "null", { "retry-after": "3600" })],
    ["too long an answer", {
      result: new TransportError({
        sent: "maybe",
        reason: "TooLarge",
        detail: "The response is larger than 4096 bytes"
      })
    }],
    ["the timeout of a call that may be slow", Scripted.silence]
  ]
  for (const [what, reaction] of bad) {
    it.effect(`never ejects the only address: ${what}`, () => {
      const transport = Scripted.make(({ nth }) => nth < 20 ? reaction : ok)
      return Effect.gen(function*() {
        for (let time = 0; time < 20; time++) yield* within("1 seconds", Effect.exit(read("a")))
        isOk(yield* within("0 millis", read("a")))
        assert.strictEqual(transport.seen.length, 21)
      }).pipe(Effect.provide(over(transport, { attempts: 1 })))
    })
  }

  const failing: ReadonlyArray<readonly [what: string, reaction: Scripted.Reaction]> = [
    ["HTTP 502 in HTML", Scripted.answer(502, "<html></html>", { "content-type": "text/html" })],
    ["HTTP 503 in plain words", Scripted.answer(503, "no healthy upstream", { "content-type": "text/plain" })],
    ["HTTP 504 without a body", Scripted.answer(504, "")],
    ["a refused connection", Scripted.refused],
    ["a reset", Scripted.reset]
  ]
  for (const [what, reaction] of failing) {
    it.effect(`makes five in a row a reason to probe: ${what}`, () => {
      const transport = Scripted.make(() => reaction)
      return Effect.gen(function*() {
        for (let time = 0; time < 4; time++) yield* within("0 millis", Effect.exit(read("a")))
        assert.strictEqual(transport.seen.length, 4)
        yield* within("0 millis", Effect.exit(read("a")))
        assert.deepStrictEqual(transport.seen.map(({ body }) => body.includes("eth_chainId")), [
          false,
          false,
          false,
          false,
          false,
          true
        ])
      }).pipe(Effect.provide(over(transport, { attempts: 1 })))
    })
  }

  it.effect("makes five timeouts in a row a reason to probe where the call is cheap", () => {
    const transport = Scripted.make(() => Scripted.silence)
    const readCheap = Pipeline.Pipeline.use((calls) =>
      calls.attempt({ operation: { ...lookUp, cheap: true }, targets: Scripted.targets("a") }, {
        body,
        judge: InfoProtocol.judge(lookUp)
      })
    )
    return Effect.gen(function*() {
      for (let time = 0; time < 5; time++) yield* within("1 seconds", Effect.exit(readCheap))
      assert.strictEqual(transport.seen.length, 6)
    }).pipe(Effect.provide(over(transport, { attempts: 1 })))
  })
})

describe("a slow answer", () => {
  const warm = Effect.forEach(Array.from({ length: 20 }), () => within("10 millis", read("a", "b")))

  it.effect("is raced by the second address after nearly all answers would be there", () => {
    let isSlow = false
    const transport = Scripted.make(({ host }) =>
      isSlow && host === "a" ? Scripted.late(400, ok) : Scripted.late(10, ok)
    )
    return Effect.gen(function*() {
      yield* warm
      isSlow = true
      transport.seen.length = 0
      isOk(yield* within("30 millis", read("a", "b")))
      assert.deepStrictEqual(transport.seen.map(({ host, isAborted }) => [host, isAborted]), [["a", true], [
        "b",
        false
      ]])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("is not waited for once it lost, however long its interruption takes", () => {
    let isSlow = false
    const transport = Scripted.make(({ host }) =>
      isSlow && host === "a" ? Scripted.late(400, ok) : Scripted.late(10, ok)
    )
    const slowToLeave = Layer.effect(
      HttpTransport,
      Effect.map(
        HttpTransport,
        ({ send }) =>
          HttpTransport.of({ send: (request) => Effect.onInterrupt(send(request), () => Effect.sleep("250 millis")) })
      )
    ).pipe(Layer.provide(transport.layer))
    return Effect.gen(function*() {
      yield* warm
      isSlow = true
      transport.seen.length = 0
      const answered = yield* Deferred.make<number>()
      const asking = Effect.andThen(
        read("a", "b"),
        Effect.flatMap(Clock.currentTimeMillis, (now) => Deferred.succeed(answered, now))
      )
      const begin = yield* Clock.currentTimeMillis
      yield* within("1 seconds", asking)
      assert.strictEqual((yield* Deferred.await(answered)) - begin, 30)
      assert.deepStrictEqual(transport.seen.map(({ host, isAborted }) => [host, isAborted]), [["a", true], [
        "b",
        false
      ]])
    }).pipe(Effect.provide(
      Pipeline.layerNoDeps({ owner: local, readDeadline: "1 second" }).pipe(
        Layer.provide([slowToLeave, RateLimiter.layerUnlimited, OutlierDetection.layerAlways, ResponseCache.layer()])
      )
    ))
  })

  it.effect("that comes first after all is taken, and the second given up", () => {
    let isSlow = false
    const transport = Scripted.make(({ host }) =>
      isSlow ? Scripted.late(host === "a" ? 40 : 300, ok) : Scripted.late(10, ok)
    )
    return Effect.gen(function*() {
      yield* warm
      isSlow = true
      transport.seen.length = 0
      isOk(yield* within("40 millis", read("a", "b")))
      assert.deepStrictEqual(transport.seen.map(({ host, isAborted }) => [host, isAborted]), [["a", false], [
        "b",
        true
      ]])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("is waited for where no token is left", () => {
    let isSlow = false
    const transport = Scripted.make(() => isSlow ? Scripted.late(400, ok) : Scripted.late(10, ok))
    return Effect.gen(function*() {
      yield* warm
      isSlow = true
      transport.seen.length = 0
      isOk(yield* within("400 millis", read("a", "b")))
      assert.deepStrictEqual(transport.hosts(), ["a"])
    }).pipe(Effect.provide(over(transport, { retries: { share: 0, floor: 0 } })))
  })

  it.effect("that turns out to be a fault is not the answer: the second one's is", () => {
    let isSlow = false
    const transport = Scripted.make(({ host }) =>
      isSlow ? host === "a" ? Scripted.late(30, Scripted.reset) : Scripted.late(60, ok) : Scripted.late(10, ok)
    )
    return Effect.gen(function*() {
      yield* warm
      isSlow = true
      transport.seen.length = 0
      isOk(yield* within("80 millis", read("a", "b")))
      assert.deepStrictEqual(transport.hosts(), ["a", "b"])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("whose own words are all that there is is answered with them", () => {
    let isSlow = false
    const transport = Scripted.make(({ host }) => {
      if (!isSlow) return Scripted.late(10, ok)
      return host === "a" ? Scripted.late(30, Scripted.answer(500, "\"own words\"")) : Scripted.late(60, Scripted.html)
    })
    return Effect.gen(function*() {
      yield* warm
      isSlow = true
      transport.seen.length = 0
      const answer = yield* within("80 millis", read("a", "b"))
      assert.strictEqual(answer.text, "\"own words\"")
      assert.deepStrictEqual(transport.hosts(), ["a", "b"])
    }).pipe(Effect.provide(over(transport, { attempts: 1 })))
  })
})
