/** Answers that nodes give and no specification has, byte for byte, and what the libraries read of them behind a gateway. */
import { assert, describe, it } from "@effect/vitest"
import { TonClient } from "@ton/ton"
import { tokens } from "@trigate/sandbox/SandboxExamples"
import { idIn } from "@trigate/testing/FaultyUpstream"
import { get } from "@trigate/testing/Gateway"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { Reply } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { isError, JsonRpcProvider, Network } from "ethers"
import { BaseError, createPublicClient, http, RpcRequestError } from "viem"
import { rejection } from "./rejection.ts"
import * as Ton from "./tonChain.ts"

const to = "0x00000000000000000000000000000000000000aa"

/** `revert("no")`, as Solidity encodes it. */
const reverted = `0x08c379a0${"20".padStart(64, "0")}${"2".padStart(64, "0")}${"6e6f".padEnd(64, "0")}`

/** What a node says of a call, and what the libraries are to read. */
interface Odd {
  readonly what: string
  /** The members of the answer beside its id. */
  readonly members: string
  readonly code: number
  readonly message: string
  readonly data?: string
}

const odd: ReadonlyArray<Odd> = [
  {
    what: "an error beside a null result, as Erigon writes it",
    members: `"result":null,"error":{"code":3,"message":"execution reverted: no","data":"${reverted}"}`,
    code: 3,
    message: "execution reverted: no",
    data: reverted
  },
  {
    what: "an error without a message",
    members: `"error":{"code":-32001}`,
    code: -32_001,
    message: `{"code":-32001}`
  },
  {
    what: "an error without a code",
    members: `"error":{"message":"overloaded"}`,
    code: -32_000,
    message: "overloaded"
  },
  {
    what: "an error whose code is a text",
    members: `"error":{"code":"-32001","message":"overloaded"}`,
    code: -32_001,
    message: "overloaded"
  },
  { what: "an error that is a text", members: `"error":"overloaded"`, code: -32_000, message: "overloaded" }
]

/** A gateway whose layer 2 answers every call with the same members. */
const nodeSaying = Effect.fnUntraced(function*(members: string) {
  const node = yield* recordingUpstream(({ body }) => ({ body: `{"jsonrpc":"2.0","id":${idIn(body)},${members}}` }))
  const { url } = yield* hostedGateway({ TRIGATE_LAYER2_URL: node.url, TRIGATE_ACCESS_LOG: "off" })
  const calls = () => node.seen.filter(({ body }) => body.includes("eth_call")).length
  return { url: `${url}/l2`, calls }
})

describe("a node's words reach", () => {
  for (const { code, data, members, message, what } of odd) {
    it.live(`viem: ${what}`, () =>
      Effect.gen(function*() {
        const { calls, url } = yield* nodeSaying(members)
        const l2 = createPublicClient({ transport: http(url, { retryCount: 0 }) })
        const error = yield* rejection(() => l2.call({ to, data: "0x01" }))
        assert(error instanceof BaseError, String(error))
        const cause = error.walk((each) => each instanceof RpcRequestError)
        assert(cause instanceof RpcRequestError, String(error))
        assert.deepStrictEqual(
          { code: cause.code, details: cause.details, data: cause.data },
          { code, details: message, data }
        )
        assert.strictEqual(calls(), 1)
      }))

    it.live(`ethers: ${what}`, () =>
      Effect.gen(function*() {
        const { calls, url } = yield* nodeSaying(members)
        const provider = yield* Effect.acquireRelease(
          Effect.sync(() => new JsonRpcProvider(url, new Network("layer2", 1), { staticNetwork: true })),
          (made) => Effect.sync(() => made.destroy())
        )
        const error = yield* rejection(() => provider.call({ to, data: "0x01" }))
        assert(isError(error, "CALL_EXCEPTION"), String(error))
        assert.deepStrictEqual([error.data, error.reason], data === undefined ? [null, null] : [data, "no"])
        const told = data === undefined ? { code, message } : { code, message, data }
        assert.deepStrictEqual(JsonParts.at(error, "info", "error"), told)
        assert.strictEqual(calls(), 1)
      }))
  }
})

/** A gateway over a server of the token chain. */
const overTokens = Effect.fnUntraced(function*(reply?: Reply) {
  const chain = yield* (reply === undefined ? Ton.tonChain : Ton.answering(reply))
  const { url } = yield* hostedGateway({ TRIGATE_TOKEN_CHAIN_URL: chain.url, TRIGATE_ACCESS_LOG: "off" })
  return { chain, url, ton: new TonClient({ endpoint: `${url}/api/v2/jsonRPC` }) }
})

const path = `/api/v2/getTokenData?address=${tokens.onchain}`

describe("the token chain", () => {
  it.live("gives @ton/ton the transactions of a limit that is a text", () =>
    Effect.gen(function*() {
      const { chain, ton } = yield* overTokens()
      // what callers pass who do not check types, such as a value of a query
      const options = Object.assign({ limit: 10 }, { limit: "10" })
      const found = yield* Effect.promise(() => ton.getTransactions(Ton.wallet, options))
      assert.deepStrictEqual(found.map(({ lt }) => lt), [BigInt(Ton.transaction.lt)])
      assert.deepStrictEqual(chain.seen.map(({ body }) => JsonParts.value(body, "params", "limit")), ["10"])
    }))

  it.live("has @ton/ton read a 404 in the server's words, which was asked once", () =>
    Effect.gen(function*() {
      const body = `{"ok":false,"error":"Not Found","code":404}`
      const { chain, ton, url } = yield* overTokens({ status: 404, body })
      const told = String(yield* rejection(() => ton.getBalance(Ton.wallet)))
      const envelope = told.slice(told.indexOf("{"))
      assert.deepStrictEqual([JsonParts.value(envelope, "error"), JsonParts.value(envelope, "code")], [
        "Not Found",
        404
      ])
      assert.lengthOf(chain.seen, 1)
      const { json, status } = yield* get(url + path)
      // the group of errors that a repetition does not repair
      assert.deepStrictEqual([status, JsonParts.at(json, "_tag")], [400, "InvalidRequest"])
      assert.strictEqual(JsonParts.at(json, "detail"), "token-chain returned error 404: Not Found")
      assert.lengthOf(chain.seen, 2)
    }))

  it.live("keeps a token with the nulls of pytonlib a token", () =>
    Effect.gen(function*() {
      const { url } = yield* overTokens({
        body: `{"ok":true,"result":{"total_supply":5,"mintable":false,"admin_address":null,` +
          `"jetton_content":{"type":"onchain","data":null},"jetton_wallet_code":null,"contract_type":"jetton_master"}}`
      })
      const { json, status } = yield* get(url + path)
      const address = tokens.onchain
      assert.deepStrictEqual([status, json], [200, {
        address,
        totalSupply: "5",
        mintable: false,
        burnable: true,
        decimals: 9,
        metadata: "unresolved"
      }])
    }))

  for (
    const [kind, members] of [
      ["jetton_wallet", `"balance":1,"owner":null,"jetton":null,"mintless_is_claimed":null`],
      ["nft_item", `"init":true,"index":1,"collection_address":null,"owner_address":null,"content":null`],
      ["nft_collection", `"next_item_index":1,"owner_address":null,"collection_content":null`]
    ] as const
  ) {
    it.live(`says that another contract is no token, nulls or not: ${kind}`, () =>
      Effect.gen(function*() {
        const { url } = yield* overTokens({ body: `{"ok":true,"result":{${members},"contract_type":"${kind}"}}` })
        const { json, status } = yield* get(url + path)
        assert.deepStrictEqual(
          [status, JsonParts.at(json, "_tag"), JsonParts.at(json, "contractType")],
          [404, "TokenNotFound", kind]
        )
      }))
  }

  for (const decimals of [`"256"`, `"-1"`, `"x"`, "300"]) {
    it.live(`does not pass decimals off as 9 that are out of range: ${decimals}`, () =>
      Effect.gen(function*() {
        const { url } = yield* overTokens({
          body: `{"ok":true,"result":{"total_supply":5,"mintable":false,"jetton_content":{"type":"onchain",` +
            `"data":{"name":"N","symbol":"S","decimals":${decimals}}},"contract_type":"jetton_master"}}`
        })
        const { json, status } = yield* get(url + path)
        assert.strictEqual(status, 200)
        // 9 is the standard's, and the answer says that the token's own were not read
        assert.deepInclude(json, { name: "N", symbol: "S", decimals: 9, metadata: "unresolved" })
      }))
  }
})
