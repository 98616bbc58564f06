/**
 * The venue's own Python library where Python has it; and what its `WebsocketManager` sends, by hand: subscriptions are
 * printed by `json.dumps` once the socket is open, and a ping every 50 seconds.
 */
import { spawn, spawnSync } from "node:child_process"
import { TestSocket } from "../socket.ts"
import { acts, begin, type Client, last, user } from "./play.ts"

const found = spawnSync("python3", ["-c", "import websocket, hyperliquid.info"], { encoding: "utf8" })

/** Why the library cannot be run here; `undefined` where it can. */
export const missing = found.error?.message ?? (found.status === 0 ? undefined : found.stderr.trim().split("\n").at(-1))

/** The subscriptions that the library offers and the venue takes. */
const subscriptions = [
  { type: "trades", coin: "BTC" },
  { type: "allMids" },
  { type: "l2Book", coin: "BTC" },
  { type: "bbo", coin: "BTC" },
  { type: "candle", coin: "BTC", interval: "1m" },
  { type: "activeAssetCtx", coin: "BTC" },
  { type: "activeAssetCtx", coin: "@107" },
  { type: "activeAssetData", user, coin: "BTC" },
  { type: "userEvents", user },
  { type: "userFills", user },
  { type: "orderUpdates", user },
  { type: "userFundings", user },
  { type: "userNonFundingLedgerUpdates", user }
]

/** One subscription after another, each once the venue has the one before: then first frames come in one order. */
const program = `
import json, sys
from hyperliquid.info import Info
info = Info(sys.argv[1])
print(json.dumps(["ready", None]), flush=True)
for line in sys.stdin:
    subscription = json.loads(line)
    if subscription is None:
        break
    name = json.dumps(subscription)
    info.subscribe(subscription, lambda message, name=name: print(json.dumps([name, message]), flush=True))
info.disconnect_websocket()
`

const keyOf = (subscription: Readonly<Record<string, string>>): string => {
  const { type } = subscription
  const defaults = type === "allMids"
    ? { dex: "" }
    : type === "l2Book"
    ? { nSigFigs: null, mantissa: null, fast: false }
    : type === "userFills"
    ? { aggregateByTime: false }
    : {}
  return JSON.stringify({ ...subscription, ...defaults })
}

const sentinel = { type: "trades", coin: "SOL" }

/** A text as Python's \`json.dumps\` prints it. */
const dumps = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/(?<=["}]),(?=")/gu, ", ").replaceAll(`":`, `": `)

export const pythonLibrary: Client = async (baseUrl, venue, at) => {
  await begin(venue, at)
  const python = spawn("python3", ["-c", program, baseUrl], { stdio: "pipe" })
  const lines: Array<readonly [string, unknown]> = []
  let rest = ""
  let printed = ""
  let wake = (): void => {}
  const ended = Promise.withResolvers<never>()
  ended.promise.catch(() => {})
  python.on("close", (code) => ended.reject(new Error(`Python ended with ${code}:\n${printed}`)))
  python.stderr.on("data", (chunk: Buffer) => (printed += chunk.toString("utf8")))
  python.stdout.on("data", (chunk: Buffer) => {
    const [...parts] = (rest + chunk.toString("utf8")).split("\n")
    rest = parts.pop() ?? ""
    for (const part of parts) {
      // what it prints by itself is a complaint
      const line: unknown = part.startsWith("[") ? JSON.parse(part) : ["complaint", part]
      if (Array.isArray(line)) lines.push([String(line[0]), line[1]])
    }
    wake()
  })
  const until = async (isMet: () => boolean): Promise<void> => {
    if (isMet()) return
    await Promise.race([new Promise<void>((resolve) => (wake = resolve)), ended.promise])
    await until(isMet)
  }
  await until(() => lines.length > 0)
  for (const subscription of [...subscriptions, sentinel]) {
    python.stdin.write(`${JSON.stringify(subscription)}\n`)
    await venue.run({ until: "subscribed", key: keyOf(subscription), count: 1 })
  }
  const name = dumps(sentinel)
  const before = (): number => lines.filter(([what]) => what === name).length
  const had = before()
  await venue.run(...acts, last)
  await until(() => before() > had && JSON.stringify(lines.at(-1)).includes("SOL"))
  python.removeAllListeners("close")
  const closed = new Promise((resolve) => python.on("close", resolve))
  python.stdin.end("null\n")
  await closed
  return lines
}

/** The frames of the library, sent by hand. */
export const pythonFrames: Client = async (baseUrl, venue, at) => {
  await begin(venue, at)
  const socket = new TestSocket(`${baseUrl}/ws`)
  await socket.opened
  for (const subscription of [...subscriptions, sentinel]) {
    socket.send(dumps({ method: "subscribe", subscription }))
    await venue.run({ until: "subscribed", key: keyOf(subscription), count: 1 })
  }
  socket.send(dumps({ method: "ping" }))
  await socket.until((frames) => frames.some(({ channel }) => channel === "pong"), "the pong")
  const had = socket.of("trades").length
  await venue.run(...acts, last)
  await socket.until((frames) => {
    const trades = frames.filter(({ channel }) => channel === "trades")
    return trades.length > had && trades.at(-1)?.text.includes("SOL") === true
  }, "the last trade")
  socket.raw.terminate()
  return socket.frames.map(({ channel, text }) => [channel, text] as const)
}
