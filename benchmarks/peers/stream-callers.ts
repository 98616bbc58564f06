/**
 * A venue, an EVM node and the callers of a relay in front of them, in one process: how long a frame took is then the difference of two times
 * of one clock. `/connect`, `/run`, `/storm` and `/close` move it.
 *
 * The callers speak WebSocket over plain sockets and look at no more of a frame than its length and the time that the venue
 * wrote into it, so that the relay is what is measured.
 */
import * as Schema from "effect/Schema"
import * as crypto from "node:crypto"
import * as http from "node:http"
import * as net from "node:net"
import { type WebSocket, WebSocketServer } from "ws"
import { info } from "../../test/streams/venue/rest.ts"
import { keyOf, type Normal, read } from "../../test/streams/venue/subscriptions.ts"
import { World } from "../../test/streams/venue/world.ts"
import { percentile } from "../harness/statistics.ts"
import {
  type Connected,
  ConnectRequest,
  MineRequest,
  type MineResult,
  RunRequest,
  type RunResult,
  StormRequest,
  type StormResult
} from "../harness/streams.ts"
import * as EvmNode from "./evm-node.ts"
import { listen } from "./http.ts"

const world = new World(1, () => {})

// --- the venue

const subscribers = new Map<string, Set<WebSocket>>()

const answer = (socket: WebSocket, text: string): void => {
  const frame: unknown = JSON.parse(text)
  if (EvmNode.answer(socket, frame)) return
  if (typeof frame !== "object" || frame === null || !("method" in frame)) return
  if (frame.method === "ping") return socket.send(`{"channel":"pong"}`)
  const reading = read("subscription" in frame ? frame.subscription : undefined, world.listed)
  if (reading.kind !== "normal") return socket.send(`{"channel":"error","data":"Invalid subscription"}`)
  const { subscription } = reading
  const key = keyOf(subscription)
  const set = subscribers.get(key) ?? new Set()
  subscribers.set(key, set)
  if (frame.method === "subscribe") set.add(socket)
  else set.delete(socket)
  const data = JSON.stringify({ method: frame.method, subscription })
  socket.send(`{"channel":"subscriptionResponse","data":${data}}`)
  if (frame.method === "subscribe" && subscription.type !== "trades") socket.send(frameOf(subscription))
}

const micros = (): string => String(Math.round(performance.now() * 1000)).padStart(16, "0")

let lastTid = 0
let levels = ""

/** A frame with the time in microseconds at the place of a size. */
const frameOf = ({ coin, type }: Normal): string => {
  const time = Date.now()
  switch (type) {
    case "trades": {
      lastTid += 1
      const hash = `0x${lastTid.toString(16).padStart(64, "0")}`
      const users = `["0x${"1".repeat(40)}","0x${"2".repeat(40)}"]`
      return `{"channel":"trades","data":[{"coin":"${coin}","side":"B","px":"84143.0","sz":"${micros()}","time":${time},` +
        `"hash":"${hash}","tid":${lastTid},"users":${users}}]}`
    }
    case "l2Book":
      levels ||= Array.from({ length: 19 }, (_, index) => `{"px":"${84142 - index}.0","sz":"10.25923","n":36}`).join(
        ","
      )
      return `{"channel":"l2Book","data":{"coin":"${coin}","time":${time},"levels":[[{"px":"84143.0","sz":"${micros()}",` +
        `"n":36},${levels}],[{"px":"84144.0","sz":"1.0","n":1},${levels}]]}}`
    default:
      return `{"channel":"bbo","data":{"coin":"${coin}","time":${time},"bbo":[{"px":"84143.0","sz":"${micros()}","n":36},` +
        `{"px":"84144.0","sz":"50.66422","n":18}]}}`
  }
}

// --- the callers

interface Caller {
  readonly socket: net.Socket
  rest: Buffer
  isOpen: boolean
  /** Frames with a time in them. */
  frames: number
}

let callers: ReadonlyArray<Caller> = []
let runFrom = 0
let delivered = 0
let bytes = 0
const latencies = new Float64Array(4_000_000)
let sampled = 0
let onDelivery = (): void => {}

const stampMark = Buffer.from(`"sz":"`)
const ackMark = "s".charCodeAt(0)
const quote = Buffer.from(`{"channel":"`).length

const maskedText = (text: string): Buffer => {
  const payload = Buffer.from(text)
  const short = payload.length < 126
  const head = Buffer.alloc(short ? 6 : 8)
  head[0] = 0x81
  if (short) head[1] = 0x80 | payload.length
  else {
    head[1] = 0x80 | 126
    head.writeUInt16BE(payload.length, 2)
  }
  // a mask of zeros leaves the payload as it is
  return Buffer.concat([head, payload])
}

const digitsAt = (buffer: Buffer, at: number): number => {
  let value = 0
  for (let index = at; index < at + 16; index++) value = value * 10 + (buffer[index] ?? 48) - 48
  return value
}

const onText = (caller: Caller, buffer: Buffer, from: number, to: number): void => {
  // an acknowledgement, an error or a pong
  if (buffer[from + quote] === ackMark) return
  const at = buffer.indexOf(stampMark, from)
  if (at < 0 || at >= to) return
  caller.frames += 1
  const emittedAt = digitsAt(buffer, at + stampMark.length) / 1000
  // what was emitted before the run came late
  if (emittedAt < runFrom) return
  delivered += 1
  bytes += to - from
  if (sampled < latencies.length) {
    latencies[sampled] = performance.now() - emittedAt
    sampled += 1
  }
  onDelivery()
}

const onBytes = (caller: Caller, chunk: Buffer): void => {
  const buffer = caller.rest.length === 0 ? chunk : Buffer.concat([caller.rest, chunk])
  let offset = 0
  while (offset + 2 <= buffer.length) {
    const opcode = (buffer[offset] ?? 0) & 0xf
    let length = (buffer[offset + 1] ?? 0) & 0x7f
    let head = 2
    if (length === 126) {
      if (offset + 4 > buffer.length) break
      length = buffer.readUInt16BE(offset + 2)
      head = 4
    } else if (length === 127) {
      if (offset + 10 > buffer.length) break
      length = Number(buffer.readBigUInt64BE(offset + 2))
      head = 10
    }
    const end = offset + head + length
    if (end > buffer.length) break
    if (opcode === 1) onText(caller, buffer, offset + head, end)
    // a ping is answered, as stock clients do
    else if (opcode === 9) {
      const pong = Buffer.concat([Buffer.from([0x8a, 0x80 | length, 0, 0, 0, 0]), buffer.subarray(offset + head, end)])
      caller.socket.write(pong)
    } else if (opcode === 8) {
      const code = length >= 2 ? buffer.readUInt16BE(offset + head) : 1005
      console.error(`a caller was closed with ${code} ${buffer.toString("utf8", offset + head + 2, end)}`)
    }
    offset = end
  }
  caller.rest = offset === buffer.length ? Buffer.alloc(0) : Buffer.from(buffer.subarray(offset))
}

const open = (url: URL, path: string, frames: ReadonlyArray<Buffer>): Promise<Caller> =>
  new Promise((resolve, reject) => {
    const socket = net.connect(Number(url.port), url.hostname)
    socket.setNoDelay(true)
    const caller: Caller = { socket, rest: Buffer.alloc(0), isOpen: true, frames: 0 }
    let head = Buffer.alloc(0)
    const onHead = (chunk: Buffer): void => {
      head = Buffer.concat([head, chunk])
      const end = head.indexOf("\r\n\r\n")
      if (end < 0) return
      socket.off("data", onHead)
      if (!head.toString("latin1", 0, 20).startsWith("HTTP/1.1 101")) {
        reject(new Error(`refused: ${head.toString("utf8").slice(0, 400)}`))
        return
      }
      socket.on("data", (data: Buffer) => onBytes(caller, data))
      if (head.length > end + 4) onBytes(caller, Buffer.from(head.subarray(end + 4)))
      if (frames.length > 0) socket.write(Buffer.concat(frames))
      resolve(caller)
    }
    socket.on("data", onHead)
    socket.on("connect", () =>
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
          `Sec-WebSocket-Key: ${crypto.randomBytes(16).toString("base64")}\r\nSec-WebSocket-Version: 13\r\n\r\n`
      ))
    socket.on("error", reject)
    socket.on("close", () => {
      caller.isOpen = false
      reject(new Error(`closed before the upgrade: ${head.toString("utf8").slice(0, 400)}`))
    })
  })

const subscribeFrame = (type: string, coin: string): Buffer =>
  maskedText(JSON.stringify(
    type === "newHeads" ? EvmNode.subscribeCall : { method: "subscribe", subscription: { type, coin } }
  ))

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** A subscription whose frames are emitted. */
interface Update {
  readonly sockets: () => Iterable<WebSocket>
  readonly frame: () => string
}

let subscribed: ReadonlyArray<Update> = []

const bookDefaults = { nSigFigs: null, mantissa: null, fast: false }

const updateOf = (type: string, coin: string): Update => {
  if (type === "newHeads") return { sockets: () => EvmNode.subscribers, frame: () => EvmNode.mine(micros) }
  const subscription = type === "l2Book" ? { type, coin, ...bookDefaults } : { type, coin }
  const key = keyOf(subscription)
  return { sockets: () => subscribers.get(key) ?? [], frame: () => frameOf(subscription) }
}

const closeAll = async (): Promise<void> => {
  const left = callers
  callers = []
  await Promise.all(left.map(({ isOpen, socket }) =>
    new Promise<void>((resolve) => {
      if (!isOpen) return resolve()
      socket.on("close", () => resolve())
      socket.destroy()
    })
  ))
}

const coinsOf = (count: number): ReadonlyArray<string> => Array.from({ length: count }, (_, index) => `C${index}`)

const connect = async ({ channel, coins, count, paths, url }: ConnectRequest): Promise<Connected> => {
  await closeAll()
  const target = new URL(url)
  const names = coinsOf(coins)
  const frames = names.map((coin) => subscribeFrame(channel, coin))
  const opened: Array<Caller> = []
  const pathOf = (index: number) => paths[index % paths.length] ?? "/ws"
  for (let from = 0; from < count; from += 100) {
    const size = Math.min(100, count - from)
    opened.push(
      ...await Promise.all(Array.from({ length: size }, (_, index) => open(target, pathOf(from + index), frames)))
    )
  }
  callers = opened
  subscribed = names.map((coin) => updateOf(channel, coin))
  // every caller is subscribed to everything once one more frame of each coin has come to it
  const started = performance.now()
  while (performance.now() - started < 30_000) {
    const marks = callers.map(({ frames }) => frames)
    for (const one of subscribed) emit(one)
    // as long as a busy machine may take for that many frames
    for (let waits = 0; waits < 50; waits++) {
      await pause(100)
      if (callers.every(({ frames }, index) => frames - (marks[index] ?? 0) >= coins)) return { sockets: count }
    }
  }
  throw new Error(`not every caller received every coin of ${url}`)
}

const emit = ({ frame, sockets }: Update): void => {
  const text = frame()
  for (const socket of sockets()) if (socket.readyState === socket.OPEN) socket.send(text)
}

/** Waits until so many deliveries have come, or no more do. */
const settled = async (expected: number): Promise<void> => {
  const before = delivered
  if (before >= expected) return
  await pause(300)
  if (delivered > before) await settled(expected)
}

/** Emits at a fixed rate, or as long as no more than a window of updates is under way. */
const run = async ({ perSecond, seconds, window = 1 }: RunRequest): Promise<RunResult> => {
  delivered = 0
  bytes = 0
  sampled = 0
  const fanOut = callers.length
  const started = performance.now()
  // the time in a frame is rounded
  runFrom = started - 0.001
  const end = started + seconds * 1000
  let emitted = 0
  const next = (): void => {
    const one = subscribed[emitted % subscribed.length]
    emitted += 1
    if (one !== undefined) emit(one)
  }
  const emitUpTo = (count: number): void => {
    for (let left = Math.floor(count) - emitted; left > 0; left--) next()
  }
  if (perSecond !== undefined) {
    for (let now = started; now < end; now = performance.now()) {
      emitUpTo((now - started) / 1000 * perSecond)
      await pause(1)
    }
  } else {
    const done = Promise.withResolvers<void>()
    const fill = (): void => {
      if (performance.now() >= end) return done.resolve()
      emitUpTo(delivered / fanOut + window)
    }
    onDelivery = () => {
      if (delivered % fanOut === 0) setImmediate(fill)
    }
    fill()
    await Promise.race([done.promise, pause(seconds * 1000 + 500)])
    onDelivery = () => {}
  }
  const measured = (performance.now() - started) / 1000
  const within = delivered
  // what is still under way has a while to come, which does not count
  await settled(emitted * fanOut)
  const sorted = latencies.subarray(0, sampled).toSorted()
  return {
    expected: emitted * fanOut,
    delivered,
    within,
    bytes,
    seconds: measured,
    p50Millis: percentile(sorted, 0.5),
    p99Millis: percentile(sorted, 0.99),
    open: callers.filter(({ isOpen }) => isOpen).length
  }
}

/** Lets all callers reconnect at once, and waits until each has received a frame. */
const storm = async ({ coins, channel, count, paths, url }: StormRequest): Promise<StormResult> => {
  await closeAll()
  await pause(500)
  const target = new URL(url)
  const frames = coinsOf(coins).map((coin) => subscribeFrame(channel, coin))
  subscribed = coinsOf(coins).map((coin) => updateOf(channel, coin))
  const probes: Array<number> = []
  const over = new AbortController()
  const probing = (async () => {
    while (!over.signal.aborted) {
      const asked = performance.now()
      const { status } = await fetch(`${url}/health/live`)
      if (status === 200) probes.push(performance.now() - asked)
      await pause(50)
    }
  })()
  const began = performance.now()
  const emitting = setInterval(() => {
    for (const one of subscribed) emit(one)
  }, 250)
  const opened = await Promise.all(
    Array.from({ length: count }, (_, index) => open(target, paths[index % paths.length] ?? "/ws", frames))
  )
  const connectedMillis = performance.now() - began
  while (opened.some((caller) => caller.frames < coins) && performance.now() - began < 60_000) await pause(10)
  const servedMillis = performance.now() - began
  clearInterval(emitting)
  over.abort()
  await probing
  callers = opened
  return {
    sockets: opened.filter((caller) => caller.frames >= coins).length,
    connectedMillis,
    servedMillis,
    slowestProbeMillis: Math.max(...probes),
    probes: probes.length
  }
}

/** Lets the EVM node find blocks at a rate. */
const mine = async ({ blocks, everyMillis }: MineRequest): Promise<MineResult> => {
  let polls = 0
  for (let block = 0; block < 2 * blocks; block++) {
    // the first half lets the gateway learn the rate
    if (block === blocks) polls = EvmNode.polls()
    EvmNode.mine(micros)
    await pause(everyMillis)
  }
  return { blocks, polls: EvmNode.polls() - polls }
}

// --- what moves it

const decodeConnect = Schema.decodeUnknownSync(Schema.fromJsonString(ConnectRequest))
const decodeRun = Schema.decodeUnknownSync(Schema.fromJsonString(RunRequest))
const decodeMine = Schema.decodeUnknownSync(Schema.fromJsonString(MineRequest))
const decodeStorm = Schema.decodeUnknownSync(Schema.fromJsonString(StormRequest))

const bodyOf = async (request: http.IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) if (chunk instanceof Buffer) chunks.push(chunk)
  return Buffer.concat(chunks).toString("utf8")
}

const serve = async (request: http.IncomingMessage): Promise<unknown> => {
  const text = await bodyOf(request)
  switch (request.url) {
    case "/info":
      return info(world, JSON.parse(text))?.body
    case "/node":
      return EvmNode.respond(text, micros)
    case "/mine":
      return mine(decodeMine(text))
    case "/connect":
      return connect(decodeConnect(text))
    case "/run":
      return run(decodeRun(text))
    case "/storm":
      return storm(decodeStorm(text))
    case "/close":
      await closeAll()
      return {}
    default:
      return null
  }
}

const server = http.createServer((request, response) => {
  response.setHeader("content-type", "application/json")
  serve(request).then(
    (result) => response.end(JSON.stringify(result ?? null)),
    (error: unknown) => response.writeHead(500).end(JSON.stringify(String(error)))
  )
})
// a run takes as long as it takes
server.requestTimeout = 0

const sockets = new WebSocketServer({ server, perMessageDeflate: false, path: "/ws" })
sockets.on("connection", (socket) => {
  socket.on("message", (data) => answer(socket, Buffer.isBuffer(data) ? data.toString("utf8") : ""))
  socket.on("close", () => {
    for (const set of subscribers.values()) set.delete(socket)
    EvmNode.subscribers.delete(socket)
  })
})

listen(server)
