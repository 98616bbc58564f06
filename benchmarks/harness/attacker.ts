/**
 * A hostile caller, a process of its own: one kind of request at a fixed rate from an address of its own, until it is ended.
 *
 * It reads each answer and believes none. A request is late rather than lost: at most 64 are under way.
 */
import * as http from "node:http"
import * as net from "node:net"

const [kind = "", ...urls] = process.argv.slice(2)

const from = "127.0.0.2"
const agent = new http.Agent({ keepAlive: true, maxSockets: 32, localAddress: from })

const user = (n: number) => `0x${n.toString(16).padStart(40, "0")}`

const storage = (id: number) =>
  `{"jsonrpc":"2.0","id":${id},"method":"eth_getStorageAt","params":["${user(id)}","0x0","latest"]}`

const began = Date.now()

const bigBlocks = `{"type":"evmUserModify","usingBigBlocks":true}`

const hex = (n: number) => (n + 1).toString(16)

interface Attack {
  readonly perSecond: number
  readonly path: string
  readonly body: (n: number) => string
}

/** What can be asked for by name; the rates are those that one machine holds against two replicas beside an honest caller. */
const attacks: { readonly [kind: string]: Attack } = {
  "expensive queries": {
    perSecond: 500,
    path: "/info",
    body: (n) => `{"type":"userRole","user":"${user(n)}"}`
  },
  "random signatures": {
    perSecond: 100,
    path: "/exchange",
    body: (n) =>
      `{"action":${bigBlocks},"nonce":${began + n},"signature":{"r":"0x${hex(n)}","s":"0x${hex(7 * n)}","v":${
        27 + n % 2
      }}}`
  },
  "answers of 500": { perSecond: 100, path: "/info", body: (n) => `{"type":"breaks${n}"}` },
  "oversized answers": { perSecond: 2, path: "/info", body: (n) => `{"type":"huge${n}"}` },
  "batches of 1000": {
    perSecond: 2,
    path: "/evm",
    body: (n) => `[${Array.from({ length: 1000 }, (_, index) => storage(1000 * n + index)).join(",")}]`
  }
}

let underWay = 0

const hasRoom = () => underWay < 64

const done = () => {
  underWay--
}

const post = (url: string, { body, path }: Attack, n: number): void => {
  underWay++
  const request = http.request(url + path, {
    agent,
    method: "POST",
    headers: { "content-type": "application/json" }
  }, (response) => {
    response.on("close", done).resume()
  })
  request.on("error", done).end(body(n))
}

/** Sends a ninth of what it announced, and then nothing; 100 of them are open at a time. */
const stalled: Array<net.Socket> = []
const stall = (url: string, n: number): void => {
  const { hostname, port } = new URL(url)
  const path = n % 2 === 0 ? "/info" : "/evm"
  const socket = net.connect({ host: hostname, port: Number(port), localAddress: from })
  socket.on("error", () => {})
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\ncontent-length: 900000\r\n\r\n` +
      "x".repeat(100_000)
  )
  stalled.push(socket)
  if (stalled.length > 100) stalled.shift()?.destroy()
}

const attack = attacks[kind]
const perSecond = attack?.perSecond ?? 50
let sent = 0
setInterval(() => {
  const due = (Date.now() - began) / 1000 * perSecond
  while (sent < due && hasRoom()) {
    const url = urls[sent % urls.length] ?? ""
    if (attack === undefined) stall(url, sent)
    else post(url, attack, sent)
    sent++
  }
}, 5)
console.log(`${kind}: ${perSecond} a second, listens on ${urls[0]}/`)
