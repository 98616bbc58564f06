import { assert, describe, it } from "@effect/vitest"
import { messageAdvice } from "@trigate/domain/TokenOperations"
import { gateway, get, post, send } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { refusingUrl } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { liveGateway, upstreamKeys } from "./liveGateway.ts"

const address = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"
const standard = address.replaceAll("-", "+").replaceAll("_", "/")
const body = `{ "ok":true, "result":123456789012345678901234567890,"@extra":"1:2:3" }`
const upstream = `/${upstreamKeys.tokens}/api/v2`

const surfaces = ["/api/v2", "/caller-key-1/api/v2"]

/** What is asked, and what the node is asked. */
const queries: ReadonlyArray<readonly [asked: string, sent: string]> = [
  ["getMasterchainInfo", "getMasterchainInfo"],
  [`getAddressInformation?address=${address}`, `getAddressInformation?address=${address}`],
  [
    `getAddressBalance?address=${encodeURIComponent(standard)}&seqno=5`,
    `getAddressBalance?address=${encodeURIComponent(standard)}&seqno=5`
  ],
  [
    `getTransactions?address=${address}&limit=10&lt=9223372036854775807&hash=ab%3D&archival=true`,
    `getTransactions?address=${address}&limit=10&lt=9223372036854775807&hash=ab%3D&archival=true`
  ],
  [
    "lookupBlock?workchain=-1&shard=-9223372036854775808&seqno=1",
    "lookupBlock?workchain=-1&shard=-9223372036854775808&seqno=1"
  ],
  ["getLibraries?libraries=a&libraries=b", "getLibraries?libraries=a&libraries=b"],
  ["getLibraries?libraries=a", "getLibraries?libraries=a"],
  ["shards?seqno=7&api_key=canary", "shards?seqno=7"],
  ["getShards?seqno=7", "getShards?seqno=7"],
  [`getTransactionsStd?address=${address}&limit=10`, `getTransactionsStd?address=${address}&limit=10`],
  [`packAddress?address=${address}`, `packAddress?address=${address}`]
]

for (const surface of surfaces) {
  describe(`GET ${surface}/{method}`, () => {
    for (const [asked, sent] of queries) {
      it.live(`goes to the same method of the node, its answer comes back as it is: ${asked}`, () =>
        Effect.gen(function*() {
          const live = yield* liveGateway({ tokens: () => ({ body }) })
          const answer = yield* get(`${live.url}${surface}/${asked}`)
          assert.strictEqual(answer.status, 200)
          assert.strictEqual(answer.type, "application/json")
          assert.strictEqual(answer.text, body)
          assert.deepStrictEqual(live.seen(), [`tokens GET ${upstream}/${sent}`])
        }))
    }

    const wrong: ReadonlyArray<readonly [asked: string, tag: string]> = [
      ["shards", "InvalidRequest"],
      ["shards?seqno=x", "InvalidRequest"],
      ["shards?seqno=1&seqno=2", "InvalidRequest"],
      ["shards?seqno=-1", "InvalidRequest"],
      ["shards?seqno=1&more=1", "InvalidRequest"],
      ["getMasterchainInfo?x=1", "InvalidRequest"],
      [`getAddressState?address=${address.slice(0, -1)}A`, "InvalidAddress"],
      [`getAddressState?address=${address.slice(0, -1)}A&seqno=5`, "InvalidAddress"]
    ]
    for (const [asked, tag] of wrong) {
      it.live(`is ${tag}, and nothing is sent: ${asked}`, () =>
        Effect.gen(function*() {
          const live = yield* liveGateway()
          const answer = yield* get(`${live.url}${surface}/${asked}`)
          assert.strictEqual(answer.status, 400)
          assert.include(answer.json, { _tag: tag })
          assert.deepStrictEqual(live.seen(), [])
        }))
    }

    it.live("answers a failure in the server's own words, and asks once more only what may pass", () =>
      Effect.gen(function*() {
        const failed = `{"ok":false,"error":"Incorrect address","code":416}`
        const live = yield* liveGateway({ tokens: () => ({ status: 416, body: failed }) })
        const answer = yield* get(`${live.url}${surface}/packAddress?address=${address}`)
        assert.strictEqual(answer.status, 416)
        assert.strictEqual(answer.text, failed)
        assert.strictEqual(live.tokens.seen.length, 1)
      }))

    it.live("is no method that sends, none beyond the table, and no other verb's", () =>
      Effect.gen(function*() {
        const live = yield* liveGateway({ tokens: () => ({ body }) })
        for (
          const [path, status] of [["sendBoc?boc=te6", 405], ["noSuchMethod", 404], ["SHARDS?seqno=1", 404]] as const
        ) {
          assert.strictEqual((yield* get(`${live.url}${surface}/${path}`)).status, status, path)
        }
        assert.strictEqual((yield* post(`${live.url}${surface}/getTokenData`, `{"address":"${address}"}`)).status, 405)
        assert.strictEqual((yield* send(`${live.url}${surface}/shards?seqno=1`, { method: "DELETE" })).status, 405)
        assert.strictEqual((yield* post(`${live.url}${surface}/sendBocUnsafe`, `{"boc":"te6"}`)).status, 404)
        assert.deepStrictEqual(live.seen(), [])
      }))

    it.live("keeps a caller's key to itself", () =>
      Effect.gen(function*() {
        const live = yield* liveGateway({ tokens: () => ({ body }) })
        const headers = { "x-api-key": "canary", authorization: "Bearer canary", cookie: "a=canary" }
        yield* get(`${live.url}${surface}/shards?seqno=7&api_key=canary`, headers)
        yield* post(`${live.url}${surface}/sendBoc`, `{"boc":"te6"}`, headers)
        yield* post(`${live.url}${surface}/jsonRPC`, `{"id":1,"method":"shards","params":{"seqno":1}}`, headers)
        yield* post(`${live.url}${surface}/jsonRPC`, `{"id":1,"method":"sendBoc","params":{"boc":"te6"}}`, headers)
        assert.strictEqual(live.tokens.seen.length, 4)
        assert.notInclude(JSON.stringify(live.tokens.seen.map(({ headers, path }) => [headers, path])), "canary")
      }))
  })

  describe(`POST ${surface}/{method}`, () => {
    const boc = `{ "boc" : "te6cckEBAQEA" }`

    for (
      const [method, named] of [
        ["sendBoc", boc],
        ["sendBocReturnHash", boc],
        ["sendBocReturnHashNoError", boc],
        ["sendQuery", `{"address":"${address}","body":"te6"}`],
        ["sendQuerySimple", `{"address":"${address}","body":{"refs":[]}}`],
        ["runGetMethod", `{"address":"${address}","method":"seqno","stack":[["num","0x1"]]}`],
        ["estimateFee", `{"address":"${address}","body":"te6","ignore_chksig":true}`],
        ["shards", `{ "seqno":7 }`],
        ["getMasterchainInfo", "{}"],
        ["getTransactions", `{"address":"${address}","limit":10,"lt":9223372036854775807}`]
      ] as const
    ) {
      it.live(`goes to the same method of the node with the bytes that came: ${method}`, () =>
        Effect.gen(function*() {
          const live = yield* liveGateway({ tokens: () => ({ body }) })
          const answer = yield* post(`${live.url}${surface}/${method}`, named)
          assert.strictEqual(answer.status, 200)
          assert.strictEqual(answer.text, body)
          assert.deepStrictEqual(live.seen(), [`tokens POST ${upstream}/${method}`])
          assert.deepStrictEqual(live.tokens.seen.map((seen) => seen.body), [named])
        }))
    }

    it.live("takes a slash behind the method", () =>
      Effect.gen(function*() {
        const live = yield* liveGateway({ tokens: () => ({ body }) })
        const answer = yield* post(`${live.url}${surface}/getMasterchainInfo/`, "{}")
        assert.strictEqual(answer.text, body)
        assert.deepStrictEqual(live.seen(), [`tokens POST ${upstream}/getMasterchainInfo`])
      }))

    it.live("sends a message once, and tells that its outcome is unknown", () =>
      Effect.gen(function*() {
        for (
          const reply of [
            "hang-up",
            { status: 502, type: "text/html", body: "<html></html>" },
            { status: 504, body: `{"ok":false,"error":"Liteserver timeout","code":504}` }
          ] as const
        ) {
          const live = yield* liveGateway({ tokens: () => reply })
          const answer = yield* post(`${live.url}${surface}/sendBoc`, boc)
          assert.strictEqual(answer.status, 504)
          assert.include(answer.json, { _tag: "OutcomeUnknown", upstream: "token-chain", advice: messageAdvice })
          assert.strictEqual(live.tokens.seen.length, 1)
        }
      }))

    it.live("answers a refusal in the server's own words, after one request", () =>
      Effect.gen(function*() {
        const refused = `{"ok":false,"error":"cannot apply external message to current state","code":500}`
        const live = yield* liveGateway({ tokens: () => ({ status: 500, body: refused }) })
        const answer = yield* post(`${live.url}${surface}/sendBoc`, boc)
        assert.strictEqual(answer.status, 500)
        assert.strictEqual(answer.text, refused)
        assert.strictEqual(live.tokens.seen.length, 1)
      }))

    it.live("tells that nothing was sent, and refuses what is of a wrong shape", () =>
      Effect.gen(function*() {
        const nowhere = yield* liveGateway({}, { TRIGATE_TOKEN_CHAIN_URL: yield* refusingUrl })
        const answer = yield* post(`${nowhere.url}${surface}/sendBoc`, boc)
        assert.include(answer.json, { _tag: "UpstreamUnavailable", attempts: 1 })
        const live = yield* liveGateway()
        for (const wrong of ["{}", "[]", `{"boc":1}`, `{"boc":"a","boc":"b"}`, `{"boc":"a","more":1}`, "te6"]) {
          const refused = yield* post(`${live.url}${surface}/sendBoc`, wrong)
          assert.include(refused.json, { _tag: "InvalidRequest" }, wrong)
        }
        assert.deepStrictEqual(live.seen(), [])
      }))
  })
}

describe("the sandbox over REST", () => {
  it.live("answers what it knows in a server's own envelope", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const packed = yield* get(`${url}/api/v2/packAddress?address=${address}`)
      assert.strictEqual(packed.status, 200)
      assert.strictEqual(JsonParts.value(packed.text, "ok"), true)
      const sent = yield* post(`${url}/api/v2/sendBoc`, `{"boc":"te6"}`)
      assert.strictEqual(JsonParts.value(sent.text, "ok"), false)
    }))
})
