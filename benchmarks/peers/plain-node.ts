/**
 * What the gateway checks of a JSON-RPC read, by hand over `node:http` and undici: the floor for a gateway in Node.
 *
 * The call is parsed, its method and its param are checked, a rate limit and a deadline are kept, equal calls in flight share one
 * answer, the upstream gets an id of ours, its answer is parsed and has to carry that id, and counters are kept. Without
 * retries, other addresses, caches, refusals that say why, settings, logs and traces.
 */
import * as http from "node:http"
import { Pool } from "undici"
import { listen } from "./http.ts"

const upstream = new URL(process.argv[2] ?? "")
const pool = new Pool(upstream.origin, { connections: 512 })
const path = `${upstream.pathname.replace(/\/$/u, "")}/0123456789abcdef0123456789abcdef`

const deadline = 10_000
const perSecond = 1_000_000
const mostBytes = 1024 * 1024
const hash = /^0x[0-9a-fA-F]{64}$/u

interface Call {
  readonly id: number | string
  readonly hash: string
}

type Done = (result: string | undefined) => void

const counts = new Map<string, number>()
const flights = new Map<string, Array<Done>>()
let lastId = 0
let second = 0
let taken = 0

const count = (name: string) => counts.set(name, (counts.get(name) ?? 0) + 1)

const isWithinLimit = (): boolean => {
  const now = Math.floor(performance.now() / 1000)
  if (now !== second) {
    second = now
    taken = 0
  }
  taken++
  return taken <= perSecond
}

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const callOf = (text: string): Call | undefined => {
  const value = parsed(text)
  if (!isObject(value) || value["jsonrpc"] !== "2.0" || value["method"] !== "eth_getTransactionReceipt") {
    return undefined
  }
  const { id, params } = value
  const given: unknown = Array.isArray(params) ? params[0] : undefined
  return (typeof id === "number" || typeof id === "string") && typeof given === "string" && hash.test(given)
    ? { id, hash: given.toLowerCase() }
    : undefined
}

/** The text of the result in an answer to `id`, where it is one. */
const resultIn = (text: string, id: number): string | undefined => {
  const value = parsed(text)
  const head = `{"jsonrpc":"2.0","id":${id},"result":`
  return isObject(value) && value["id"] === id && "result" in value && text.startsWith(head)
    ? text.slice(head.length, -1)
    : undefined
}

const ask = (given: string): void => {
  const id = ++lastId
  const chunks: Array<Buffer> = []
  let isOver = false
  const end = (result: string | undefined) => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    count(result === undefined ? "failed" : "answered")
    const waiting = flights.get(given) ?? []
    flights.delete(given)
    for (const done of waiting) done(result)
  }
  const timer = setTimeout(() => end(undefined), deadline)
  pool.dispatch({
    path,
    method: "POST",
    headers: { accept: "application/json", "content-type": "application/json" },
    body: `{"jsonrpc":"2.0","id":${id},"method":"eth_getTransactionReceipt","params":["${given}"]}`
  }, {
    onRequestStart() {},
    onResponseStart() {},
    onResponseData: (_controller, chunk) => void chunks.push(chunk),
    onResponseEnd: () => end(resultIn(Buffer.concat(chunks).toString("utf8"), id)),
    onResponseError: () => end(undefined)
  })
}

listen(http.createServer((request, response) => {
  const chunks: Array<Buffer> = []
  let size = 0
  request.on("data", (chunk: Buffer) => {
    size += chunk.length
    if (size <= mostBytes) chunks.push(chunk)
  })
  request.on("end", () => {
    const call = size <= mostBytes ? callOf(Buffer.concat(chunks).toString("utf8")) : undefined
    if (call === undefined || !isWithinLimit()) {
      response.writeHead(call === undefined ? 400 : 429).end()
      return
    }
    const { hash: given, id } = call
    const done: Done = (result) => {
      const body = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},${
        result === undefined ? "\"error\":{\"code\":-32603,\"message\":\"No answer\"}" : `"result":${result}`
      }}`
      response.writeHead(200, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        "x-request-id": String(lastId)
      })
      response.end(body)
    }
    const waiting = flights.get(given)
    if (waiting === undefined) {
      flights.set(given, [done])
      ask(given)
    } else waiting.push(done)
  })
}))
