/** A gateway whose venue is another gateway: whose words an answer has, and what a nonce that is used there means here. */
import { assert, describe, it } from "@effect/vitest"
import { get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { Reply } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { bigBlocks, bodyOf } from "./bodies.ts"
import { liveGateway } from "./liveGateway.ts"

const taken: Reply = { body: `{"status":"ok","response":{"type":"default"}}` }
const whose =
  "This response is from trading-api, which is also a gateway: in it, \"this gateway\" and the names of settings refer to trading-api"

/** What a gateway answers, as an upstream of another one does. */
const relayed = (
  { status, text, type }: { readonly status: number; readonly text: string; readonly type: string }
): Reply => ({
  status,
  type,
  body: text
})

describe("a gateway behind a gateway", () => {
  it.live("has an outcome settled that its upstream knows, and resolves it as landed", () =>
    Effect.gen(function*() {
      const behind = yield* liveGateway({ api: () => taken })
      const front = yield* liveGateway({ api: () => "hang-up" })
      const body = bodyOf(Date.now(), bigBlocks)
      // the action comes through, and its answer is lost
      assert.strictEqual((yield* post(`${front.url}/exchange`, body)).status, 504)
      assert.strictEqual((yield* post(`${behind.url}/exchange`, body)).status, 200)
      const again = yield* post(`${behind.url}/exchange`, body)
      assert.strictEqual(JsonParts.at(again.json, "settled"), "accepted")
      front.api.respond = () => relayed(again)
      const listed = yield* get(`${front.url}/admin/actions`)
      assert.lengthOf(JSON.parse(listed.text), 1)
      const resolved = yield* post(
        `${front.url}/admin/actions/${String(JsonParts.at(listed.json, 0, "id"))}/resolve`,
        ""
      )
      assert.strictEqual(JsonParts.at(resolved.json, "_tag"), "Landed", resolved.text)
      assert.deepStrictEqual((yield* get(`${front.url}/admin/actions`)).json, [])
      assert.lengthOf(behind.api.seen, 1)
    }))

  it.live("does not settle what its upstream only has under way, or knows of other content", () =>
    Effect.gen(function*() {
      const behind = yield* liveGateway({ api: () => taken })
      const front = yield* liveGateway({ api: () => "hang-up" })
      const nonce = Date.now()
      const sendAll = [bodyOf(nonce, bigBlocks)]
      for (const body of sendAll) yield* post(`${front.url}/exchange`, body)
      const { json } = yield* post(`${behind.url}/exchange`, bodyOf(nonce, bigBlocks))
      assert.strictEqual(JsonParts.at(json, "status"), "ok")
      const again = yield* post(`${behind.url}/exchange`, bodyOf(nonce, bigBlocks))
      const unsettled = again.text.replace(`"settled":"accepted",`, "")
      assert.notInclude(unsettled, "settled")
      front.api.respond = () => relayed({ ...again, text: unsettled })
      assert.strictEqual((yield* post(`${front.url}/exchange`, bodyOf(nonce, bigBlocks))).status, 409)
      assert.lengthOf(JSON.parse((yield* get(`${front.url}/admin/actions`)).text), 1)
    }))

  it.live("says whose words an answer has", () =>
    Effect.gen(function*() {
      const behind = yield* liveGateway({}, { TRIGATE_RELAY_ACTIONS: "none", TRIGATE_RELAY_INFO: "off" })
      const front = yield* liveGateway({ api: () => "hang-up" })
      const refused = yield* post(`${behind.url}/exchange`, bodyOf(Date.now(), bigBlocks))
      assert.isNull(refused.headers.get("x-trigate-warning"))
      front.api.respond = () => relayed(refused)
      const answer = yield* post(`${front.url}/exchange`, bodyOf(Date.now(), bigBlocks))
      assert.deepStrictEqual([answer.status, answer.text], [refused.status, refused.text])
      assert.strictEqual(answer.headers.get("x-trigate-warning"), whose)
      front.api.respond = () => ({ status: 422, body: "Failed to deserialize" })
      const own = yield* post(`${front.url}/exchange`, bodyOf(Date.now(), bigBlocks))
      assert.isNull(own.headers.get("x-trigate-warning"))
    }))
})

describe("a gateway that has never read the keys of its callers", () => {
  it.live("takes no traffic, says why, and tells a balancer to ask another", () =>
    Effect.gen(function*() {
      const { url } = yield* liveGateway({}, {
        TRIGATE_CALLERS: "keys",
        TRIGATE_DATABASE_URL: "postgres://nobody@127.0.0.1:1/none"
      })
      const ready = yield* get(`${url}/health/ready`)
      assert.strictEqual(ready.status, 503)
      assert.deepInclude(ready.json, { status: "without-keys", callers: "unread" })
      assert.match((yield* get(`${url}/metrics`)).text, /^trigate_caller_keys_degraded 1$/mu)
      const headers = { authorization: `Bearer tg_${"0".repeat(10)}_${"0".repeat(64)}` }
      const refused = yield* post(`${url}/info`, `{"type":"spotMeta"}`, headers)
      assert.deepStrictEqual([refused.status, refused.headers.get("x-trigate-try-another")], [503, "true"])
    }))
})
