import { assert, describe, it } from "@effect/vitest"
import type { GatewayResponse } from "@trigate/testing/Gateway"
import { get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { bigBlocks, bodyOf } from "./bodies.ts"
import type { LiveGateway } from "./liveGateway.ts"
import { liveGateway, upstreamKeys } from "./liveGateway.ts"

const key = "caller-key-3fa97c"
const address = "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs"
const spotMeta = `{"universe":[],"tokens":[]}`
const receipt = `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x${"ab".repeat(32)}"]}`
const candles = `{"type":"candleSnapshot","req":{"coin":"BTC","interval":"1h","startTime":1689544800000}}`

const live = liveGateway({
  node: (request) => request.path.endsWith("/evm") ? rpcReply(`"0x1"`)(request) : { body: spotMeta },
  tokens: () => ({ body: `{"ok":true,"result":{"total_supply":1,"mintable":true}}` }),
  layer2: rpcReply("null")
})

const seenKey = (gateway: LiveGateway): boolean =>
  JSON.stringify([gateway.api.seen, gateway.node.seen, gateway.tokens.seen, gateway.layer2.seen]).includes(key)

describe("a path of another API of the chains", () => {
  const txDetails = `{"type":"txDetails","hash":"0x${"11".repeat(32)}"}`
  const call = `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`
  const explorer = /^The venue's explorer is not offered/u
  const v3 = /^The token chain's API v3 is not offered.*\/api\/v2/u
  const v4 = /^The token chain's API v4 is not offered.*\/api\/v2/u
  const tonapi = /^The REST API of tonapi is not offered.*\/api\/v2/u
  const noCall = /^Unknown route\. POST to an endpoint key alone is the layer 2's JSON-RPC/u
  const paths: ReadonlyArray<readonly [path: string, body: string | undefined, detail: RegExp]> = [
    ["/explorer", txDetails, explorer],
    ["/explorer", call, explorer],
    [`/${key}/explorer`, txDetails, explorer],
    ["/stats", txDetails, noCall],
    ["/order", "{}", noCall],
    ["/api/v3/transactions?account=0:00", undefined, v3],
    ["/api/v3/message", `{"boc":""}`, v3],
    [`/${key}/api/v3/transactions`, undefined, v3],
    ["/v3", "{}", v3],
    ["/v4/block/latest", undefined, v4],
    ["/api/v4/block/latest", undefined, v4],
    ["/v2/accounts/0:00", undefined, tonapi],
    ["/v2/jettons/_bulk", "{}", tonapi]
  ]

  it.live("gets 404 with a sentence, and a key alone stays the layer 2's route", () =>
    Effect.gen(function*() {
      const gateway = yield* live
      for (const [path, body, detail] of paths) {
        const answer = yield* (body === undefined ? get(`${gateway.url}${path}`) : post(`${gateway.url}${path}`, body))
        assert.deepStrictEqual([answer.status, answer.type], [404, "application/problem+json"], path)
        assert.match(String(JsonParts.at(answer.json, "detail")), detail, path)
        assert.notInclude(answer.text, key)
      }
      assert.deepStrictEqual(gateway.seen(), [])
      // a short word may be a key, and a call with a mistake is answered as JSON-RPC
      const served = yield* post(`${gateway.url}/KEY`, receipt)
      assert.strictEqual(served.text, `{"jsonrpc":"2.0","id":1,"result":null}`)
      const mistaken = yield* post(`${gateway.url}/KEY`, `{"id":1,"method":"eth_chainId"}`)
      assert.strictEqual(JsonParts.at(mistaken.json, "error", "code"), -32600)
    }))
})

describe("a route behind the caller's key", () => {
  const routes: ReadonlyArray<
    readonly [route: string, ask: (base: string) => Effect.Effect<GatewayResponse>, text: string, upstream: string]
  > = [
    [
      "POST /KEY/info",
      (base) => post(`${base}/info`, `{"type":"spotMeta"}`),
      spotMeta,
      `node POST /${upstreamKeys.node}/info`
    ],
    [
      "POST /KEY/evm",
      (base) => post(`${base}/evm`, `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`),
      `{"jsonrpc":"2.0","id":1,"result":"0x1"}`,
      `node POST /${upstreamKeys.node}/evm`
    ],
    [
      "GET /KEY/api/v2/getTokenData",
      (base) => get(`${base}/api/v2/getTokenData?address=${address}`),
      `{"decimals":9,"totalSupply":"1","mintable":true,"burnable":true,"address":"${address}","metadata":"unresolved"}`,
      `tokens GET /${upstreamKeys.tokens}/api/v2/getTokenData?address=${address}`
    ],
    [
      "POST /KEY/api/v2/jsonRPC",
      (base) => post(`${base}/api/v2/jsonRPC`, `{"jsonrpc":"2.0","id":1,"method":"getMasterchainInfo","params":{}}`),
      `{"ok":true,"result":{"total_supply":1,"mintable":true},"jsonrpc":"2.0","id":1}`,
      `tokens POST /${upstreamKeys.tokens}/api/v2/jsonRPC`
    ],
    [
      "POST /KEY/l2",
      (base) => post(`${base}/l2`, receipt),
      `{"jsonrpc":"2.0","id":1,"result":null}`,
      `layer2 POST /${upstreamKeys.layer2}`
    ],
    [
      "POST /KEY",
      (base) => post(base, receipt),
      `{"jsonrpc":"2.0","id":1,"result":null}`,
      `layer2 POST /${upstreamKeys.layer2}`
    ]
  ]
  for (const [route, ask, text, upstream] of routes) {
    it.live(`goes to the node address, with the key of the configuration: ${route}`, () =>
      Effect.gen(function*() {
        const gateway = yield* live
        const answer = yield* ask(`${gateway.url}/${key}`)
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.text, text)
        assert.deepStrictEqual(gateway.seen(), [upstream])
        assert.isFalse(seenKey(gateway))
        assert.notInclude(JSON.stringify([...answer.headers]), key)
      }))
  }

  const official: ReadonlyArray<readonly [route: string, operation: string, body: (now: number) => string]> = [
    ["exchange", "exchange", (now) => bodyOf(now, bigBlocks)],
    ["exchange", "exchange", () => "not looked at"],
    ["info", "candleSnapshot", () => candles]
  ]
  for (const [route, operation, body] of official) {
    it.live(`does not have what only the venue's API serves: ${operation}, ${body(0).slice(0, 12)}`, () =>
      Effect.gen(function*() {
        const gateway = yield* live
        const answer = yield* post(`${gateway.url}/${key}/${route}`, body(yield* Clock.currentTimeMillis))
        assert.strictEqual(answer.status, 501)
        assert.strictEqual(answer.type, "application/problem+json")
        assert.include(answer.json, { _tag: "UnavailableOnNode", operation })
        assert.deepStrictEqual(gateway.seen(), [])
        assert.notInclude(answer.text, key)
      }))
  }

  it.live("never asks the venue's API instead of the node", () =>
    Effect.gen(function*() {
      const gateway = yield* liveGateway({
        api: () => ({ body: spotMeta }),
        node: () => ({ status: 503, body: "{}" })
      })
      const answer = yield* post(`${gateway.url}/${key}/info`, `{"type":"spotMeta"}`)
      assert.strictEqual(answer.status, 503)
      assert.deepStrictEqual(gateway.seen(), Array.from({ length: 3 }, () => `node POST /${upstreamKeys.node}/info`))
    }))
})

describe("the caller's key", () => {
  const bad = ["ba d-key-secret", "käy-secret", "k.e.y-secret", "a%2Fb-secret", `${"k".repeat(129)}-secret`]
  const paths = ["", "/info", "/evm", "/l2", "/exchange", "/api/v2/jsonRPC"]

  it.live("is in no refusal, whatever is wrong with it", () =>
    Effect.gen(function*() {
      const gateway = yield* live
      for (const one of bad) {
        for (const path of paths) {
          const answer = yield* post(
            `${gateway.url}/${one.includes("%") ? one : encodeURIComponent(one)}${path}`,
            receipt
          )
          assert.isAtLeast(answer.status, 400, `${one} ${path}`)
          assert.isBelow(answer.status, 500, `${one} ${path}`)
          assert.notInclude(answer.text, "secret")
        }
      }
      assert.deepStrictEqual(gateway.seen(), [])
    }))

  it.live("is in no error of an upstream, and in no metric", () =>
    Effect.gen(function*() {
      const gateway = yield* liveGateway()
      for (const path of paths) {
        const answer = yield* post(`${gateway.url}/${key}${path}`, receipt)
        assert.notInclude(answer.text, key)
        assert.notInclude(JSON.stringify([...answer.headers]), key)
      }
      const metrics = yield* get(`${gateway.url}/metrics`)
      assert.strictEqual(metrics.status, 200)
      assert.notInclude(metrics.text, key)
      assert.isFalse(seenKey(gateway))
    }))
})
