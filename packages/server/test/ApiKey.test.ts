import { assert, describe, it } from "@effect/vitest"
import { gateway, get, guardedGateway, known, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import { oncePerFile } from "./oncePerFile.ts"

const guarded = oncePerFile(() => guardedGateway)

const unknown = "unknown-caller-key"
const address = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"
const call = `{"id":"1","jsonrpc":"2.0","method":"getMasterchainInfo","params":{}}`

describe("a caller's X-API-Key", () => {
  const asked = [
    ["POST jsonRPC", (url: string, headers = {}) => post(`${url}/jsonRPC`, call, headers)],
    ["GET a read", (url: string, headers = {}) => get(`${url}/getMasterchainInfo`, headers)],
    [
      "POST a read",
      (url: string, headers = {}) => post(`${url}/estimateFee`, `{"address":"${address}","body":"te6"}`, headers)
    ],
    ["POST a message", (url: string, headers = {}) => post(`${url}/sendBoc`, `{"boc":"te6"}`, headers)],
    ["GET getTokenData", (url: string, headers = {}) => get(`${url}/getTokenData?address=${address}`, headers)]
  ] as const

  for (const [what, ask] of asked) {
    it.live(`is checked as the first word of a keyed path is: ${what}`, () =>
      Effect.gen(function*() {
        const url = yield* guarded()
        const refused = yield* ask(`${url}/api/v2`, { "x-api-key": unknown })
        assert.strictEqual(refused.status, 401)
        assert.strictEqual(refused.headers.get("www-authenticate"), "Bearer")
        assert.include(refused.text, `"_tag":"Unauthorized"`)
        assert.notInclude(refused.text, unknown)
        const inPath = yield* ask(`${url}/${known}/api/v2`)
        const admitted = yield* ask(`${url}/api/v2`, { "x-api-key": known })
        assert.notStrictEqual(admitted.status, 401)
        assert.strictEqual(admitted.status, inPath.status)
      }))

    it.live(`is needed where the path has none, and is no other than the path's: ${what}`, () =>
      Effect.gen(function*() {
        const url = yield* guarded()
        assert.strictEqual((yield* ask(`${url}/api/v2`)).status, 401)
        const twice = yield* ask(`${url}/${known}/api/v2`, { "x-api-key": known })
        assert.strictEqual(twice.status, (yield* ask(`${url}/${known}/api/v2`)).status)
        for (const [one, other] of [[known, unknown], [unknown, known]] as const) {
          const refused = yield* ask(`${url}/${one}/api/v2`, { "x-api-key": other })
          assert.strictEqual(refused.status, 401)
          assert.include(refused.text, "The request contains two different keys: send only one")
        }
      }))
  }

  it.live("is checked in the query, too, and beside another", () =>
    Effect.gen(function*() {
      const url = `${yield* guarded()}/api/v2/getMasterchainInfo`
      assert.strictEqual((yield* get(`${url}?api_key=${unknown}`)).status, 401)
      assert.strictEqual((yield* get(`${url}?api_key=${known}&api_key=${unknown}`)).status, 401)
      // names of a query are read decoded, as the method's params are
      assert.strictEqual((yield* get(`${url}?api%5Fkey=${unknown}`)).status, 401)
      assert.strictEqual((yield* get(`${url}?api_key=${known}&%61pi_key=${unknown}`)).status, 401)
      // two headers of one name are one value, which is nobody's key
      assert.strictEqual((yield* get(url, { "x-api-key": `${known}, ${unknown}` })).status, 401)
      assert.strictEqual((yield* get(url, { "x-api-key": "" })).status, 401)
      assert.strictEqual((yield* get(`${url}?api_key=${unknown}`, { "x-api-key": known })).status, 401)
      const admitted = yield* get(`${url}?api_key=${known}`, { "x-api-key": known })
      assert.strictEqual(JsonParts.value(admitted.text, "ok"), true)
    }))

  it.live("may be any where the gateway is open, but in the path no name of a route, which stands there by mistake", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const read = `${url}/api/v2/getMasterchainInfo`
      for (const key of [unknown, "info"]) {
        assert.strictEqual((yield* get(read, { "x-api-key": key })).status, 200)
      }
      const refused = yield* get(`${url}/health/api/v2/shards?seqno=1`)
      assert.strictEqual(refused.status, 401)
      assert.strictEqual(
        JsonParts.value(refused.text, "detail"),
        "The first segment of the path must be an endpoint key, not the name of a route"
      )
    }))
})
