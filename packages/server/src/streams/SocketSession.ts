/** A caller's WebSocket, independent of its protocol: its limits, and how it ends. */
import type { Caller } from "@trigate/domain/Caller"
import type * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Predicate from "effect/Predicate"
import type { Socket } from "node:net"
import type { CallerSocket, Ending, SocketReader } from "../requests/CallerSocket.ts"
import { Outbox } from "./Outbox.ts"
import type { Allowance, Bounds } from "./Outbox.ts"
import * as WebSocketFrame from "./WebSocketFrame.ts"

/** The reasons why the gateway closes a socket, with close codes (RFC 6455, section 7.4). */
export const closings = {
  drain: [1001, "The gateway is restarting: connect again"],
  binary: [1003, "Binary frames are not supported: send text frames"],
  key: [1008, "The key is no longer valid, or its scope no longer allows these subscriptions"],
  origin: [1008, "Pages of this origin are no longer allowed"],
  rate: [1008, "Too many messages or bytes per minute: send less"],
  bytesIn: [1008, "Too many bytes per second from this caller: send less"],
  bytesOut: [1013, "More bytes per second than this caller is allowed to receive: subscribe to less"],
  slow: [1013, "Frames were not read in time: connect again"],
  ended: [1013, "A subscription cannot continue: connect again"]
} as const

/** The reason why the gateway closed a socket. */
export type Closing = keyof typeof closings

/** The limits of a socket. */
export interface Limits {
  /** Maximum number and bytes of pending events for a socket whose client does not read. */
  readonly queue: Bounds
  /** Maximum number of messages per minute on one socket. */
  readonly messages: number
  readonly subscriptions: number
  /** Maximum number of concurrent `post` messages and JSON-RPC calls. */
  readonly posts: number
}

/** The limits and functions that all sessions share. */
export interface SocketSurroundings {
  readonly limits: Limits
  readonly now: () => number
  readonly fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  /** Called once, when a socket is closed. */
  readonly closed: (session: SocketSession, reason: string) => void
}

/** The bytes that a caller can still send and receive in the current second. */
export interface Traffic {
  readonly in: Allowance
  readonly out: Allowance
}

/** An open socket of a caller. */
export interface Opened {
  readonly caller: Caller
  readonly socket: CallerSocket
  readonly traffic: Traffic
  /** The ID of the request that opened the socket, and the name of the request's route. */
  readonly id: string
  readonly route: string
  /** The headers that identify the page that opened the socket; `undefined` if the client is not a web page. */
  readonly page: HttpServerRequest["headers"] | undefined
}

const minute = 60_000

/** Average bytes of a message: the maximum bytes per minute are this number times the maximum messages per minute. */
const bytesPerMessage = 4096

/** One socket of a caller. */
export abstract class SocketSession implements SocketReader {
  caller: Caller
  readonly id: string
  readonly route: string
  readonly page: Opened["page"]
  readonly connection: Socket
  readonly openedAt: number
  /** The number of frames read from the caller. */
  received = 0
  closing: Closing | undefined
  /** The time at which a close frame was sent, in milliseconds since 1970. */
  closedAt: number | undefined
  isOver = false
  /**
   * `at` is the time of the latest progress, `pinged` the time of the latest ping. The byte counts are from the latest
   * check: see `SessionChecks.checkProgress`.
   */
  readonly progress: { at: number; written: number; read: number; pinged: number }
  readonly outbox: Outbox
  readonly #socket: CallerSocket
  readonly #allowance: Allowance
  readonly #around: SocketSurroundings
  #running: Set<Fiber.Fiber<void>> | undefined
  #window = { start: 0, messages: 0, bytes: 0 }

  constructor({ caller, id, page, route, socket, traffic }: Opened, around: SocketSurroundings) {
    const { connection } = socket
    const now = around.now()
    this.caller = caller
    this.id = id
    this.page = page
    this.route = route
    this.connection = connection
    this.openedAt = now
    this.progress = { at: now, written: connection.bytesWritten, read: connection.bytesRead, pinged: now }
    this.#socket = socket
    this.#around = around
    this.#allowance = traffic.in
    this.outbox = new Outbox(
      connection,
      around.limits.queue,
      traffic.out,
      (isSlow) => this.close(isSlow ? "slow" : "bytesOut")
    )
  }

  /** The number of the socket's subscriptions. */
  abstract get subscriptions(): number
  /** Returns whether a caller's scope allows the socket and its subscriptions. */
  abstract isCoveredBy(caller: Caller): boolean
  /** Handles one message of the caller. */
  protected abstract handle(text: string): void
  /** Ends the socket's subscriptions. */
  protected abstract leave(): void

  /** Closes the socket with a reason. Later calls have no effect. */
  close(closing: Closing): void {
    if (this.closing !== undefined || this.isOver) return
    this.closing = closing
    this.closedAt = this.#around.now()
    this.leave()
    this.outbox.close()
    const [code, reason] = closings[closing]
    this.#socket.close(code, reason)
  }

  /** Releases all resources of a closed socket. */
  end(): void {
    this.isOver = true
    this.leave()
    this.outbox.close()
    for (const fiber of this.#running ?? []) fiber.interruptUnsafe()
  }

  closed(ending: Ending): void {
    this.#around.closed(this, this.closing ?? ending)
  }

  /** Handles a frame of the caller. */
  receive(frame: string | Uint8Array): void {
    if (this.closing !== undefined || this.isOver) return
    if (!Predicate.isString(frame)) return this.close("binary")
    if (!this.#counts(frame.length)) return this.close("rate")
    this.#allowance.left -= frame.length
    if (this.#allowance.left < 0) return this.close("bytesIn")
    this.handle(frame)
  }

  flush(): void {
    this.outbox.flush()
  }

  /** Runs an effect that is interrupted when the session ends. */
  protected fork(effect: Effect.Effect<void>): void {
    const fiber = this.#around.fork(effect)
    if (fiber.pollUnsafe() !== undefined) return
    const running = this.#running ??= new Set()
    running.add(fiber)
    fiber.addObserver(() => running.delete(fiber))
  }

  /** Writes a message to the caller. */
  protected write(text: string): void {
    this.outbox.push(WebSocketFrame.textFrame(text))
  }

  #counts(bytes: number): boolean {
    const now = this.#around.now()
    if (now - this.#window.start >= minute) this.#window = { start: now, messages: 0, bytes: 0 }
    this.received++
    this.#window.messages++
    this.#window.bytes += bytes
    const messages = this.caller.quota.messagesPerMinute ?? this.#around.limits.messages
    return this.#window.messages <= messages && this.#window.bytes <= messages * bytesPerMessage
  }
}
