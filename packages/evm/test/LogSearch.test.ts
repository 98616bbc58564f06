import { assert, describe, it } from "@effect/vitest"
import { local } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import { serving } from "@trigate/domain/evm/Layer2Operations"
import { cachedForGood } from "@trigate/domain/operations/Operation"
import { getLogs } from "@trigate/domain/unstable/evm/EvmMethods"
import * as EvmFeed from "@trigate/evm/unstable/EvmFeed"
import * as NodeReads from "@trigate/evm/unstable/Heads"
import * as LogSearch from "@trigate/evm/unstable/LogSearch"
import * as EvmChain from "@trigate/testing/EvmChain"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { nodeAt, passSeconds } from "./modelled.ts"
import { call, gateway, nodeOf } from "./nodes.ts"

const over = (transport: ReturnType<typeof nodeOf>) => Layer.provide(Pipeline.layer({ attempts: 1 }), transport.layer)

const hex = (value: number) => `0x${value.toString(16)}`
const range = (from: number, to: number, rest: object = {}) => ({ fromBlock: hex(from), toBlock: hex(to), ...rest })

/** What the refusal of a range says. */
const tooWide = (requested: number, served: number) => ({ _tag: "LogRangeTooWide", requested, served })

const parts = Schema.decodeUnknownSync(Schema.Struct({
  code: Schema.Number,
  data: Schema.Struct({ _tag: Schema.String, requested: Schema.Number, served: Schema.Number })
}))

describe("eth_getLogs", () => {
  it.effect("is split by what a node says that it serves, in order and without a block twice", () => {
    const chain = new EvmChain.EvmChain("split", { blocks: 1001, span: 50 })
    const transport = nodeOf(chain)
    return Effect.gen(function*() {
      const backend = yield* gateway()
      assert.deepStrictEqual(yield* call(backend, "eth_getLogs", range(1, 1000)), chain.logs({}, 1, 1000))
      // one refusal, then the parts, each of which begins at a multiple of 50: 1 to 49, 50 to 99, and so on to 1000
      assert.deepStrictEqual([chain.ranges[0], chain.ranges.length, Math.max(...chain.ranges.slice(1))], [1000, 22, 50])
      const filter = { address: EvmChain.contracts[0], topics: [EvmChain.events[1]] }
      assert.deepStrictEqual(
        yield* call(backend, "eth_getLogs", range(3, 208, filter)),
        chain.logs(filter, 3, 208)
      )
      assert.strictEqual(Math.max(...chain.ranges.slice(1)), 50)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("of a range that needs too many requests is refused before anything is sent", () => {
    const chain = new EvmChain.EvmChain("refused", { blocks: 2, span: 50 })
    const transport = nodeOf(chain)
    return Effect.gen(function*() {
      const backend = yield* gateway({ logBlocks: 50 })
      assert.deepStrictEqual(parts(yield* call(backend, "eth_getLogs", range(1, 100_000))), {
        code: -32005,
        data: tooWide(100_000, 2000)
      })
      assert.deepStrictEqual(transport.seen, [])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("of the largest range that a refusal names is served, wherever it begins", () => {
    const chain = new EvmChain.EvmChain("largest", { blocks: 201, span: 50 })
    return Effect.gen(function*() {
      const backend = yield* gateway({ logBlocks: 50, logRequests: 2 })
      const { data } = parts(yield* call(backend, "eth_getLogs", range(1, 101)))
      assert.deepStrictEqual(data, tooWide(101, 100))
      for (const from of [50, 51, 99]) {
        assert.deepStrictEqual(
          yield* call(backend, "eth_getLogs", range(from, from + 99)),
          chain.logs({}, from, from + 99)
        )
      }
    }).pipe(Effect.provide(over(nodeOf(chain))))
  })

  it.effect("reads the parts alone that it has not read, while the newest block moves and for other ranges", () => {
    const chain = new EvmChain.EvmChain("moving", { blocks: 1501, span: 50 })
    const transport = nodeOf(chain)
    return Effect.gen(function*() {
      const backend = yield* gateway({ logBlocks: 50 })
      /** The number of log requests for a range that ends at the newest block, and of all requests. */
      const asked = Effect.fnUntraced(function*(from: number, to: number = chain.head.number) {
        const [before, all] = [chain.ranges.length, transport.seen.length]
        assert.deepStrictEqual(yield* call(backend, "eth_getLogs", range(from, to)), chain.logs({}, from, to))
        return [chain.ranges.length - before, transport.seen.length - all]
      })
      // the newest block, and the last settled one whose hash is part of the keys
      assert.deepStrictEqual(yield* asked(1), [31, 33])
      // the parts 1400 to 1449, 1450 to 1499 and 1500
      const again = [3, 5]
      assert.deepStrictEqual(yield* asked(1), again)
      chain.extend(1)
      assert.deepStrictEqual(yield* asked(1), again)
      // the first part is another one
      assert.deepStrictEqual(yield* asked(120), [4, 6])
      chain.extend(48)
      // one more part is settled, and one more settled block identifies it
      assert.deepStrictEqual(yield* asked(1), [3, 6])
      assert.deepStrictEqual(yield* asked(1), [2, 4])
      chain.reorganise(30)
      assert.deepStrictEqual(yield* asked(1), [2, 4])
      chain.reorganise(300)
      assert.deepStrictEqual(yield* asked(1), [31, 33])
      chain.reorganise(300, 400)
      assert.deepStrictEqual(yield* asked(1), [33, 36])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("caches parts, and the logs of a block by its hash, as responses that no change of an account affects", () => {
    const chain = new EvmChain.EvmChain("policies", { blocks: 201 })
    const policies: Array<unknown> = []
    const node = nodeAt(() => chain)
    const ask: typeof node = (asked) => {
      if (asked.operation.name === "eth_getLogs") policies.push(asked.operation.cachePolicy?.(asked.request, 0))
      return node(asked)
    }
    const { search } = LogSearch.make({ serving, send: ask, reads: NodeReads.make(serving, "layer2", ask), blocks: 50 })
    const operation = getLogs(serving)
    const read = (filter: object) =>
      search({ operation, params: Json.write([filter]), request: [], surface: "gateway" })
    return Effect.gen(function*() {
      yield* read(range(0, 149))
      yield* read({ blockHash: chain.head.hash })
      assert.deepStrictEqual(policies, [cachedForGood, undefined, undefined, cachedForGood])
    })
  })

  it.effect("of a block by its hash is asked for once, unless the block has none", () => {
    const chain = new EvmChain.EvmChain("hashes", { blocks: 40 })
    const transport = nodeOf(chain)
    return Effect.gen(function*() {
      const backend = yield* gateway()
      for (const { hash, logs } of chain.blocks) {
        const before = transport.seen.length
        const others = logs.length === 0 ? [hash] : [hash, `0x${hash.slice(2).toUpperCase()}`]
        for (const blockHash of [hash, ...others]) {
          assert.deepStrictEqual(yield* call(backend, "eth_getLogs", { blockHash }), logs)
        }
        assert.strictEqual(transport.seen.length - before, logs.length === 0 ? 2 : 1)
      }
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("is not answered from the cache after a reorganisation of the range's last block", () => {
    const chain = new EvmChain.EvmChain("reorganised", { blocks: 501, span: 50 })
    const transport = nodeOf(chain)
    return Effect.gen(function*() {
      const backend = yield* gateway({ logBlocks: 50 })
      yield* call(backend, "eth_getLogs", range(1, 500))
      chain.reorganise(300)
      assert.deepStrictEqual(yield* call(backend, "eth_getLogs", range(1, 500)), chain.logs({}, 1, 500))
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("reads the numbers of tags where it has to split", () => {
    const chain = new EvmChain.EvmChain("tags", { blocks: 121, span: 50 })
    const transport = nodeOf(chain)
    return Effect.gen(function*() {
      const backend = yield* gateway()
      assert.deepStrictEqual(
        yield* call(backend, "eth_getLogs", { fromBlock: "earliest", toBlock: "latest" }),
        chain.logs({})
      )
      assert.deepStrictEqual(chain.ranges.toSorted((a, b) => b - a), [121, 50, 50, 21])
      assert.deepStrictEqual(yield* call(backend, "eth_getLogs", {}), chain.logs({}, 120, 120))
    }).pipe(Effect.provide(over(transport)))
  })

  for (const message of ["query returned more than 10000 results", "Log response size exceeded"]) {
    it.effect(`halves a part that has too many logs, and asks as much of the others as before: ${message}`, () => {
      const chain = new EvmChain.EvmChain("many", { blocks: 201 })
      const full = chain.call.bind(chain)
      const refused: Array<number> = []
      chain.call = (method, params) => {
        const answer = full(method, params)
        if (method !== "eth_getLogs" || !("result" in answer) || !Array.isArray(answer.result)) return answer
        if (answer.result.length <= 40) return answer
        refused.push(answer.result.length)
        return { error: { code: -32005, message } }
      }
      const transport = nodeOf(chain)
      return Effect.gen(function*() {
        const backend = yield* gateway({ logBlocks: 100 })
        assert.deepStrictEqual(yield* call(backend, "eth_getLogs", range(1, 200)), chain.logs({}, 1, 200))
        assert.isAbove(refused.length, 0)
      }).pipe(Effect.provide(over(transport)))
    })
  }

  it.effect("stops a search that has to be split again and again", () => {
    const chain = new EvmChain.EvmChain("endless", { blocks: 1001, span: 1 })
    chain.refusal = () => ({ code: -32602, message: "block range too large" })
    const transport = nodeOf(chain)
    return Effect.gen(function*() {
      const backend = yield* gateway({ logRequests: 10 })
      const error = parts(yield* call(backend, "eth_getLogs", range(1, 1000)))
      assert.deepStrictEqual([error.code, error.data._tag, error.data.requested], [-32005, "LogRangeTooWide", 1000])
      assert.isAtMost(chain.ranges.length, 11)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("of a range that the node refuses without a number is served at once", () => {
    const chain = new EvmChain.EvmChain("numberless", { blocks: 2001, span: 50 })
    chain.refusal = () => ({ code: -32602, message: "block range too large" })
    return Effect.gen(function*() {
      const backend = yield* gateway({ logRequests: 65 })
      assert.deepStrictEqual(yield* call(backend, "eth_getLogs", range(1, 2000)), chain.logs({}, 1, 2000))
      // the range, five of the probes, and the query that no log matches
      assert.deepStrictEqual(chain.ranges.slice(0, 9), [2000, 1000, 1, 500, 22, 104, 47, 69, 69])
      const { data } = parts(yield* call(backend, "eth_getLogs", range(1, 2000 * 65)))
      assert.deepStrictEqual(data, tooWide(2000 * 65, 47 * 65))
    }).pipe(Effect.provide(over(nodeOf(chain))))
  })

  for (
    const [message, requests] of [
      // that of reth and geth
      ["block range extends beyond current head block", 1],
      ["block range unavailable", 10]
    ] as const
  ) {
    it.effect(`of later queries are not limited by a query past the newest block: ${message}`, () => {
      const chain = new EvmChain.EvmChain("beyond", { blocks: 1001 })
      const full = chain.call.bind(chain)
      const error = { code: -32602, message }
      chain.call = (method, params) => {
        const isPast = method === "eth_getLogs" && JSON.stringify(params).includes(`"toBlock":"${hex(1010)}"`)
        return isPast ? { error } : full(method, params)
      }
      const transport = nodeOf(chain)
      return Effect.gen(function*() {
        const backend = yield* gateway()
        assert.deepStrictEqual(yield* call(backend, "eth_getLogs", range(990, 1010)), error)
        assert.isAtMost(transport.seen.length, requests)
        transport.seen.length = 0
        assert.deepStrictEqual(yield* call(backend, "eth_getLogs", range(1, 1000)), chain.logs({}, 1, 1000))
        assert.strictEqual(transport.seen.length, 1)
      }).pipe(Effect.provide(over(transport)))
    })
  }

  it.effect("asks for larger ranges again after an hour, and for those of the setting always", () => {
    const chain = new EvmChain.EvmChain("recovered", { blocks: 1001, span: 10 })
    const transport = nodeOf(chain)
    const most = (from: number) => Math.max(...chain.ranges.slice(from))
    return Effect.gen(function*() {
      const backend = yield* gateway()
      const configured = yield* gateway({ logBlocks: 100 })
      for (const each of [backend, configured]) yield* call(each, "eth_getLogs", range(1, 300))
      chain.span = 1000
      let before = chain.ranges.length
      yield* call(backend, "eth_getLogs", range(1, 200))
      assert.strictEqual(most(before), 10)
      before = chain.ranges.length
      yield* call(configured, "eth_getLogs", range(1, 200))
      assert.strictEqual(most(before), 100)
      yield* TestClock.adjust("1 hour")
      before = chain.ranges.length
      yield* call(backend, "eth_getLogs", range(1, 200))
      assert.strictEqual(most(before), 200)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("of more logs or characters than one response may have is refused", () => {
    const chain = new EvmChain.EvmChain("bounds", { blocks: 201, span: 50 })
    const node = nodeAt(() => chain)
    const search = (bounds: Partial<LogSearch.Bounds>) =>
      LogSearch.make({ serving, send: node, reads: NodeReads.make(serving, "layer2", node), blocks: 50, bounds })
        .search(
          {
            operation: getLogs(serving),
            params: Json.write([range(1, 200)]),
            request: [],
            surface: "gateway"
          }
        )
    const logs = chain.logs({}, 1, 200)
    const characters = [[1, 49], [50, 99], [100, 149], [150, 199], [200, 200]]
      .reduce((sum, [from, to]) => sum + JSON.stringify(chain.logs({}, from, to)).length, 0)
    return Effect.gen(function*() {
      for (const bounds of [{ logs: logs.length }, { characters }]) {
        const answer = yield* search(bounds)
        assert.deepStrictEqual(answer._tag === "Result" ? answer.result.valueOrUndefined : answer, logs)
      }
      for (
        const [bounds, why] of [
          [{ logs: logs.length - 1 }, `more than ${logs.length - 1} logs`],
          [{ characters: characters - 1 }, `more than ${characters - 1} characters`]
        ] as const
      ) {
        const answer = yield* search(bounds)
        const { data } = parts(answer._tag === "Error" ? answer.error.valueOrUndefined : answer)
        // what was read before the part that exceeds the bound
        assert.deepStrictEqual(data, tooWide(200, 199))
        assert.include(answer._tag === "Error" ? answer.message : "", why)
      }
    })
  })

  it.effect("of 2000 blocks is served at the requests of a public node", () => {
    const chain = new EvmChain.EvmChain("slowly", { blocks: 2101, span: 50 })
    const transport = nodeOf(chain)
    // 100 requests a minute
    const limited = Layer.provide(Pipeline.layer({ attempts: 1, limits: { layer2: 1.66 } }), transport.layer)
    return Effect.gen(function*() {
      const backend = yield* gateway({ logBlocks: 50 })
      const found = yield* Effect.forkChild(call(backend, "eth_getLogs", range(1, 2000)))
      yield* passSeconds(60)
      assert.deepStrictEqual(found.pollUnsafe(), Exit.succeed(chain.logs({}, 1, 2000)))
    }).pipe(Effect.provide(limited))
  })

  it.effect("passes a node's other errors and odd filters on", () => {
    const chain = new EvmChain.EvmChain("odd", { blocks: 10 })
    const transport = nodeOf(chain)
    return Effect.gen(function*() {
      const backend = yield* gateway({ logBlocks: 5 })
      assert.deepStrictEqual(yield* call(backend, "eth_getLogs", { blockHash: `0x${"1".repeat(64)}` }), {
        code: -32000,
        message: "unknown block"
      })
      yield* call(backend, "eth_getLogs", { fromBlock: "nonsense" })
      assert.strictEqual(transport.seen.length, 2)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("of a block by its hash asks no node if the block's known header excludes them", () => {
    const chain = new EvmChain.EvmChain("by hash", { blocks: 10 })
    const transport = nodeOf(chain)
    const asked = () => transport.seen.filter(({ body }) => body.includes("eth_getLogs")).length
    return Effect.gen(function*() {
      const backend = yield* gateway()
      // as in a server, whose feeds outlive its backends
      const feed = yield* EvmFeed.make({ serving, send: backend.read })
      feed.subscribe({ kind: "newHeads" }, { caller: local, deliver: () => {}, flush: () => {} })
      yield* passSeconds(2)
      const older = chain.blocks.slice(0, 1)
      chain.extend(20)
      yield* passSeconds(5)
      const recent = chain.blocks.slice(10)
      const empty = recent.filter(({ logs }) => logs.length === 0)
      for (const { hash, number } of recent) {
        const before = asked()
        assert.deepStrictEqual(
          yield* call(backend, "eth_getLogs", { blockHash: hash, address: EvmChain.contracts[0] }),
          chain.logs({ address: EvmChain.contracts[0] }, number, number)
        )
        assert.strictEqual(asked() - before, empty.some((block) => block.hash === hash) ? 0 : 1)
      }
      assert.isAbove(empty.length, 5)
      const before = asked()
      // a block whose header is not known, and a query that a node refuses
      for (const { hash } of older) yield* call(backend, "eth_getLogs", { blockHash: hash })
      yield* call(backend, "eth_getLogs", { blockHash: empty[0]?.hash, fromBlock: "0x1" })
      assert.strictEqual(asked() - before, 2)
    }).pipe(Effect.provide(over(transport)), Effect.scoped)
  })
})
