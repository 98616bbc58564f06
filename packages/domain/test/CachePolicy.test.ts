import { assert, describe, it } from "@effect/vitest"
import { exchangeOperations } from "@trigate/domain/actions/Action"
import * as Json from "@trigate/domain/encoding/Encoding"
import { evmMethods, evmOperations } from "@trigate/domain/evm/EvmProtocol"
import { layer2Methods } from "@trigate/domain/evm/Layer2Operations"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import * as OperationModule from "@trigate/domain/operations/Operation"
import type { CachePolicy, Operation } from "@trigate/domain/operations/Operation"
import * as TonAddress from "@trigate/domain/tokens/TokenData"
import { getTokenData, tokenRpcOperations, tokenSendOperations } from "@trigate/domain/tokens/TokenOperations"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import spotMeta from "./fixtures/spotMeta-testnet-full.json" with { type: "json" }

const minute = 60_000
const day = 86_400_000
const window = { coin: "BTC", interval: "1h", startTime: 0, endTime: 3_600_000 } as const

const reads: ReadonlyArray<Operation> = [
  ...Object.values(infoOperations),
  ...evmMethods,
  getTokenData,
  ...Object.values(tokenRpcOperations),
  ...Object.values(tokenSendOperations),
  ...layer2Methods
]

const named = (cachePolicys: ReadonlyArray<readonly [Operation, CachePolicy | undefined]>) =>
  cachePolicys.flatMap(([operation, cachePolicy]) =>
    cachePolicy === undefined ? [] : [[`${operation.protocol} ${operation.name}`, cachePolicy]]
  )

describe("What is kept of answers", () => {
  it("is declared for these reads, and for no other", () => {
    assert.deepStrictEqual(named(reads.map((each) => [each, each.cachePolicy?.(window, 2 * day)])), [
      ["info spotMeta", { fresh: 5 * minute, refreshAfter: 4 * minute, staleIfError: 60 * minute }],
      ["info candleSnapshot", { fresh: day, staleIfError: day }],
      ["info meta", { fresh: minute, staleIfError: 0 }],
      ["info allPerpMetas", { fresh: minute, staleIfError: 0 }],
      ["info outcomeMeta", { fresh: 10_000, staleIfError: 0 }],
      ["info metaAndAssetCtxs", { fresh: 1000, staleIfError: 0 }],
      ["info perpDexs", { fresh: minute, staleIfError: 0 }],
      ["info allMids", { fresh: 1000, staleIfError: 0 }],
      ["info l2Book", { fresh: 1000, staleIfError: 0 }],
      ["info recentTrades", { fresh: 1000, staleIfError: 0 }],
      ["evm eth_gasPrice", { fresh: 1000, staleIfError: 10_000 }],
      ["evm eth_bigBlockGasPrice", { fresh: 1000, staleIfError: 10_000 }],
      ["token-rest getTokenData", { fresh: 10_000, staleIfError: 5 * minute }],
      ["token-rpc packAddress", { fresh: day, staleIfError: day }],
      ["token-rpc unpackAddress", { fresh: day, staleIfError: day }],
      ["token-rpc detectAddress", { fresh: day, staleIfError: day }],
      ["token-rpc getTokenData", { fresh: 10_000, staleIfError: 5 * minute }],
      ["token-rpc detectHash", { fresh: day, staleIfError: day }]
    ])
    assert.deepStrictEqual(named(reads.map((each) => [each, each.cachePolicyOnRequest?.(window, 2 * day)])), [
      ["evm eth_getStorageAt", { fresh: 1000, staleIfError: 0 }]
    ])
  })

  it("comes with a check of the answer wherever something is kept", () => {
    for (const each of reads) {
      // a setting may have the answers of any query cached
      const isCached = each.cachePolicy !== undefined || each.cachePolicyOnRequest !== undefined ||
        each.protocol === "info"
      assert.strictEqual(each.isCacheable !== undefined, isCached, each.name)
    }
  })

  it("is nothing for calls that change something, and cannot be declared for them", () => {
    for (const each of Object.values<Operation>(exchangeOperations)) {
      assert.isFalse("cachePolicy" in each)
      assert.isFalse("cachePolicyOnRequest" in each)
    }
    OperationModule.once({
      name: "x",
      chain: "trading",
      protocol: "exchange",
      summary: "",
      sources: [],
      cost: { weight: 0, requestUnits: 0 },
      request: Schema.Unknown,
      response: Schema.Unknown,
      failures: [],
      // @ts-expect-error -- an answer to a once call is nobody else's
      cachePolicy: () => ({ fresh: 1, staleIfError: 1 })
    })
  })

  it("is never an error, half an answer or null", () => {
    const bad = ["null", "", "{", "[]", "{\"ok\":false,\"error\":\"x\"}", "{\"error\":\"x\"}"]
    const address = Result.getOrThrow(TonAddress.check(`0:${"0".repeat(64)}`))
    for (const answer of bad) {
      assert.isFalse(infoOperations.spotMeta.isCacheable?.({}, Json.of(answer)))
      assert.isFalse(evmOperations.gasPrice.isCacheable?.({}, Json.of(answer)))
      assert.isFalse(tokenRpcOperations.getTokenData.isCacheable?.({ address }, Json.of(answer)))
      assert.isFalse(getTokenData.isCacheable?.({ address }, Json.of(answer)))
    }
    assert.isFalse(evmOperations.gasPrice.isCacheable?.({}, Json.of("\"0xzz\"")))
    assert.isFalse(getTokenData.isCacheable?.({ address }, Json.of("{\"ok\":false,\"result\":\"Ratelimit exceed\"}")))
    assert.isTrue(getTokenData.isCacheable?.({ address }, Json.of("{\"ok\":true,\"result\":{}}")))
    assert.isTrue(getTokenData.isCacheable?.({ address }, Json.of("{\"name\":\"flat\"}")))
    assert.isTrue(evmOperations.gasPrice.isCacheable?.({}, Json.of("\"0x5f5e100\"")))
    assert.isTrue(infoOperations.spotMeta.isCacheable?.({}, Json.of(JSON.stringify(spotMeta))))
    assert.isTrue(tokenRpcOperations.detectHash.isCacheable?.({ hash: "x" }, Json.of("{\"b64\":\"x\",\"hex\":\"x\"}")))
  })
})
