/**
 * A caller's WebSocket after the handshake, from Effect's HTTP adapter or from the package `ws`.
 *
 * To save memory while it is idle, a WebSocket from `ws` has no fiber, and does not retain its handshake request.
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

/** Why a socket ended: the client closed it, or sent an invalid frame, such as a frame that exceeds the size limit. */
export type Ending = "client" | "size"

/** The reader of a WebSocket. */
export interface SocketReader {
  /** Called with each frame; a text frame is a string. */
  receive(frame: string | Uint8Array): void
  /** Called after the last of several frames that were received together. */
  flush(): void
  /** Called once, when the socket is closed. */
  closed(ending: Ending): void
}

/** An open WebSocket of a caller. */
export interface CallerSocket {
  /** The underlying connection, to which encoded frames can be written. */
  readonly connection: Net.Socket
  /** Passes frames to a reader until the socket is closed. Call it once, synchronously after the handshake. */
  read(reader: SocketReader): void
  /** Sends a close frame. */
  close(code: number, reason: string): void
}

/** Maximum number of bytes of a WebSocket frame from a caller. */
const maxFrameBytes = 64 * 1024

/** The options of callers' WebSockets. */
export const options = { maxPayload: maxFrameBytes, perMessageDeflate: false, clientTracking: false } as const

/** A socket from the package `ws`. */
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
      // messages are buffers by default
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

/** Makes a function that completes handshakes on Node's connections. */
export const makeAcceptor = () => {
  const server = new NodeWS.WebSocketServer({ ...options, noServer: true })
  return (request: IncomingMessage, head: Buffer): CallerSocket | undefined => {
    const { socket } = request
    let accepted: CallerSocket | undefined
    // `handleUpgrade` calls back synchronously, or never if the client has disconnected
    if (!socket.destroyed) {
      server.handleUpgrade(request, socket, head, (ws) => {
        accepted = new WsSocket(ws, socket)
      })
    }
    return accepted
  }
}

/** Completes the handshake of a request from Effect's HTTP adapter. A fiber reads the socket. */
export const fromAdapter = (request: HttpServerRequest): Effect.Effect<CallerSocket | undefined> =>
  Effect.gen(function*() {
    const upgraded = yield* Effect.orDie(request.upgrade)
    const scope = yield* Scope.make()
    const reader = yield* Effect.orElseSucceed(Scope.provide(upgraded.reader, scope), () => undefined)
    // the client disconnected before the handshake
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
