import { assert, describe, it } from "@effect/vitest"
import type { Reaction } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import type { GatewayResponse } from "@trigate/testing/Gateway"
import { post } from "@trigate/testing/Gateway"
import { inTurn, reset, say, sayHalf } from "@trigate/testing/Reactions"
import { refusingUrl } from "@trigate/testing/RecordingUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { bigBlocks, bodyOf, delegate } from "../bodies.ts"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import { assertFailure } from "./routes.ts"

const ok = `{"status":"ok","response":{"type":"default"}}`
const good = say({ body: ok })

const tagsOf = (answers: ReadonlyArray<GatewayResponse>): ReadonlyArray<string> =>
  answers.map(({ json, status }) =>
    status === 200 ? "ok" : typeof json === "object" && json !== null && "_tag" in json ? String(json._tag) : "?"
  ).toSorted()

describe("the same action, handed in twice", () => {
  it.effect("at the same time is sent once, whoever comes first", () =>
    Effect.gen(function*() {
      const answers: Array<() => void> = []
      const only = yield* faultyUpstream((socket, asked) => void answers.push(() => good(socket, asked)))
      const { url } = yield* gatewayOver({ api: [only] })
      const body = bodyOf(yield* Clock.currentTimeMillis, bigBlocks)
      let refused = 0
      const all = yield* Effect.all(
        Array.from({ length: 20 }, () =>
          Effect.tap(post(`${url}/exchange`, body), ({ status }) =>
            Effect.sync(() => {
              refused += status === 409 ? 1 : 0
              // the one that was sent is answered when all others were
              if (refused === 19) { for (const answer of answers) answer() }
            }))),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(tagsOf(all), [...Array.from({ length: 19 }, () => "NonceAlreadyUsed"), "ok"])
      assert.deepStrictEqual(askedOf(only), [1])
    }))

  it.effect("after its answer is sent once", () =>
    Effect.gen(function*() {
      const only = yield* faultyUpstream(good)
      const { url } = yield* gatewayOver({ api: [only] })
      const body = bodyOf(yield* Clock.currentTimeMillis, bigBlocks)
      assert.strictEqual((yield* post(`${url}/exchange`, body)).text, ok)
      assertFailure("http", yield* post(`${url}/exchange`, body), "NonceAlreadyUsed")
      assert.deepStrictEqual(askedOf(only), [1])
    }))

  const breaks: ReadonlyArray<readonly [what: string, react: Reaction]> = [
    ["a reset", reset],
    ["half an answer", sayHalf({ body: ok }, reset)],
    ["HTML", say({ headers: [["content-type", "text/html"]], body: "<html></html>" })]
  ]
  for (const [what, react] of breaks) {
    it.effect(`after ${what} is sent again only if its bytes are the same`, () =>
      Effect.gen(function*() {
        const only = yield* faultyUpstream(inTurn(react, good))
        const { url } = yield* gatewayOver({ api: [only] })
        const now = yield* Clock.currentTimeMillis
        const body = bodyOf(now, bigBlocks)
        assertFailure("http", yield* post(`${url}/exchange`, body), "OutcomeUnknown")
        assert.deepStrictEqual(askedOf(only), [1])
        assert.strictEqual((yield* post(`${url}/exchange`, body)).text, ok)
        assert.deepStrictEqual(askedOf(only), [2])
        assert.strictEqual(only.requests[0]?.body, only.requests[1]?.body)
        assertFailure("http", yield* post(`${url}/exchange`, body), "NonceAlreadyUsed")
        assert.deepStrictEqual(askedOf(only), [2])
      }))
  }

  it.effect("after a connection that was refused is sent, for it was not before", () =>
    Effect.gen(function*() {
      const dead = yield* refusingUrl
      const { url } = yield* gatewayOver({ api: [dead] })
      const now = yield* Clock.currentTimeMillis
      const body = bodyOf(now, delegate(now))
      assertFailure("http", yield* post(`${url}/exchange`, body), "UpstreamUnavailable")
      const { hostname, port } = new URL(dead)
      const risen = yield* faultyUpstream(good, { host: hostname, port: Number(port) })
      assert.strictEqual((yield* post(`${url}/exchange`, body)).text, ok)
      assert.deepStrictEqual(askedOf(risen), [1])
    }))
})
