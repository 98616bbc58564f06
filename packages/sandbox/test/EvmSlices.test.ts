/** Executions of the sandbox's EVM that take long: others run between their slices, and they end after five seconds. */
import { assert, describe, it } from "@effect/vitest"
import { CurrentCaller } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import { layer2Methods } from "@trigate/domain/evm/Layer2Operations"
import { Layer2 } from "@trigate/evm/Layer2"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import type { Hex } from "viem"
import { parseTransaction } from "viem"
import { call, test, trader } from "./evmClients.ts"

const contract = `0x${"c0".repeat(20)}`

/** `JUMPDEST PUSH1 at JUMP`: runs until the gas is used up. */
const loop = (at: string): string => `5b60${at}56`

/** `SSTORE(0, 1)`, then a loop. */
const writeAndLoop: Hex = `0x6001600055${loop("05")}`

/** Returns the word at slot 0. */
const readWord: Hex = "0x60005460005260206000f3"

/** Returns the sum of 1 and `more`. */
const addOne = (more: string): Hex => `0x600160${more}0160005260206000f3`

const word = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`

const ask = (name: string, params: ReadonlyArray<unknown>, caller: string) =>
  Effect.gen(function*() {
    const layer2 = yield* Layer2
    const operation = layer2Methods.find((each) => each.name === name) ?? assert.fail(name)
    const answer = yield* layer2.relay({ operation, params: Json.strict(JSON.stringify(params)), surface: "gateway" })
    const result: unknown = answer._tag === "Result" ? JSON.parse(answer.result.text) : answer.message
    return result
  }).pipe(Effect.provideService(CurrentCaller, { id: caller, scope: {}, quota: {} }))

const run = (code: Hex, caller: string, data: Hex = "0x") =>
  ask("eth_call", [{ to: contract, data }, "latest", { [contract]: { code } }], caller)

const aborted = "execution aborted (timeout = 5s)"

describe("executions that take long", () => {
  it.effect("let the calls of others run, on a state of their own", () =>
    test(Effect.gen(function*() {
      // the first call loads the EVM
      assert.strictEqual(yield* run(addOne("01"), "key:b"), word(2))
      const long = yield* Effect.forkChild(run(writeAndLoop, "key:a"))
      for (let index = 2; index < 6; index++) {
        assert.strictEqual(yield* run(addOne(`0${index}`), "key:b"), word(index + 1))
      }
      assert.strictEqual(yield* run(readWord, "key:b"), word(0))
      assert.isUndefined(long.pollUnsafe())
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* Fiber.join(long), aborted)
      assert.strictEqual(yield* run(readWord, "key:b", "0x01"), word(0))
    })))

  it.effect("of one caller run one at a time, and a batch has five seconds in all", () =>
    test(Effect.gen(function*() {
      assert.strictEqual(yield* run(addOne("01"), "key:b"), word(2))
      const batch = yield* Effect.forEach(
        Array.from({ length: 30 }, (_, index): Hex => `0x${index.toString(16).padStart(2, "0")}`),
        (data) => Effect.forkChild(run(`0x${loop("00")}`, "key:a", data))
      )
      assert.strictEqual(yield* run(addOne("02"), "key:b"), word(3))
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* Fiber.joinAll(batch), batch.map(() => aborted))
      assert.strictEqual(yield* run(addOne("03"), "key:a"), word(4))
    })))

  it.effect("of transactions are refused without an effect", () =>
    test(Effect.gen(function*() {
      assert.strictEqual(yield* run(addOne("01"), "key:b"), word(2))
      const bytes = yield* call(() =>
        trader.signTransaction({
          type: "eip1559",
          chainId: 31_337,
          nonce: 0,
          // the code of a contract's creation
          data: `0x${loop("00")}`,
          gas: 20_000_000n,
          maxFeePerGas: 10_000_000_000n,
          maxPriorityFeePerGas: 0n
        })
      )
      assert.strictEqual(parseTransaction(bytes).nonce, 0)
      const sent = yield* Effect.forkChild(ask("eth_sendRawTransaction", [bytes], "key:a"))
      assert.strictEqual(yield* run(addOne("02"), "key:b"), word(3))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* Fiber.join(sent), aborted)
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* ask("eth_getTransactionCount", [keys.trader.address, "latest"], "key:b"), "0x0")
    })))

  it.effect("are refused in a precompiled contract, which cannot pause", () =>
    test(Effect.gen(function*() {
      // STATICCALL(gas, address, 0, size, 0, 0) with the input in memory, and whether it succeeded
      const calling = (address: string, size: string, memory: string): Hex =>
        `0x${memory}6000600061${size}600061${address}5afa60005260206000f3`
      // rounds in the first four bytes: PUSH4 rounds, SHL by 224 bits, MSTORE at 0
      const rounds = (count: string) => `63${count}60e01b600052`
      const blake = (count: string) => calling("0009", "00d5", rounds(count))
      assert.strictEqual(yield* run(blake("0000000c"), "key:a"), word(1))
      assert.strictEqual(yield* run(blake("00ffffff"), "key:a"), word(0))
      // the length of the exponent is the second word
      const power = (length: string) => calling("0005", "ffff", `61${length}602052`)
      assert.strictEqual(yield* run(power("0400"), "key:a"), word(1))
      assert.strictEqual(yield* run(power("0401"), "key:a"), word(0))
    })))
})
