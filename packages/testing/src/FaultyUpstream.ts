/** A TCP server with a configurable reaction to each HTTP request. Counts connections, requests and received bytes. */
import * as Effect from "effect/Effect"
import * as Net from "node:net"
import * as Tls from "node:tls"
import { say } from "./Reactions.ts"

/** A complete request: its bytes as received, and its connection. */
export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly head: string
  readonly body: string
  readonly bytes: Uint8Array
  /** The number of the connection, from 1. */
  readonly connection: number
  /** The number of the request on its connection, from 1. */
  readonly turn: number
}

/** The reaction of a server to a request. A reaction that does nothing sends no response. */
export type Reaction = (socket: Net.Socket, request: ReceivedRequest) => void

export interface FaultyUpstream {
  readonly port: number
  readonly url: string
  /** Every complete request except the gateway's own health probes. */
  readonly requests: Array<ReceivedRequest>
  /** The gateway's own health probes, such as `eth_chainId` for an EVM chain. */
  readonly probes: Array<ReceivedRequest>
  /** Returns the number of accepted connections. */
  readonly connections: () => number
  /** Returns the number of open connections. */
  readonly open: () => number
  /** Returns the number of received bytes, including incomplete requests. */
  readonly bytes: () => number
  /** Waits until a condition on this upstream is true. */
  readonly until: (holds: () => boolean) => Effect.Effect<void>
  react: Reaction
  /** The reaction to a health probe. Default: a valid response to `eth_chainId`. */
  reactToProbe: Reaction
  /** Handles a new connection before data is read from it. */
  accept: (socket: Net.Socket) => void
}

export interface Options {
  /** TLS options. If they are absent, the server does not use TLS. */
  readonly tls?: Tls.TlsOptions
  /** The host to listen on. Default: 127.0.0.1. */
  readonly host?: string
  readonly port?: number
}

const lengthIn = (head: string): number => Number(/^content-length: *(\d+)\r?$/imu.exec(head)?.[1] ?? 0)

const probe = /"method": *"(?:eth_chainId|getMasterchainInfo)"|"type": *"exchangeStatus"/u

const chainOne = say({ body: ({ body }) => `{"jsonrpc":"2.0","id":${idIn(body)},"result":"0x1"}` })

/** Returns the raw text of a JSON-RPC request's ID. */
export const idIn = (body: string): string => /"id": *([^,}]+)/u.exec(body)?.[1] ?? "null"

/** Calls `found` with every complete request in a stream of bytes. */
const requestsIn = (found: (head: string, body: Buffer, bytes: Buffer) => void) => {
  let rest: Buffer = Buffer.alloc(0)
  return (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (;;) {
      const end = rest.indexOf("\r\n\r\n")
      if (end < 0) return
      const head = rest.subarray(0, end).toString("latin1")
      const whole = end + 4 + lengthIn(head)
      if (rest.length < whole) return
      const bytes = rest.subarray(0, whole)
      rest = rest.subarray(whole)
      found(head, bytes.subarray(end + 4), bytes)
    }
  }
}

const start = (options: Options, react: Reaction) =>
  Effect.callback<FaultyUpstream & { readonly close: () => void }>((resume) => {
    const sockets = new Set<Net.Socket>()
    const watchers = new Set<() => void>()
    let connections = 0
    let bytes = 0
    const happened = () => {
      for (const watch of watchers) watch()
    }
    const serve = (socket: Net.Socket) => {
      connections += 1
      const connection = connections
      let turn = 0
      sockets.add(socket)
      socket.on("error", () => {})
      socket.on("close", () => {
        sockets.delete(socket)
        happened()
      })
      upstream.accept(socket)
      const read = requestsIn((head, body, whole) => {
        const [method = "", path = ""] = head.split(" ", 2)
        turn += 1
        const request = { method, path, head, body: body.toString("utf8"), bytes: whole, connection, turn }
        const isProbe = probe.test(request.body)
        const list = isProbe ? upstream.probes : upstream.requests
        list.push(request)
        const reaction = isProbe ? upstream.reactToProbe : upstream.react
        reaction(socket, request)
        happened()
      })
      socket.on("data", (chunk: Buffer) => {
        bytes += chunk.length
        read(chunk)
        happened()
      })
      happened()
    }
    const server = options.tls === undefined ? Net.createServer(serve) : Tls.createServer(options.tls, serve)
    const until = (holds: () => boolean) =>
      Effect.callback<void>((done) => {
        const watch = () => {
          if (!holds()) return
          watchers.delete(watch)
          done(Effect.void)
        }
        watchers.add(watch)
        watch()
        return Effect.sync(() => watchers.delete(watch))
      })
    const upstream: FaultyUpstream = {
      port: 0,
      url: "",
      requests: [],
      probes: [],
      connections: () => connections,
      open: () => sockets.size,
      bytes: () => bytes,
      until,
      react,
      reactToProbe: chainOne,
      accept: () => {}
    }
    server.listen(options.port ?? 0, options.host ?? "127.0.0.1", () => {
      const address = server.address()
      const port = address !== null && typeof address === "object" ? address.port : 0
      const host = options.host ?? "127.0.0.1"
      const url = `${options.tls === undefined ? "http" : "https"}://${host}:${port}`
      const close = () => {
        for (const socket of sockets) socket.destroy()
        server.close()
      }
      resume(Effect.succeed(Object.assign(upstream, { port, url, close })))
    })
  })

/** Starts an upstream with the given reaction. The upstream stops when the scope closes. */
export const faultyUpstream = (react: Reaction, options: Options = {}) =>
  Effect.acquireRelease(start(options, react), ({ close }) => Effect.sync(close))
