/**
 * Upstreams that do what they like: a venue with a busy account, an EVM node with 1000 logs in each block, one whose headers have
 * 3 MiB, and a token chain whose transactions expand. `POST /drop` closes all sockets of the venue.
 */
import { Address, beginCell, Cell } from "@ton/core"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as http from "node:http"
import { WebSocket, WebSocketServer } from "ws"

const mebibyte = 1024 * 1024

const hex = (value: number, bytes = 0): string => `0x${value.toString(16).padStart(2 * bytes, "0")}`

const blockHash = (number: number): string => hex(number + 1, 32)

const startedAt = performance.now()

/** The newest block: one a second. */
const newest = (): number => 1000 + Math.floor((performance.now() - startedAt) / 1000)

const block = (number: number, extra: number) => ({
  number: hex(number),
  hash: blockHash(number),
  parentHash: blockHash(number - 1),
  timestamp: hex(1_790_000_000 + number),
  logsBloom: `0x${"ff".repeat(256)}`,
  transactions: [],
  extraData: `0x${"ab".repeat(extra)}`
})

const logsIn = (number: number) =>
  Array.from({ length: 1000 }, (_, index) => ({
    address: hex(index, 20),
    topics: [],
    data: "0x",
    blockNumber: hex(number),
    blockHash: blockHash(number),
    transactionHash: hex(index, 32),
    transactionIndex: "0x0",
    logIndex: hex(index),
    removed: false
  }))

const callNode = (path: string, method: string, [first]: ReadonlyArray<unknown>): unknown => {
  const extra = path.startsWith("/lying") ? 1.5 * mebibyte : 32
  switch (method) {
    case "eth_chainId":
      return "0x3e7"
    case "eth_blockNumber":
      return hex(newest())
    case "eth_getBlockByNumber":
      return block(typeof first === "string" && first.startsWith("0x") ? Number(first) : newest(), extra)
    case "eth_getBlockByHash":
      return block(Number(first) - 1, extra)
    case "eth_getLogs":
      return logsIn(Number(JsonParts.at(first, "fromBlock") ?? Number(JsonParts.at(first, "blockHash")) - 1))
    default:
      return null
  }
}

const cells = (levels: number, leaf: Cell): Cell =>
  levels === 0 ? leaf : cells(levels - 1, beginCell().storeUint(0, 2).storeRef(leaf).storeRef(leaf).endCell())

/** A transaction whose received message has a dictionary of 2^200 entries. */
const expanding = (): string => {
  const hash = "a".repeat(64)
  const address = Address.parseRaw(`0:${hash}`)
  const libraries = cells(200, beginCell().storeUint(0, 2).endCell())
  const received = beginCell().storeUint(0, 4).storeAddress(address).storeAddress(address)
    .storeCoins(1).storeMaybeRef(null).storeCoins(0).storeCoins(0).storeUint(1, 96)
    .storeBit(1).storeBit(0).storeUint(0, 4).storeMaybeRef(libraries).storeBit(1).storeRef(Cell.EMPTY).endCell()
  return beginCell().storeUint(7, 4).storeUint(BigInt(`0x${hash}`), 256).storeUint(2, 64).storeUint(0, 256)
    .storeUint(1, 64).storeUint(1_760_000_000, 32).storeUint(0, 15).storeUint(0b1010, 4)
    .storeRef(beginCell().storeBit(1).storeRef(received).storeMaybeRef(null).endCell())
    .storeCoins(1).storeMaybeRef(null)
    .storeRef(beginCell().storeUint(0x72, 8).storeUint(0, 256).storeUint(0, 256).endCell())
    .storeRef(beginCell().storeUint(0, 4).storeUint(0, 3).storeUint(0, 3).storeUint(0, 4).endCell())
    .endCell().toBoc().toString("base64")
}

const transaction = { data: expanding() }

const lists: Readonly<Record<string, string | undefined>> = {
  meta:
    `{"universe":[{"szDecimals":5,"name":"BTC","maxLeverage":40,"marginTableId":56},{"szDecimals":4,"name":"ETH","maxLeverage":25,"marginTableId":55}],"marginTables":[],"collateralToken":0}`,
  spotMeta: `{"universe":[],"tokens":[]}`,
  outcomeMeta: `{"outcomes":[],"questions":[]}`,
  perpDexs: "[null]",
  allMids: `{"BTC":"1.0","ETH":"1.0"}`
}

/** The members in which snapshots list their rows. */
const snapshots: Readonly<Record<string, string | undefined>> = {
  userFills: "fills",
  userFundings: "fundings",
  userNonFundingLedgerUpdates: "nonFundingLedgerUpdates",
  userTwapSliceFills: "twapSliceFills"
}

const answer = (path: string, text: string): string => {
  if (path.startsWith("/info")) return lists[String(JsonParts.value(text, "type"))] ?? "[]"
  if (path.startsWith("/ton")) return JSON.stringify({ ok: true, jsonrpc: "2.0", id: 1, result: [transaction] })
  const one = (call: unknown) => {
    const params = JsonParts.at(call, "params")
    const result = callNode(path, String(JsonParts.at(call, "method")), Array.isArray(params) ? params : [])
    return { jsonrpc: "2.0", id: JsonParts.at(call, "id"), result }
  }
  const calls = JsonParts.value(text)
  return JSON.stringify(Array.isArray(calls) ? calls.map(one) : one(calls))
}

const server = http.createServer((request, response) => {
  const path = request.url ?? ""
  if (path === "/drop") { for (const socket of sockets.clients) socket.terminate() }
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    response.setHeader("content-type", "application/json")
    response.end(path === "/drop" ? "null" : answer(path, Buffer.concat(chunks).toString("utf8")))
  })
})

const sockets = new WebSocketServer({ server, perMessageDeflate: false })
const busy = new Set<{ readonly socket: WebSocket; readonly user: string }>()
sockets.on("connection", (socket) => {
  socket.on("message", (data) => {
    const text = Buffer.isBuffer(data) ? data.toString("utf8") : ""
    const method = JsonParts.value(text, "method")
    if (method === "ping") return socket.send(`{"channel":"pong"}`)
    const subscription = JsonParts.value(text, "subscription")
    socket.send(JSON.stringify({ channel: "subscriptionResponse", data: { method, subscription } }))
    const user = JsonParts.at(subscription, "user")
    const type = String(JsonParts.at(subscription, "type"))
    const rows = snapshots[type]
    if (method !== "subscribe" || rows === undefined) return
    socket.send(JSON.stringify({ channel: type, data: { isSnapshot: true, user, [rows]: [] } }))
    if (type === "userFills" && typeof user === "string" && user.startsWith("0xaa")) busy.add({ socket, user })
  })
})

let count = 0
setInterval(() => {
  for (const each of busy) if (each.socket.readyState !== WebSocket.OPEN) busy.delete(each)
  for (const { socket, user } of busy) {
    // a busy account: 6000 fills a second
    const fills = Array.from({ length: 600 }, () => ({
      coin: "BTC",
      px: "1.0",
      sz: "1.0",
      side: "B",
      time: 1_790_000_000_000 + ++count,
      startPosition: "0.0",
      dir: "Open Long",
      closedPnl: "0.0",
      hash: hex(count, 32),
      oid: count,
      crossed: true,
      fee: "0.0",
      tid: count,
      feeToken: "USDC"
    }))
    socket.send(JSON.stringify({ channel: "userFills", data: { user, fills } }))
  }
}, 100)

server.listen(0, "127.0.0.1", () => {
  const address = server.address()
  console.log(`listens on http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`)
})
