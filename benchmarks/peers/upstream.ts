/**
 * The upstream behind every peer: a venue (`/info`, `/exchange`) and, on any other path, a layer-2 node.
 *
 * It counts what it answers, so that no peer can answer by itself unseen.
 */
import * as http from "node:http"
import * as Bodies from "../harness/bodies.ts"
import { listen } from "./http.ts"

const call = /"id":(?<id>[0-9]+),"method":"(?<method>[A-Za-z_]+)"(?:,"params":\["(?<hash>0x[0-9a-f]{64})"\])?/u
const idOf = /"id":(?<id>[0-9]+)/u

const candles = Bodies.answerCandles()

let count = 0

const rpc = (text: string): string => {
  const { hash, method } = call.exec(text)?.groups ?? {}
  const id = idOf.exec(text)?.groups?.["id"] ?? "null"
  if (method !== "eth_getTransactionReceipt" || hash === undefined) {
    return `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"the method does not exist"}}`
  }
  return hash.startsWith(Bodies.pendingPrefix)
    ? `{"jsonrpc":"2.0","id":${id},"result":null}`
    : `{"jsonrpc":"2.0","id":${id},"result":${Bodies.receipt(hash)}}`
}

/** The answer to one call or to a batch, whose calls count one by one. */
const rpcs = (text: string): string => {
  if (!text.startsWith("[")) return rpc(text)
  const calls = text.slice(1, -1).split(/(?<=\}),(?=\{)/u)
  count += calls.length - 1
  return `[${calls.map(rpc).join(",")}]`
}

const answerTo = (path: string, text: string): string | Buffer => {
  if (path === "/exchange") return Bodies.accepted
  if (path === "/info") {
    return text.includes("spotMeta")
      ? Bodies.spotMeta
      : text.includes("candle")
      ? candles(text)
      : "{}"
  }
  return rpcs(text)
}

/** 100 MB of JSON text, a chunk whenever the last is taken. */
const flood = (response: http.ServerResponse): void => {
  const chunk = Buffer.alloc(64 * 1024, "0")
  let left = Math.ceil(100e6 / chunk.length)
  response.writeHead(200, { "content-type": "application/json" })
  const go = () => {
    while (left > 0 && !response.destroyed) {
      left--
      if (!response.write(chunk)) {
        response.once("drain", go)
        return
      }
    }
    response.end()
  }
  go()
}

/** An answer that no gateway takes whole. */
const huge = Buffer.alloc(17 * 2 ** 20, "0")

listen(http.createServer((request, response) => {
  if (request.method === "GET") {
    response.end(String(count))
    return
  }
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const text = Buffer.concat(chunks).toString("latin1")
    count++
    if (text.includes(Bodies.floodHash)) {
      flood(response)
      return
    }
    const answer = text.includes(`"huge`) ? huge : answerTo(request.url ?? "/", text)
    response.writeHead(text.includes(`"breaks`) ? 500 : 200, {
      "content-type": "application/json",
      "content-length": answer.length
    })
    response.end(answer)
  })
}))
