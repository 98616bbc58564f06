import { assert, describe, it } from "@effect/vitest"
import { get, post } from "@trigate/testing/Gateway"
import { signMultiSig } from "@trigate/testing/MultiSigText"
import { isExhaustive } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { gzipSync } from "node:zlib"
import { bigBlocks, bodyOf, delegate, multiSig, multiSigBody } from "../bodies.ts"
import { liveGateway } from "../liveGateway.ts"

const limit = 64 * 1024
const accepted = `{"status":"ok","response":{"type":"default"}}`
const refusal = { status: 403, type: "text/html", body: "<html>blocked</html>" }

/** A body of so many bytes, which a member of its action fills. */
const padded = (nonce: number, length: number): string => {
  const textOf = (memo: string) => bodyOf(nonce, `{"type":"evmUserModify","usingBigBlocks":true,"memo":"${memo}"}`)
  return textOf("x".repeat(length - textOf("").length))
}

describe("bodies that fill the action log", () => {
  it.live("have at most 64 KiB, compressed or not, and a larger one reaches nobody", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => ({ status: 502, body: "" }) })
      const now = yield* Clock.currentTimeMillis
      for (const length of [limit + 1, 1024 * 1024]) {
        const text = padded(now, length)
        for (
          const sent of [
            post(`${live.url}/exchange`, text),
            post(`${live.url}/exchange`, gzipSync(text), { "content-encoding": "gzip" })
          ]
        ) {
          const refused = yield* sent
          assert.strictEqual(refused.status, 413)
          assert.include(refused.json, { _tag: "PayloadTooLarge", limit })
        }
      }
      assert.lengthOf(live.seen(), 0)
      live.api.respond = () => ({ body: accepted })
      assert.strictEqual((yield* post(`${live.url}/exchange`, padded(now, limit))).status, 200)
    }))

  it.live("have no member that nobody signed, but those that clients of the venue send", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => ({ body: accepted }) })
      const now = yield* Clock.currentTimeMillis
      for (const member of ["padding", "venueChain", "toString", "__proto__"]) {
        const refused = yield* post(
          `${live.url}/exchange`,
          bodyOf(now, bigBlocks, `,"${member}":"${"x".repeat(1000)}"`)
        )
        assert.strictEqual(refused.status, 400)
        assert.deepInclude(refused.json, {
          _tag: "InvalidRequest",
          errors: [{ path: [member], message: "Not a member of a signed action" }]
        })
      }
      assert.lengthOf(live.seen(), 0)
      const members = [``, `,"vaultAddress":null,"expiresAfter":null`, `,"isFrontend":true`]
      for (const [index, more] of members.entries()) {
        const answer = yield* post(`${live.url}/exchange`, bodyOf(now + index, bigBlocks, more))
        assert.strictEqual(answer.status, 200)
      }
    }))

  it.live("leave room for a multi-sig of ten co-signers around a long batch", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => ({ body: accepted }) })
      const now = yield* Clock.currentTimeMillis
      const order = `{"a":10000,"b":true,"p":"12345.678","s":"1000.12345","r":false,"t":{"limit":{"tif":"Gtc"}}}`
      const inner = `{"type":"order","orders":[${Array.from({ length: 500 }, () => order).join(",")}],"grouping":"na"}`
      const body = signMultiSig(bodyOf(now, multiSig(inner)))
      assert.isAbove(body.length, 45_000)
      assert.strictEqual((yield* post(`${live.url}/exchange`, body)).status, 200)
      assert.deepStrictEqual(live.api.seen.map((seen) => seen.body), [body])
    }))
})

describe("a firewall in front of the venue", () => {
  it.live("refuses for itself, and only a refusal that may be late leaves an unknown outcome", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => refusal })
      const now = yield* Clock.currentTimeMillis
      const first = yield* post(`${live.url}/exchange`, bodyOf(now, delegate(now, "1")))
      assert.deepStrictEqual([first.status, first.text], [403, refusal.body])
      live.api.respond = () => ({ ...refusal, status: 408 })
      const unknown = yield* post(`${live.url}/exchange`, bodyOf(now, delegate(now, "1")))
      assert.strictEqual(unknown.status, 504)
      assert.include(unknown.json, { _tag: "OutcomeUnknown", nonce: now })
      live.api.respond = () => ({ body: accepted })
      // nobody was sent anything else under the nonce of an unknown outcome
      assert.strictEqual((yield* post(`${live.url}/exchange`, bodyOf(now, delegate(now, "1")))).status, 200)
      assert.strictEqual(live.api.seen.length, 3)
    }))
})

describe("a flood of random signatures while the venue is away", () => {
  it.live("takes no room from a signer that had an action accepted, and the readiness tells", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => ({ body: accepted }) }, { TRIGATE_TRADING_API_WEIGHT: "1000000" })
      const now = yield* Clock.currentTimeMillis
      const honest = (nonce: number) =>
        post(`${live.url}/exchange`, multiSigBody(nonce, `{"type":"order","orders":[],"grouping":"na"}`))
      assert.strictEqual((yield* honest(now)).status, 200)
      live.api.respond = () => ({ status: 502, body: "" })
      // each of these bodies recovers to another signer; together they have more than the room of strangers, and in an
      // exhaustive run more than 64 MiB
      const sent = isExhaustive ? 1040 : 120
      const flood = yield* Effect.forEach(
        Array.from({ length: sent }, (_, index) => index),
        (index) =>
          Effect.map(
            post(`${live.url}/exchange`, padded(now + index, limit)),
            ({ json, status }) => ({ json, status })
          ),
        { concurrency: 16 }
      )
      const refused = flood.filter(({ status }) => status === 503)
      assert.strictEqual(flood.filter(({ status }) => status === 504).length + refused.length, flood.length)
      // a tenth of 64 MiB is for strangers
      assert.isAbove(refused.length, sent - 103)
      const [first] = refused
      assert.deepInclude(first?.json, {
        _tag: "UpstreamUnavailable",
        upstream: "action-log",
        detail:
          "The action was not sent: the action log contains the maximum number of unanswered actions of unknown " +
          "signers: a signer is known after an accepted action, or if it is on an allow-list"
      })
      const { json, status } = yield* get(`${live.url}/health/ready`)
      assert.strictEqual(status, 200)
      assert.nestedPropertyVal(json, "actionLog.used.familiar", 0)
      live.api.respond = () => ({ body: accepted })
      assert.strictEqual((yield* honest(now + 1)).status, 200)
    }))
})
