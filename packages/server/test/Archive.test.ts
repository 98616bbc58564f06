import { assert, describe, it } from "@effect/vitest"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { Seen } from "@trigate/testing/RecordingUpstream"
import { rpcFailure, rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Queue from "effect/Queue"
import { liveGateway, upstreamKeys } from "./liveGateway.ts"

const call = (method: string, params: string, id = "7"): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`

const answer = `{ "big":123456789012345678901234567890, "n":1.50 }`
const archive = { TRIGATE_TRADING_NODE_ARCHIVE: "on" }

/** Reads of state, each at a block of its own. */
const reads: ReadonlyArray<readonly [method: string, params: string]> = [
  ["eth_call", `[{"to":"0xAb"} ,"0x10"]`],
  ["eth_getBalance", `["0xAb","earliest"]`],
  ["eth_getStorageAt", `["0xAb","0x0","0x10"]`],
  ["eth_getStorageAt", `["0xAb","0x0",{"blockHash":"0xab"}]`],
  ["eth_getStorageAt", `["0xAb","0x0","latest"]`],
  ["eth_getTransactionCount", `["0xAb","0x1"]`],
  ["eth_getCode", `["0xAb","finalized"]`],
  ["eth_estimateGas", `[{},"safe"]`],
  ["eth_getProof", `["0xAb",[],"0x10"]`],
  ["eth_feeHistory", `["0x4","0x10",[]]`],
  ["trace_call", `[{},["trace"],"0x10"]`]
]

// what the check of the node asks is no call of ours
const isOurs = ({ body }: Seen) => !body.includes(`["latest",true]`)
const silent = Effect.provide(Logger.layer([]))

describe("a gateway over archive nodes", () => {
  for (const path of ["/evm", "/caller-key-1/evm"]) {
    it.live(`relays state at any block, and the node's own text comes back: ${path}`, () =>
      Effect.gen(function*() {
        const live = yield* liveGateway({ node: rpcReply(answer) }, { ...archive, TRIGATE_RELAY_METHODS: "trace_*" })
        for (const [method, params] of reads) {
          const said = yield* post(`${live.url}${path}`, call(method, params))
          assert.strictEqual(said.text, `{"jsonrpc":"2.0","id":7,"result":${answer}}`)
        }
        assert.deepStrictEqual(
          live.node.seen.filter(isOurs).map(({ body }) => body.replace(/"id":\d+/u, `"id":0`)),
          reads.map(([method, params]) => call(method, params, "0"))
        )
      }).pipe(silent))
  }

  it.live("still refuses what is no list of params, and keeps the prices of gas", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ node: rpcReply(`"0x5"`) }, archive)
      const wrong = yield* post(`${live.url}/evm`, call("eth_call", `{"to":"0xAb"}`))
      assert.strictEqual(JsonParts.value(wrong.text, "error", "data", "_tag"), "InvalidRequest")
      for (const _ of [1, 2, 3]) yield* post(`${live.url}/evm`, call("eth_gasPrice", "[]"))
      assert.strictEqual(live.node.seen.filter(isOurs).length, 1)
    }).pipe(silent))

  it.live("says at its start which node is none, in one line without the address", () =>
    Effect.gen(function*() {
      const lines = yield* Queue.unbounded<string>()
      const logger = Logger.make(({ logLevel, message }) => {
        Queue.offerUnsafe(lines, `${logLevel} ${String(message)}`)
      })
      yield* Effect.gen(function*() {
        yield* liveGateway({ node: rpcFailure(`{"code":-32000,"message":"no"}`) }, archive)
        assert.strictEqual(
          yield* Queue.take(lines),
          "Warn TRIGATE_TRADING_NODE_ARCHIVE is on, but trading-node#0 is possibly not an archive node: it did not respond to the check"
        )
      }).pipe(Effect.provide(Logger.layer([logger])))
    }))

  it.live("becomes one, and stops to be one, while it serves", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ node: rpcReply(answer) })
      const [[method, params] = ["", ""]] = reads
      const environment = { TRIGATE_TRADING_NODE_URL: `${live.node.url}/${upstreamKeys.node}` }
      const tagNow = Effect.map(
        post(`${live.url}/evm`, call(method, params)),
        ({ text }) => JsonParts.value(text, "error", "data", "_tag")
      )
      assert.strictEqual(yield* tagNow, "UnsupportedBlock")
      assert.deepStrictEqual(live.node.seen, [])
      const { applied } = yield* live.reload({ ...environment, ...archive })
      assert.include(applied, "TRIGATE_TRADING_NODE_ARCHIVE")
      assert.isUndefined(yield* tagNow)
      yield* live.reload(environment)
      assert.strictEqual(yield* tagNow, "UnsupportedBlock")
      assert.strictEqual(live.node.seen.filter(isOurs).length, 1)
    }).pipe(silent))
})

describe("a gateway that was not told of archive nodes", () => {
  it.live("says in its refusal what to set, and asks no node", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway()
      const refused = yield* post(`${live.url}/evm`, call("eth_call", `[{},"0x10"]`))
      assert.strictEqual(
        JsonParts.value(refused.text, "error", "message"),
        "eth_call reads the latest block only, not 0x10; over archive nodes, TRIGATE_TRADING_NODE_ARCHIVE=on allows any block"
      )
      assert.deepStrictEqual(JsonParts.value(refused.text, "error", "data", "supported"), ["latest"])
      assert.deepStrictEqual(live.seen(), [])
    }))
})

describe("an address that ends in the path of a route", () => {
  const ends: ReadonlyArray<readonly [end: string]> = [[""], ["/"], ["/evm"], ["/evm/"], ["/info"]]
  for (const [end] of ends) {
    it.live(`is that of the node: ${end === "" ? "none" : end}`, () =>
      Effect.gen(function*() {
        const live = yield* liveGateway({ node: rpcReply(answer) })
        yield* live.reload({ TRIGATE_TRADING_NODE_URL: `${live.node.url}/${upstreamKeys.node}${end}` })
        const said = yield* post(`${live.url}/evm`, call("eth_blockNumber", "[]"))
        assert.strictEqual(said.text, `{"jsonrpc":"2.0","id":7,"result":${answer}}`)
        assert.deepStrictEqual(live.seen(), [`node POST /${upstreamKeys.node}/evm`])
      }))
  }

  const others: ReadonlyArray<readonly [env: string, end: string, asked: string, body: string, seen: string]> = [
    ["TRIGATE_TRADING_API_URL", "/info", "/info", `{"type":"meta"}`, "/KEY/info"],
    ["TRIGATE_TRADING_API_URL", "/exchange/", "/info", `{"type":"meta"}`, "/KEY/info"],
    ["TRIGATE_TOKEN_CHAIN_URL", "/api/v2", "/api/v2/jsonRPC", `{"method":"getConfigAll"}`, "/KEY/api/v2/jsonRPC"],
    [
      "TRIGATE_TOKEN_CHAIN_URL",
      "/api/v2/jsonRPC",
      "/api/v2/jsonRPC",
      `{"method":"getConfigAll"}`,
      "/KEY/api/v2/jsonRPC"
    ],
    ["TRIGATE_LAYER2_URL", "/l2", "/l2", call("eth_blockNumber", "[]"), "/KEY/l2"],
    ["TRIGATE_LAYER2_URL", "/", "/l2", call("eth_blockNumber", "[]"), "/KEY"]
  ]
  for (const [env, end, asked, body, seen] of others) {
    it.live(`is that of the others too: ${env} with ${end}`, () =>
      Effect.gen(function*() {
        const live = yield* liveGateway({
          node: (request) => request.body.includes("jsonrpc") ? rpcReply(answer)(request) : { body: "{}" }
        })
        yield* live.reload({ [env]: `${live.node.url}/KEY${end}` })
        assert.strictEqual((yield* post(`${live.url}${asked}`, body)).status, 200)
        assert.deepStrictEqual(live.seen(), [`node POST ${seen}`])
      }))
  }
})
