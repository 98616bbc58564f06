/** One WebSocket of a caller, of either protocol: its limits, and how it ends. */
import type { Caller } from "@trigate/domain/Caller"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Predicate from "effect/Predicate"
import type { Socket } from "node:net"
import { Outbox } from "./Outbox.ts"
import type { Bounds } from "./Outbox.ts"
import * as WebSocketFrame from "./WebSocketFrame.ts"

/** Why a socket was closed by the gateway, with the code of its close frame (RFC 6455, section 7.4). */
export const closings = {
  drain: [1001, "The gateway is restarting: connect again"],
  binary: [1003, "Only text frames are read"],
  key: [1008, "The key is no longer valid"],
  origin: [1008, "Pages of this origin may not call any more"],
  rate: [1008, "Too many messages"],
  slow: [1013, "Frames were not read in time: connect again"]
} as const

/** Why a socket was closed by the gateway. */
export type Closing = keyof typeof closings

/** The limits of a socket. */
export interface Limits {
  /** Frames and bytes of events that may wait for a socket that is not read. */
  readonly queue: Bounds
  /** Messages of the caller in a minute. */
  readonly messages: number
  readonly subscriptions: number
  /** Posts that are under way at the same time. */
  readonly posts: number
}

/** What every session does through its surroundings. */
export interface SocketSurroundings {
  readonly limits: Limits
  readonly now: () => number
  /** Closes the socket. Called once. */
  readonly close: (closing: Closing) => void
}

const minute = 60_000

/** Bytes in a minute, for each message that a caller may send in it. */
const bytesPerMessage = 4096

/** One socket of a caller. */
export abstract class SocketSession {
  caller: Caller
  readonly socket: Socket
  readonly openedAt: number
  /** The headers that say from which page it was opened; undefined where a program did. */
  page: HttpServerRequest["headers"] | undefined
  /** Frames of the caller that were read. */
  received = 0
  closing: Closing | undefined
  isOver = false
  /** When the socket was last found to make progress, with its bytes then; see `watch`. */
  progress = { at: 0, written: 0, read: 0, pinged: 0 }
  readonly outbox: Outbox
  readonly #around: SocketSurroundings
  #window = { start: 0, messages: 0, bytes: 0 }

  constructor(caller: Caller, socket: Socket, around: SocketSurroundings) {
    this.caller = caller
    this.socket = socket
    this.#around = around
    this.openedAt = around.now()
    this.outbox = new Outbox(socket, around.limits.queue, () => this.close("slow"))
  }

  /** The number of its subscriptions. */
  abstract get subscriptions(): number
  /** Whether the scope of a caller covers it and its subscriptions. */
  abstract isCoveredBy(caller: Caller): boolean
  /** Reads one text of the caller. */
  protected abstract handle(text: string): void
  /** Ends its subscriptions. */
  protected abstract leave(): void

  /** Closes the socket with a reason; does nothing the second time. */
  close(closing: Closing): void {
    if (this.closing !== undefined || this.isOver) return
    this.closing = closing
    this.leave()
    this.outbox.close()
    this.#around.close(closing)
  }

  /** Lets go of everything; the socket is closed. */
  end(): void {
    this.isOver = true
    this.leave()
    this.outbox.close()
  }

  /** Reads the frames of the caller that came together. */
  receive(frames: ReadonlyArray<string | Uint8Array>): void {
    for (const frame of frames) {
      if (this.closing !== undefined || this.isOver) return
      if (!Predicate.isString(frame)) return this.close("binary")
      if (!this.#counts(frame.length)) return this.close("rate")
      this.handle(frame)
    }
    this.outbox.flush()
  }

  /** Writes a text to the caller. */
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
