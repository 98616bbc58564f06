import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import type { Hash } from "@trigate/domain/encoding/Encoding"
import { UpstreamUnavailable } from "@trigate/domain/errors/GatewayError"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import type { RpcResponse } from "@trigate/domain/evm/EvmProtocol"
import * as FinalReceipts from "@trigate/evm/Layer2Upstream"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as TestClock from "effect/testing/TestClock"

const hashOf = (digit: string): Hash => `0x${digit.repeat(64)}`
const transaction = hashOf("a")
const forGood = { fresh: 365 * 86_400_000, staleIfError: 0, isFinal: true } as const

const result = (value: unknown): RpcResponse => ({ _tag: "Result", result: Json.write(value) })

const receipt = (fields: object = {}) =>
  result({ transactionHash: transaction, blockHash: hashOf("B"), blockNumber: "0x10", status: "0x1", ...fields })

interface Chain {
  finalized: string | undefined
  readonly blocks: Map<string, Hash>
  down: boolean
  readonly asked: Array<string>
}

/** A layer 2 whose block 0x10 has the hash of the receipt, in other letter case. */
const makeChain = (finalized: string | undefined = "0x10") => {
  const chain: Chain = { finalized, blocks: new Map([["0x10", hashOf("b")]]), down: false, asked: [] }
  const send: FinalReceipts.SendBlockRead = ({ operation, params }) =>
    Effect.suspend((): Effect.Effect<RpcResponse, CommonFailure> => {
      assert.strictEqual(operation.name, "eth_getBlockByNumber")
      chain.asked.push(params.text)
      if (chain.down) {
        return Effect.fail(new UpstreamUnavailable({ upstream: "layer2", attempts: 1, detail: "away" }))
      }
      const [block] = JSON.parse(params.text) as [string]
      const number = block === "finalized" ? chain.finalized : block
      const hash = number === undefined ? undefined : chain.blocks.get(number) ?? hashOf("c")
      return Effect.succeed(result(hash === undefined ? null : { number, hash, extraData: "0x" }))
    })
  return { chain, send }
}

const byTag = "[\"finalized\",false]"
const byNumber = "[\"0x10\",false]"

/** Checks of receipts that have been asked for before. */
const asked = (...options: Parameters<typeof FinalReceipts.makeFinalReceipts>): FinalReceipts.FinalReceipts => {
  const { confirm } = FinalReceipts.makeFinalReceipts(...options)
  return {
    confirm: (hash, answer) => {
      confirm(hash, answer)
      return confirm(hash, answer)
    }
  }
}

describe("FinalReceipts", () => {
  it.effect("a receipt of a finalized block that is still there is kept for good, after two reads", () =>
    Effect.gen(function*() {
      const { send, chain } = makeChain()
      const check = asked(send).confirm(transaction, receipt())
      assert.isDefined(check)
      assert.deepStrictEqual(yield* check, forGood)
      assert.deepStrictEqual(chain.asked, [byTag, byNumber])
    }))

  it("asks nothing for what cannot be final", () => {
    const { send } = makeChain()
    const { confirm } = asked(send)
    const answers = [
      result(null),
      receipt({ blockHash: hashOf("0") }),
      receipt({ l1BatchNumber: null }),
      receipt({ blockHash: null, blockNumber: null }),
      receipt({ transactionHash: hashOf("d") }),
      result("0x1")
    ]
    for (const answer of answers) assert.isUndefined(confirm(transaction, answer))
    assert.isUndefined(
      confirm(transaction, {
        _tag: "Error",
        code: -32000,
        message: "no",
        error: Json.of(`{"code":-32000,"message":"no"}`)
      })
    )
    assert.isUndefined(asked(send, { finality: "off" }).confirm(transaction, receipt()))
    assert.isDefined(confirm(transaction, receipt({ l1BatchNumber: "0x7" })))
  })

  it.effect("a receipt past the finalized block is not final; the tag is read once in 10 seconds", () =>
    Effect.gen(function*() {
      const { send, chain } = makeChain("0xf")
      const { confirm } = asked(send)
      const check = Effect.suspend(() => confirm(transaction, receipt()) ?? Effect.die("no question"))
      assert.isUndefined(yield* check)
      assert.deepStrictEqual(chain.asked, [byTag])
      chain.finalized = "0x10"
      yield* TestClock.adjust(9999)
      assert.isUndefined(yield* check)
      assert.deepStrictEqual(chain.asked, [byTag])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* check, forGood)
      assert.deepStrictEqual(chain.asked, [byTag, byTag, byNumber])
      yield* TestClock.adjust(60_000)
      assert.deepStrictEqual(yield* check, forGood)
      assert.deepStrictEqual(chain.asked, [byTag, byTag, byNumber, byNumber])
    }))

  it.effect("the tag is read again after 10 seconds, also when the system clock was set back", () =>
    Effect.gen(function*() {
      const { send, chain } = makeChain("0xf")
      const { confirm } = asked(send)
      const check = Effect.suspend(() => confirm(transaction, receipt()) ?? Effect.die("no question"))
      yield* TestClock.adjust("1 hour")
      yield* check
      yield* TestClock.setTime(0)
      yield* TestClock.adjust("10 seconds")
      yield* check
      assert.deepStrictEqual(chain.asked, [byTag, byTag])
    }))

  it.effect("a herd of checks reads the tag once", () =>
    Effect.gen(function*() {
      const { send, chain } = makeChain("0xf")
      const { confirm } = asked((call) => Effect.andThen(Effect.yieldNow, send(call)))
      const check = Effect.suspend(() => confirm(transaction, receipt()) ?? Effect.die("no question"))
      yield* Effect.all(Array.from({ length: 20 }, () => check), { concurrency: 20 })
      assert.deepStrictEqual(chain.asked, [byTag])
    }))

  it.effect("a block that now has another hash, no finalized block and a failing node keep nothing", () =>
    Effect.gen(function*() {
      const reorganised = makeChain()
      reorganised.chain.blocks.set("0x10", hashOf("e"))
      assert.isUndefined(yield* asked(reorganised.send).confirm(transaction, receipt()) ?? Effect.die(""))
      assert.deepStrictEqual(reorganised.chain.asked, [byTag, byNumber])
      const without = makeChain()
      without.chain.finalized = undefined
      assert.isUndefined(yield* asked(without.send).confirm(transaction, receipt()) ?? Effect.die(""))
      assert.deepStrictEqual(without.chain.asked, [byTag])
      const down = makeChain()
      down.chain.down = true
      const { confirm } = asked(down.send)
      const check = Effect.suspend(() => confirm(transaction, receipt()) ?? Effect.die("no question"))
      assert.isUndefined(yield* check)
      assert.isUndefined(yield* check)
      assert.deepStrictEqual(down.chain.asked, [byTag])
    }))

  it.effect("until it is final every read sees what the node says, a reorganisation too; afterwards none is sent", () =>
    Effect.gen(function*() {
      const { send, chain } = makeChain("0xf")
      const { confirm } = asked(send)
      const { reader } = yield* ResponseCache.ResponseCache
      const { read } = reader<RpcResponse, CommonFailure>({ space: "layer2", codec: EvmProtocol.reads.codec })
      let node = receipt()
      let sent = 0
      const get = read({
        operation: "eth_getTransactionReceipt",
        upstream: "layer2",
        key: transaction,
        confirm: (answer) => confirm(transaction, answer),
        send: Effect.sync(() => {
          sent += 1
          return node
        })
      })
      assert.deepStrictEqual(yield* get, node)
      yield* TestClock.adjust(0)
      node = result(null)
      assert.deepStrictEqual(yield* get, node)
      node = receipt()
      assert.deepStrictEqual(yield* get, node)
      assert.strictEqual(sent, 3)
      chain.finalized = "0x11"
      yield* TestClock.adjust(10_000)
      assert.deepStrictEqual(yield* get, node)
      yield* TestClock.adjust(0)
      node = result(null)
      yield* TestClock.adjust(3_600_000)
      assert.deepStrictEqual(yield* get, { ...receipt(), age: 3600 })
      assert.strictEqual(sent, 4)
      assert.deepStrictEqual(chain.asked, [byTag, byTag, byNumber])
    }).pipe(Effect.provide(ResponseCache.layer()), Effect.provideService(Metric.MetricRegistry, new Map())))
})

describe("a receipt that is asked for once", () => {
  it("is not looked into, since it would cost two reads to keep it", () => {
    const { send } = makeChain()
    const { confirm } = FinalReceipts.makeFinalReceipts(send)
    assert.isUndefined(confirm(transaction, receipt()))
    assert.isDefined(confirm(transaction, receipt()))
  })
})
