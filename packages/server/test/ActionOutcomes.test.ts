/** `GET /actions`: what became of signed actions, over HTTP and in the sandbox. */
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { makeClient } from "@trigate/testing/Client"
import { gateway, get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

const cloid = "0x000000000000000000000000000000aa"

const signedOrder = Effect.flatMap(
  Clock.currentTimeMillis,
  (nonce) =>
    Effect.orDie(SandboxSigner.signAction(keys.trader, {
      nonce,
      action: {
        type: "order",
        orders: [{ a: 0, b: true, p: "1000", s: "0.1", r: false, t: { limit: { tif: "Gtc" } }, c: cloid }],
        grouping: "na"
      }
    }))
)

describe("outcomes of actions", () => {
  it.live("are found by id, by signer and nonce, and by cloid, on both surfaces, and never hold the body", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const signed = yield* signedOrder
      const sent = yield* post(`${url}/exchange`, JSON.stringify(signed))
      assert.strictEqual(JsonParts.at(sent.json, "status"), "ok", sent.text)
      const byNonce = yield* get(`${url}/actions?signer=${keys.trader.address}&nonce=${signed.nonce}`)
      assert.strictEqual(byNonce.status, 200, byNonce.text)
      const id = String(JsonParts.at(byNonce.json, "id"))
      assert.deepStrictEqual(Object.keys(byNonce.json ?? {}), ["id", "state", "signer", "nonce", "settled"])
      assert.strictEqual(JsonParts.at(byNonce.json, "state"), "accepted")
      assert.strictEqual(JsonParts.at(byNonce.json, "settled", "by"), "response")
      for (
        const path of [
          `/actions/${id}`,
          `/actions?cloid=${cloid}`,
          `/my-key/actions/${id}?wait=1`,
          `/my-key/actions?cloid=${cloid}`
        ]
      ) {
        assert.deepStrictEqual((yield* get(`${url}${path}`)).json, byNonce.json, path)
      }
      assert.notInclude(byNonce.text, signed.signature.r)
      const client = yield* makeClient(url)
      const record = yield* client.exchange.outcome({ cloid, signer: keys.trader.address })
      assert.deepStrictEqual([record.id, record.state], [id, "accepted"])
    }))

  it.live("are asked for with whole references only", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      for (
        const path of ["/actions", "/actions?nonce=1", "/actions/1", "/actions/0xab?wait=31", "/actions?cloid=0x1"]
      ) {
        const { json, status } = yield* get(`${url}${path}`)
        assert.deepStrictEqual([status, JsonParts.at(json, "_tag")], [400, "InvalidRequest"], path)
      }
      const { json, status } = yield* get(`${url}/actions/0xab`)
      assert.deepStrictEqual([status, JsonParts.at(json, "_tag")], [404, "ActionNotFound"])
    }))
})
