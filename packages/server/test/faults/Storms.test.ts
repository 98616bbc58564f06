import { assert, describe, it } from "@effect/vitest"
import type { Reaction } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import type { GatewayResponse } from "@trigate/testing/Gateway"
import { post } from "@trigate/testing/Gateway"
import { reset, say } from "@trigate/testing/Reactions"
import { isExhaustive, sample, samplePairs } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import { assertFailure, hashOf, receiptQuestion } from "./routes.ts"

/** A small, sound answer to `spotMeta`. */
const spotMeta = `{"universe":[],"tokens":[]}`
const question = `{"type":"spotMeta"}`

const calls = isExhaustive ? 200 : 80
/** Requests that are granted beside that: the stock of the start, which no time refills here. */
const stock = 10

const storms: ReadonlyArray<readonly [what: string, react: Reaction]> = [
  ["500s", say({ status: 500, body: `{"error":"internal"}` })],
  ["503s without a body", say({ status: 503, body: "" })],
  ["resets", reset]
]

describe("an upstream that fails every call", () => {
  const failing = samplePairs("failing upstreams", [1, 2, 3], storms)
  for (const addresses of [1, 2, 3]) {
    for (const [what, react] of failing(addresses)) {
      it.effect(`gets at most a fifth more requests than there are calls: ${what} from ${addresses}`, () =>
        Effect.gen(function*() {
          const upstreams = yield* Effect.replicateEffect(faultyUpstream(react), addresses)
          const { url } = yield* gatewayOver({ layer2: upstreams })
          const value = yield* Effect.forEach(
            Array.from({ length: calls }, (_, index) => hashOf(index)),
            (hash) => post(`${url}/l2`, receiptQuestion(hash)),
            { concurrency: 20 }
          )
          for (const answer of value) assertFailure("json-rpc", answer, "UpstreamUnavailable")
          const total = askedOf(...upstreams).reduce((sum, each) => sum + each, 0)
          assert.isAtLeast(total, addresses)
          assert.isAtMost(total, calls * 1.2 + stock)
        }))
    }
  }
})

describe("the pairs and tokens of the venue, while it fails", () => {
  const ask = (url: string) => post(`${url}/info`, question)
  const ageOf = (answer: GatewayResponse): string | null => answer.headers.get("age")

  it.effect("are asked for once in five minutes", () =>
    Effect.gen(function*() {
      const only = yield* faultyUpstream(say({ body: spotMeta }))
      const { url } = yield* gatewayOver({ api: [only] })
      for (let round = 0; round < 5; round++) assert.strictEqual((yield* ask(url)).text, spotMeta)
      assert.deepStrictEqual(askedOf(only), [1])
      yield* TestClock.adjust("6 minutes")
      assert.strictEqual((yield* ask(url)).text, spotMeta)
      yield* only.until(() => only.requests.length === 2)
    }))

  for (const [what, react] of [...storms, ["429s", say({ status: 429, body: "null" })] as const]) {
    it.effect(`are answered from memory with their age, for an hour: ${what}`, () =>
      Effect.gen(function*() {
        const only = yield* faultyUpstream(say({ body: spotMeta }))
        const { url } = yield* gatewayOver({ api: [only] })
        assert.strictEqual((yield* ask(url)).text, spotMeta)
        only.react = react
        yield* TestClock.adjust("6 minutes")
        const stale = yield* ask(url)
        assert.strictEqual(stale.status, 200)
        assert.strictEqual(stale.text, spotMeta)
        assert.strictEqual(ageOf(stale), "360")
        assert.isAtLeast(only.requests.length, 2)
        assert.isAtMost(only.requests.length, 4)
      }))
  }

  for (const [what, react] of sample("failures of the venue", storms, 1)) {
    it.effect(`are an error when what is remembered is older than an hour: ${what}`, () =>
      Effect.gen(function*() {
        const only = yield* faultyUpstream(say({ body: spotMeta }))
        const { url } = yield* gatewayOver({ api: [only] })
        assert.strictEqual((yield* ask(url)).text, spotMeta)
        only.react = react
        yield* TestClock.adjust("66 minutes")
        const answer = yield* ask(url)
        assert.isAtLeast(answer.status, 500)
        assert.isNull(ageOf(answer))
      }))
  }

  it.effect("are not remembered when they are no answer", () =>
    Effect.gen(function*() {
      const bad: ReadonlyArray<Reaction> = [
        ...storms.map(([, react]) => react),
        say({ body: "" }),
        say({ headers: [["content-type", "text/html"]], body: "<html></html>" }),
        say({ body: spotMeta.slice(0, -1) }),
        say({ body: `{"universe":[]}` }),
        say({ body: "[]" }),
        say({ body: "null" }),
        say({ status: 422, body: "Failed to deserialize" })
      ]
      const only = yield* faultyUpstream(reset)
      const { url } = yield* gatewayOver({ api: [only] })
      for (const react of bad) {
        only.react = react
        yield* ask(url)
      }
      only.react = say({ body: spotMeta })
      // by then an address that failed again and again is asked once more
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* ask(url)).text, spotMeta)
      const asked = only.requests.length
      assert.strictEqual((yield* ask(url)).text, spotMeta)
      assert.strictEqual(only.requests.length, asked)
    }))
})
