/** The typed streams of EVM chains: the client's over connections that are lost, and the services' over the sandbox and in memory. */
import { assert, describe, it } from "@effect/vitest"
import * as EvmStreams from "@trigate/client/EvmStreams"
import { local } from "@trigate/domain/Caller"
import type { BlockHeader, ReceiptLog } from "@trigate/domain/evm/EvmResources"
import { serving } from "@trigate/domain/evm/Layer2Operations"
import * as Layer2Operations from "@trigate/domain/evm/Layer2Operations"
import { evmSubscriptions } from "@trigate/domain/unstable/evm/EvmStreams"
import * as Layer2 from "@trigate/evm/Layer2"
import * as EvmFeed from "@trigate/evm/unstable/EvmFeed"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { contracts } from "@trigate/sandbox/SandboxExamples"
import * as EvmChain from "@trigate/testing/EvmChain"
import { gateway } from "@trigate/testing/Gateway"
import { isExhaustive, seed } from "@trigate/testing/Sample"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Socket from "effect/socket/Socket"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { createWalletClient, http, parseEther, parseGwei } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { applied, asking, hashesOf, passSeconds } from "../../../evm/test/modelled.ts"
import { keyFile } from "../keyFile.ts"

const Call = Schema.fromJsonString(Schema.Struct({
  id: Schema.Int,
  method: Schema.String,
  params: Schema.Array(Schema.Unknown)
}))
const Start = Schema.Struct({ fromBlock: Schema.optionalKey(Schema.String) })

/** A WebSocket to a feed in this process, and a network that can cut it. */
const network = (feed: EvmFeed.EvmFeed, chain: EvmChain.EvmChain) => {
  const open = new Set<FeedSocket>()
  let isDown = false
  let opened = 0

  class FeedSocket extends EventTarget implements Socket.WebSocketLike {
    readyState = 0
    readonly #ends: Array<() => void> = []

    constructor() {
      super()
      queueMicrotask(() => {
        if (isDown) return this.cut()
        opened++
        open.add(this)
        this.readyState = 1
        this.dispatchEvent(new Event("open"))
      })
    }

    #deliver(text: string): void {
      if (this.readyState === 1) this.dispatchEvent(new MessageEvent("message", { data: text }))
    }

    send(data: string | Uint8Array<ArrayBuffer>): void {
      const { id, method, params } = Schema.decodeUnknownSync(Call)(data)
      if (method !== "eth_subscribe") {
        return this.#deliver(JSON.stringify({ jsonrpc: "2.0", id, ...chain.call(method, params) }))
      }
      const { fromBlock } = Schema.decodeUnknownSync(Start)(params[1])
      const start = fromBlock === undefined || fromBlock === "latest" ? {} : { fromBlock: BigInt(fromBlock) }
      const subscription = feed.subscribe(
        params[0] === "logs"
          ? { kind: "logs", filter: {}, hasPositions: true, ...start }
          : { kind: "newHeads", fromBlock: "latest", ...start },
        { caller: local, deliver: ({ text }) => this.#deliver(text), flush: () => {} }
      )
      this.#ends.push(() => subscription.end())
      this.#deliver(JSON.stringify({ jsonrpc: "2.0", id, result: subscription.id }))
    }

    cut(): void {
      this.readyState = 3
      open.delete(this)
      for (const end of this.#ends) end()
      this.dispatchEvent(Object.assign(new Event("close"), { code: 1006, reason: "" }))
    }

    close(): void {
      if (this.readyState !== 3) this.cut()
    }
  }

  return {
    construct: () => new FeedSocket(),
    opened: () => opened,
    cut: (until: boolean) => {
      isDown = until
      for (const socket of open) socket.cut()
    }
  }
}

describe("typed streams of the client", () => {
  it.effect(`continue without a gap or a duplicate over lost connections and reorganisations (seed ${seed})`, () =>
    Effect.forEach(
      Array.from({ length: isExhaustive ? 8 : 2 }, (_, index) => index),
      (round) =>
        Effect.scoped(Effect.gen(function*() {
          const chain = new EvmChain.EvmChain(`${seed} streams ${round}`, { blocks: 20 })
          let step = Number.parseInt(chain.head.hash.slice(2, 10), 16)
          const random = (below: number) => {
            step = (step * 1_103_515_245 + 12_345) % 2_147_483_648
            return Math.floor(step / 65_536) % below
          }
          const feed = yield* EvmFeed.make({ serving, send: asking(() => chain) })
          const { construct, cut, opened } = network(feed, chain)
          const heads: Array<BlockHeader> = []
          const logs: Array<ReceiptLog> = []
          const streams = EvmStreams.layer({ baseUrl: "http://gateway" }).pipe(
            Layer.provide(Layer.succeed(Socket.WebSocketConstructor, construct))
          )
          const running = yield* Effect.forkScoped(Effect.provide(
            EvmStreams.EvmStreams.use(({ layer2 }) =>
              Effect.all([
                Stream.runForEach(layer2.blocks(), (head) => Effect.sync(() => heads.push(head))),
                Stream.runForEach(layer2.logs(), (log) => Effect.sync(() => logs.push(log)))
              ], { concurrency: "unbounded" })
            ),
            streams
          ))
          yield* passSeconds(3)
          const first = 20
          chain.extend(6)
          for (let each = 0; each < 40; each++) {
            // a stream gives up after 22 seconds without a gateway
            if (each % 5 === 0) cut(random(2) === 0)
            else if (each % 5 === 3) cut(false)
            const depth = 1 + random(5)
            if (random(3) === 0 && chain.head.number - depth >= first) chain.reorganise(depth, depth + random(3))
            else chain.extend(random(4))
            yield* passSeconds(random(4) + (each % 5 === 3 ? 6 : 0))
          }
          cut(false)
          chain.extend(1)
          yield* passSeconds(60)
          assert.isUndefined(running.pollUnsafe(), "a stream ended")
          assert.isAbove(opened(), 8, `round ${round}`)
          const removable = logs.map(({ removed, transactionHash }) => ({ removed: removed === true, transactionHash }))
          assert.deepStrictEqual(applied(removable), hashesOf(chain.logs({}, first)), `round ${round}`)
          // the first one is the newest when the stream begins; each of the others links to one that came before it
          assert.strictEqual(Number(heads[0]?.number), first - 1)
          const seen = new Set(heads.slice(0, 1).map(({ hash }) => hash))
          for (const { hash, parentHash } of heads.slice(1)) {
            assert.isTrue(seen.has(parentHash), "a head was skipped")
            seen.add(hash)
          }
          assert.isTrue(chain.blocks.slice(first).every(({ hash }) => heads.some((head) => head.hash === hash)))
          // no head follows an equal one
          const branch = new Map<bigint, string>()
          for (const { hash, number } of heads) {
            assert.notStrictEqual(branch.get(number), hash, "a head came twice")
            for (const each of branch.keys()) if (each > number) branch.delete(each)
            branch.set(number, hash)
          }
        })),
      { discard: true }
    ))

  it.effect("continue after a reorg that is deeper than the blocks that the gateway knows", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("deep", { blocks: 40 })
      const feed = yield* EvmFeed.make({ serving, send: asking(() => chain) })
      const { construct, opened } = network(feed, chain)
      const heads: Array<BlockHeader> = []
      const logs: Array<ReceiptLog> = []
      const running = yield* Effect.forkScoped(Effect.provide(
        EvmStreams.EvmStreams.use(({ layer2 }) =>
          Effect.all([
            Stream.runForEach(layer2.blocks(), (head) => Effect.sync(() => heads.push(head))),
            Stream.runForEach(layer2.logs(), (log) => Effect.sync(() => logs.push(log)))
          ], { concurrency: "unbounded" })
        ),
        EvmStreams.layer({ baseUrl: "http://gateway" }).pipe(
          Layer.provide(Layer.succeed(Socket.WebSocketConstructor, construct))
        )
      ))
      yield* passSeconds(3)
      chain.extend(5)
      yield* passSeconds(5)
      const before = chain.blocks.slice(39)
      chain.reorganise(17, 20)
      yield* passSeconds(20)
      assert.isUndefined(running.pollUnsafe(), "a stream ended")
      assert.strictEqual(opened(), 4)
      assert.deepStrictEqual(
        heads.map(({ hash }) => hash),
        [...before, ...chain.blocks.slice(39)].map(({ hash }) => hash)
      )
      const removable = logs.map(({ removed, transactionHash }) => ({ removed: removed === true, transactionHash }))
      assert.deepStrictEqual(applied(removable), hashesOf(chain.logs({}, 40)))
    }))

  it.live("emit blocks and logs of a gateway, and wait for a receipt", () =>
    Effect.gen(function*() {
      const { file, keys } = yield* keyFile({ name: "one" })
      const { url } = yield* gateway({ TRIGATE_CALLERS: file })
      const key = keys[0] ?? ""
      const account = privateKeyToAccount("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
      const wallet = createWalletClient({ account, transport: http(`${url}/${key}/evm`) })
      const options = { baseUrl: url, key: Redacted.make(key) }
      yield* Effect.provide(
        Effect.gen(function*() {
          const { evm } = yield* EvmStreams.EvmStreams
          const [newest] = yield* Stream.runCollect(Stream.take(evm.blocks(), 1))
          const fromBlock = newest?.number ?? assert.fail()
          const log = yield* Effect.forkChild(
            Stream.runHead(evm.logs({ address: contracts.wrapped, fromBlock }))
          )
          const hash = yield* Effect.promise(() =>
            wallet.sendTransaction({
              to: contracts.wrapped,
              value: parseEther("1"),
              // on a slow machine the base fee grows by more than a fifth between the estimate and the transaction
              maxFeePerGas: parseGwei("100"),
              chain: null
            })
          )
          const receipt = yield* evm.receipt({ hash })
          assert.strictEqual(receipt.transactionHash, hash)
          assert.deepStrictEqual((yield* Fiber.join(log)).valueOrUndefined?.transactionHash, hash)
        }),
        EvmStreams.layerWebSocket(options)
      )
    }))

  it.live("fail with the errors of a call where the chain cannot be read, and with StreamLost without a gateway", () =>
    Effect.gen(function*() {
      // only the venue's API is configured
      const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: "http://127.0.0.1:9" })
      const failed = (baseUrl: string) =>
        Effect.provide(
          Effect.flatMap(EvmStreams.EvmStreams, ({ layer2 }) => Effect.flip(Stream.runDrain(layer2.blocks()))),
          EvmStreams.layerWebSocket({ baseUrl })
        )
      const error = yield* failed(url)
      assert.strictEqual(error._tag === "RequestError" ? error.reason._tag : error._tag, "ChainNotConfigured")
      assert.strictEqual((yield* failed(`${url}/nothing/here`))._tag, "StreamLost")
    }))
})

describe("typed streams of the services", () => {
  it.effect("emit the blocks of the sandbox's chains as they are made", () =>
    Effect.gen(function*() {
      const evm = yield* TradingEvm
      const layer2 = yield* Layer2.Layer2
      for (const blocks of [evm.blocks(), layer2.blocks()]) {
        const fiber = yield* Effect.forkChild(Stream.runCollect(Stream.take(blocks, 4)))
        yield* passSeconds(20)
        const seen = yield* Fiber.join(fiber)
        assert.deepStrictEqual(
          seen.slice(1).map(({ parentHash }) => parentHash),
          seen.slice(0, 3).map(({ hash }) => hash)
        )
      }
    }).pipe(Effect.provide(Sandbox.layer())))

  it.effect("emit what a test sends in memory, logs by their filter, and wait for a receipt", () =>
    Effect.gen(function*() {
      const { logs, receipt } = yield* Layer2.Layer2
      const { send, set, subscribed } = yield* Layer2.Layer2State
      const hash = `0x${"ab".repeat(32)}` as const
      const address = `0x${"11".repeat(20)}` as const
      const log: ReceiptLog = {
        address,
        topics: [],
        data: "0x",
        blockHash: hash,
        blockNumber: 7n,
        transactionHash: hash,
        transactionIndex: 0n,
        logIndex: 1n
      }
      const seen = yield* Effect.forkChild(Stream.runHead(logs({ address })))
      yield* subscribed(evmSubscriptions.logs)
      yield* send(evmSubscriptions.logs, [{ ...log, address: `0x${"22".repeat(20)}`, logIndex: 0n }, log])
      assert.deepStrictEqual((yield* Fiber.join(seen)).valueOrUndefined, log)

      const waiting = yield* Effect.forkChild(receipt({ hash }))
      yield* subscribed(evmSubscriptions.blocks)
      const header = { hash, parentHash: hash, timestamp: 0n, gasLimit: 1n, gasUsed: 0n }
      yield* send(evmSubscriptions.blocks, [{ ...header, number: 7n }])
      yield* TestClock.adjust("1 second")
      assert.isUndefined(waiting.pollUnsafe())
      const mined = Schema.decodeUnknownSync(Layer2Operations.getTransactionReceipt.response)({
        transactionHash: hash,
        transactionIndex: "0x0",
        blockHash: hash,
        blockNumber: "0x8",
        from: address,
        cumulativeGasUsed: "0x1",
        gasUsed: "0x1",
        logs: [],
        logsBloom: "0x",
        status: "0x1"
      })
      if (mined !== null) yield* set(mined)
      yield* send(evmSubscriptions.blocks, [{ ...header, number: 8n }])
      assert.deepStrictEqual(yield* Fiber.join(waiting), mined)
    }).pipe(Effect.provide(Layer2.layerMemory())))
})
