import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { post } from "../gateway.ts"
import { refusingUrl } from "../recordingUpstream.ts"
import { askedOf, gatewayOver, isAsked } from "./faultyGateway.ts"
import type { FaultyUpstream, Reaction } from "./faultyUpstream.ts"
import { faultyUpstream } from "./faultyUpstream.ts"
import { hangUp, reset, say, sayHalf, silence } from "./reactions.ts"
import { assertFailure, assertGood, evm, hashOf, info, layer2, receiptQuestion } from "./routes.ts"
import type { Route } from "./routes.ts"
import { endsAfter, firstShare } from "./time.ts"

const ok = `{"status":"ok","response":{"type":"default"}}`

const faults: ReadonlyArray<readonly [what: string, react: (route: Route) => Reaction]> = [
  ["resets", () => reset],
  ["ends", () => hangUp],
  ["half bodies", (route) => sayHalf(route.good, reset)],
  ["503s", () => say({ status: 503, body: "{}" })],
  ["HTML", () => say({ headers: [["content-type", "text/html"]], body: "<html></html>" })]
]

/** Asks the same of a gateway so many times, one after the other. */
const repeatedly = (route: Route, url: string, times: number) =>
  Effect.gen(function*() {
    for (let round = 0; round < times; round++) assertGood(route, yield* route.ask(url))
  })

/** Asks for so many receipts at the same time, all different. */
const together = (url: string, times: number, from: number) =>
  Effect.forEach(
    Array.from({ length: times }, (_, index) => hashOf(from + index)),
    (hash) => post(`${url}/l2`, receiptQuestion(hash)),
    { concurrency: "unbounded" }
  )

/** Two addresses: the first fails every call as told, the second answers. */
const pair = Effect.fnUntraced(function*(route: Route, react: Reaction) {
  const first = yield* faultyUpstream(react)
  const second = yield* faultyUpstream(say(route.good))
  const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
  return { first, second, url }
})

const asked = (...upstreams: ReadonlyArray<FaultyUpstream>) => askedOf(...upstreams)

describe("an address that fails again and again", () => {
  for (const route of [info, evm, layer2]) {
    for (const [what, react] of faults) {
      it.effect(`is passed over after five faults in a row: ${route.name}, ${what}`, () =>
        Effect.gen(function*() {
          const { first, second, url } = yield* pair(route, react(route))
          yield* repeatedly(route, url, 5)
          assert.deepStrictEqual(asked(first, second), [5, 5])
          yield* repeatedly(route, url, 5)
          assert.deepStrictEqual(asked(first, second), [5, 10])
        }))
    }
  }

  it.effect("is passed over after five answers that did not come in time", () =>
    Effect.gen(function*() {
      const { first, second, url } = yield* pair(layer2, silence)
      for (let round = 1; round <= 5; round++) {
        assertGood(layer2, yield* endsAfter(firstShare, layer2.ask(url), isAsked(first, round)))
      }
      yield* repeatedly(layer2, url, 3)
      assert.deepStrictEqual(asked(first, second), [5, 8])
    }))

  it.effect("is not passed over while faults and answers take turns", () =>
    Effect.gen(function*() {
      let count = 0
      const { first, second, url } = yield* pair(layer2, (socket, one) => {
        count += 1
        if (count % 5 === 0) say(layer2.good)(socket, one)
        else reset(socket, one)
      })
      yield* repeatedly(layer2, url, 12)
      assert.deepStrictEqual(asked(first, second), [12, 10])
    }))

  it.effect("is not passed over for errors that are the node's own answers", () =>
    Effect.gen(function*() {
      const first = yield* faultyUpstream(say({ status: 422, headers: [["content-type", "text/plain"]], body: "no" }))
      const second = yield* faultyUpstream(say(info.good))
      const { url } = yield* gatewayOver({ api: [first, second] })
      for (let round = 0; round < 10; round++) assert.strictEqual((yield* info.ask(url)).status, 422)
      assert.deepStrictEqual(asked(first, second), [10, 0])
    }))

  it.effect("gets one call to prove itself when its time is over, however many come; each failure doubles the time", () =>
    Effect.gen(function*() {
      const { first, second, url } = yield* pair(layer2, reset)
      yield* repeatedly(layer2, url, 5)
      let from = 1_000
      for (const [index, seconds] of [1, 2, 4, 8, 10, 10].entries()) {
        yield* TestClock.adjust(seconds * 1000 - 1)
        yield* together(url, 10, from += 100)
        assert.strictEqual(first.asked.length, 5 + index, `before ${seconds} s are over`)
        yield* TestClock.adjust(1)
        const answers = yield* together(url, 20, from += 100)
        assert.deepStrictEqual(new Set(answers.map(({ text }) => text)), new Set([layer2.expected]))
        assert.strictEqual(first.asked.length, 6 + index, `when ${seconds} s are over`)
      }
      assert.strictEqual(second.asked.length, 5 + 6 * 30)
    }))

  it.effect("serves again when that call is answered, and after calm times begins at one second", () =>
    Effect.gen(function*() {
      const { first, second, url } = yield* pair(layer2, reset)
      yield* repeatedly(layer2, url, 5)
      yield* TestClock.adjust("1 second")
      yield* repeatedly(layer2, url, 1)
      yield* TestClock.adjust("2 seconds")
      first.react = say(layer2.good)
      yield* repeatedly(layer2, url, 4)
      assert.deepStrictEqual(asked(first, second), [10, 6])
      yield* TestClock.adjust("1 minute")
      first.react = reset
      yield* repeatedly(layer2, url, 6)
      assert.deepStrictEqual(asked(first, second), [15, 12])
      yield* TestClock.adjust("1 second")
      yield* repeatedly(layer2, url, 2)
      assert.deepStrictEqual(asked(first, second), [16, 14])
    }))

  it.effect("is asked all the same when the other half fails too", () =>
    Effect.gen(function*() {
      const { first, second, url } = yield* pair(layer2, reset)
      second.react = reset
      for (let round = 0; round < 12; round++) {
        assertFailure("json-rpc", yield* layer2.ask(url), "UpstreamUnavailable")
      }
      const before = first.asked.length + second.asked.length
      first.react = say(layer2.good)
      second.react = say(layer2.good)
      assertGood(layer2, yield* layer2.ask(url))
      assert.strictEqual(first.asked.length + second.asked.length, before + 1)
    }))

  it.effect("is tried for an action all the same where it is the only one, once", () =>
    Effect.gen(function*() {
      const dead = yield* refusingUrl
      const { url } = yield* gatewayOver({ api: [dead] })
      const act = (nonce: number) => post(`${url}/exchange`, bodyOf(nonce, bigBlocks))
      for (let round = 0; round < 8; round++) assertFailure("http", yield* act(round), "UpstreamUnavailable")
      const risen = yield* faultyUpstream(say({ body: ok }), { port: Number(new URL(dead).port) })
      assert.strictEqual((yield* act(8)).text, ok)
      assert.deepStrictEqual(asked(risen), [1])
    }))

  it.effect("is passed over by an action where another address is in good health", () =>
    Effect.gen(function*() {
      const { first, second, url } = yield* pair(info, reset)
      yield* repeatedly(info, url, 5)
      second.react = say({ body: ok })
      assert.strictEqual((yield* post(`${url}/exchange`, bodyOf(1, bigBlocks))).text, ok)
      assert.deepStrictEqual(asked(first, second), [5, 6])
    }))
})
