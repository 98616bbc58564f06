import { assert, describe, it } from "@effect/vitest"
import { isPreconfirmed } from "@trigate/domain/evm/EvmResources"
import { Layer2 } from "@trigate/evm/Layer2"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { transactions } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import { firstBlock } from "@trigate/sandbox/unstable/evm/Layer2Chain"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { start } from "./venue.ts"

const test = <A, E>(effect: Effect.Effect<A, E, Sandbox.Services>) =>
  Effect.andThen(TestClock.setTime(start), Effect.provide(effect, Sandbox.layer()))

const receiptOf = (hash: `0x${string}`) => Effect.flatMap(Layer2, (layer2) => layer2.getTransactionReceipt({ hash }))

const heads = Effect.flatMap(SandboxState, ({ layer2 }) => layer2.heads)

describe("a transaction", () => {
  it.effect("is pending, then mined, then final, by the clock alone", () =>
    test(Effect.gen(function*() {
      const receipt = receiptOf(transactions.pending)
      assert.isNull(yield* receipt)
      yield* TestClock.adjust("9999 millis")
      assert.isNull(yield* receipt)
      yield* TestClock.adjust("1 millis")
      const mined = yield* receipt
      assert.isNotNull(mined)
      assert.strictEqual(mined.blockNumber, BigInt(firstBlock + 5))
      assert.isFalse(isPreconfirmed(mined))
      assert.deepStrictEqual(yield* heads, {
        latest: firstBlock + 5,
        safe: firstBlock - 10,
        finalized: firstBlock - 25
      })
      yield* TestClock.adjust("59 seconds")
      assert.isBelow((yield* heads).finalized, firstBlock + 5)
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* heads).finalized, firstBlock + 5)
      assert.deepStrictEqual(yield* receipt, mined)
    })))

  it.effect("that the sequencer promises has no block hash until its block is sealed", () =>
    test(Effect.gen(function*() {
      const promised = yield* receiptOf(transactions.preconfirmed)
      assert.isNotNull(promised)
      assert.isTrue(isPreconfirmed(promised))
      assert.strictEqual(promised.logs[0]?.blockHash, promised.blockHash)
      yield* TestClock.adjust("10 seconds")
      const sealed = yield* receiptOf(transactions.preconfirmed)
      assert.isNotNull(sealed)
      assert.isFalse(isPreconfirmed(sealed))
      assert.strictEqual(sealed.blockNumber, promised.blockNumber)
    })))

  it.effect("can be waited for", () =>
    test(Effect.gen(function*() {
      const { waitForReceipt } = yield* Layer2
      const waiting = yield* Effect.forkChild(waitForReceipt({ hash: transactions.pending }))
      yield* TestClock.adjust("12 seconds")
      const receipt = yield* Fiber.join(waiting)
      assert.strictEqual(receipt.transactionHash, transactions.pending)
    })))

  it.effect("is found in any letter case, and an unknown one is null", () =>
    test(Effect.gen(function*() {
      const upper = `0x${transactions.linea.slice(2).toUpperCase()}` as const
      assert.strictEqual((yield* receiptOf(upper))?.transactionHash, transactions.linea)
      assert.isNull(yield* receiptOf(transactions.unknown))
    })))
})

describe("receipts of families", () => {
  it.effect("have their fields, and lack those of the others", () =>
    test(Effect.gen(function*() {
      const keysOf = (hash: `0x${string}`) => Effect.map(receiptOf(hash), (receipt) => Object.keys(receipt ?? {}))
      assert.includeMembers(yield* keysOf(transactions.opStack), ["l1Fee", "operatorFeeScalar", "type"])
      const legacy = yield* keysOf(transactions.opLegacy)
      assert.include(legacy, "l1FeeScalar")
      assert.notIncludeMembers(legacy, ["type", "effectiveGasPrice"])
      assert.notInclude(yield* keysOf(transactions.opDeposit), "l1Fee")
      assert.notInclude(yield* keysOf(transactions.linea), "l1Fee")
      const deposit = yield* receiptOf(transactions.opDeposit)
      assert.deepStrictEqual([deposit?.type, deposit?.effectiveGasPrice], ["0x7e", 0n])
      const zksync = yield* receiptOf(transactions.zksync)
      assert.deepStrictEqual([zksync?.cumulativeGasUsed, zksync?.["root"]], [0n, zksync?.blockHash])
    })))

  it.effect("a zkSync batch is null until the block is posted to layer 1", () =>
    test(Effect.gen(function*() {
      const { layer2 } = yield* SandboxState
      const hash = `0x${"12".repeat(32)}` as const
      yield* layer2.pushTransaction({ hash, family: "zksync", inBlocks: 0 })
      assert.isNull((yield* receiptOf(hash))?.["l1BatchNumber"])
      yield* TestClock.adjust("30 seconds")
      assert.match(String((yield* receiptOf(hash))?.["l1BatchNumber"]), /^0x[0-9a-f]+$/u)
    })))
})

describe("Layer2Controls", () => {
  it.effect("sends a transaction, with its receipt, and takes it back", () =>
    test(Effect.gen(function*() {
      const { layer2 } = yield* SandboxState
      const hash = `0x${"AB".repeat(32)}` as const
      yield* layer2.pushTransaction({
        hash,
        family: "arbitrum",
        status: "failure",
        gasUsed: 2n ** 60n,
        inBlocks: 2,
        extras: { timeboosted: true, custom: "0x1" }
      })
      assert.isNull(yield* receiptOf(hash))
      yield* TestClock.adjust("4 seconds")
      const receipt = yield* receiptOf(hash)
      assert.deepStrictEqual(
        [receipt?.status, receipt?.gasUsed, receipt?.["timeboosted"], receipt?.["custom"]],
        ["failure", 2n ** 60n, true, "0x1"]
      )
      yield* layer2.dropTransaction(hash)
      assert.isNull(yield* receiptOf(hash))
    })))

  it.effect("moves finality forward, never past the newest block and never back", () =>
    test(Effect.gen(function*() {
      const { layer2 } = yield* SandboxState
      yield* layer2.advanceFinality(firstBlock - 3)
      assert.deepStrictEqual(yield* heads, { latest: firstBlock, safe: firstBlock - 3, finalized: firstBlock - 3 })
      yield* layer2.advanceFinality(firstBlock - 9)
      assert.strictEqual((yield* heads).finalized, firstBlock - 3)
      yield* layer2.advanceFinality(firstBlock + 9)
      assert.deepStrictEqual(yield* heads, { latest: firstBlock, safe: firstBlock, finalized: firstBlock })
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(yield* heads, { latest: firstBlock + 10, safe: firstBlock, finalized: firstBlock })
    })))
})
