import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import { CurrentCaller } from "@trigate/domain/Caller"
import * as FilterStore from "@trigate/evm/unstable/Filters"
import * as EvmChain from "@trigate/testing/EvmChain"
import { isInstalled, redisServer } from "@trigate/testing/RedisServer"
import { seed } from "@trigate/testing/Sample"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { call, gateway, nodeOf } from "./nodes.ts"

const over = (transport: ReturnType<typeof nodeOf>) => Layer.provide(Pipeline.layer({ attempts: 1 }), transport.layer)

const by = (id: string) => <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.provideService(effect, CurrentCaller, { id, scope: {}, quota: {} })

/** How a call fails. */
const failing = <E extends { readonly _tag: string }>(effect: Effect.Effect<unknown, E>): Effect.Effect<string> =>
  Effect.match(effect, { onFailure: ({ _tag }) => _tag, onSuccess: () => "not at all" })

const notFound = { code: -32000, message: "filter not found" }

const decodeHashes = Schema.decodeUnknownSync(Schema.Array(Schema.String))

const decodeLogs = Schema.decodeUnknownSync(
  Schema.Array(Schema.Struct({ removed: Schema.Boolean, transactionHash: Schema.String }))
)
const ids = (logs: unknown) =>
  decodeLogs(logs).map(({ removed, transactionHash }) => `${removed ? "-" : "+"}${transactionHash}`)

/** What a client has that applies the changes in their order. */
const apply = (has: Set<string>, changes: unknown) => {
  for (const each of ids(changes)) {
    const hash = each.slice(1)
    if (each.startsWith("+")) {
      assert.isFalse(has.has(hash), "a log came twice")
      has.add(hash)
    } else assert.isTrue(has.delete(hash), "a log was removed that was not there")
  }
}

describe("a filter", () => {
  it.effect("of logs gives what is new at each poll, from the block after the one in which it was installed", () => {
    const chain = new EvmChain.EvmChain("filter", { blocks: 10, span: 50 })
    return Effect.gen(function*() {
      const backend = yield* gateway()
      const filter = { address: EvmChain.contracts[0] }
      const id = yield* call(backend, "eth_newFilter", filter)
      assert.match(String(id), /^0x[0-9a-f]{32}$/u)
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterChanges", id), [])
      chain.extend(120)
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterChanges", id), chain.logs(filter, 10))
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterChanges", id), [])
      assert.deepStrictEqual(yield* call(backend, "eth_uninstallFilter", id), true)
      assert.deepStrictEqual(yield* call(backend, "eth_uninstallFilter", id), false)
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterChanges", id), notFound)
    }).pipe(Effect.provide(over(nodeOf(chain))))
  })

  it.effect("of logs that is polled in each block asks for the logs of blocks alone that may have some", () => {
    const chain = new EvmChain.EvmChain("blooms", { blocks: 10 })
    const transport = nodeOf(chain)
    return Effect.gen(function*() {
      const backend = yield* gateway()
      const id = yield* call(backend, "eth_newFilter", {})
      const other = yield* call(backend, "eth_newFilter", { address: EvmChain.contracts[0] })
      for (let block = 0; block < 40; block++) {
        chain.extend(1)
        assert.deepStrictEqual(
          yield* call(backend, "eth_getFilterChanges", id),
          chain.logs({}, chain.head.number)
        )
      }
      const asked = (method: string) => transport.seen.filter(({ body }) => body.includes(`"${method}"`)).length
      const empty = chain.blocks.slice(10).filter(({ logs }) => logs.length === 0).length
      assert.isAbove(empty, 10)
      assert.deepStrictEqual([asked("eth_getBlockByNumber"), asked("eth_getLogs")], [2 + 40, 40 - empty])
      // the headers of these polls also serve a filter that is polled less often
      transport.seen.length = 0
      assert.deepStrictEqual(
        yield* call(backend, "eth_getFilterChanges", other),
        chain.logs({ address: EvmChain.contracts[0] }, 10)
      )
      assert.deepStrictEqual([asked("eth_getBlockByNumber"), asked("eth_getLogs")], [1, 1])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("of logs is served by a node that leaves the bloom filters of its blocks empty", () => {
    const chain = new EvmChain.EvmChain("empty blooms", { blocks: 10 })
    const header = chain.header.bind(chain)
    chain.header = (block) => ({ ...header(block), logsBloom: `0x${"0".repeat(512)}`, gasUsed: "0x5208" })
    return Effect.gen(function*() {
      const backend = yield* gateway()
      const id = yield* call(backend, "eth_newFilter", {})
      for (let block = 0; block < 20; block++) {
        chain.extend(1)
        assert.deepStrictEqual(
          yield* call(backend, "eth_getFilterChanges", id),
          chain.logs({}, chain.head.number)
        )
      }
    }).pipe(Effect.provide(over(nodeOf(chain))))
  })

  it.effect("of logs that fell behind by more than one query may read catches up over several polls", () => {
    const chain = new EvmChain.EvmChain("behind", { blocks: 1, span: 10 })
    return Effect.gen(function*() {
      const backend = yield* gateway({ logBlocks: 10, logRequests: 5 })
      const id = yield* call(backend, "eth_newFilter", {})
      chain.extend(120)
      const has = new Set<string>()
      for (const _ of [1, 2, 3]) apply(has, yield* call(backend, "eth_getFilterChanges", id))
      assert.deepStrictEqual([...has], chain.logs({}, 1).map(({ transactionHash }) => transactionHash))
      assert.isAtMost(Math.max(...chain.ranges), 10)
    }).pipe(Effect.provide(over(nodeOf(chain))))
  })

  it.effect(`of logs follows reorganisations (seed ${seed})`, () =>
    Effect.forEach([1, 2, 3, 4, 5, 6, 7, 8], (round) => {
      const chain = new EvmChain.EvmChain(`${seed} ${round}`, { blocks: 40, span: 50 })
      let step = Number.parseInt(chain.head.hash.slice(2, 10), 16)
      const random = (below: number) => {
        step = (step * 1_103_515_245 + 12_345) % 2_147_483_648
        return Math.floor(step / 65_536) % below
      }
      return Effect.gen(function*() {
        const backend = yield* gateway()
        const filter = { topics: [EvmChain.events[0]] }
        const id = yield* call(backend, "eth_newFilter", filter)
        const first = chain.head.number + 1
        const has = new Set<string>()
        chain.extend(6)
        for (let each = 0; each < 25; each++) {
          apply(has, yield* call(backend, "eth_getFilterChanges", id))
          const depth = 1 + random(5)
          if (random(2) === 0 && chain.head.number - depth >= first) chain.reorganise(depth, depth + random(3))
          else chain.extend(random(4))
        }
        // one block more: a head of the same height may be that of another node
        chain.extend(1)
        apply(has, yield* call(backend, "eth_getFilterChanges", id))
        const canonical = chain.logs(filter, first).map(({ transactionHash }) => transactionHash)
        assert.deepStrictEqual([...has].toSorted(), canonical.toSorted())
      }).pipe(Effect.provide(over(nodeOf(chain))))
    }, { discard: true }))

  it.effect("of logs stores at most 1 MiB of them, and follows reorganisations of the blocks that it stores", () => {
    const chain = new EvmChain.EvmChain("large", { blocks: 5 })
    const full = chain.logs.bind(chain)
    const data = `0x${"0".repeat(60_000)}`
    chain.logs = (...args) => full(...args).map((log) => Object.assign({}, log, { data }))
    const stored: Array<number> = []
    return Effect.gen(function*() {
      const store = yield* FilterStore.makeMemory
      const set: typeof store.set = (key, text) => {
        stored.push(text.length)
        return store.set(key, text)
      }
      const backend = yield* Effect.provideService(gateway(), FilterStore.FilterStore, { ...store, set })
      const id = yield* call(backend, "eth_newFilter", {})
      const has = new Set<string>()
      const poll = Effect.map(call(backend, "eth_getFilterChanges", id), (changes) => apply(has, changes))
      chain.extend(64)
      yield* poll
      assert.isAbove(chain.logs({}, 5).length * data.length, 3 * 1_048_576)
      chain.reorganise(3, 4)
      yield* poll
      const canonical = chain.logs({}, 5).map(({ transactionHash }) => transactionHash)
      assert.deepStrictEqual([...has].toSorted(), canonical.toSorted())
      // of blocks that are not stored any more, nothing comes twice
      chain.reorganise(40, 41)
      yield* poll
      assert.isAtMost(Math.max(...stored), 1.1 * 1_048_576)
      assert.isAbove(Math.min(...stored), 0.8 * 1_048_576)
    }).pipe(Effect.provide(over(nodeOf(chain))))
  })

  it.effect("that no node would accept is refused when it is installed", () => {
    const chain = new EvmChain.EvmChain("invalid", { blocks: 5 })
    const transport = nodeOf(chain)
    const [address] = EvmChain.contracts
    const [topic] = EvmChain.events
    const times = (count: number, each: unknown) => Array.from({ length: count }, () => each)
    return Effect.gen(function*() {
      const backend = yield* gateway()
      const largest = { address: times(1000, address), topics: [null, times(1000, topic), topic, []] }
      for (const filter of [{}, { address: null, topics: null, fromBlock: null, toBlock: "latest" }, largest]) {
        const id = yield* call(backend, "eth_newFilter", { ...filter, unknown: 1 })
        assert.deepStrictEqual(yield* call(backend, "eth_getFilterChanges", id), [])
      }
      transport.seen.length = 0
      for (
        const filter of [
          "nonsense",
          { address: "nonsense" },
          { address: times(1001, address) },
          { topics: times(5, topic) },
          { topics: [times(1001, topic)] },
          { topics: ["0x1"] },
          { fromBlock: "newest" },
          { blockHash: topic }
        ]
      ) {
        assert.deepStrictEqual(yield* call(backend, "eth_newFilter", filter), {
          code: -32602,
          message:
            "invalid params: expected a filter of at most 1000 addresses and 4 topics, each with at most 1000 alternatives"
        })
      }
      assert.deepStrictEqual(transport.seen, [])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("of blocks gives their hashes, those of a new branch too", () => {
    const chain = new EvmChain.EvmChain("blocks", { blocks: 5 })
    return Effect.gen(function*() {
      const backend = yield* gateway()
      const id = yield* call(backend, "eth_newBlockFilter")
      chain.extend(3)
      const hashes = (from: number) => chain.blocks.slice(from).map(({ hash }) => hash)
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterChanges", id), hashes(5))
      chain.reorganise(2, 3)
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterChanges", id), hashes(6))
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterLogs", id), notFound)
    }).pipe(Effect.provide(over(nodeOf(chain))))
  })

  it.effect("of blocks that fell behind gives all hashes, the oldest first, and reads each block once", () => {
    const chain = new EvmChain.EvmChain("many blocks", { blocks: 5 })
    const transport = nodeOf(chain)
    return Effect.gen(function*() {
      const backend = yield* gateway()
      const id = yield* call(backend, "eth_newBlockFilter")
      chain.extend(300)
      const hashes = chain.blocks.slice(5).map(({ hash }) => hash)
      transport.seen.length = 0
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterChanges", id), hashes.slice(0, 256))
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterChanges", id), hashes.slice(256))
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterChanges", id), [])
      // each poll reads the newest block, and the first two also the last one that the client has
      assert.strictEqual(transport.seen.length, 299 + 3 + 2)
      const other = yield* call(backend, "eth_newBlockFilter")
      chain.extend(3)
      for (const each of [id, other]) {
        assert.deepStrictEqual(
          yield* call(backend, "eth_getFilterChanges", each),
          chain.blocks.slice(305).map(({ hash }) => hash)
        )
      }
      // the newest block at the installation and at each poll; the other blocks are read once for both filters
      assert.strictEqual(transport.seen.length, 304 + 3 + 1 + 2)
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("of blocks ends before a block that a node lacks or has from another branch, and goes on from there", () => {
    const chain = new EvmChain.EvmChain("lagging", { blocks: 5 })
    const other = chain.copy()
    const full = chain.call.bind(chain)
    let answered = 8
    let node: (method: string, params: ReadonlyArray<unknown>) => ReturnType<EvmChain.EvmChain["call"]> = () => ({
      result: null
    })
    chain.call = (method, params) =>
      method === "eth_getBlockByNumber" && Number(params[0]) >= answered ? node(method, params) : full(method, params)
    return Effect.gen(function*() {
      const backend = yield* gateway()
      const id = yield* call(backend, "eth_newBlockFilter")
      const hashes = (from: number, to: number) => chain.blocks.slice(from, to).map(({ hash }) => hash)
      chain.extend(10)
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterChanges", id), hashes(5, 8))
      other.reorganise(0, 15)
      node = other.call.bind(other)
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterChanges", id), [])
      answered = 11
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterChanges", id), hashes(8, 11))
      answered = 100
      assert.deepStrictEqual(yield* call(backend, "eth_getFilterChanges", id), hashes(11, 15))
    }).pipe(Effect.provide(over(nodeOf(chain))))
  })

  it.effect("serves concurrent polls one after the other, in whichever letters they write its ID", () => {
    const chain = new EvmChain.EvmChain("concurrent", { blocks: 5 })
    return Effect.gen(function*() {
      const store = yield* FilterStore.makeMemory
      const get: typeof store.get = (key) => Effect.tap(store.get(key), () => Effect.yieldNow)
      const backend = yield* Effect.provideService(gateway(), FilterStore.FilterStore, { ...store, get })
      const id = String(yield* call(backend, "eth_newBlockFilter"))
      const poll = Effect.map(call(backend, "eth_getFilterChanges", id), decodeHashes)
      const inCapitals = call(backend, "eth_getFilterChanges", `0x${id.slice(2).toUpperCase()}`)
      chain.extend(3)
      const extended = Effect.flatMap(poll, (first) => {
        chain.extend(3)
        return Effect.map(poll, (second) => [...first, ...second])
      })
      const polls = [Effect.map(inCapitals, decodeHashes), extended, poll]
      const changes = yield* Effect.all(polls, { concurrency: "unbounded" })
      assert.deepStrictEqual(changes.flat().toSorted(), chain.blocks.slice(5).map(({ hash }) => hash).toSorted())
    }).pipe(Effect.provide(over(nodeOf(chain))))
  })

  it.effect("is its caller's alone, bounded in number, and forgotten after five minutes", () => {
    const chain = new EvmChain.EvmChain("callers", { blocks: 5 })
    return Effect.gen(function*() {
      const backend = yield* gateway({ filters: 2 })
      const id = yield* by("key:a")(call(backend, "eth_newFilter", {}))
      assert.deepStrictEqual(yield* by("key:b")(call(backend, "eth_getFilterChanges", id)), notFound)
      yield* by("key:a")(call(backend, "eth_newBlockFilter"))
      assert.strictEqual(yield* failing(by("key:a")(call(backend, "eth_newFilter", {}))), "QuotaExceeded")
      yield* by("key:b")(call(backend, "eth_newFilter", {}))
      yield* TestClock.adjust("4 minutes")
      assert.deepStrictEqual(yield* by("key:a")(call(backend, "eth_getFilterChanges", id)), [])
      yield* TestClock.adjust("4 minutes")
      assert.deepStrictEqual(yield* by("key:a")(call(backend, "eth_getFilterChanges", id)), [])
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(yield* by("key:a")(call(backend, "eth_getFilterChanges", id)), notFound)
    }).pipe(Effect.provide(over(nodeOf(chain))))
  })

  it.live.skipIf(!isInstalled)("is known to the replicas that share a Redis", () => {
    const chain = new EvmChain.EvmChain("replicas", { blocks: 5 })
    return Effect.gen(function*() {
      const { url } = yield* redisServer
      const store = Layer.provide(FilterStore.layerRedis(), NodeRedis.layer({ url }))
      const replica = Effect.flatMap(
        Layer.build(Layer.fresh(Layer.merge(over(nodeOf(chain)), store))),
        (context) => Effect.provide(gateway({ filters: 1 }), context)
      )
      const one = yield* replica
      const other = yield* replica
      const id = yield* call(one, "eth_newFilter", {})
      chain.extend(4)
      assert.deepStrictEqual(yield* call(other, "eth_getFilterChanges", id), chain.logs({}, 5))
      assert.deepStrictEqual(yield* call(one, "eth_getFilterChanges", id), [])
      assert.strictEqual(yield* failing(call(other, "eth_newFilter", {})), "QuotaExceeded")
      assert.deepStrictEqual(yield* call(other, "eth_uninstallFilter", id), true)
      assert.deepStrictEqual(yield* call(one, "eth_getFilterChanges", id), notFound)
    })
  })
})

describe("the filters in the memory of a process", () => {
  it.effect("have a bounded number of characters, of which one caller has a quarter", () =>
    Effect.gen(function*() {
      const { add, get, set } = yield* FilterStore.makeMemory
      const quarter = FilterStore.mostStored / 4
      const half = "f".repeat(quarter / 2)
      const first = { caller: "a", id: "0x1" }
      assert.isTrue(yield* add(first, half, 100))
      assert.isTrue(yield* add({ caller: "a", id: "0x2" }, half, 100))
      assert.isFalse(yield* add({ caller: "a", id: "0x3" }, "f", 100))
      assert.isTrue(yield* add({ caller: "b", id: "0x1" }, half, 100))
      // a filter that grows beyond the limit is removed, and its client makes it again
      yield* set(first, `${half}f`)
      assert.isUndefined(yield* get(first))
      assert.isTrue(yield* add(first, half, 100))
      yield* set(first, "f")
      assert.strictEqual(yield* get(first), "f")
    }))

  it.effect("are forgotten after five minutes, also when the system clock was set back", () =>
    Effect.gen(function*() {
      const { add, get } = yield* FilterStore.makeMemory
      const filter = { caller: "a", id: "0x1" }
      yield* TestClock.adjust("1 hour")
      yield* add(filter, "f", 100)
      yield* TestClock.setTime(0)
      yield* TestClock.adjust("299 seconds")
      assert.strictEqual(yield* get(filter), "f")
      yield* TestClock.adjust("1 second")
      assert.isUndefined(yield* get(filter))
    }))
})
