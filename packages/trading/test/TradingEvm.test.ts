import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { Hash, StorageSlot } from "@trigate/domain/encoding/Encoding"
import { UnavailableOnNode } from "@trigate/domain/errors/GatewayError"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import { evmOperations, makeEvmMethods } from "@trigate/domain/evm/EvmProtocol"
import type { EvmCall } from "@trigate/domain/evm/EvmProtocol"
import * as Gas from "@trigate/domain/evm/EvmResources"
import { flipReason } from "@trigate/testing/Reason"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import * as TradingEvm from "@trigate/trading/TradingEvm"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import samples from "./fixtures/evm-rpc-samples.json" with { type: "json" }

const node = "https://node.test/KEY"
const contract = "0x5555555555555555555555555555555555555555"
const account = "0xFC1286EeddF81d6955eDAd5C8D99B8Aa32F3D2AA"

const evm = TradingEvm.TradingEvm
const over = (
  transport: ReturnType<typeof ScriptedTransport.make>,
  addresses: TradingUpstream.Addresses = { node: [node] }
) => TradingUpstream.layerEvm(addresses).pipe(Layer.provide(transport.layer))

interface Envelope {
  readonly id: number
  readonly method: string
  readonly params: unknown
}
const read = (text: string): Envelope => JSON.parse(text) as Envelope

/** A node that answers each method with a raw member: `"result":…` or `"error":…`. */
const nodeOf = (answers: { readonly [method: string]: string }) =>
  ScriptedTransport.make(({ body }) => {
    const { id, method } = read(body)
    return ScriptedTransport.response(200, `{"jsonrpc":"2.0","id":${id},${answers[method] ?? "\"result\":null"}}`)
  })
const sample = (id: string) => {
  const { response } = samples.samples.find((each) => each.id === id) ?? assert.fail(id)
  return "error" in response
    ? `"error":${JSON.stringify(response.error)}`
    : `"result":${JSON.stringify(response.result)}`
}
const relay = (call: EvmCall) => evm.use((service) => service.relay(call))
const gasPriceCall: EvmCall = { operation: evmOperations.gasPrice, params: Json.strict("[]"), surface: "gateway" }

describe("typed methods", () => {
  it.effect("read the documented samples and send their params", () => {
    const transport = nodeOf({
      eth_getStorageAt: sample("storage"),
      eth_gasPrice: sample("gas-price"),
      eth_bigBlockGasPrice: sample("big-gas-price"),
      eth_usingBigBlocks: sample("using-big")
    })
    return Effect.gen(function*() {
      const service = yield* evm
      assert.strictEqual(
        yield* service.getStorageAt({ address: contract, slot: "0x0" }),
        "0x000000000000000000000000fc1286eeddf81d6955edad5c8d99b8aa32f3d2aa"
      )
      assert.strictEqual(yield* service.gasPrice(), 1_000_000_000n)
      assert.strictEqual(yield* service.bigBlockGasPrice(), 1_000_000_000n)
      assert.isTrue(yield* service.usingBigBlocks({ address: account }))
      assert.deepStrictEqual(transport.sent.map(({ url }) => url), Array.from({ length: 4 }, () => `${node}/evm`))
      assert.deepStrictEqual(
        transport.sent.map(({ body }) => read(body)).map(({ method, params }) => [method, params]),
        [
          ["eth_getStorageAt", [contract, "0x0", "latest"]],
          ["eth_gasPrice", []],
          ["eth_bigBlockGasPrice", []],
          ["eth_usingBigBlocks", [account]]
        ]
      )
      assert.strictEqual(new Set(transport.sent.map(({ body }) => read(body).id)).size, 4)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("the price of an account is that of the blocks it uses, and its cost follows exactly", () =>
    Effect.forEach([[true, 7n], [false, 0xffffffffffffffffn]] as const, ([isBig, price]) => {
      const transport = nodeOf({
        eth_usingBigBlocks: `"result":${isBig}`,
        eth_gasPrice: "\"result\":\"0xffffffffffffffff\"",
        eth_bigBlockGasPrice: "\"result\":\"0x7\""
      })
      return Effect.gen(function*() {
        const service = yield* evm
        assert.strictEqual(yield* service.gasPriceFor({ address: account }), price)
        assert.strictEqual(
          yield* service.transactionCost({ address: account, gasLimit: 30_000_001n }),
          price * 30_000_001n
        )
        assert.deepStrictEqual(
          transport.sent.slice(0, 2).map(({ body }) => read(body).method),
          ["eth_usingBigBlocks", isBig ? "eth_bigBlockGasPrice" : "eth_gasPrice"]
        )
      }).pipe(Effect.provide(over(transport)))
    }))

  it.effect("a node's errors are typed", () =>
    Effect.forEach(
      [
        [sample("rate-limited"), "UpstreamRateLimited"],
        [sample("method-not-found"), "UnsupportedMethod"],
        [sample("bad-block"), "UpstreamUnavailable"],
        ["\"error\":{\"code\":-32602,\"message\":\"bad params\"}", "InvalidRequest"],
        ["\"result\":\"nonsense\"", "UpstreamMalformed"],
        ["\"result\":null", "UpstreamMalformed"],
        ["\"result\":\"0x1\",\"error\":{\"code\":1,\"message\":\"both\"}", "UpstreamMalformed"]
      ] as const,
      ([member, tag]) =>
        Effect.gen(function*() {
          const error = yield* flipReason(evm.use((service) => service.gasPrice()))
          assert.strictEqual(error._tag, tag)
        }).pipe(Effect.provide(over(nodeOf({ eth_gasPrice: member }))))
    ))

  it.effect("a typed error of a gateway upstream travels in the error's data", () => {
    const error = new UnavailableOnNode({ operation: "eth_gasPrice", availableOn: ["official-api"] })
    return Effect.gen(function*() {
      const read = yield* flipReason(evm.use((service) => service.gasPrice()))
      assert.instanceOf(read, UnavailableOnNode)
      assert.deepStrictEqual(read._tag === "UnavailableOnNode" && read.availableOn, ["official-api"])
    }).pipe(Effect.provide(over(nodeOf({ eth_gasPrice: `"error":${JsonRpc.errorObject(error)}` }))))
  })

  it.effect("an answer that is no JSON-RPC is read by its status", () =>
    Effect.forEach(
      [
        [ScriptedTransport.response(200, "[]"), "UpstreamMalformed"],
        [ScriptedTransport.response(200, "{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":\"0x1\"}"), "UpstreamMalformed"],
        [ScriptedTransport.response(429, "null"), "UpstreamRateLimited"],
        [ScriptedTransport.response(429, ""), "UpstreamRateLimited"],
        [ScriptedTransport.response(400, "bad", { "content-type": "text/plain" }), "InvalidRequest"],
        [ScriptedTransport.response(404, "{\"message\":\"no Route matched\"}"), "UpstreamUnavailable"],
        [
          ScriptedTransport.response(
            404,
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32005,\"message\":\"x\"}}"
          ),
          "UpstreamRateLimited"
        ],
        [
          ScriptedTransport.response(
            401,
            "{\"type\":\"urn:trigate:problem:unauthorized\",\"title\":\"Unauthorized\",\"status\":401,\"_tag\":\"Unauthorized\"}",
            { "content-type": "application/problem+json" }
          ),
          "UpstreamForbidden"
        ],
        [ScriptedTransport.unreachable, "UpstreamUnavailable"],
        [ScriptedTransport.broken, "UpstreamUnavailable"]
      ] as const,
      ([reaction, tag]) =>
        Effect.gen(function*() {
          assert.strictEqual((yield* flipReason(evm.use((service) => service.gasPrice())))._tag, tag)
        }).pipe(Effect.provide(over(ScriptedTransport.make(() => reaction))))
    ))
})

describe("relay", () => {
  it.effect("sends the caller's params as they are under an id of ours, and gives the raw result", () => {
    const transport = nodeOf({ eth_getStorageAt: "\"result\" : { \"big\": 18446744073709551616 }" })
    return Effect.gen(function*() {
      const params = `[ "${contract}" , "0x0",\n"latest"]`
      const answer = yield* relay({
        operation: evmOperations.getStorageAt,
        params: Json.strict(params),
        surface: "node"
      })
      assert.deepStrictEqual(answer, { _tag: "Result", result: Json.of("{ \"big\": 18446744073709551616 }") })
      assert.strictEqual(
        transport.sent[0]?.body,
        `{"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":${params}}`
      )
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("gives a node's own error object as it wrote it", () => {
    const transport = nodeOf({ eth_gasPrice: "\"error\":{\"code\":-32005, \"message\":\"rate limited\",\"data\":1e3}" })
    return Effect.gen(function*() {
      assert.deepStrictEqual(yield* relay(gasPriceCall), {
        _tag: "Error",
        code: -32005,
        message: "rate limited",
        error: Json.of("{\"code\":-32005, \"message\":\"rate limited\",\"data\":1e3}")
      })
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("refuses every block but latest before anything is sent", () => {
    const transport = nodeOf({})
    return Effect.gen(function*() {
      const at = (block: string) =>
        relay({
          operation: evmOperations.getStorageAt,
          params: Json.strict(`["${contract}","0x0"${block}]`),
          surface: "gateway"
        })
      for (const block of ["\"0x1\"", "\"pending\"", "\"earliest\"", "{\"blockNumber\":\"0x1\"}", "null", "1"]) {
        const error = yield* flipReason(at(`,${block}`))
        assert.strictEqual(error._tag, "UnsupportedBlock")
        if (error._tag === "UnsupportedBlock") {
          assert.deepStrictEqual([error.method, error.block, error.supported], [
            "eth_getStorageAt",
            block.replaceAll(/^"|"$/gu, ""),
            ["latest"]
          ])
        }
      }
      assert.deepStrictEqual(transport.sent, [])
      yield* at("")
      yield* at(",\"l\\u0061test\"")
      assert.strictEqual(transport.sent.length, 2)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("relays any block over archive nodes, by the operations that they serve", () => {
    const transport = nodeOf({ eth_call: "\"result\":\"0x7\"" })
    return Effect.gen(function*() {
      const { relay, serving } = yield* evm
      const operation = makeEvmMethods(serving).find(({ name }) => name === "eth_call") ?? assert.fail()
      const answer = yield* relay({ operation, params: Json.strict(`[{},"0x1"]`), surface: "gateway" })
      assert.deepStrictEqual(answer, JsonRpc.result(Json.of("\"0x7\"")))
      assert.strictEqual(transport.sent.filter(({ body }) => body.includes(`"params":[{},"0x1"]`)).length, 1)
    }).pipe(Effect.provide([over(transport, { node: [node], nodeArchive: true }), Logger.layer([])]))
  })

  it.effect("goes to nodes only: an address of the venue's API does not make it configured", () => {
    const transport = nodeOf({})
    return Effect.gen(function*() {
      for (const addresses of [{}, { api: ["https://api.test"] }]) {
        const error = yield* flipReason(relay(gasPriceCall)).pipe(Effect.provide(over(transport, addresses)))
        assert.strictEqual(error._tag, "ChainNotConfigured")
      }
      assert.deepStrictEqual(transport.sent, [])
    })
  })

  it.effect("moves on to the next node", () => {
    const transport = ScriptedTransport.make(({ body, url }) =>
      url.startsWith("https://dead")
        ? ScriptedTransport.broken
        : ScriptedTransport.response(200, `{"jsonrpc":"2.0","id":${read(body).id},"result":"0x1"}`)
    )
    return Effect.gen(function*() {
      assert.strictEqual(yield* evm.use((service) => service.gasPrice()), 1n)
      assert.strictEqual(transport.sent.length, 2)
    }).pipe(Effect.provide(over(transport, { node: ["https://dead.test", node] })))
  })
})

describe("in memory", () => {
  it.effect("answers what was set", () =>
    Effect.gen(function*() {
      const service = yield* evm
      const state = yield* TradingEvm.TradingEvmState
      const zeros: Hash = `0x${"0".repeat(64)}`
      const word: Hash = `0x${"0".repeat(62)}2a`
      assert.strictEqual(yield* service.getStorageAt({ address: contract, slot: "0x1" }), zeros)
      yield* Ref.set(state.storage, new Map([[TradingEvm.storageKey(contract, "0x1"), word]]))
      assert.strictEqual(yield* service.getStorageAt({ address: contract, slot: "0x01" }), word)
      assert.strictEqual(yield* service.gasPrice(), Gas.cost({ gasPrice: 10n ** 9n, gasLimit: 1n }))
      yield* Ref.set(state.bigBlockGasPrice, 2n ** 80n)
      assert.strictEqual(yield* service.gasPriceFor({ address: account }), 10n ** 9n)
      yield* Ref.set(state.usingBigBlocks, new Set([account.toLowerCase()]))
      assert.strictEqual(yield* service.gasPriceFor({ address: account }), 2n ** 80n)
      assert.strictEqual(yield* service.transactionCost({ address: account, gasLimit: 2n }), 2n ** 81n)
    }).pipe(Effect.provide(TradingEvm.layerMemory())))

  it.effect("answers relayed calls in the wire's shape and refuses what does not decode", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* relay(gasPriceCall), { _tag: "Result", result: Json.of("\"0x3b9aca00\"") })
      for (
        const call of [
          { ...gasPriceCall, operation: evmOperations.usingBigBlocks, params: Json.strict("[\"0x1\"]") },
          { ...gasPriceCall, params: Json.strict("[1]") },
          { ...gasPriceCall, params: Json.strict("{}") },
          { ...gasPriceCall, params: Json.strict("[") }
        ]
      ) {
        const error = yield* flipReason(relay(call))
        assert.strictEqual(error._tag, "InvalidRequest", call.params.text)
      }
      const block = yield* flipReason(
        relay({
          operation: evmOperations.getStorageAt,
          params: Json.strict(`["${contract}","0x0","0x5"]`),
          surface: "gateway"
        })
      )
      assert.strictEqual(block._tag, "UnsupportedBlock")
    }).pipe(Effect.provide(TradingEvm.layerMemory())))

  it.effect.prop("any word comes back from any slot", [StorageSlot, Hash], ([slot, word]) =>
    Effect.gen(function*() {
      const state = yield* TradingEvm.TradingEvmState
      yield* Ref.set(state.storage, new Map([[TradingEvm.storageKey(contract, slot), word]]))
      const padded = Schema.decodeUnknownSync(StorageSlot)(`0x${slot.slice(2).padStart(64, "0")}`)
      assert.strictEqual(yield* evm.use((service) => service.getStorageAt({ address: contract, slot: padded })), word)
    }).pipe(Effect.provide(TradingEvm.layerMemory())))
})

class Second extends Context.Service<Second, TradingEvm.TradingEvm["Service"]>()("@trigate/trading/test/SecondEvm") {}

describe("two of a kind in one program", () => {
  it.effect("ask their own nodes", () => {
    const transport = ScriptedTransport.make(({ body, url }) =>
      ScriptedTransport.response(
        200,
        `{"jsonrpc":"2.0","id":${read(body).id},"result":"${url.startsWith("https://one") ? "0x1" : "0x2"}"}`
      )
    )
    const second = Layer.effect(Second, evm).pipe(Layer.provide(over(transport, { node: ["https://two.test"] })))
    return Effect.gen(function*() {
      assert.strictEqual(yield* evm.use((service) => service.gasPrice()), 1n)
      assert.strictEqual(yield* Second.use((service) => service.gasPrice()), 2n)
    }).pipe(Effect.provide(Layer.merge(over(transport, { node: ["https://one.test"] }), second)))
  })

  it.effect("in memory have their own state", () => {
    const second = Layer.effect(Second, evm).pipe(Layer.provide(TradingEvm.layerMemory()))
    return Effect.gen(function*() {
      const { gasPrice } = yield* TradingEvm.TradingEvmState
      yield* Ref.set(gasPrice, 5n)
      assert.strictEqual(yield* evm.use((service) => service.gasPrice()), 5n)
      assert.strictEqual(yield* Second.use((service) => service.gasPrice()), 1_000_000_000n)
    }).pipe(Effect.provide(Layer.merge(TradingEvm.layerMemory(), second)))
  })
})

describe("the addresses of the configuration", () => {
  it.effect("hold the node's", () => {
    const transport = nodeOf({ eth_gasPrice: sample("gas-price") })
    return Effect.gen(function*() {
      yield* evm.use((service) => service.gasPrice())
      assert.strictEqual(transport.sent[0]?.url, `${node}/evm`)
    }).pipe(
      Effect.provide(
        Layer.unwrap(Effect.map(TradingUpstream.config, TradingUpstream.layerEvm)).pipe(
          Layer.provide([
            transport.layer,
            ConfigProvider.layer(ConfigProvider.fromUnknown({ TRIGATE_TRADING_NODE_URL: node }))
          ])
        )
      )
    )
  })
})
