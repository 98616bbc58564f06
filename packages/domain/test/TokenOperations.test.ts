import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { responseWeight } from "@trigate/domain/operations/Operation"
import type { AnyCodec } from "@trigate/domain/operations/Operation"
import * as TokenOperations from "@trigate/domain/tokens/TokenOperations"
import * as TokenProtocol from "@trigate/domain/unstable/tokens/TokenProtocol"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

import clients from "./fixtures/ton-client-requests.json" with { type: "json" }

const { tokenRpcOperations } = TokenOperations

/** Reads params as the routes do, which parse them strictly. */
const readParams = <Request extends AnyCodec>(operation: { readonly request: Request }) => (text: string) =>
  TokenProtocol.requestCheck(operation)(Json.strict(text))
const address = "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs"
const wrong = "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDt"

const names = [
  "packAddress",
  "unpackAddress",
  "detectAddress",
  "getTokenData",
  "getAddressInformation",
  "getExtendedAddressInformation",
  "getWalletInformation",
  "getAddressBalance",
  "getAddressState",
  "getShardAccountCell",
  "detectHash",
  "dnsResolve",
  "getTransactions",
  "getTransactionsStd",
  "tryLocateTx",
  "tryLocateResultTx",
  "tryLocateSourceTx",
  "getMasterchainInfo",
  "getConsensusBlock",
  "getMasterchainBlockSignatures",
  "shards",
  "getShards",
  "getShardBlockProof",
  "lookupBlock",
  "getBlockTransactions",
  "getBlockTransactionsExt",
  "getBlockHeader",
  "getOutMsgQueueSize",
  "getConfigParam",
  "getConfigAll",
  "getLibraries",
  "runGetMethod",
  "runGetMethodStd",
  "estimateFee"
]

describe("TokenOperations", () => {
  for (const params of ["\"abc\"", "[\"abc\"]", "{\"a\":1}", "1", "null"]) {
    it.effect(`a method without params refuses ${params}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(readParams(tokenRpcOperations.getMasterchainInfo)(params))
        assert.strictEqual(error._tag, "InvalidRequest")
      }))
  }

  it("holds the documented read methods, each under its own name, and nothing that writes", () => {
    assert.deepStrictEqual(Object.keys(tokenRpcOperations), names)
    for (const [name, operation] of Object.entries(tokenRpcOperations)) {
      assert.strictEqual(operation.name, name)
      assert.strictEqual(operation.class, "read")
      assert.strictEqual(operation.protocol, "token-rpc")
      assert.deepStrictEqual(operation.sources, ["node"])
      assert.strictEqual(operation.cost.requestUnits, name.startsWith("getTransactions") ? 2 : 1)
      assert.strictEqual(responseWeight(operation, 0), 0)
    }
  })

  it("declares the REST call with both errors that it has of its own", () => {
    assert.deepStrictEqual(TokenOperations.getTokenData.failures.map((failure) => failure.identifier), [
      "InvalidAddress",
      "TokenNotFound"
    ])
    assert.strictEqual(TokenOperations.getTokenData.protocol, "token-rest")
    assert.isTrue(Schema.is(TokenOperations.getTokenData.request)({ address }))
    assert.isFalse(Schema.is(TokenOperations.getTokenData.request)({ address: wrong }))
  })
})

describe("readParams", () => {
  // params that stock clients send, and params at the edges
  const accepted = [
    ["packAddress", { address }],
    ["getTokenData", { address, seqno: 40_000_000 }],
    ["getMasterchainInfo", {}],
    ["getAddressInformation", { address: "0:b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe" }],
    ["runGetMethod", { address, method: "get_jetton_data", stack: [] }],
    ["runGetMethod", { address, method: 97026, stack: [["num", "0x1"]] }],
    ["getTransactions", { address, limit: 20, lt: "48756545000001", hash: "aa", to_lt: "0", archival: true }],
    ["tryLocateTx", { source: address, destination: address, created_lt: 1n << 60n }],
    ["getBlockHeader", { workchain: -1, shard: "-9223372036854775808", seqno: 1 }],
    ["getBlockTransactions", {
      workchain: 0,
      shard: "8000000000000000",
      seqno: 1,
      after_lt: "1",
      after_hash: "h",
      count: 40
    }],
    ["estimateFee", { address, body: "te6c", init_code: "", init_data: "", ignore_chksig: true }]
  ] as const
  for (const [name, params] of accepted) {
    it.effect(`takes ${name} with ${Object.keys(params).join(", ") || "nothing"}`, () =>
      Effect.gen(function*() {
        const text = Json.stringify(params)
        const read = readParams<AnyCodec>(tokenRpcOperations[name])
        assert.deepEqual(yield* read(text), params)
      }))
  }

  it.effect("takes everything that stock clients were seen to send", () =>
    Effect.gen(function*() {
      for (const { body } of clients.requests) {
        const text = JSON.stringify(body)
        const call = yield* Effect.fromResult(TokenProtocol.readCall(Json.of(text)))
        assert.strictEqual(call.id, JSON.stringify(body.id))
        const operation = Object.values(tokenRpcOperations).find(({ name }) => name === call.method)
        assert.isDefined(operation)
        assert.deepEqual(yield* readParams<AnyCodec>(operation)(call.params.text), body.params)
      }
    }))

  it.effect("takes an empty array for no params, and no other array", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual({ ...(yield* readParams(tokenRpcOperations.getMasterchainInfo)("[]")) }, {})
      const positional = yield* Effect.flip(readParams(tokenRpcOperations.packAddress)(JSON.stringify([address])))
      assert(positional._tag === "InvalidRequest")
      assert.deepStrictEqual(positional.errors[0]?.path, ["params"])
      const missing = yield* Effect.flip(readParams(tokenRpcOperations.packAddress)("[]"))
      assert(missing._tag === "InvalidRequest")
      assert.deepStrictEqual(missing.errors[0]?.path, ["params", "address"])
    }))

  it.effect("tells a bad address as what it is", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(readParams(tokenRpcOperations.getTokenData)(JSON.stringify({ address: wrong })))
      assert(error._tag === "InvalidAddress")
      assert.strictEqual(error.address, wrong)
      assert.strictEqual(error.reason, "checksum differs")
      const params = { source: address, destination: wrong, created_lt: 1 }
      const second = yield* Effect.flip(readParams(tokenRpcOperations.tryLocateTx)(JSON.stringify(params)))
      assert(second._tag === "InvalidAddress")
      assert.strictEqual(second.address, wrong)
    }))

  const refused = [
    ["an unknown member", `{"address":"${address}","adress":1}`, ["params", "adress"]],
    ["a key twice", `{"address":"${address}","address":"${address}"}`, ["params", "address"]],
    ["an address that is a number", `{"address":1}`, ["params", "address"]],
    ["a negative seqno", `{"address":"${address}","seqno":-1}`, ["params", "seqno"]],
    ["a text", `"${address}"`, ["params"]],
    ["null", "null", ["params"]],
    ["what is not JSON", "{", ["params"]]
  ] as const
  for (const [what, text, path] of refused) {
    it.effect(`refuses ${what}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(readParams(tokenRpcOperations.getTokenData)(text))
        assert(error._tag === "InvalidRequest")
        assert.deepStrictEqual(error.errors[0]?.path, path)
      }))
  }

  it.effect("tells all faults when the address is not the only one", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(readParams(tokenRpcOperations.getTokenData)(`{"address":"EQ","seqno":"x"}`))
      assert(error._tag === "InvalidRequest")
      assert.deepStrictEqual(error.errors.map(({ path }) => path.join(".")), ["params.address", "params.seqno"])
    }))
})
