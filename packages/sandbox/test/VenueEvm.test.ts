import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { evmMethods } from "@trigate/domain/evm/EvmProtocol"
import { Layer2 } from "@trigate/evm/Layer2"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { contracts, keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { askEvm, start } from "./venue.ts"

const zero = `0x${"0".repeat(64)}`

const test = <A, E>(effect: Effect.Effect<A, E, Sandbox.Services>, seed = "trigate") =>
  Effect.andThen(TestClock.setTime(start), Effect.provide(effect, Sandbox.layer({ seed })))

const at = (address: `0x${string}`, slot: `0x${string}`) =>
  Effect.flatMap(TradingEvm, (evm) => evm.getStorageAt({ address, slot }))

describe("storage", () => {
  it.effect("a known contract has words in its first slots, whatever the slot's spelling; elsewhere all is zero", () =>
    test(Effect.gen(function*() {
      const word = yield* at(contracts.wrapped, "0x5")
      assert.match(word, /^0x[0-9a-f]{64}$/u)
      assert.notStrictEqual(word, zero)
      assert.strictEqual(yield* at(contracts.wrapped, `0x${"5".padStart(64, "0")}`), word)
      assert.notStrictEqual(yield* at(contracts.wrapped, "0x6"), word)
      assert.strictEqual(yield* at(contracts.wrapped, "0x10"), zero)
      assert.strictEqual(yield* at(contracts.wrapped, `0x${"f".repeat(64)}`), zero)
      assert.strictEqual(yield* at(contracts.none, "0x0"), zero)
      assert.strictEqual(yield* at(contracts.wrapped, "0x2"), `0x${"12".padStart(64, "0")}`)
    })))

  it.effect("a word that was put is read back", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* SandboxState
      const word = `0x${"ab".repeat(32)}` as const
      yield* evm.putStorageWord("0x00000000000000000000000000000000000000FF", "0x07", word)
      assert.strictEqual(yield* at("0x00000000000000000000000000000000000000ff", "0x7"), word)
    })))
})

describe("gas prices", () => {
  const both = Effect.flatMap(TradingEvm, (evm) => Effect.all([evm.gasPrice(), evm.bigBlockGasPrice()]))

  it.effect("move with their own blocks: the small one each second, the big one each minute", () =>
    test(Effect.gen(function*() {
      yield* TestClock.setTime(Math.ceil(start / 60_000) * 60_000)
      const [small, big] = yield* both
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(yield* both, [small, big])
      yield* TestClock.adjust("1 millis")
      const [next, same] = yield* both
      assert.notStrictEqual(next, small)
      assert.strictEqual(same, big)
      yield* TestClock.adjust("59 seconds")
      assert.notStrictEqual((yield* both)[1], big)
    })))

  it.effect("can be set, and set free", () =>
    test(Effect.gen(function*() {
      const { evm } = yield* SandboxState
      const free = yield* both
      yield* evm.setGasPrices({ small: 7n, big: 2n ** 70n })
      assert.deepStrictEqual(yield* both, [7n, 2n ** 70n])
      yield* evm.setGasPrices({})
      assert.deepStrictEqual(yield* both, free)
    })))

  it.effect("params of another shape are refused by the node", () =>
    test(Effect.gen(function*() {
      for (const params of ["[1]", "{}", "["]) {
        assert.deepStrictEqual(yield* askEvm("eth_usingBigBlocks", params), {
          _tag: "Error",
          code: -32602,
          message: "invalid params",
          error: Json.of("{\"code\":-32602,\"message\":\"invalid params\"}")
        })
      }
    })))
})

describe("a method that the sandbox does not know", () => {
  it.effect("is told as a node tells it", () =>
    test(Effect.gen(function*() {
      const evm = yield* TradingEvm
      const layer2 = yield* Layer2
      for (const [name, params] of [["eth_getProof", "[]"], ["eth_simulateV1", "[{}]"]] as const) {
        const operation = evmMethods.find((each) => each.name === name) ?? assert.fail()
        for (const service of [evm, layer2]) {
          const answer = yield* service.relay({ operation, params: Json.strict(params), surface: "gateway" })
          assert.deepStrictEqual(answer, {
            _tag: "Error",
            code: -32601,
            message: `the method ${name} does not exist`,
            error: Json.of(`{"code":-32601,"message":"the method ${name} does not exist"}`)
          })
        }
      }
    })))
})

describe("the members of a request", () => {
  const respond = (method: string, ...params: ReadonlyArray<unknown>) =>
    Effect.map(
      askEvm(method, JSON.stringify(params)),
      (answer) => answer._tag === "Result" ? answer.result.text : answer.message
    )
  const to = contracts.none
  // returns the gas price
  const code = { [to]: { code: "0x3a5f5260205ff3" } }

  it.effect("are refused by name if the sandbox does not read them", () =>
    test(Effect.gen(function*() {
      const refused = (path: string) => `invalid params: the sandbox does not support "${path}"`
      assert.strictEqual(yield* respond("eth_call", { to, blobs: [] }, "latest"), refused("[0].blobs"))
      const moved = { [to]: { movePrecompileToAddress: zero.slice(0, 42) } }
      assert.strictEqual(
        yield* respond("eth_call", { to }, "latest", moved),
        refused(`[2].${to}.movePrecompileToAddress`)
      )
      assert.strictEqual(yield* respond("eth_getLogs", { limit: 5 }), refused("[0].limit"))
      assert.strictEqual(yield* respond("eth_call", { to }, "latest", {}, {}), "invalid params")
      assert.strictEqual(
        yield* respond("eth_call", { to, accessList: [{ address: to, storageKeys: [] }] }, "latest"),
        "the sandbox does not support an accessList in a call"
      )
    })))

  it.effect("of a call have the effect that they have at a node", () =>
    test(Effect.gen(function*() {
      const { address } = keys.trader
      const price = (terms: object) => respond("eth_call", { from: address, to, ...terms }, "latest", code)
      assert.strictEqual(yield* price({}), `"${zero}"`)
      const word = `"0x${"7".padStart(64, "0")}"`
      assert.deepStrictEqual([yield* price({ gasPrice: "0x7" }), yield* price({ maxFeePerGas: "0x7" })], [word, word])
      assert.strictEqual(
        yield* price({ gasPrice: "0x1", maxFeePerGas: "0x1" }),
        "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified"
      )
      assert.strictEqual(yield* price({ chainId: "0x1" }), "chainId does not match node's (have=1, want=999)")
      assert.strictEqual(yield* price({ chainId: "0x3e7", nonce: "0x9", type: "0x2", accessList: [] }), `"${zero}"`)
      assert.strictEqual(
        yield* price({ data: "0x01", input: "0x02" }),
        "both \"data\" and \"input\" are set and not equal"
      )
      // 10000 coins pay for 50000 gas
      const dear = {
        from: address,
        to,
        gasPrice: `0x${(2n * 10n ** 17n).toString(16)}`,
        data: `0x${"ff".repeat(4_000)}`
      }
      assert.strictEqual(
        yield* respond("eth_estimateGas", dear, "latest"),
        "gas required exceeds allowance (50000)"
      )
    })))
})
