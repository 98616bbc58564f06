import { assert, describe, it } from "@effect/vitest"
import { messageAdvice } from "@trigate/domain/tokens/TokenOperations"
import { gateway, get, post, send } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { refusingUrl } from "@trigate/testing/RecordingUpstream"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import { liveGateway, upstreamKeys } from "./liveGateway.ts"
import { sharedGateways } from "./sharedGateway.ts"

const shared = sharedGateways()

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
  [`packAddress?address=${address}`, `packAddress?address=${address}`],
  [`getTransactions?address=${address}&archival=True`, `getTransactions?address=${address}&archival=true`],
  [
    `getTransactions?address=${address}&archival=False&hash=True`,
    `getTransactions?address=${address}&archival=false&hash=True`
  ]
]

for (const surface of surfaces) {
  describe(`GET ${surface}/{method}`, () => {
    for (const [asked, sent] of sample(`queries of ${surface}`, queries, 5)) {
      it.live(`goes to the same method of the node, its answer comes back as it is: ${asked}`, () =>
        Effect.gen(function*() {
          const live = yield* shared({ tokens: () => ({ body }) })
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
    for (const [asked, tag] of sample(`wrong queries of ${surface}`, wrong, 4, ([, tag]) => tag)) {
      it.live(`is ${tag}, and nothing is sent: ${asked}`, () =>
        Effect.gen(function*() {
          const live = yield* shared()
          const answer = yield* get(`${live.url}${surface}/${asked}`)
          assert.strictEqual(answer.status, 400)
          assert.include(answer.json, { _tag: tag })
          assert.deepStrictEqual(live.seen(), [])
        }))
    }

    it.live("answers a failure in the server's own words, and asks once more only what may pass", () =>
      Effect.gen(function*() {
        const failed = `{"ok":false,"error":"Incorrect address","code":416}`
        const live = yield* shared({ tokens: () => ({ status: 416, body: failed }) })
        const answer = yield* get(`${live.url}${surface}/packAddress?address=${address}`)
        assert.strictEqual(answer.status, 416)
        assert.strictEqual(answer.text, failed)
        assert.strictEqual(live.tokens.seen.length, 1)
      }))

    const blamed: ReadonlyArray<readonly [asked: string, errors: ReadonlyArray<string>]> = [
      [`getTransactions?address=${address}&limit=20&archival=maybe`, ["archival"]],
      [`getTransactions?address=${address}&limit=20&archival=TRUE&to_lt=x`, ["to_lt", "archival"]],
      [`lookupBlock?workchain=-1&shard=1&seqno=x&unixtime=5`, ["seqno"]],
      [`getTransactions?address=${address}&limit=20&more=1`, ["more"]],
      [`getLibraries?libraries=a&more=1`, ["more"]],
      [`getTransactions?limit=20`, ["address"]]
    ]
    for (const [asked, names] of blamed) {
      it.live(`blames what is wrong and nothing else: ${asked}`, () =>
        Effect.gen(function*() {
          const live = yield* shared()
          const answer = yield* get(`${live.url}${surface}/${asked}`)
          assert.deepStrictEqual(
            names.map((_, index) => JsonParts.value(answer.text, "errors", index, "path")),
            names.map((name) => ["params", name])
          )
          assert.isUndefined(JsonParts.value(answer.text, "errors", names.length))
          assert.deepStrictEqual(live.seen(), [])
        }))
    }

    it.live("takes a number for an address that is wrong, not for one of the wrong type", () =>
      Effect.gen(function*() {
        const live = yield* shared()
        const answer = yield* get(`${live.url}${surface}/getTransactions?address=123&limit=20`)
        assert.include(answer.json, { _tag: "InvalidAddress", address: "123" })
        assert.deepStrictEqual(live.seen(), [])
      }))

    it.live("refuses in the words of the chain's own servers, beside the problem's", () =>
      Effect.gen(function*() {
        const live = yield* shared()
        const wrong = `${address.slice(0, -1)}A`
        const bad = yield* get(`${live.url}${surface}/getAddressState?address=${wrong}`)
        const reason = "checksum differs"
        assert.deepStrictEqual([bad.status, bad.type], [400, "application/problem+json"])
        assert.deepStrictEqual(bad.json, {
          _tag: "InvalidAddress",
          type: "urn:trigate:problem:invalid-address",
          status: 400,
          title: "Invalid address",
          detail: `Not a token-chain address: ${reason}`,
          address: wrong,
          reason,
          ok: false,
          error: `Not a token-chain address: ${reason}`,
          code: 400
        })
        const shaped = yield* post(`${live.url}${surface}/sendBoc`, "{}")
        assert.include(shaped.json, { _tag: "InvalidRequest", ok: false, code: 400 })
        assert.strictEqual(JsonParts.value(shaped.text, "error"), JsonParts.value(shaped.text, "detail"))
        const token = yield* get(`${live.url}${surface}/getTokenData?address=${wrong}`)
        assert.include(token.json, {
          _tag: "InvalidAddress",
          ok: false,
          error: `Not a token-chain address: ${reason}`,
          code: 400
        })
        const nowhere = yield* get(`${live.url}${surface}/noSuchMethod`)
        assert.include(nowhere.json, { status: 404, ok: false, code: 404 })
        const verb = yield* get(`${live.url}${surface}/sendBoc`)
        assert.include(verb.json, { status: 405, ok: false, error: "This route accepts POST", code: 405 })
        assert.deepStrictEqual(live.seen(), [])
      }))

    it.live("is no method that sends, none beyond the table, and no other verb's", () =>
      Effect.gen(function*() {
        const live = yield* shared({ tokens: () => ({ body }) })
        for (
          const [path, status] of [["sendBoc?boc=te6", 405], ["noSuchMethod", 404], ["SHARDS?seqno=1", 404]] as const
        ) {
          assert.strictEqual((yield* get(`${live.url}${surface}/${path}`)).status, status, path)
        }
        assert.strictEqual((yield* send(`${live.url}${surface}/getTokenData`, { method: "PUT" })).status, 405)
        assert.strictEqual((yield* send(`${live.url}${surface}/shards?seqno=1`, { method: "DELETE" })).status, 405)
        assert.strictEqual((yield* post(`${live.url}${surface}/sendBocUnsafe`, `{"boc":"te6"}`)).status, 404)
        assert.deepStrictEqual(live.seen(), [])
      }))

    it.live("keeps a caller's key to itself", () =>
      Effect.gen(function*() {
        const live = yield* shared({ tokens: () => ({ body }) })
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
        ["getTokenData", `{"address":"${address}"}`],
        ["getTokenData", `{ "address":"${address}", "seqno":7 }`],
        ["getTransactions", `{"address":"${address}","limit":10,"lt":9223372036854775807}`],
        ["getTransactions", `{"address":"${address}","limit":"10"}`]
      ] as const
    ) {
      it.live(`goes to the same method of the node with the bytes that came: ${method}`, () =>
        Effect.gen(function*() {
          const live = yield* shared({ tokens: () => ({ body }) })
          const answer = yield* post(`${live.url}${surface}/${method}`, named)
          assert.strictEqual(answer.status, 200)
          assert.strictEqual(answer.text, body)
          assert.deepStrictEqual(live.seen(), [`tokens POST ${upstream}/${method}`])
          assert.deepStrictEqual(live.tokens.seen.map((seen) => seen.body), [named])
        }))
    }

    const nulls: ReadonlyArray<readonly [method: string, asked: string, sent: string]> = [
      ["getTokenData", `{"address":"${address}","seqno":null}`, `{"address":"${address}"}`],
      [
        "getTransactions",
        `{ "lt":null, "address":"${address}" , "hash" : null,"limit":10,"to_lt":9223372036854775807,"archival": null }`,
        `{"address":"${address}","limit":10,"to_lt":9223372036854775807}`
      ],
      ["getConfigAll", `{"seqno":null}`, "{}"],
      ["sendQuery", `{"address":"${address}","body":"te6","init_code":null}`, `{"address":"${address}","body":"te6"}`],
      [
        "runGetMethod",
        `{"address":"${address}","method":"m","stack":[["null",null]],"seqno":null}`,
        `{"address":"${address}","method":"m","stack":[["null",null]]}`
      ]
    ]
    for (const [method, asked, sent] of nulls) {
      it.live(`leaves an optional member that is null out: ${method}`, () =>
        Effect.gen(function*() {
          const live = yield* shared({ tokens: () => ({ body }) })
          assert.strictEqual((yield* post(`${live.url}${surface}/${method}`, asked)).text, body)
          const call = `{"id":1,"method":"${method}","params":${asked}}`
          assert.strictEqual((yield* post(`${live.url}${surface}/jsonRPC`, call)).status, 200)
          assert.deepStrictEqual(live.tokens.seen.map((seen) => seen.body), [
            sent,
            `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${sent}}`
          ])
        }))
    }

    it.live("takes null for no member that is needed or unknown", () =>
      Effect.gen(function*() {
        const live = yield* shared()
        for (const wrong of [`{"address":null}`, `{"address":"${address}","more":null}`, "null"]) {
          const answer = yield* post(`${live.url}${surface}/getTokenData`, wrong)
          assert.include(answer.json, { _tag: "InvalidRequest" }, wrong)
        }
        assert.deepStrictEqual(live.seen(), [])
      }))

    it.live("takes no slash behind the method: a path has one spelling", () =>
      Effect.gen(function*() {
        const live = yield* shared({ tokens: () => ({ body }) })
        const answer = yield* post(`${live.url}${surface}/getMasterchainInfo/`, "{}")
        assert.strictEqual(answer.status, 404)
        assert.deepStrictEqual(live.seen(), [])
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
        const live = yield* shared({ tokens: () => ({ status: 500, body: refused }) })
        const answer = yield* post(`${live.url}${surface}/sendBoc`, boc)
        assert.strictEqual(answer.status, 500)
        assert.strictEqual(answer.text, refused)
        assert.strictEqual(live.tokens.seen.length, 1)
      }))

    it.live("tells that nothing was sent, and refuses what is of a wrong shape", () =>
      Effect.gen(function*() {
        const nowhere = yield* shared({}, { TRIGATE_TOKEN_CHAIN_URL: yield* refusingUrl })
        const answer = yield* post(`${nowhere.url}${surface}/sendBoc`, boc)
        assert.include(answer.json, { _tag: "UpstreamUnavailable", attempts: 1 })
        const live = yield* shared()
        for (const wrong of ["{}", "[]", `{"boc":1}`, `{"boc":"a","boc":"b"}`, `{"boc":"a","more":1}`, "te6"]) {
          const refused = yield* post(`${live.url}${surface}/sendBoc`, wrong)
          assert.include(refused.json, { _tag: "InvalidRequest" }, wrong)
        }
        assert.deepStrictEqual(live.seen(), [])
      }))
  })
}

describe("token data", () => {
  const result = `{"total_supply":"1180591620717411303424","mintable":true,"jetton_content":{"type":"onchain","data":` +
    `{"name":"A","symbol":"B","decimals":"6"}},"jetton_wallet_code":"te6","contract_type":"jetton_master"}`
  const envelope = `{"ok":true,"result":${result},"@extra":"1:2:3"}`

  it.live("is the gateway's own resource to GET, and the server's own envelope to POST and to JSON-RPC", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ tokens: () => ({ body: envelope }) })
      const flat = yield* get(`${live.url}/api/v2/getTokenData?address=${address}`)
      assert.deepStrictEqual(flat.json, {
        name: "A",
        symbol: "B",
        decimals: 6,
        totalSupply: "1180591620717411303424",
        mintable: true,
        burnable: true,
        address,
        metadata: "onchain"
      })
      const posted = yield* post(`${live.url}/api/v2/getTokenData`, `{"address":"${address}"}`)
      assert.deepStrictEqual([posted.status, posted.text], [200, envelope])
      const called = yield* post(
        `${live.url}/api/v2/jsonRPC`,
        `{"jsonrpc":"2.0","id":"a","method":"getTokenData","params":{"address":"${address}"}}`
      )
      assert.strictEqual(called.text, `{"ok":true,"result":${result},"@extra":"1:2:3","jsonrpc":"2.0","id":"a"}`)
      assert.deepStrictEqual(live.seen(), [
        `tokens GET ${upstream}/getTokenData?address=${address}`,
        `tokens POST ${upstream}/getTokenData`,
        `tokens POST ${upstream}/jsonRPC`
      ])
    }))

  it.live("of another gateway that is away is asked again, of a server that refuses it is not", () =>
    Effect.gen(function*() {
      const problem = `{"_tag":"UpstreamUnavailable","type":"urn:trigate:problem:upstream-unavailable","status":503,` +
        `"title":"Upstream unavailable","upstream":"token-chain","attempts":1,"ok":false,"error":"away","code":503}`
      for (const [body, times] of [[problem, 3], [`{"ok":false,"error":"no","code":503}`, 1]] as const) {
        const live = yield* liveGateway({ tokens: () => ({ status: 503, body }) })
        const answer = yield* post(`${live.url}/api/v2/getTokenData`, `{"address":"${address}"}`)
        assert.strictEqual(answer.status, 503)
        assert.strictEqual(live.tokens.seen.length, times, body)
      }
    }))
})

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
