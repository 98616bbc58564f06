/**
 * The WebSocket of a caller, after the handshake: over Effect's HTTP adapter, or over `ws` on Node's connection.
 *
 * Ten thousand of them wait most of the time. The one over `ws` therefore has no fiber and nothing of its request.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import * as NodeWS from "@effect/platform-node/NodeWS"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Scope from "effect/Scope"
import * as Socket from "effect/socket/Socket"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the message is Node's own
import type { IncomingMessage } from "node:http"
import type * as Net from "node:net"

/** Why the client's side ended: it left, or it sent a frame that cannot be read, such as one that is too long. */
export type Ending = "client" | "size"

/** Who reads a WebSocket. */
export interface SocketReader {
  /** Gets a frame; text as a string. */
  receive(frame: string | Uint8Array): void
  /** Called after the frames that came together. */
  flush(): void
  /** Called once, when the socket is closed. */
  closed(ending: Ending): void
}

/** An open WebSocket of a caller. */
export interface CallerSocket {
  /** The connection below, which takes whole frames as bytes. */
  readonly connection: Net.Socket
  /** Hands frames to a reader until the socket is closed. Called once, and at once. */
  read(reader: SocketReader): void
  /** Sends a close frame. */
  close(code: number, reason: string): void
}

/** The most bytes of a frame that a caller sends. */
const maxFrameBytes = 64 * 1024

/** How WebSockets of callers are read. */
export const options = { maxPayload: maxFrameBytes, perMessageDeflate: false, clientTracking: false } as const

/** A socket over `ws`. */
class WsSocket implements CallerSocket {
  readonly connection: Net.Socket
  readonly #ws: NodeWS.WebSocket
  #isFlushing = false
  #ending: Ending = "client"

  constructor(ws: NodeWS.WebSocket, connection: Net.Socket) {
    this.connection = connection
    this.#ws = ws
  }

  read(reader: SocketReader): void {
    this.#ws.on("message", (data, isBinary) => {
      // buffers are what the default type of messages is
      reader.receive(!Buffer.isBuffer(data) || isBinary ? new Uint8Array() : data.toString())
      if (this.#isFlushing) return
      this.#isFlushing = true
      queueMicrotask(() => {
        this.#isFlushing = false
        reader.flush()
      })
    })
    this.#ws.on("error", () => {
      this.#ending = "size"
    })
    this.#ws.on("close", () => reader.closed(this.#ending))
  }

  close(code: number, reason: string): void {
    this.#ws.close(code, reason)
  }
}

/** Completes handshakes on Node's connections. */
export const makeAcceptor = () => {
  const server = new NodeWS.WebSocketServer({ ...options, noServer: true })
  return (request: IncomingMessage, head: Buffer): CallerSocket | undefined => {
    const { socket } = request
    let accepted: CallerSocket | undefined
    // calls back at once, or never where the client has left
    if (!socket.destroyed) {
      server.handleUpgrade(request, socket, head, (ws) => {
        accepted = new WsSocket(ws, socket)
      })
    }
    return accepted
  }
}

/** The socket of a request of Effect's HTTP adapter. A fiber reads it. */
export const fromAdapter = (request: HttpServerRequest): Effect.Effect<CallerSocket | undefined> =>
  Effect.gen(function*() {
    const upgraded = yield* Effect.orDie(request.upgrade)
    const scope = yield* Scope.make()
    const reader = yield* Effect.orElseSucceed(Scope.provide(upgraded.reader, scope), () => undefined)
    // the caller has left before the handshake
    if (reader === undefined) return undefined
    const { write } = yield* Scope.provide(upgraded.writer, scope)
    const run = Effect.runForkWith(yield* Effect.context())
    return {
      connection: NodeHttpServerRequest.toIncomingMessage(request).socket,
      read: (to) => {
        const receive = Effect.map(reader.pull, (frames) => {
          for (const frame of frames) to.receive(frame)
          to.flush()
        })
        const reading = Effect.forever(receive).pipe(
          Effect.catch((error): Effect.Effect<Ending> =>
            Effect.succeed(error.reason._tag === "SocketReadError" ? "size" : "client")
          ),
          Effect.ensuring(Scope.close(scope, Exit.void))
        )
        run(Effect.map(reading, (ending) => to.closed(ending)))
      },
      close: (code, reason) => void run(Effect.ignore(write(new Socket.CloseEvent(code, reason))))
    }
  })
