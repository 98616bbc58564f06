import { assert, describe, it } from "@effect/vitest"
import type { Reaction } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { Said } from "@trigate/testing/Reactions"
import { hangUp, inTurn, reset, say, sayHalf, sayHead } from "@trigate/testing/Reactions"
import { refusingUrl } from "@trigate/testing/RecordingUpstream"
import { samplePairs } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import { assertNextAnswers } from "./failover.ts"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import { assertFailure, assertGood, reads } from "./routes.ts"

const breaks: ReadonlyArray<readonly [what: string, react: (good: Said) => Reaction]> = [
  ["a reset after the whole request", () => reset],
  ["an end after the whole request", () => hangUp],
  ["a head and then a reset", (good) => sayHead(good, reset)],
  ["half a body and then a reset", (good) => sayHalf(good, reset)],
  ["half a body and then an end", (good) => sayHalf(good, hangUp)],
  ["a 500 of the upstream's own", () => say({ status: 500, body: `{"error":"internal"}` })],
  [
    "a 502 of something in between",
    () => say({ status: 502, headers: [["content-type", "text/html"]], body: "<html><h1>502</h1></html>" })
  ],
  ["an empty 503", () => say({ status: 503, body: "" })],
  ["an empty 504", () => say({ status: 504, body: "" })]
]

const breaksOn = samplePairs("broken connections", reads, breaks)

for (const route of reads) {
  describe(`${route.name}: a read`, () => {
    for (const [what, react] of breaksOn(route)) {
      it.effect(`is answered by the next address after ${what}, one request to each`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(react(route.good))
          yield* assertNextAnswers(route, first, 1)
        }))

      it.effect(`is asked of a single address once more after ${what}`, () =>
        Effect.gen(function*() {
          const only = yield* faultyUpstream(inTurn(react(route.good), say(route.good)))
          const { url } = yield* gatewayOver({ [route.kind]: [only] })
          const value = yield* route.ask(url)
          assertGood(route, value)
          assert.deepStrictEqual(askedOf(only), [2])
        }))
    }

    it.effect("is answered by the next address when a connection is reset as soon as it is there", () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(say(route.good))
        first.accept = (socket) => socket.resetAndDestroy()
        yield* assertNextAnswers(route, first, 0)
      }))

    it.effect("is answered by the next address when the connection is refused", () =>
      Effect.gen(function*() {
        const second = yield* faultyUpstream(say(route.good))
        const { url } = yield* gatewayOver({ [route.kind]: [yield* refusingUrl, second] })
        const value = yield* route.ask(url)
        assertGood(route, value)
        assert.deepStrictEqual(askedOf(second), [1])
      }))

    it.effect("fails within its deadline when every connection is refused", () =>
      Effect.gen(function*() {
        const { url } = yield* gatewayOver({ [route.kind]: [yield* refusingUrl, yield* refusingUrl] })
        const value = yield* route.ask(url)
        const error = assertFailure(route.protocol, value, "UpstreamUnavailable")
        assert.strictEqual(JsonParts.at(error, "upstream"), route.label)
      }))

    it.effect("fails within its deadline when every exchange is reset", () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(reset)
        const second = yield* faultyUpstream(reset)
        const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
        const value = yield* route.ask(url)
        assertFailure(route.protocol, value, "UpstreamUnavailable")
        assert.deepStrictEqual(askedOf(first, second), [2, 1])
      }))
  })
}
