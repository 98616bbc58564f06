import { assert, describe, it } from "@effect/vitest"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import * as JsonParts from "@trigate/testing/JsonParts"
import { inTurn, say } from "@trigate/testing/Reactions"
import type { Said } from "@trigate/testing/Reactions"
import { samplePairs } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import { assertNextAnswers } from "./failover.ts"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import { assertFailure, assertGood, evm, info, layer2, neverCached, reads } from "./routes.ts"

const full = (retryAfter: string | undefined): Said => ({
  status: 429,
  headers: retryAfter === undefined ? [] : [["retry-after", retryAfter]],
  body: `{"error":"slow down"}`
})

/** What comes as `Retry-After`; a date far ahead, one that is over. */
const ahead = "Fri, 01 Jan 2100 00:00:00 GMT"
const over = "Sat, 01 Jan 2000 00:00:00 GMT"
const any = [undefined, "", "0", "1", "-1", "1.5", "1e3", "3600", "999999999999999999999", ahead, over, "soon", "1, 2"]
const long = ["60", "3600", ahead]

const anyOn = samplePairs("times of Retry-After", reads, any)

for (const route of reads.filter((each) => anyOn(each).length > 0)) {
  describe(`${route.name}: a reached rate limit`, () => {
    for (const retryAfter of anyOn(route)) {
      it.effect(`sends a read to the next address, one request to each: Retry-After ${retryAfter ?? "missing"}`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(say(full(retryAfter)))
          yield* assertNextAnswers(route, first, 1)
        }))

      it.effect(`never keeps a caller beyond the deadline: Retry-After ${retryAfter ?? "missing"}`, () =>
        Effect.gen(function*() {
          const only = yield* faultyUpstream(say(full(retryAfter)))
          const { url } = yield* gatewayOver({ [route.kind]: [only] })
          const value = yield* route.ask(url)
          if (route.protocol === "http") assert.strictEqual(value.status, 429, value.text)
          if (route.protocol === "json-rpc") assertFailure("json-rpc", value, "UpstreamRateLimited")
          if (route.protocol === "token-rpc") assert.notProperty(value.json, "result")
          assert.isAtLeast(only.requests.length, 1)
        }))
    }
  })
}

const longOn = samplePairs("times that defer an address", neverCached, long)

for (const route of neverCached) {
  describe(`${route.name}: a reached rate limit`, () => {
    for (const retryAfter of longOn(route)) {
      it.effect(`defers its address for as long as it says, and the next one serves: Retry-After ${retryAfter}`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(inTurn(say(full(retryAfter)), say(route.good)))
          const second = yield* faultyUpstream(say(route.good))
          const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
          for (let round = 0; round < 4; round++) assertGood(route, yield* route.ask(url))
          assert.deepStrictEqual(askedOf(first, second), [1, 4])
        }))
    }

    it.effect("is not asked again before its time where it is the only address", () =>
      Effect.gen(function*() {
        const only = yield* faultyUpstream(inTurn(say(full("3600")), say(route.good)))
        const { url } = yield* gatewayOver({ [route.kind]: [only] })
        yield* route.ask(url)
        assert.deepStrictEqual(askedOf(only), [1])
      }))
  })
}

describe("the time to wait", () => {
  it.effect("goes back to the caller as the upstream told it: /info", () =>
    Effect.gen(function*() {
      const only = yield* faultyUpstream(say(full("3600")))
      const { url } = yield* gatewayOver({ api: [only] })
      const answer = yield* info.ask(url)
      assert.strictEqual(answer.status, 429)
      assert.strictEqual(answer.text, `{"error":"slow down"}`)
      assert.strictEqual(answer.headers.get("retry-after"), "3600")
      assert.deepStrictEqual(askedOf(only), [1])
    }))

  for (const route of [evm, layer2]) {
    it.effect(`goes back to the caller in the typed error: ${route.name}`, () =>
      Effect.gen(function*() {
        const only = yield* faultyUpstream(say(full("3600")))
        const { url } = yield* gatewayOver({ [route.kind]: [only] })
        const error = assertFailure("json-rpc", yield* route.ask(url), "UpstreamRateLimited")
        assert.strictEqual(JsonParts.at(error, "retryAfter"), 3600)
        assert.deepStrictEqual(askedOf(only), [1])
      }))
  }

  it.effect("is the shortest one where every address is full", () =>
    Effect.gen(function*() {
      const first = yield* faultyUpstream(say(full("60")))
      const second = yield* faultyUpstream(say(full("3600")))
      const { url } = yield* gatewayOver({ layer2: [first, second] })
      const value = yield* layer2.ask(url)
      const error = assertFailure("json-rpc", value, "UpstreamRateLimited")
      assert.strictEqual(JsonParts.at(error, "retryAfter"), 60)
      assert.deepStrictEqual(askedOf(first, second), [1, 1])
    }))
})
