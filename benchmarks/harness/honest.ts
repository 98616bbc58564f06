/** What an honest caller of one gateway sees, and what the gateway says of itself meanwhile. */
import { WebSocket } from "ws"
import { pause } from "./processes.ts"
import { percentile } from "./statistics.ts"

export interface Seen {
  readonly p50Millis: number
  readonly p99Millis: number
  /** Requests and subscriptions that were refused or not answered. */
  readonly refused: number
  readonly sent: number
  /** The most by which the event loop was late, in milliseconds. */
  readonly lagMillis: number
  readonly residentMiB: number
  /** Bytes of streams that are not read, of logged events, of cached responses and of EVM chains. */
  readonly retainedMiB: number
}

interface Request {
  readonly path: string
  readonly body: string
}

const retained = [
  "trigate_stream_unread_bytes",
  "trigate_account_log_bytes",
  "trigate_response_cache_bytes",
  "trigate_evm_retained_bytes"
]

const readMetrics = async (url: string) => {
  const text = await (await fetch(`${url}/metrics`)).text()
  return (name: string): number =>
    text.split("\n").filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0)
}

/** Subscribes to a market on a new socket. Returns whether the subscription was accepted within 30 seconds. */
const subscribes = (url: string, coin: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = new WebSocket(`${url.replace(/^http/u, "ws")}/ws`, { perMessageDeflate: false })
    const end = (isAccepted: boolean) => {
      clearTimeout(timer)
      socket.terminate()
      resolve(isAccepted)
    }
    const timer = setTimeout(() => end(false), 30_000)
    socket.on("error", () => end(false))
    socket.on(
      "open",
      () => socket.send(JSON.stringify({ method: "subscribe", subscription: { type: "l2Book", coin } }))
    )
    socket.on("message", (data) => {
      const text = Buffer.isBuffer(data) ? data.toString("utf8") : ""
      if (text.includes(`"subscriptionResponse"`)) end(true)
      else if (text.includes(`"error"`)) end(false)
    })
  })

/** Sends requests at a fixed rate for some seconds, and subscribes once a second. */
export const observe = async (
  url: string,
  requests: ReadonlyArray<Request>,
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
  isStreaming: boolean
): Promise<Seen> => {
  const times: Array<number> = []
  const underWay = new Set<Promise<void>>()
  let refused = 0
  let sent = 0
  const keep = (work: Promise<void>): void => {
    const ended = work.finally(() => underWay.delete(ended))
    underWay.add(ended)
  }
  const count = async (asked: Promise<boolean>): Promise<void> => {
    sent++
    if (!(await asked.catch(() => false))) refused++
  }
  const timed = async (asked: () => Promise<boolean>): Promise<boolean> => {
    const began = performance.now()
    const isServed = await asked()
    times.push(performance.now() - began)
    return isServed
  }
  const ask = async ({ body, path }: Request): Promise<boolean> => {
    const headers = { "content-type": "application/json" }
    const response = await fetch(url + path, { method: "POST", headers, body, signal: AbortSignal.timeout(30_000) })
    const text = await response.text()
    return response.status === 200 && !text.includes(`"error"`)
  }
  const most = { lag: 0, resident: 0, retained: 0 }
  const measure = async (): Promise<void> => {
    const value = await readMetrics(url)
    most.lag = Math.max(most.lag, value("nodejs_eventloop_lag_max_seconds"))
    most.resident = Math.max(most.resident, value("process_resident_memory_bytes"))
    most.retained = Math.max(most.retained, retained.reduce((sum, name) => sum + value(name), 0))
  }
  const began = performance.now()
  const end = began + seconds * 1000
  let turn = 0
  let nextMetrics = began
  let nextSocket = began
  for (let next = began; next < end; next += 1000 / perSecond) {
    await pause(Math.max(0, next - performance.now()))
    const request = requests[turn++ % requests.length]
    if (request !== undefined) keep(count(timed(() => ask(request))))
    if (isStreaming && next >= nextSocket) {
      nextSocket = next + 1000
      keep(count(timed(() => subscribes(url, turn % 2 === 0 ? "BTC" : "ETH"))))
    }
    if (next < nextMetrics) continue
    nextMetrics = next + 250
    keep(measure())
  }
  await Promise.all(underWay)
  const sorted = times.toSorted((one, other) => one - other)
  return {
    p50Millis: percentile(sorted, 0.5),
    p99Millis: percentile(sorted, 0.99),
    refused,
    sent,
    lagMillis: most.lag * 1000,
    residentMiB: most.resident / 1024 / 1024,
    retainedMiB: most.retained / 1024 / 1024
  }
}
