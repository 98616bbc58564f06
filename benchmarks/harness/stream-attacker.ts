/**
 * A hostile caller of one gateway, a process of its own: one kind of attack, until it is ended. It has one address, or where the
 * attack needs many callers, one in 127.0.1.0/24 for each fifty sockets.
 */
import { Address, beginCell, Cell, external, storeMessage } from "@ton/core"
import * as http from "node:http"
import { WebSocket } from "ws"

const [kind = "", url = "", upstream = ""] = process.argv.slice(2)

const alone = "127.0.0.2"

const user = (n: number, prefix = "bb") => `0x${prefix}${n.toString(16).padStart(38, "0")}`

/** Opens a socket, and does something when it is open. What comes is not read into anything. */
const open = (path: string, from: string, onOpen: (send: (value: unknown) => void, socket: WebSocket) => void) => {
  const socket = new WebSocket(url.replace(/^http/u, "ws") + path, { localAddress: from, perMessageDeflate: false })
  socket.on("error", () => {})
  socket.on("open", () => onOpen((value) => socket.send(JSON.stringify(value)), socket))
  return socket
}

const subscribe = (subscription: object, method = "subscribe") => ({ method, subscription })

const variants = [2, 3, 4, 5].flatMap((nSigFigs) =>
  (nSigFigs === 5 ? [undefined, 2, 5] : [undefined]).flatMap((mantissa) =>
    ["BTC", "ETH"].map((coin) => ({ type: "l2Book", coin, nSigFigs, mantissa }))
  )
).slice(0, 10)

const rpc = (method: string, ...params: ReadonlyArray<unknown>) => ({ jsonrpc: "2.0", id: 1, method, params })

const post = (path: string, body: unknown, done = () => {}) => {
  const request = http.request(url + path, {
    method: "POST",
    agent: false,
    localAddress: alone,
    headers: { "content-type": "application/json" }
  }, (response) => response.on("close", done).resume())
  request.on("error", done).end(JSON.stringify(body))
}

const every = (millis: number, run: (n: number) => void) => {
  let n = 0
  run(n++)
  setInterval(() => run(n++), millis)
}

/** Repeats a request with a number of them under way. */
const keepUnderWay = (count: number, ask: (done: () => void) => void) => {
  const again = () => void setTimeout(() => ask(again), 20)
  for (let index = 0; index < count; index++) ask(again)
}

const bomb = (): string => {
  let body = beginCell().storeUint(7, 32).endCell()
  for (let level = 0; level < 60; level++) body = beginCell().storeRef(body).storeRef(body).endCell()
  const message = external({
    to: Address.parseRaw(`0:${"a".repeat(64)}`),
    body,
    init: { code: Cell.EMPTY, data: body }
  })
  return beginCell().store(storeMessage(message)).endCell().toBoc().toString("base64")
}

/** Init code that jumps to its own beginning, with all the gas of a block. */
const loop = [{ data: "0x5b600056", gas: "0x1c9c380" }, "latest"]

/** Makes 24 000 subscriptions to the chain: 20 on each of 50 sockets of 24 callers. */
const subscribeFromMany = (params: (index: number) => ReadonlyArray<unknown>) => {
  every(50, (caller) => {
    if (caller >= 24) return
    for (let socket = 0; socket < 50; socket++) {
      open("/evm", `127.0.1.${caller + 1}`, (send) => {
        for (let n = 0; n < 20; n++) {
          send({ ...rpc("eth_subscribe", ...params(caller * 1000 + socket * 20 + n)), id: n })
        }
      })
    }
  })
}

/** Opens an event stream, and leaves it after some milliseconds. */
const visit = (target: string, millis: number) => {
  const request = http.get(url + target, { localAddress: alone, agent: false }, (response) => response.resume())
  request.on("error", () => {})
  setTimeout(() => request.destroy(), millis)
}

const attacks: { readonly [kind: string]: () => void } = {
  "ten variants of l2Book": () => {
    open("/ws", alone, (send) => variants.forEach((each) => send(subscribe(each))))
  },
  "users joined and left": () => {
    open("/ws", alone, (send) =>
      every(100, (n) => {
        const subscription = { type: "userFills", user: user(n % 40) }
        send(subscribe(subscription))
        send(subscribe(subscription, "unsubscribe"))
      }))
  },
  "accounts streamed and left": () => {
    every(100, (n) => {
      const subscription = encodeURIComponent(JSON.stringify({ type: "userFills", user: user(n % 40) }))
      visit(`/streams?subscribe=${subscription}`, 80)
    })
  },
  "churn of markets": () => {
    every(
      20_000,
      () =>
        void open(
          "/ws",
          alone,
          (send) =>
            every(25, (n) =>
              send(subscribe({ type: "bbo", coin: n % 2 ? "BTC" : "ETH" }, n % 4 < 2 ? "subscribe" : "unsubscribe")))
        )
    )
  },
  "reconnects": () => {
    attacks["ten variants of l2Book"]?.()
    every(3000, () => void fetch(`${upstream}/drop`, { method: "POST" }).catch(() => {}))
  },
  "catch-up, then leaving": () => {
    every(500, () => {
      const socket = open("/evm", alone, (send) => {
        for (let n = 0; n < 150; n++) {
          send({ ...rpc("eth_subscribe", "logs", { address: user(n), fromBlock: "0x1" }), id: n })
        }
        setTimeout(() => socket.terminate(), 100)
      })
    })
  },
  "unknown coins": () => {
    open("/ws", alone, (send) => every(160, (n) => send(subscribe({ type: "trades", coin: `NOSUCH${n}` }))))
  },
  "streams of TON accounts that expand": () => {
    every(1000, (n) => {
      const target = `${url}/api/v2/streams/transactions?address=0:${(n % 16).toString(16).repeat(64)}&after=genesis`
      http.get(target, { localAddress: alone, agent: false }, (response) => response.resume()).on("error", () => {})
    })
  },
  "60 streams of transactions at once": () => {
    every(2000, () => {
      for (let n = 0; n < 60; n++) {
        visit(`/api/v2/streams/transactions?address=0:${n.toString(16).padStart(64, "c")}&after=genesis`, 1500)
      }
    })
  },
  "filters of 1000 addresses": () => {
    every(1000, (caller) => {
      if (caller >= 12) return
      open("/evm", `127.0.1.${caller + 1}`, (send) => {
        for (let n = 0; n < 20; n++) {
          const address = Array.from({ length: 1000 }, (_, index) => user(caller * 20_000 + n * 1000 + index))
          send({ ...rpc("eth_subscribe", "logs", { address }), id: n })
        }
      })
    })
  },
  "24 000 small subscriptions": () => {
    subscribeFromMany((index) => {
      const address = `0x${(index % 1000).toString(16).padStart(40, "0")}`
      return ["logs", { address }]
    })
  },
  "24 000 subscriptions to heads": () => {
    subscribeFromMany(() => ["newHeads"])
  },
  "headers of 3 MiB": () => {
    open("/l2", alone, (send) => send(rpc("eth_subscribe", "newHeads")))
  },
  "an account with 6000 fills a second": () => {
    // an event stream resumes, so its account is logged
    const subscription = encodeURIComponent(JSON.stringify({ type: "userFills", user: user(1, "aa") }))
    http.get(`${url}/streams?subscribe=${subscription}`, { localAddress: alone, agent: false }, (response) => {
      response.resume()
    }).on("error", () => {})
  },
  "sendBoc of cells that expand": () => {
    const boc = bomb()
    keepUnderWay(4, (done) => post("/api/v2/jsonRPC", { ...rpc("sendBoc"), params: { boc } }, done))
  },
  "calls of a contract that loops": () => {
    keepUnderWay(8, (done) => post("/l2", rpc("eth_call", ...loop), done))
  },
  "batches of 30 such calls": () => {
    keepUnderWay(
      2,
      (done) => post("/l2", Array.from({ length: 30 }, (_, id) => ({ ...rpc("eth_call", ...loop), id })), done)
    )
  }
}

attacks[kind]?.()
console.log(`${kind}: listens on ${url}/`)
// ends only when it is ended, also if the gateway has closed everything
setInterval(() => {}, 60_000)
