import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fixtures from "../fixtures.ts"
import { assertNextAnswers } from "./failover.ts"
import { askedOf, assertAtDeadline, deadline, gatewayOver, timed } from "./faultyGateway.ts"
import type { Reaction } from "./faultyUpstream.ts"
import { faultyUpstream } from "./faultyUpstream.ts"
import type { Said } from "./reactions.ts"
import { drip, sayHalf, sayHead, silence } from "./reactions.ts"
import { assertFailure, reads } from "./routes.ts"

const silences: ReadonlyArray<readonly [what: string, react: (good: Said) => Reaction]> = [
  ["a request taken and never answered", () => silence],
  ["a head and then silence", (good) => sayHead(good, silence)],
  ["a head, half a body and then silence", (good) => sayHalf(good, silence)],
  ["an answer of one byte now and then", (good) => drip(good)]
]

for (const route of reads) {
  describe.concurrent(`${route.name}: a read`, () => {
    for (const [what, react] of silences) {
      it.live(`ends with its deadline: ${what}`, () =>
        Effect.gen(function*() {
          const only = yield* faultyUpstream(react(route.good))
          const { url } = yield* gatewayOver({ [route.kind]: [only] })
          const { milliseconds, value } = yield* timed(route.ask(url))
          const error = assertFailure(route.protocol, value, "UpstreamTimeout")
          assert.strictEqual(Fixtures.at(error, "upstream"), route.label)
          assert.strictEqual(Fixtures.at(error, "deadline"), deadline)
          assertAtDeadline(milliseconds)
          assert.deepStrictEqual(askedOf(only), [1])
          yield* only.until(() => only.open() === 0)
        }))

      it.live(`is answered by the next address in time: ${what}`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(react(route.good))
          yield* assertNextAnswers(route, first, 1)
          yield* first.until(() => first.open() < first.connections())
        }))
    }

    it.live("ends with its deadline when no address answers, after one request to each", () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(silence)
        const second = yield* faultyUpstream(silence)
        const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
        const { milliseconds, value } = yield* timed(route.ask(url))
        assertFailure(route.protocol, value, "UpstreamTimeout")
        assertAtDeadline(milliseconds)
        assert.deepStrictEqual(askedOf(first, second), [1, 1])
      }))
  })
}
