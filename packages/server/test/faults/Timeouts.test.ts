import { assert, describe, it } from "@effect/vitest"
import type { Reaction } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { Said } from "@trigate/testing/Reactions"
import { drip, say, sayHalf, sayHead, silence } from "@trigate/testing/Reactions"
import { samplePairs } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { askedOf, gatewayOver, isAsked } from "./faultyGateway.ts"
import { assertFailure, assertGood, reads } from "./routes.ts"
import { deadline, endsAfter, firstShare } from "./time.ts"

const silences: ReadonlyArray<readonly [what: string, react: (good: Said) => Reaction]> = [
  ["a request taken and never answered", () => silence],
  ["a head and then silence", (good) => sayHead(good, silence)],
  ["a head, half a body and then silence", (good) => sayHalf(good, silence)],
  ["an answer of one byte now and then", (good) => drip(good)]
]

const silencesOf = samplePairs("silences of an upstream", reads, silences)

for (const route of reads) {
  describe(`${route.name}: a read`, () => {
    for (const [what, react] of silencesOf(route)) {
      it.effect(`ends with its deadline: ${what}`, () =>
        Effect.gen(function*() {
          const only = yield* faultyUpstream(react(route.good))
          const { url } = yield* gatewayOver({ [route.kind]: [only] })
          const value = yield* endsAfter(deadline, route.ask(url), isAsked(only))
          const error = assertFailure(route.protocol, value, "UpstreamTimeout")
          assert.strictEqual(JsonParts.at(error, "upstream"), route.label)
          assert.strictEqual(JsonParts.at(error, "deadline"), deadline)
          assert.deepStrictEqual(askedOf(only), [1])
          yield* only.until(() => only.open() === 0)
        }))

      it.effect(`is answered by the next address in time: ${what}`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(react(route.good))
          const second = yield* faultyUpstream(say(route.good))
          const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
          assertGood(route, yield* endsAfter(firstShare, route.ask(url), isAsked(first)))
          assert.deepStrictEqual(askedOf(first, second), [1, 1])
          yield* first.until(() => first.open() < first.connections())
        }))
    }

    it.effect("ends with its deadline when no address answers, after one request to each", () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(silence)
        const second = yield* faultyUpstream(silence)
        const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
        const secondIsAsked = Effect.gen(function*() {
          yield* isAsked(first)
          yield* TestClock.adjust(firstShare)
          yield* isAsked(second)
        })
        const value = yield* endsAfter(deadline - firstShare, route.ask(url), secondIsAsked)
        assertFailure(route.protocol, value, "UpstreamTimeout")
        assert.deepStrictEqual(askedOf(first, second), [1, 1])
      }))
  })
}
