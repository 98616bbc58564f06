/**
 * A gateway with default limits, while nodes that lie, clients that do not read, a busy account and long filters fill everything that
 * they can: its memory stays below the worst case that docs/limits.md states. It prints the memory, and the lag of the event loop.
 */
import { assert, describe, it } from "@effect/vitest"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import * as Http from "node:http"
import * as Net from "node:net"
import * as Path from "node:path"
import { WebSocket, WebSocketServer } from "ws"

const mebibyte = 1024 * 1024

const alice = `0x${"aa".repeat(20)}`

/** The stated worst case of a process with default settings, in bytes. */
const worstCase = 1536 * mebibyte

const hex = (value: number, bytes = 0): string => `0x${value.toString(16).padStart(2 * bytes, "0")}`

const blockHash = (number: number): string => hex(number + 1, 32)

const startedAt = performance.now()

/** The newest block: twenty in a second. */
const newest = (): number => 1000 + Math.floor((performance.now() - startedAt) / 50)

/** A header of almost the maximum size; every tenth one has 3 MiB. */
const block = (number: number) => ({
  number: hex(number),
  hash: blockHash(number),
  parentHash: blockHash(number - 1),
  timestamp: hex(1_790_000_000 + number),
  logsBloom: `0x${"ff".repeat(256)}`,
  transactions: [],
  extraData: `0x${"ab".repeat(number % 10 === 0 ? 1.5 * mebibyte : 7000)}`
})

const logsIn = (number: number) =>
  Array.from({ length: 200 }, (_, index) => ({
    address: hex(index % 50, 20),
    topics: [],
    data: `0x${"cd".repeat(500)}`,
    blockNumber: hex(number),
    blockHash: blockHash(number),
    transactionHash: hex(index, 32),
    transactionIndex: "0x0",
    logIndex: hex(index),
    removed: false
  }))

const long = `0x${"ee".repeat(7.5 * mebibyte)}`

const callNode = (method: string, params: ReadonlyArray<unknown>): unknown => {
  const [first] = params
  switch (method) {
    case "eth_chainId":
      return "0x3e7"
    case "eth_blockNumber":
      return hex(newest())
    case "eth_getBlockByNumber":
      return block(typeof first === "string" && first.startsWith("0x") ? Number(first) : newest())
    case "eth_getBlockByHash":
      return block(Number(first) - 1)
    case "eth_getLogs":
      return logsIn(newest())
    // 15 MiB, of which no client reads a byte
    case "eth_getCode":
    case "eth_call":
      return long
    default:
      return null
  }
}

const longAnswer = `{"jsonrpc":"2.0","id":1,"result":"${long}"}`

const answerCall = (call: unknown) => {
  const params = JsonParts.at(call, "params")
  return {
    jsonrpc: "2.0",
    id: JsonParts.at(call, "id"),
    result: callNode(String(JsonParts.at(call, "method")), Array.isArray(params) ? params : [])
  }
}

const answerNode = (text: string): string => {
  // the text is not encoded anew each time
  const id = /"method":"eth_call"/u.test(text) ? /"id":(?<id>\d+)/u.exec(text)?.groups?.["id"] : undefined
  if (id !== undefined && !text.startsWith("[")) return longAnswer.replace(`"id":1`, `"id":${id}`)
  const calls = JsonParts.value(text)
  return JSON.stringify(Array.isArray(calls) ? calls.map(answerCall) : answerCall(calls))
}

const fill = (index: number) => ({
  coin: "BTC",
  px: "1.0",
  sz: "1.0",
  side: "B",
  time: 1_790_000_000_000 + index,
  startPosition: "0.0",
  dir: "Open Long",
  closedPnl: "0.0",
  hash: hex(index, 32),
  oid: index,
  crossed: true,
  fee: "0.0",
  tid: index,
  feeToken: "USDC",
  padding: "p".repeat(2000)
})

const lists: Readonly<Record<string, string | undefined>> = {
  meta:
    `{"universe":[{"szDecimals":5,"name":"BTC","maxLeverage":40,"marginTableId":56}],"marginTables":[],"collateralToken":0}`,
  spotMeta: `{"universe":[],"tokens":[]}`,
  outcomeMeta: `{"outcomes":[],"questions":[]}`,
  perpDexs: "[null]",
  allMids: `{"BTC":"1.0"}`
}

const longList = `["${"m".repeat(7_900_000)}"]`

const answerInfo = (text: string): string => {
  const type = String(JsonParts.value(text, "type"))
  // the first dex has the empty name
  return (JsonParts.value(text, "dex") ?? "") === "" ? lists[type] ?? "[]" : longList
}

/** The members in which snapshots list their rows. */
const snapshots: Readonly<Record<string, string | undefined>> = {
  userFills: "fills",
  userFundings: "fundings",
  userNonFundingLedgerUpdates: "nonFundingLedgerUpdates",
  userTwapSliceFills: "twapSliceFills"
}

/** A venue whose account has 2000 fills of 2 KB a second, whose books have 100 KB, and whose lists have 8 MB. */
const startUpstream = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly stop: () => void }>((resume) => {
    const server = Http.createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8")
        const isNode = request.url !== "/info" && request.url !== "/exchange"
        response.setHeader("content-type", "application/json")
        response.end(isNode ? answerNode(text) : answerInfo(text))
      })
    })
    const sockets = new WebSocketServer({ server, perMessageDeflate: false })
    sockets.on("connection", (socket) => {
      socket.on("message", (data) => {
        const text = Buffer.isBuffer(data) ? data.toString("utf8") : ""
        const method = JsonParts.value(text, "method")
        if (method === "ping") return socket.send(`{"channel":"pong"}`)
        const subscription = JsonParts.value(text, "subscription")
        socket.send(JSON.stringify({ channel: "subscriptionResponse", data: { method, subscription } }))
        const type = String(JsonParts.at(subscription, "type"))
        if (type === "trades") tradeSockets.add(socket)
        if (type === "userFills") fillSockets.add(socket)
        const rows = snapshots[type]
        if (rows === undefined) return
        socket.send(JSON.stringify({ channel: type, data: { isSnapshot: true, user: alice, [rows]: [] } }))
      })
    })
    const tradeSockets = new Set<WebSocket>()
    const fillSockets = new Set<WebSocket>()
    let count = 0
    const timer = setInterval(() => {
      const fills = Array.from({ length: 200 }, () => fill(count++))
      for (const socket of fillSockets) {
        socket.send(JSON.stringify({ channel: "userFills", data: { user: alice, fills } }))
      }
      const trades = Array.from({ length: 1000 }, () => ({
        coin: "BTC",
        side: "A",
        px: "1.0",
        sz: "1.0",
        time: count,
        hash: hex(count++, 32),
        tid: count,
        users: [alice, alice]
      }))
      for (const socket of tradeSockets) socket.send(JSON.stringify({ channel: "trades", data: trades }))
    }, 100)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      resume(Effect.succeed({
        url: `http://127.0.0.1:${port}`,
        stop: () => {
          clearInterval(timer)
          for (const socket of sockets.clients) socket.terminate()
          server.closeAllConnections()
          server.close()
        }
      }))
    })
  }),
  ({ stop }) => Effect.sync(stop)
)

/** Sends a request from an address, and does not read the response. */
const sendUnread = (
  port: number,
  localAddress: string,
  path: string,
  body: string,
  length = body.length
): Net.Socket => {
  const socket = Net.connect({ port, host: "127.0.0.1", localAddress })
  socket.on("error", () => {})
  socket.pause()
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`
  )
  return socket
}

/** Opens a WebSocket from an address, sends messages, and never reads what comes. */
const openUnread = (url: string, localAddress: string, messages: ReadonlyArray<string>): WebSocket => {
  const socket = new WebSocket(url.replace(/^http/u, "ws"), { localAddress, perMessageDeflate: false })
  socket.on("error", () => {})
  socket.on("open", () => {
    socket.pause()
    for (const message of messages) socket.send(message)
  })
  return socket
}

const trades = JSON.stringify({ method: "subscribe", subscription: { type: "trades", coin: "BTC" } })

/** Subscribes to trades, and waits for the first of them: later subscriptions need no weight of the venue. */
const awaitTrades = (url: string) =>
  Effect.callback<WebSocket>((resume) => {
    const socket = new WebSocket(`${url.replace(/^http/u, "ws")}/ws`, { perMessageDeflate: false })
    socket.on("open", () => socket.send(trades))
    socket.on("message", (data) => {
      const text = Buffer.isBuffer(data) ? data.toString("utf8") : ""
      if (text.includes(`"channel":"error"`)) resume(Effect.die(text))
      if (text.includes(`"channel":"trades"`)) resume(Effect.succeed(socket))
    })
  })

const longFilter = (first: number) => ({
  address: Array.from({ length: 1000 }, (_, index) => hex(first * 1000 + index, 20))
})

const rpc = (method: string, ...params: ReadonlyArray<unknown>): string =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })

const callers = Array.from({ length: 12 }, (_, index) => `127.0.0.${index + 2}`)

/** The values of a gateway's metrics. */
const readMetrics = (url: string) =>
  Effect.promise(async () => {
    const began = performance.now()
    const text = await (await fetch(`${url}/metrics`)).text()
    const value = (name: string): number => {
      const lines = text.split("\n").filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
      return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0)
    }
    return { value, took: performance.now() - began }
  })

const shown = [
  "process_resident_memory_bytes",
  "nodejs_heap_size_used_bytes",
  "nodejs_external_memory_bytes",
  "trigate_request_body_bytes",
  "trigate_unread_answer_bytes",
  "trigate_stream_unread_bytes",
  "trigate_response_cache_bytes",
  "trigate_account_log_bytes",
  "trigate_evm_retained_bytes"
]

describe("the memory of a gateway with default limits", () => {
  it("is what the samples of deploy allow", () => {
    const samples = [
      ["systemd/trigate.service", /^MemoryMax=(?<mebibytes>\d+)M$/mu],
      ["compose/compose.yaml", /^ {2}gateway:$(?:\n(?: {4}.*)?)*?\n {4}mem_limit: (?<mebibytes>\d+)m$/mu],
      ["kubernetes/trigate.yaml", /limits: \{ memory: (?<mebibytes>\d+)Mi \}/u]
    ] as const
    const deploy = Path.join(import.meta.dirname, "../../../../deploy")
    const allowed = samples.map(([file, limit]) =>
      Number(limit.exec(Fs.readFileSync(Path.join(deploy, file), "utf8"))?.groups?.["mebibytes"]) * mebibyte
    )
    assert.deepStrictEqual(allowed, [worstCase, worstCase, worstCase])
  })

  it.live("stays below the stated worst case while everybody fills what they can", () =>
    Effect.gen(function*() {
      const upstream = yield* startUpstream
      const { ended, url } = yield* gatewayProcess({
        TRIGATE_TRADING_API_URL: upstream.url,
        TRIGATE_TRADING_NODE_URL: `${upstream.url}/node`,
        TRIGATE_WATCH_ACCOUNTS: alice,
        TRIGATE_RELAY_INFO: "on",
        TRIGATE_ACCESS_LOG: "off"
      })
      const port = Number(new URL(url).port)
      const sockets = new Set<Net.Socket | WebSocket>()
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          for (const socket of sockets) {
            if (socket instanceof WebSocket) socket.terminate()
            else socket.destroy()
          }
        })
      )
      sockets.add(yield* awaitTrades(url))
      const most = new Map<string, number>()
      let lagP99 = 0
      let lagMax = 0
      let slowest = 0
      const watch = readMetrics(url).pipe(
        Effect.map(({ took, value }) => {
          for (const name of shown) most.set(name, Math.max(most.get(name) ?? 0, value(name)))
          lagP99 = Math.max(lagP99, value("nodejs_eventloop_lag_p99_seconds"))
          lagMax = Math.max(lagMax, value("nodejs_eventloop_lag_max_seconds"))
          slowest = Math.max(slowest, took)
        }),
        Effect.delay("250 millis"),
        Effect.forever
      )
      yield* Effect.forkScoped(watch)
      const attack = Effect.sync(() => {
        for (const [index, caller] of callers.entries()) {
          // long filters of subscriptions, twenty on each socket, and of installed filters
          const subscriptions = Array.from({ length: 20 }, (_, at) =>
            rpc("eth_subscribe", "logs", longFilter(index * 20 + at)))
          sockets.add(openUnread(`${url}/evm`, caller, subscriptions))
          sockets.add(sendUnread(port, caller, "/evm", rpc("eth_newFilter", longFilter(index))))
          // streams that are not read
          for (let at = 0; at < 3; at++) {
            sockets.add(openUnread(`${url}/ws`, caller, [trades]))
          }
          // responses of 15 MiB that are not read, responses of 8 MB that are cached, bodies of 1 MiB that do not end
          const target = { to: hex(index, 20), data: hex(sockets.size, 4) }
          sockets.add(sendUnread(port, caller, "/evm", rpc("eth_call", target, "latest")))
          sockets.add(
            sendUnread(port, caller, "/info", JSON.stringify({ type: "meta", dex: `d${sockets.size % 200}` }))
          )
          sockets.add(sendUnread(port, caller, "/evm", `{"padding":"${"b".repeat(900_000)}`, mebibyte))
        }
      })
      yield* Effect.repeat(Effect.delay(attack, "1 second"), { times: 30 })
      const { value } = yield* readMetrics(url)
      console.log([
        ...[...most].map(([name, bytes]) =>
          `${name}: at most ${Math.round(bytes / mebibyte)} MiB`
        ),
        `lag of the event loop: p99 ${Math.round(lagP99 * 1000)} ms, at most ${Math.round(lagMax * 1000)} ms`,
        `metrics took at most ${Math.round(slowest)} ms`,
        `sockets: ${value("trigate_stream_sockets")}`
      ].join("\n"))
      const isRunning = yield* Effect.race(
        Effect.as(Effect.promise(() => ended), false),
        Effect.delay(Effect.succeed(true), "100 millis")
      )
      assert.isTrue(isRunning)
      assert.isAtMost(most.get("process_resident_memory_bytes") ?? 0, worstCase)
    }), 300_000)
})
