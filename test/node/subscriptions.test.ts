/** Stock client libraries over a WebSocket of the gateway, with a real node behind it that has a WebSocket or HTTP only. */
import { assert, describe, it } from "@effect/vitest"
import { gateway, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { sample } from "@trigate/testing/Sample"
import { createConfig, watchBlocks, watchContractEvent } from "@wagmi/core"
import * as Effect from "effect/Effect"
import { WebSocketProvider } from "ethers"
import * as Net from "node:net"
import { createPublicClient, createWalletClient, fallback, http, parseAbi, toEventSelector, webSocket } from "viem"
import type { Hash, Hex } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { foundry } from "viem/chains"
import { Web3 } from "web3"
import { rich } from "../compat/gatewayOnNode.ts"
import { openSocket } from "../streams/socket.ts"
import { anvil, canRun } from "./anvil.ts"

const abi = parseAbi(["event Counted(uint256 indexed value)"])
const topic: Hash = toEventSelector("Counted(uint256)")

/** Emits `Counted` with the first word of its data. */
const emitter: Hex = (() => {
  // PUSH32 topic, PUSH1 0 CALLDATALOAD, SWAP1, PUSH1 0 PUSH1 0 LOG2, STOP
  const runtime = `6000357f${topic.slice(2)}60006000a200`
  const length = runtime.length / 2
  return `0x60${length.toString(16).padStart(2, "0")}600c60003960${
    length.toString(16).padStart(2, "0")
  }6000f3${runtime}`
})()

const sources = ["socket", "polling"] as const

/** A node behind a listener that goes away with all of its connections, and comes back. */
const behindListener = Effect.fnUntraced(function*(node: string) {
  const { hostname, port } = new URL(node)
  const open = new Set<Net.Socket>()
  const server = Net.createServer((socket) => {
    const other = Net.connect(Number(port), hostname)
    for (const [from, to] of [[socket, other], [other, socket]] as const) {
      open.add(from)
      from.on("error", () => to.destroy())
      from.on("close", () => {
        open.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  const listen = (at: number) =>
    Effect.callback<number>((resume) => {
      server.listen(at, "127.0.0.1", () => {
        const address = server.address()
        resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
      })
    })
  const stop = Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void))
    for (const socket of open) socket.destroy()
  })
  const at = yield* listen(0)
  yield* Effect.addFinalizer(() => server.listening ? stop : Effect.void)
  return { url: `http://127.0.0.1:${at}`, stop, start: Effect.asVoid(listen(at)) }
})

const connected = Effect.fnUntraced(function*(source: typeof sources[number]) {
  const node = yield* anvil
  const listener = yield* behindListener(node.url)
  const { url } = yield* gateway({
    TRIGATE_TRADING_NODE_URL: listener.url,
    TRIGATE_LAYER2_URL: listener.url,
    TRIGATE_LAYER2_RPS: "1000",
    ...(source === "socket" ? { TRIGATE_LAYER2_WS_URL: listener.url.replace("http", "ws") } : {})
  })
  const account = privateKeyToAccount(rich.privateKey)
  const direct = createWalletClient({ account, chain: foundry, transport: http(node.url) })
  const deployed = yield* Effect.promise(() => direct.deployContract({ abi: [], bytecode: emitter }))
  const reader = createPublicClient({ chain: foundry, transport: http(node.url) })
  const { contractAddress } = yield* Effect.promise(() => reader.waitForTransactionReceipt({ hash: deployed }))
  if (contractAddress === null || contractAddress === undefined) throw new Error("no contract")
  const count = (value: number) =>
    Effect.promise(() =>
      direct.sendTransaction({ to: contractAddress, data: `0x${value.toString(16).padStart(64, "0")}`, gas: 100_000n })
    )
  /** The node restarts, and counts while the gateway does not reach it. */
  const countUnreached = (values: ReadonlyArray<number>) =>
    Effect.gen(function*() {
      yield* listener.stop
      yield* Effect.forEach(values, count)
      yield* listener.start
    })
  const socket = `${url.replace("http", "ws")}/l2`
  // a subscription that was made before the gateway knows the head begins with a later one
  const followed = yield* openSocket(socket)
  followed.send(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads",{"fromBlock":"latest"}]}`)
  yield* Effect.promise(() => followed.until((frames) => frames.length >= 2))
  return {
    node,
    listener,
    reader,
    count,
    countUnreached,
    address: contractAddress,
    http: `${url}/l2`,
    socket
  }
})

/** A member of a JSON text or value. */
const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>(
    (each, name) => JsonParts.at(each, String(name)),
    typeof value === "string" ? JSON.parse(value) : value
  )

/** Values that come one by one, and waiting for a number of them. */
const collector = <A>() => {
  const values: Array<A> = []
  let wake = () => {}
  return {
    values,
    add: (value: A) => {
      values.push(value)
      wake()
    },
    until: (count: number, isEnough: (values: ReadonlyArray<A>) => boolean = () => true) =>
      Effect.promise(async () => {
        while (values.length < count || !isEnough(values)) {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
        return values
      })
  }
}

describe.skipIf(!canRun)("subscriptions over a node", () => {
  for (const source of sample("sources of a node's blocks", sources, 1)) {
    it.live(`viem watches blocks and events through a restart of the node (${source})`, () =>
      Effect.gen(function*() {
        const { address, count, countUnreached, http: url, socket } = yield* connected(source)
        const client = createPublicClient({
          chain: foundry,
          transport: fallback([webSocket(socket), http(url)])
        })
        const blocks = collector<bigint | null>()
        const events = collector<string | undefined>()
        const first = yield* Effect.promise(() => client.getBlockNumber())
        const ends = [
          client.watchBlocks({ onBlock: ({ number }) => blocks.add(number) }),
          client.watchContractEvent({
            address,
            abi,
            eventName: "Counted",
            onLogs: (logs) => logs.forEach(({ topics }) => events.add(topics[1]))
          })
        ]
        yield* Effect.promise(() => client.getChainId())
        yield* count(7)
        yield* events.until(1)
        yield* countUnreached([8, 9])
        yield* count(10)
        assert.deepStrictEqual((yield* events.until(4)).map(Number), [7, 8, 9, 10])
        // viem reads each block anew, and the reads may overtake each other
        assert.deepStrictEqual(
          (yield* blocks.until(4)).map(Number).toSorted((one, other) => one - other),
          Array.from({ length: 4 }, (_, index) => Number(first) + index + 1)
        )
        for (const end of ends) end()
      }))

    for (const way of ["a WebSocket", "polls and filters"] as const) {
      it.live(`wagmi watches blocks and events by ${way} through a restart of the node (${source})`, () =>
        Effect.gen(function*() {
          const { address, count, countUnreached, http: url, reader, socket } = yield* connected(source)
          const polls = collector<string>()
          const polling = http(url, {
            onFetchRequest: async (request) => {
              const body = await request.clone().text()
              if (body.includes("eth_getFilterChanges")) polls.add(body)
            }
          })
          const config = createConfig({
            chains: [foundry],
            transports: { [foundry.id]: way === "a WebSocket" ? webSocket(socket) : polling },
            pollingInterval: 100
          })
          const blocks = collector<number>()
          const events = collector<number>()
          const first = Number(yield* Effect.promise(() => reader.getBlockNumber()))
          const ends = [
            watchBlocks(config, { emitMissed: true, onBlock: ({ number }) => blocks.add(Number(number)) }),
            watchContractEvent(config, {
              address,
              abi,
              eventName: "Counted",
              onLogs: (logs) => logs.forEach(({ topics }) => events.add(Number(topics[1])))
            })
          ]
          yield* Effect.addFinalizer(() => Effect.sync(() => ends.forEach((end) => end())))
          // the filter is there once it is polled, a subscription once a later call has returned
          yield* way === "a WebSocket"
            ? Effect.promise(() => config.getClient().request({ method: "eth_chainId" }))
            : polls.until(1)
          yield* count(1)
          yield* events.until(1)
          yield* blocks.until(1)
          yield* countUnreached([2, 3])
          yield* count(4)
          assert.deepStrictEqual(yield* events.until(4), [1, 2, 3, 4])
          const expected = [1, 2, 3, 4].map((count) => first + count)
          const seen = yield* blocks.until(4, (values) => expected.every((number) => values.includes(number)))
          // it reads each block anew, and the reads may overtake each other; a poll begins with the newest block
          assert.deepStrictEqual(
            seen.filter((number) => number > first).toSorted((one, other) => one - other),
            expected
          )
        }))
    }

    it.live(`ethers and web3 hear of blocks and logs through a restart of the node (${source})`, () =>
      Effect.gen(function*() {
        const { address, count, countUnreached, socket } = yield* connected(source)
        const provider = new WebSocketProvider(socket)
        yield* Effect.addFinalizer(() => Effect.promise(() => provider.destroy()))
        const web3 = new Web3(socket)
        yield* Effect.addFinalizer(() => Effect.sync(() => web3.currentProvider?.disconnect()))
        const blocks = collector<number>()
        const logs = collector<string>()
        const heads = collector<number>()
        const events = collector<string>()
        yield* Effect.promise(() => provider.on("block", (number: number) => blocks.add(number)))
        yield* Effect.promise(() =>
          provider.on(
            { address },
            ({ topics }: { readonly topics: ReadonlyArray<string> }) => logs.add(String(topics[1]))
          )
        )
        const subscribed = yield* Effect.promise(() => web3.eth.subscribe("newBlockHeaders"))
        subscribed.on("data", ({ number }) => heads.add(Number(number)))
        const heard = yield* Effect.promise(() => web3.eth.subscribe("logs", { address, topics: [topic] }))
        heard.on("data", (log) => events.add(typeof log === "object" && "topics" in log ? String(log.topics?.[1]) : ""))
        // ethers sends its subscriptions in the background: a call after them is answered after them
        yield* Effect.promise(() => provider.getBlockNumber())
        yield* count(1)
        yield* logs.until(1)
        yield* countUnreached([2, 3])
        yield* count(4)
        assert.deepStrictEqual((yield* logs.until(4)).map(Number), [1, 2, 3, 4])
        assert.deepStrictEqual((yield* events.until(4)).map(Number), [1, 2, 3, 4])
        assert.deepStrictEqual(yield* blocks.until(4), yield* heads.until(4))
      }))

    it.live(`heads and logs are whole after the node was away (${source})`, () =>
      Effect.gen(function*() {
        const { address, count, listener, socket } = yield* connected(source)
        const heads = yield* openSocket(socket)
        const logs = yield* openSocket(socket)
        heads.send(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}`)
        logs.send(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["logs",{"address":"${address}"}]}`)
        yield* Effect.promise(() => Promise.all([heads.next(), logs.next()]))
        yield* count(1)
        yield* Effect.promise(() => Promise.all([heads.next(), logs.next()]))
        yield* listener.stop
        yield* count(2)
        yield* count(3)
        yield* listener.start
        yield* count(4)
        const results = (frames: typeof heads.frames) => frames.slice(1).map(({ text }) => at(text, "params", "result"))
        yield* Effect.promise(() => logs.until((frames) => frames.length >= 5))
        yield* Effect.promise(() => heads.until((frames) => frames.length >= 5))
        assert.deepStrictEqual(results(logs.frames).map((log) => Number(at(log, "topics", 1))), [1, 2, 3, 4])
        const numbers = results(heads.frames).map((head) => Number(at(head, "number")))
        assert.deepStrictEqual(numbers, numbers.map((_, index) => (numbers[0] ?? 0) + index))
      }))

    it.live(`a reorganisation takes logs back before it gives those of the new branch (${source})`, () =>
      Effect.gen(function*() {
        const { address, count, node, socket } = yield* connected(source)
        const raw = yield* openSocket(socket)
        raw.send(`{"jsonrpc":"2.0","id":null,"method":"net_version","params":[]}`)
        assert.strictEqual(
          (yield* Effect.promise(() => raw.next())).text,
          `{"jsonrpc":"2.0","id":null,"result":"31337"}`
        )
        raw.send(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads",{}]}`)
        const heads = String(at((yield* Effect.promise(() => raw.next())).text, "result"))
        assert.match(heads, /^0x[0-9a-f]{32}$/u)
        yield* count(1)
        yield* Effect.promise(() => raw.next())
        raw.send(`{"jsonrpc":"2.0","id":2,"method":"eth_unsubscribe","params":["${heads}"]}`)
        assert.strictEqual((yield* Effect.promise(() => raw.next())).text, `{"jsonrpc":"2.0","id":2,"result":true}`)
        raw.send(`{"jsonrpc":"2.0","id":3,"method":"eth_subscribe","params":["logs",{"address":"${address}"}]}`)
        yield* Effect.promise(() => raw.next())
        yield* count(5)
        const read = Effect.map(Effect.promise(() => raw.next()), ({ text }) => {
          const log = at(text, "params", "result")
          return `${at(log, "removed") === true ? "-" : "+"}${Number(at(log, "topics", 1))}`
        })
        assert.strictEqual(yield* read, "+5")
        yield* post(node.url, `{"jsonrpc":"2.0","id":1,"method":"anvil_reorg","params":[1,[]]}`)
        yield* count(6)
        assert.deepStrictEqual([yield* read, yield* read], ["-5", "+6"])
      }))
  }

  it.live("stay open while the node hangs", () =>
    Effect.gen(function*() {
      const { count, node, socket } = yield* connected("socket")
      const provider = new WebSocketProvider(socket)
      yield* Effect.addFinalizer(() => Effect.promise(() => provider.destroy()))
      const blocks = collector<number>()
      yield* Effect.promise(() => provider.on("block", (number: number) => blocks.add(number)))
      yield* Effect.promise(() => provider.getBlockNumber())
      yield* count(1)
      yield* blocks.until(1)
      yield* node.pause
      yield* node.goOn
      yield* count(2)
      yield* blocks.until(2)
      assert.strictEqual(provider.websocket.readyState, 1)
    }))
})
