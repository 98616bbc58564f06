import { assert, describe, it } from "@effect/vitest"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { post } from "@trigate/testing/Gateway"
import { say } from "@trigate/testing/Reactions"
import { sample, samplePairs } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { askedOf, gatewayOver, secretKey } from "./faultyGateway.ts"
import { assertFailure, assertGood, reads } from "./routes.ts"

const statuses = [300, 301, 302, 303, 307, 308]

/** Where a redirect points, given the address of a trap. */
const places: ReadonlyArray<readonly [what: string, of: (trap: string) => string]> = [
  ["another host", (trap) => `${trap}/elsewhere`],
  ["another host with the key", (trap) => `${trap}/${secretKey}`],
  ["a file", () => "file:///etc/passwd"],
  ["itself", () => "/"]
]

const redirect = (status: number, location: string) =>
  say({ status, headers: [["location", location]], body: `{"moved":"${location}"}` })

const placesOn = samplePairs("places of a redirect", reads, places)

for (const route of reads) {
  describe(`${route.name}: a redirect is never followed`, () => {
    for (const [what, place] of placesOn(route)) {
      it.effect(`a read goes to the next address instead of to ${what}`, () =>
        Effect.gen(function*() {
          const trap = yield* faultyUpstream(say(route.good))
          for (const status of sample(`statuses of a redirect to ${what}, ${route.name}`, statuses, 2)) {
            const first = yield* faultyUpstream(redirect(status, place(trap.url)))
            const second = yield* faultyUpstream(say(route.good))
            const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
            assertGood(route, yield* route.ask(url))
            assert.deepStrictEqual(askedOf(first, second), [1, 1], `${status}`)
          }
          assert.strictEqual(trap.connections(), 0)
        }))
    }

    it.effect("and a typed error from a single address, after one request, without the place in it", () =>
      Effect.gen(function*() {
        const trap = yield* faultyUpstream(say(route.good))
        for (const status of sample(`statuses of a redirect, ${route.name}`, statuses, 2)) {
          const only = yield* faultyUpstream(redirect(status, `${trap.url}/${secretKey}`))
          const { url } = yield* gatewayOver({ [route.kind]: [only] })
          const answer = yield* route.ask(url)
          assertFailure(route.protocol, answer, "UpstreamMalformed")
          assert.isNull(answer.headers.get("location"))
          assert.notInclude(answer.text, trap.url)
          assert.notInclude(answer.text, secretKey)
          assert.deepStrictEqual(askedOf(only), [1], `${status}`)
        }
        assert.strictEqual(trap.connections(), 0)
      }))
  })
}

describe("/exchange: a redirect is never followed", () => {
  for (const [what, place] of places) {
    it.effect(`an action that is sent to ${what} has an unknown outcome, after one request`, () =>
      Effect.gen(function*() {
        const trap = yield* faultyUpstream(say({ body: `{"status":"ok"}` }))
        for (const status of sample(`statuses of a redirected action, ${what}`, statuses, 2)) {
          const first = yield* faultyUpstream(redirect(status, place(trap.url)))
          const { url } = yield* gatewayOver({ api: [first, trap] })
          const answer = yield* post(`${url}/exchange`, bodyOf(yield* Clock.currentTimeMillis, bigBlocks))
          assertFailure("http", answer, "OutcomeUnknown")
          assert.isNull(answer.headers.get("location"))
          assert.deepStrictEqual(askedOf(first, trap), [1, 0], `${status}`)
        }
      }))
  }
})
