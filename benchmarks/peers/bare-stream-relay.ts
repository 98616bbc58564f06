/**
 * The relay that one writes in an hour over `ws`: one socket to the venue, and each frame of it is written to each client. A
 * subscription that was sent before is not sent again. Nothing is read, checked or kept.
 */
import * as http from "node:http"
import { WebSocket, WebSocketServer } from "ws"
import { listen } from "./http.ts"

const venue = (process.argv[2] ?? "").replace(/^http/u, "ws")

const clients = new Set<WebSocket>()
const subscribed = new Set<string>()

const upstream = new WebSocket(`${venue}/ws`, { perMessageDeflate: false })
upstream.on("message", (data, isBinary) => {
  for (const client of clients) client.send(data, { binary: isBinary })
})

const server = http.createServer((_, response) => response.end("ok"))
const sockets = new WebSocketServer({ server, perMessageDeflate: false })
sockets.on("connection", (client) => {
  clients.add(client)
  client.on("close", () => clients.delete(client))
  client.on("message", (data) => {
    const text = Buffer.isBuffer(data) ? data.toString("utf8") : ""
    if (subscribed.has(text)) return
    subscribed.add(text)
    upstream.send(text)
  })
})

upstream.on("open", () => listen(server))
upstream.on("close", () => process.exit(1))
