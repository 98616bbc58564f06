import { assert, describe, it } from "@effect/vitest"
import { background, CurrentCaller, local } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import { serving } from "@trigate/domain/evm/Layer2Operations"
import { LogPosition } from "@trigate/domain/unstable/evm/EvmStreams"
import type { EvmFrame } from "@trigate/domain/unstable/evm/EvmStreams"
import * as EvmFeed from "@trigate/evm/unstable/EvmFeed"
import type { SendRead } from "@trigate/evm/unstable/Heads"
import * as EvmChain from "@trigate/testing/EvmChain"
import { sample, seed } from "@trigate/testing/Sample"
import * as Pipeline from "@trigate/upstream/Pipeline"
import { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { createHash } from "node:crypto"
import * as Scripted from "../../upstream/test/scripted.ts"
import { scriptedSockets } from "../../upstream/test/streams/scriptedSocket.ts"
import { applied, asking, hashesOf, passSeconds } from "./modelled.ts"
import { gateway, nodeOf } from "./nodes.ts"

/** Numbers below a bound, from a seed. */
const randomBy = (text: string) => {
  let step = Number.parseInt(createHash("sha256").update(text).digest("hex").slice(0, 8), 16)
  return (below: number): number => {
    step = (step * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor(step / 65_536) % below
  }
}

const Notification = Schema.fromJsonString(Schema.Struct({
  method: Schema.Literal("eth_subscription"),
  params: Schema.Struct({ subscription: Schema.String, result: Schema.Unknown })
}))
const decode = Schema.decodeUnknownSync(Notification)
const decodeHead = Schema.decodeUnknownSync(
  Schema.Struct({ number: Schema.String, hash: Schema.String, parentHash: Schema.String })
)
const Refusal = Schema.fromJsonString(Schema.Struct({
  params: Schema.Struct({
    error: Schema.Struct({
      code: Schema.Int,
      message: Schema.String,
      data: Schema.Struct({ _tag: Schema.String })
    })
  })
}))
const decodeError = (text: string) => Schema.decodeUnknownSync(Refusal)(text).params.error
const decodeLog = Schema.decodeUnknownSync(Schema.Struct({ removed: Schema.Boolean, transactionHash: Schema.String }))

const sink = (caller = local) => {
  const frames: Array<{ readonly id: string; readonly result: unknown }> = []
  const texts: Array<EvmFrame> = []
  const errors: Array<(typeof Refusal.Type)["params"]["error"]> = []
  return {
    caller,
    frames,
    texts,
    errors,
    heads: () => frames.map(({ result }) => decodeHead(result)),
    logs: () => frames.map(({ result }) => decodeLog(result)),
    deliver: (frame: EvmFrame) => {
      if (frame.text.includes("\"error\":")) return void errors.push(decodeError(frame.text))
      const { result, subscription } = decode(frame.text).params
      texts.push(frame)
      frames.push({ id: subscription, result })
    },
    flush: () => {}
  }
}

const decodeParams = Schema.decodeUnknownSync(Schema.Array(Schema.Unknown))

/** Refuses, in place of a node, the calls for which `refusal` returns a message; counts the calls by method and parameter. */
const refusing = (ask: SendRead, refusal: (method: string, param: unknown) => string | undefined) => {
  const asked: Array<string> = []
  const refuse: SendRead = (call) => {
    const [param] = decodeParams(call.params.valueOrUndefined)
    asked.push(typeof param === "string" ? `${call.operation.name} ${param}` : call.operation.name)
    const message = refusal(call.operation.name, param)
    return message === undefined ? ask(call) : Effect.succeed(JsonRpc.error(-32602, message))
  }
  return { ask: refuse, asked, count: (text: string) => asked.filter((each) => each === text).length }
}

/** The number of addresses of a log filter, and whether it names a block by its hash. */
const decodeQuery = Schema.decodeUnknownSync(Schema.Struct({
  address: Schema.optionalKey(Schema.Array(Schema.String)),
  blockHash: Schema.optionalKey(Schema.String),
  topics: Schema.optionalKey(Schema.Array(Schema.Array(Schema.String)))
}))

/** Asks a node whose pending block has the transactions that `hashes` returns. */
const withPending = (ask: SendRead, hashes: () => ReadonlyArray<string>): SendRead => (call) =>
  call.params.text.includes("pending")
    ? Effect.succeed(JsonRpc.result(Json.write({ transactions: hashes() })))
    : ask(call)

const notification = (subscription: string, result: unknown) =>
  JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params: { subscription, result } })

const methodsIn = (texts: ReadonlyArray<string>) =>
  texts.map((text) => {
    const { method, params } = Schema.decodeUnknownSync(Sent)(text)
    return [method, ...params].join(" ")
  })
const Sent = Schema.fromJsonString(Schema.Struct({ method: Schema.String, params: Schema.Array(Schema.String) }))

const contract = { address: `0x${(EvmChain.contracts[0] ?? "").slice(2)}` } as const

const makeAddress = (index: number) => `0x${index.toString(16).padStart(40, "0")}` as const

/** The rounds of a test with random chains, or a sample of them with even and odd ones. */
const rounds = (table: string, count: number, size: number) =>
  sample(table, Array.from({ length: count }, (_, index) => index), size, (round) => String(round % 2))

describe("a feed", () => {
  it.effect("gives every head once, also those that a poll jumped over", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("heads", { blocks: 10 })
      const feed = yield* EvmFeed.make({ serving, send: asking(() => chain) })
      const one = sink()
      const other = sink()
      const { id } = feed.subscribe({ kind: "newHeads" }, one)
      assert.strictEqual(feed.subscribe({ kind: "newHeads" }, other).id, id)
      yield* passSeconds(2)
      for (const count of [1, 0, 3, 120, 1]) {
        chain.extend(count)
        yield* passSeconds(20)
      }
      assert.deepStrictEqual(one.heads().map(({ hash }) => hash), chain.blocks.slice(10).map(({ hash }) => hash))
      // a notification is built once for all
      assert.deepStrictEqual(other.texts.map((frame, index) => frame === one.texts[index]), one.texts.map(() => true))
    }))

  it.effect("reads the past of a subscription in its caller's name, in turns, and stops when the caller leaves", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("heads", { blocks: 500 })
      const ask = asking(() => chain)
      const owners: Array<string> = []
      const feed = yield* EvmFeed.make({
        serving,
        send: (call) =>
          Effect.flatMap(CurrentCaller, ({ id }) => {
            owners.push(id)
            return Effect.delay(ask(call), "10 millis")
          })
      })
      const greedy = sink(background("greedy"))
      const modest = sink(background("modest"))
      feed.subscribe({ kind: "newHeads" }, sink())
      yield* passSeconds(2)
      const known = owners.length
      assert.deepStrictEqual([...new Set(owners)], ["feed of layer2"])
      const many = Array.from(
        { length: 150 },
        (_, index) => feed.subscribe({ kind: "newHeads", fromBlock: BigInt(index) }, greedy)
      )
      feed.subscribe({ kind: "newHeads", fromBlock: 490n }, modest)
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(modest.heads().map(({ number }) => number).slice(0, 2), ["0x1ea", "0x1eb"])
      for (const { end } of many) end()
      const atEnd = owners.filter((owner) => owner === "greedy").length
      assert.isAbove(atEnd, 100)
      yield* passSeconds(30)
      // the reads that were already sent
      assert.isAtMost(owners.filter((owner) => owner === "greedy").length, atEnd)
      assert.isAbove(owners.slice(known).filter((owner) => owner === "modest").length, 0)
    }))

  it.effect("gives a second equal subscription of a socket an id of its own, and ends each by itself", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("twice", { blocks: 3 })
      const feed = yield* EvmFeed.make({ serving, send: asking(() => chain) })
      const one = sink()
      const first = feed.subscribe({ kind: "newHeads" }, one)
      const second = feed.subscribe({ kind: "newHeads" }, one)
      assert.notStrictEqual(first.id, second.id)
      yield* passSeconds(2)
      chain.extend(1)
      yield* passSeconds(2)
      assert.deepStrictEqual(one.frames.map(({ id }) => id), [first.id, second.id])
      first.end()
      chain.extend(1)
      yield* passSeconds(2)
      assert.deepStrictEqual(one.frames.map(({ id }) => id), [first.id, second.id, second.id])
      second.end()
      yield* passSeconds(12)
      const { polls } = feed.status()
      yield* passSeconds(30)
      assert.deepStrictEqual([feed.status().source, feed.status().polls], ["idle", polls])
    }))

  it.effect("asks once in a block, and for the logs of all filters together", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("union", { blocks: 5, span: 50 })
      const asked: Array<string> = []
      const ask = asking(() => chain)
      const feed = yield* EvmFeed.make({
        serving,
        send: (call) => {
          asked.push(call.operation.name)
          return ask(call)
        }
      })
      const sinks = Array.from({ length: 200 }, sink)
      for (const [index, each] of sinks.entries()) {
        feed.subscribe({ kind: "logs", filter: { address: `0x${String(index).padStart(40, "0")}` } }, each)
      }
      const real = sink()
      const filter = { address: "0x0", topics: [] as ReadonlyArray<`0x${string}`> }
      feed.subscribe(
        { kind: "logs", filter: { ...filter, address: `0x${(EvmChain.contracts[0] ?? "").slice(2)}` } },
        real
      )
      yield* passSeconds(2)
      asked.length = 0
      for (let block = 0; block < 10; block++) {
        chain.extend(1)
        yield* passSeconds(1)
      }
      assert.isAtMost(asked.filter((name) => name === "eth_getBlockByNumber").length, 11)
      assert.isAtMost(asked.filter((name) => name === "eth_getLogs").length, 10)
      assert.deepStrictEqual(applied(real.logs()), hashesOf(chain.logs({ address: EvmChain.contracts[0] }, 5)))
    }))

  it.effect("queries all logs if the filters of callers are long, and bounds the retries of a refused query", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("refused", { blocks: 5 })
      let most = 100
      const node = refusing(
        asking(() => chain),
        (method, param) =>
          method === "eth_getLogs" && (decodeQuery(param).address?.length ?? 0) > most
            ? "exceed max addresses or topics per search position"
            : undefined
      )
      const feed = yield* EvmFeed.make({ serving, send: node.ask })
      const one = sink()
      const address = Array.from({ length: 101 }, (_, index) => makeAddress(index))
      feed.subscribe({ kind: "logs", filter: contract }, one)
      const long = feed.subscribe({ kind: "logs", filter: { address } }, sink())
      yield* passSeconds(2)
      const eachSecond = Effect.gen(function*() {
        node.asked.length = 0
        for (let block = 0; block < 20; block++) {
          chain.extend(1)
          yield* passSeconds(1)
        }
        yield* passSeconds(5)
        assert.deepStrictEqual(applied(one.logs()), hashesOf(chain.logs(contract, 5)))
        return node.count("eth_getLogs")
      })
      const withLogs = () => chain.blocks.slice(-20).filter(({ logs }) => logs.length > 0).length
      assert.strictEqual(yield* eachSecond, withLogs())
      assert.strictEqual(feed.status().logFailures, 0)
      // a node that refuses even one address is asked for all logs; two blocks may be found at once
      long.end()
      most = 0
      assert.isAtMost(yield* eachSecond, 2 * withLogs())
      assert.isAtMost(feed.status().logFailures, withLogs())
    }))

  it.effect("queries the logs of blocks that are found together at once, also if five have one timestamp", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("five a second", { blocks: 20, span: 50 })
      chain.perSecond = 5
      const node = refusing(asking(() => chain), () => undefined)
      const feed = yield* EvmFeed.make({ serving, send: node.ask })
      const all = sink()
      feed.subscribe({ kind: "logs", filter: {} }, all)
      yield* passSeconds(2)
      /** Adds five blocks in each second. Returns the number of requests for logs, and of seconds with logs. */
      const extend = Effect.fnUntraced(function*(seconds: number) {
        node.asked.length = 0
        let withLogs = 0
        for (let second = 0; second < seconds; second++) {
          chain.extend(5)
          if (chain.blocks.slice(-5).some(({ logs }) => logs.length > 0)) withLogs++
          yield* passSeconds(1)
        }
        return [node.count("eth_getLogs"), withLogs]
      })
      const [requests, seconds] = yield* extend(20)
      assert.strictEqual(requests, seconds)
      assert.deepStrictEqual(
        all.logs().map(({ transactionHash }) => transactionHash),
        chain.logs({}, 20).map(({ transactionHash }) => transactionHash)
      )
      chain.reorganise(7, 9)
      yield* passSeconds(3)
      assert.isTrue(all.logs().some(({ removed }) => removed))
      assert.deepStrictEqual(applied(all.logs()), hashesOf(chain.logs({}, 20)))
    }))

  it.effect("queries blocks by their hashes while few of them have logs, so that a node that is behind omits none", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("few logs", { blocks: 20, span: 50 })
      const node = refusing(asking(() => chain), () => undefined)
      const feed = yield* EvmFeed.make({ serving, send: node.ask })
      const none = sink()
      feed.subscribe({ kind: "logs", filter: { address: makeAddress(1) } }, none)
      yield* passSeconds(2)
      node.asked.length = 0
      for (let second = 0; second < 20; second++) {
        chain.extend(5)
        yield* passSeconds(1)
      }
      const withLogs = chain.blocks.slice(20).filter(({ logs }) => logs.length > 0).length
      // the first five blocks are queried by their range, and then by their hashes as the later ones
      assert.strictEqual(node.count("eth_getLogs"), withLogs + 1)
      assert.deepStrictEqual(none.frames, [])
    }))

  it.effect("polls as often as blocks are produced, whose timestamps may be equal", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("quick", { blocks: 20 })
      chain.perSecond = 5
      const node = refusing(asking(() => chain), () => undefined)
      const feed = yield* EvmFeed.make({ serving, send: node.ask, pollAtLeast: () => 100 })
      const heads = sink()
      feed.subscribe({ kind: "newHeads" }, heads)
      yield* TestClock.adjust("10 millis")
      const behind: Array<number> = []
      const extend = Effect.fnUntraced(function*(blocks: number, every: number) {
        node.asked.length = 0
        behind.length = 0
        for (let block = 0; block < blocks; block++) {
          chain.extend(1)
          for (let part = 0; part < 4; part++) yield* TestClock.adjust(every / 4)
          behind.push(chain.head.number - 19 - heads.heads().length)
        }
        return node.count("eth_getBlockByNumber latest")
      })
      // the first second
      yield* extend(5, 200)
      assert.isAtMost(Math.max(...behind), 1)
      const polls = yield* extend(50, 200)
      assert.isAtMost(polls, 100)
      assert.isAtMost(Math.max(...behind), 1)
      // slower blocks are polled less often
      yield* extend(20, 2000)
      const slow = yield* extend(10, 2000)
      assert.isAtMost(slow, 50)
      // blocks that a node reports late, all at once, were not produced at once
      yield* passSeconds(200)
      chain.extend(100)
      assert.isAtMost(yield* extend(10, 2000), slow + 10)
      assert.strictEqual(heads.heads().length, chain.head.number - 19)
    }))

  it.effect("retries less and less often while a node refuses the logs of a block, and then sends all of them", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("unserved", { blocks: 5, span: 50 })
      let isRefusing = true
      const node = refusing(
        asking(() => chain),
        (method) => method === "eth_getLogs" && isRefusing ? "unknown field blockHash" : undefined
      )
      const feed = yield* EvmFeed.make({ serving, send: node.ask })
      const one = sink()
      feed.subscribe({ kind: "logs", filter: {} }, one)
      yield* passSeconds(2)
      for (let block = 0; block < 60; block++) {
        chain.extend(1)
        yield* passSeconds(1)
      }
      assert.isAtMost(node.count("eth_getLogs"), 24)
      isRefusing = false
      yield* passSeconds(12)
      assert.deepStrictEqual(applied(one.logs()), hashesOf(chain.logs({}, 5)))
    }))

  it.effect("queries logs by number while nodes refuse block hashes, and tries block hashes again after an hour", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("numbered", { blocks: 5, span: 50 })
      chain.servesHashes = false
      const node = refusing(asking(() => chain), () => undefined)
      const feed = yield* EvmFeed.make({ serving, send: node.ask })
      const one = sink()
      feed.subscribe({ kind: "logs", filter: contract }, one)
      yield* passSeconds(2)
      /** Returns the number of blocks that may have logs, and of the requests for logs. */
      const extend = Effect.fnUntraced(function*(blocks: number) {
        node.asked.length = 0
        for (let block = 0; block < blocks; block++) {
          chain.extend(1)
          yield* passSeconds(1)
        }
        yield* passSeconds(2)
        assert.deepStrictEqual(applied(one.logs()), hashesOf(chain.logs(contract, 5)))
        const withLogs = chain.blocks.slice(-blocks).filter(({ logs }) => logs.length > 0)
        return [node.count("eth_getLogs") - withLogs.length, feed.status().logFailures]
      })
      // the first block is queried by hash, again without the filter, and then by number
      assert.deepStrictEqual(yield* extend(20), [2, 1])
      assert.deepStrictEqual(yield* extend(20), [0, 1])
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* extend(20), [2, 2])
      chain.servesHashes = true
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* extend(20), [0, 2])
    }))

  it.effect(`takes logs by number only from a node that has the block (seed ${seed})`, () =>
    Effect.forEach(rounds("chains of nodes that refuse hashes", 6, 2), (round) =>
      Effect.scoped(Effect.gen(function*() {
        const random = randomBy(`${seed} numbered ${round}`)
        const chain = new EvmChain.EvmChain(`${seed} numbered ${round}`, { blocks: 20 })
        chain.servesHashes = false
        let slower: EvmChain.EvmChain | undefined
        // each request, a batch or a single call, is served by one of two nodes, which may omit bloom filters
        const transport = Scripted.make(({ body }) => {
          const text = (slower !== undefined && random(2) === 0 ? slower : chain).respond(body)
          return Scripted.answer(200, round % 2 === 0 ? text : text.replaceAll("\"logsBloom\"", "\"unused\""))
        })
        const services = yield* Layer.build(Layer.provide(Pipeline.layer({ attempts: 1 }), transport.layer))
        const backend = yield* Effect.provide(gateway(), services)
        const logs = sink()
        backend.subscribe({ kind: "logs", filter: {} }, logs)
        yield* passSeconds(3)
        for (let each = 0; each < 30; each++) {
          slower = random(3) === 0 ? chain.copy() : slower
          const depth = 1 + random(3)
          if (random(3) === 0 && chain.head.number - depth >= 20) chain.reorganise(depth, depth + random(2))
          else chain.extend(1 + random(3))
          yield* passSeconds(1 + random(3))
        }
        slower = undefined
        chain.extend(1)
        yield* passSeconds(60)
        assert.deepStrictEqual(applied(logs.logs()), hashesOf(chain.logs({}, 20)), `round ${round}`)
      })), { discard: true }))

  it.effect("gives the logs since a block before those that follow", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("since", { blocks: 40 })
      const feed = yield* EvmFeed.make({ serving, send: asking(() => chain) })
      const one = sink()
      feed.subscribe({ kind: "logs", filter: {}, fromBlock: 10n }, one)
      yield* passSeconds(2)
      chain.extend(5)
      yield* passSeconds(5)
      assert.deepStrictEqual(
        one.logs().map(({ transactionHash }) => transactionHash),
        chain.logs({}, 10).map((log) => log.transactionHash)
      )
      chain.reorganise(9, 11)
      yield* passSeconds(5)
      assert.deepStrictEqual(applied(one.logs()), hashesOf(chain.logs({}, 10)))
    }))

  it.effect("gives the logs of a block that was being read for other subscriptions when a caller subscribed since it", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("in flight", { blocks: 20 })
      const ask = asking(() => chain)
      const feed = yield* EvmFeed.make({
        serving,
        send: (call) => call.operation.name === "eth_getLogs" ? Effect.delay(ask(call), "3 seconds") : ask(call)
      })
      feed.subscribe({ kind: "logs", filter: { address: makeAddress(1) } }, sink())
      yield* passSeconds(2)
      do chain.extend(1)
      while (chain.head.logs.length === 0)
      yield* passSeconds(2)
      const one = sink()
      feed.subscribe({ kind: "logs", filter: {}, fromBlock: 20n }, one)
      yield* passSeconds(20)
      assert.deepStrictEqual(applied(one.logs()), hashesOf(chain.logs({}, 20)))
    }))

  it.effect("gives the logs of a block that replaced the newest one after a caller subscribed", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("replaced", { blocks: 20 })
      const feed = yield* EvmFeed.make({ serving, send: asking(() => chain) })
      feed.subscribe({ kind: "newHeads" }, sink())
      yield* passSeconds(2)
      const one = sink()
      const later = sink()
      feed.subscribe({ kind: "logs", filter: {} }, one)
      feed.subscribe({ kind: "logs", filter: {}, fromBlock: 22n }, later)
      do chain.reorganise(2, 4)
      while (chain.logs({}, 18, 19).length === 0)
      yield* passSeconds(5)
      assert.deepStrictEqual(applied(one.logs()), hashesOf(chain.logs({}, 18)))
      chain.extend(5)
      yield* passSeconds(5)
      assert.deepStrictEqual(applied(later.logs()), hashesOf(chain.logs({}, 22)))
    }))

  it.effect("gives the blocks since a block, or the newest one, before those that follow", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("blocks", { blocks: 400 })
      const feed = yield* EvmFeed.make({ serving, send: asking(() => chain) })
      const older = sink()
      const newest = sink()
      const later = sink()
      feed.subscribe({ kind: "newHeads", fromBlock: 90n }, older)
      feed.subscribe({ kind: "newHeads", fromBlock: "latest" }, newest)
      feed.subscribe({ kind: "newHeads", fromBlock: 402n }, later)
      yield* passSeconds(2)
      assert.deepStrictEqual(newest.heads().map(({ number }) => Number(number)), [399])
      chain.extend(5)
      yield* passSeconds(5)
      const since = (number: number) => chain.blocks.slice(number).map(({ hash }) => hash)
      assert.deepStrictEqual(older.heads().map(({ hash }) => hash), since(90))
      assert.deepStrictEqual(newest.heads().map(({ hash }) => hash), since(399))
      assert.deepStrictEqual(later.heads().map(({ hash }) => hash), since(402))
    }))

  it.effect("tells a caller that asks for it up to which block its logs are complete", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("positions", { blocks: 40 })
      const feed = yield* EvmFeed.make({ serving, send: asking(() => chain) })
      const one = sink()
      const since = sink()
      feed.subscribe({ kind: "logs", filter: {}, hasPositions: true }, one)
      feed.subscribe({ kind: "logs", filter: {}, fromBlock: 30n, hasPositions: true }, since)
      yield* passSeconds(2)
      chain.extend(3)
      yield* passSeconds(5)
      const described = (each: ReturnType<typeof sink>) =>
        each.frames.map(({ result }) => {
          const position = Schema.decodeUnknownOption(LogPosition)(result)
          return Option.match(position, {
            onNone: () => decodeLog(result).transactionHash,
            onSome: ({ position }) => Number(position)
          })
        })
      const hashes = (from: number, to: number) =>
        chain.logs({}, from, to).map(({ transactionHash }) => transactionHash)
      assert.deepStrictEqual(described(one), [39, ...hashes(40, 42), 42])
      assert.deepStrictEqual(described(since), [...hashes(30, 39), 39, ...hashes(40, 42), 42])
    }))

  it.effect("ends a subscription that begins too early with an error that names what it may ask", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("early", { blocks: 3000, span: 50 })
      const feed = yield* EvmFeed.make({ serving, send: asking(() => chain) })
      const failing = sink()
      feed.subscribe({ kind: "newHeads", fromBlock: 1000n }, failing)
      feed.subscribe({ kind: "logs", filter: {}, fromBlock: 1n }, failing)
      yield* passSeconds(2)
      chain.extend(1)
      yield* passSeconds(2)
      const { errors } = failing
      assert.deepStrictEqual(errors.map(({ code, data }) => [code, data._tag]), [
        [-32602, "InvalidRequest"],
        [-32005, "LogRangeTooWide"]
      ])
      assert.match(errors[0]?.message ?? "", /1024 newest blocks; the newest one is 2999/u)
      assert.match(errors[1]?.message ?? "", /query at most 2000 blocks/u)
      assert.strictEqual(feed.status().subscriptions, 0)
    }))

  it.effect("ends the subscriptions with an error that names the first missed block, and follows the chain from its head", () =>
    Effect.forEach([
      // further than the feed reads, and deeper than the 8 blocks that it reads before its first head
      { name: "jump", change: (chain: EvmChain.EvmChain) => chain.extend(5000), first: 45 },
      { name: "reorg", change: (chain: EvmChain.EvmChain) => chain.reorganise(17, 20), first: 31 }
    ], ({ change, first, name }) =>
      Effect.scoped(Effect.gen(function*() {
        const chain = new EvmChain.EvmChain(name, { blocks: 40, span: 50 })
        let node = chain.copy()
        const feed = yield* EvmFeed.make({ serving, send: asking(() => node) })
        const subscribed = () => {
          const heads = sink()
          const logs = sink()
          feed.subscribe({ kind: "newHeads" }, heads)
          feed.subscribe({ kind: "logs", filter: {} }, logs)
          return { heads, logs }
        }
        const before = subscribed()
        yield* passSeconds(2)
        chain.extend(5)
        node = chain
        yield* passSeconds(5)
        const known = { heads: chain.blocks.slice(40).map(({ hash }) => hash), logs: hashesOf(chain.logs({}, 40)) }
        change(chain)
        yield* passSeconds(10)
        assert.deepStrictEqual(before.heads.heads().map(({ hash }) => hash), known.heads)
        assert.deepStrictEqual(applied(before.logs.logs()), known.logs)
        const message = new RegExp(`fromBlock 0x${first.toString(16)}$`, "u")
        for (const { errors } of [before.heads, before.logs]) {
          assert.deepStrictEqual(errors.map(({ code, data }) => [code, data._tag]), [[-32603, "UpstreamUnavailable"]])
          assert.match(errors[0]?.message ?? "", message)
        }
        assert.strictEqual(feed.status().subscriptions, 0)
        const after = subscribed()
        const length = chain.blocks.length
        chain.extend(5)
        yield* passSeconds(5)
        assert.deepStrictEqual(
          after.heads.heads().map(({ hash }) => hash),
          chain.blocks.slice(length).map(({ hash }) => hash)
        )
        assert.deepStrictEqual(applied(after.logs.logs()), hashesOf(chain.logs({}, length)))
      })), { discard: true }))

  it.effect("ignores a node that is far behind, until it has repeated its head thirty times", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("stale", { blocks: 20 })
      const stale = chain.copy()
      let node = chain
      const feed = yield* EvmFeed.make({ serving, send: asking(() => node) })
      const heads = sink()
      feed.subscribe({ kind: "newHeads" }, heads)
      yield* passSeconds(2)
      for (let each = 0; each < 40; each++) {
        chain.extend(10)
        yield* passSeconds(3)
      }
      node = stale
      yield* passSeconds(20)
      node = chain
      chain.extend(1)
      yield* passSeconds(5)
      assert.strictEqual(heads.heads().length, 401)
      assert.deepStrictEqual(heads.errors, [])
      node = stale
      yield* passSeconds(90)
      assert.strictEqual(heads.errors.length, 1)
    }))

  it.effect("ends the subscriptions to logs that are too far behind, and not those to heads", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("behind", { blocks: 20, span: 50 })
      const node = refusing(asking(() => chain), (method) => method === "eth_getLogs" ? "unknown block" : undefined)
      const feed = yield* EvmFeed.make({ serving, send: node.ask })
      const heads = sink()
      const logs = sink()
      feed.subscribe({ kind: "newHeads" }, heads)
      feed.subscribe({ kind: "logs", filter: {} }, logs)
      yield* passSeconds(2)
      for (let each = 0; each < 2; each++) {
        chain.extend(4000)
        yield* passSeconds(20)
      }
      assert.strictEqual(heads.heads().length, 8000)
      assert.match(logs.errors[0]?.message ?? "", /fromBlock 0x14$/u)
      assert.deepStrictEqual([logs.errors.length, heads.errors.length, feed.status().subscriptions], [1, 0, 1])
    }))

  it.effect("polls pending transactions within the polls of the head, and gives each once", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("pending", { blocks: 20 })
      let latest = 0
      const hashes = () => [latest - 1, latest].filter((each) => each > 0).map((each) => `0x${each}`)
      const node = refusing(withPending(asking(() => chain), hashes), () => undefined)
      const feed = yield* EvmFeed.make({ serving, send: node.ask })
      const heads = sink()
      const pending = sink()
      feed.subscribe({ kind: "newHeads" }, heads)
      feed.subscribe({ kind: "newPendingTransactions" }, pending)
      yield* passSeconds(5)
      node.asked.length = 0
      for (let second = 0; second < 60; second++) {
        chain.extend(1)
        if (second % 2 === 0) latest++
        yield* passSeconds(1)
      }
      yield* passSeconds(5)
      assert.isAtMost(node.count("eth_getBlockByNumber latest"), 33)
      assert.isAtMost(node.count("eth_getBlockByNumber pending"), 33)
      assert.strictEqual(heads.heads().length, 60)
      assert.deepStrictEqual(
        pending.frames.map(({ result }) => result),
        Array.from({ length: 30 }, (_, index) => `0x${index + 1}`)
      )
    }))

  it.effect("ends the subscriptions to pending transactions that a node refuses, and polls the rest", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("unpending", { blocks: 20 })
      const node = refusing(asking(() => chain), (_, param) => param === "pending" ? "no pending block" : undefined)
      const feed = yield* EvmFeed.make({ serving, send: node.ask })
      const heads = sink()
      const pending = sink()
      feed.subscribe({ kind: "newHeads" }, heads)
      feed.subscribe({ kind: "syncing" }, sink())
      feed.subscribe({ kind: "newPendingTransactions" }, pending)
      yield* passSeconds(2)
      chain.extend(3)
      yield* passSeconds(28)
      assert.deepStrictEqual(pending.errors.map(({ code }) => code), [-32601])
      assert.strictEqual(node.count("eth_getBlockByNumber pending"), 3)
      assert.strictEqual(heads.heads().length, 3)
      assert.strictEqual(node.count("eth_syncing"), 3)
    }))

  it.effect("subscribes to a node's pending transactions while a caller wants them, and polls them if it refuses", () => {
    const sockets = scriptedSockets()
    return Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("announced", { blocks: 20 })
      const node = refusing(withPending(asking(() => chain), () => ["0x2"]), () => undefined)
      const addresses = () => [Redacted.make("ws://a")]
      const feed = yield* EvmFeed.make({ serving, send: node.ask, addresses })
      const heads = sink()
      feed.subscribe({ kind: "newHeads" }, heads)
      yield* passSeconds(1)
      const socket = sockets.connections[0] ?? assert.fail("no socket")
      socket.push(`{"id":4,"result":"0x3e7"}`, `{"id":1,"result":"0xa"}`)
      const block = Effect.gen(function*() {
        chain.extend(1)
        socket.push(notification("0xa", chain.header(chain.head)))
        yield* passSeconds(1)
      })
      yield* block
      assert.deepStrictEqual(methodsIn(socket.sent), ["eth_chainId", "eth_subscribe newHeads"])
      const one = sink()
      const { end } = feed.subscribe({ kind: "newPendingTransactions" }, one)
      yield* passSeconds(1)
      socket.push(`{"id":2,"result":"0xb"}`, notification("0xb", "0x1"))
      for (let each = 0; each < 5; each++) yield* block
      assert.deepStrictEqual(one.frames.map(({ result }) => result), ["0x1"])
      const polled = node.count("eth_getBlockByNumber pending")
      end()
      yield* block
      feed.subscribe({ kind: "newPendingTransactions" }, one)
      yield* block
      socket.push(`{"id":2,"error":{"code":-32601,"message":"no such subscription"}}`)
      for (let each = 0; each < 5; each++) yield* block
      assert.deepStrictEqual(methodsIn(socket.sent), [
        "eth_chainId",
        "eth_subscribe newHeads",
        "eth_subscribe newPendingTransactions",
        "eth_unsubscribe 0xb",
        "eth_subscribe newPendingTransactions"
      ])
      assert.deepStrictEqual(one.frames.map(({ result }) => result), ["0x1", "0x2"])
      assert.isAtLeast(node.count("eth_getBlockByNumber pending"), polled + 5)
      assert.strictEqual(heads.heads().length, 13)
    }).pipe(Effect.provideService(SocketTransport, sockets.transport))
  })

  it.effect("does not follow a WebSocket of another chain, and polls until one is of the HTTP nodes' chain", () => {
    const sockets = scriptedSockets()
    return Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("own", { blocks: 20 })
      const other = new EvmChain.EvmChain("other", { blocks: 9000 })
      const addresses = () => [Redacted.make("ws://a")]
      const feed = yield* EvmFeed.make({ serving, send: asking(() => chain), addresses })
      const heads = sink()
      feed.subscribe({ kind: "newHeads" }, heads)
      yield* passSeconds(1)
      const wrong = sockets.connections[0] ?? assert.fail("no socket")
      wrong.push(`{"id":4,"result":"0x1"}`)
      chain.extend(2)
      yield* passSeconds(1)
      wrong.push(`{"id":1,"result":"0xa"}`, notification("0xa", other.header(other.head)))
      yield* passSeconds(3)
      assert.deepStrictEqual([wrong.isOpen, methodsIn(wrong.sent)], [false, ["eth_chainId"]])
      assert.deepStrictEqual([feed.status().source, feed.status().head], ["polling", 21])
      const right = sockets.open()[0] ?? assert.fail("no socket")
      right.push(`{"id":4,"result":"0x3e7"}`, `{"id":1,"result":"0xb"}`)
      chain.extend(1)
      right.push(notification("0xb", chain.header(chain.head)))
      yield* passSeconds(1)
      assert.deepStrictEqual([feed.status().source, feed.status().head], ["socket", 22])
      assert.deepStrictEqual(heads.heads().map(({ number }) => Number(number)), [20, 21, 22])
    }).pipe(Effect.provideService(SocketTransport, sockets.transport))
  })

  it.effect(`follows reorganisations, jumps and two nodes that disagree (seed ${seed})`, () =>
    Effect.forEach(rounds("chains of two nodes that disagree", 12, 3), (round) =>
      Effect.scoped(Effect.gen(function*() {
        const chain = new EvmChain.EvmChain(`${seed} ${round}`, { blocks: 20, span: 50 })
        const random = randomBy(`${seed} ${round}`)
        // a slower node answers now and then
        let slower: EvmChain.EvmChain | undefined
        const feed = yield* EvmFeed.make({
          serving,
          send: asking(() => slower !== undefined && random(3) === 0 ? slower : chain)
        })
        const heads = sink()
        const logs = sink()
        const some = sink()
        const selected = { topics: [EvmChain.events[0] ?? ""] }
        feed.subscribe({ kind: "newHeads" }, heads)
        feed.subscribe({ kind: "logs", filter: {} }, logs)
        feed.subscribe({ kind: "logs", filter: { topics: [`0x${(EvmChain.events[0] ?? "").slice(2)}`] } }, some)
        yield* passSeconds(3)
        const first = 20
        chain.extend(6)
        for (let each = 0; each < 30; each++) {
          slower = random(4) === 0 ? chain.copy() : random(4) === 0 ? undefined : slower
          const depth = 1 + random(5)
          if (random(3) === 0 && chain.head.number - depth >= first) chain.reorganise(depth, depth + random(3))
          else chain.extend(random(10) === 0 ? 60 + random(100) : random(4))
          yield* passSeconds(random(4))
        }
        slower = undefined
        chain.extend(1)
        yield* passSeconds(60)
        assert.deepStrictEqual(applied(logs.logs()), hashesOf(chain.logs({}, first)), `round ${round}`)
        assert.deepStrictEqual(applied(some.logs()), hashesOf(chain.logs(selected, first)))
        // each head links to one that came before it, and the last ones are the chain's
        const seen = new Set([chain.blocks[first - 1]?.hash])
        for (const { hash, parentHash } of heads.heads()) {
          assert.isTrue(seen.has(parentHash), "a head was skipped")
          seen.add(hash)
        }
        assert.isTrue(chain.blocks.slice(first).every(({ hash }) => seen.has(hash)))
        assert.isAtMost(Math.max(...chain.ranges), 50)
      })), { discard: true }))

  it.effect(`follows announced heads over two addresses, in front of a slower HTTP node (seed ${seed})`, () => {
    const used = new Set<string>()
    return Effect.forEach(rounds("chains with announced heads", 8, 2), (round) => {
      const sockets = scriptedSockets()
      return Effect.scoped(Effect.gen(function*() {
        const random = randomBy(`${seed} announced ${round}`)
        const chain = new EvmChain.EvmChain(`${seed} announced ${round}`, { blocks: 20, span: 50 })
        let slower: EvmChain.EvmChain | undefined
        const feed = yield* EvmFeed.make({
          serving,
          send: asking(() => slower !== undefined && random(3) === 0 ? slower : chain),
          addresses: () => [Redacted.make("ws://a"), Redacted.make("ws://b")]
        })
        const heads = sink()
        const logs = sink()
        feed.subscribe({ kind: "newHeads" }, heads)
        feed.subscribe({ kind: "logs", filter: {} }, logs)
        const sources = new Set<string>()
        /** Lets a second pass, in which the nodes respond on their sockets, and announce the blocks after `from`. */
        const pass = (from: number, isPartial: boolean) =>
          Effect.gen(function*() {
            for (const { address, push, sent } of sockets.open()) {
              const methods = methodsIn(sent.splice(0))
              if (methods.includes("eth_chainId")) push(`{"id":4,"result":"0x3e7"}`)
              if (methods.includes("eth_subscribe newHeads")) {
                used.add(address)
                push(`{"id":1,"result":"0xa"}`)
              }
              // a node may announce only the last of several blocks, and the second node is behind by one
              const behind = address === "ws://b" ? 1 : 0
              for (
                const block of chain.blocks.slice(isPartial ? -1 - behind : from - behind, chain.blocks.length - behind)
              ) {
                push(notification("0xa", chain.header(block)))
              }
            }
            yield* passSeconds(1)
            sources.add(feed.status().source)
          })
        for (let each = 0; each < 4; each++) yield* pass(chain.blocks.length, false)
        const first = 20
        for (let each = 0; each < 40; each++) {
          slower = random(4) === 0 ? chain.copy() : random(4) === 0 ? undefined : slower
          const depth = 1 + random(5)
          const isReorg = random(4) === 0 && chain.head.number - depth >= first
          const from = chain.blocks.length - (isReorg ? depth : 0)
          if (isReorg) chain.reorganise(depth, depth + random(3))
          else chain.extend(random(12) === 0 ? 30 + random(60) : random(3))
          yield* pass(from, random(4) === 0)
          if (random(5) === 0) { for (const { close } of sockets.open()) close() }
          for (let idle = random(3); idle > 0; idle--) yield* pass(chain.blocks.length, false)
        }
        slower = undefined
        const last = chain.blocks.length
        chain.extend(1)
        yield* pass(last, false)
        yield* passSeconds(60)
        assert.deepStrictEqual(applied(logs.logs()), hashesOf(chain.logs({}, first)), `round ${round}`)
        const seen = new Set([chain.blocks[first - 1]?.hash])
        for (const { hash, parentHash } of heads.heads()) {
          assert.isTrue(seen.has(parentHash), "a head was skipped")
          seen.add(hash)
        }
        assert.isTrue(chain.blocks.slice(first).every(({ hash }) => seen.has(hash)))
        assert.deepStrictEqual([...heads.errors, ...logs.errors], [])
        assert.deepStrictEqual([...sources].toSorted(), ["polling", "socket"])
      })).pipe(Effect.provideService(SocketTransport, sockets.transport))
    }, { discard: true }).pipe(
      // in a round in which few sockets closed, the second one may be unused
      Effect.andThen(Effect.sync(() => assert.deepStrictEqual([...used].toSorted(), ["ws://a", "ws://b"])))
    )
  })

  it.effect(`stays within the requests of a public node through reorgs and jumps (seed ${seed})`, () =>
    Effect.forEach(
      rounds("chains behind a limit", 12, 1),
      (round) =>
        Effect.scoped(Effect.gen(function*() {
          const random = randomBy(`${seed} limited ${round}`)
          const chain = new EvmChain.EvmChain(`${seed} limited ${round}`, { blocks: 20, span: 50 })
          const transport = nodeOf(chain)
          // one request a second, and one a second for others
          const perMinute = 60
          const pipeline = Pipeline.layer({ attempts: 1, limits: { layer2: 1 } })
          const services = yield* Layer.build(Layer.provide(pipeline, transport.layer))
          const backend = yield* Effect.provide(gateway({ logBlocks: 50 }), services)
          const logs = sink()
          const heads = sink()
          backend.subscribe({ kind: "newHeads" }, heads)
          backend.subscribe({ kind: "logs", filter: {} }, logs)
          yield* passSeconds(20)
          const first = chain.blocks.length
          for (let each = 0; each < 20; each++) {
            const depth = 1 + random(5)
            if (random(3) === 0 && chain.head.number - depth >= first) chain.reorganise(depth, depth + random(2))
            else chain.extend(random(6) === 0 ? 30 + random(60) : random(3))
            yield* passSeconds(1 + random(5))
          }
          chain.extend(1)
          yield* passSeconds(900)
          assert.deepStrictEqual(applied(logs.logs()), hashesOf(chain.logs({}, first)), `round ${round}`)
          const seen = new Set(heads.heads().map(({ hash }) => hash))
          assert.isTrue(chain.blocks.slice(first).every(({ hash }) => seen.has(hash)))
          assert.isAtMost(Math.max(...chain.ranges), 50)
          const times = transport.seen.map(({ at }) => at)
          const inMinute = (start: number) => times.filter((at) => at >= start && at < start + 60_000).length
          assert.isAtMost(Math.max(...times.map(inMinute)), perMinute + 1)
        })),
      { discard: true }
    ))
})
