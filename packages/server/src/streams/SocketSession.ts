/** A caller's WebSocket, independent of its protocol: its limits, and its end. */
import type { Caller } from "@trigate/domain/Caller"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Predicate from "effect/Predicate"
import type { Socket } from "node:net"
import { Outbox } from "./Outbox.ts"
import type { Bounds } from "./Outbox.ts"
import * as WebSocketFrame from "./WebSocketFrame.ts"

/** The reasons for which the gateway closes a socket, with close codes (RFC 6455, section 7.4). */
export const closings = {
  drain: [1001, "The gateway is restarting: connect again"],
  binary: [1003, "Only text frames are read"],
  key: [1008, "The key is no longer valid"],
  origin: [1008, "Pages of this origin may not call any more"],
  rate: [1008, "Too many messages"],
  slow: [1013, "Frames were not read in time: connect again"]
} as const

/** The reason for which the gateway closed a socket. */
export type Closing = keyof typeof closings

/** The limits of a socket. */
export interface Limits {
  /** Maximum number and bytes of pending events for a socket that is not read. */
  readonly queue: Bounds
  /** Maximum number of messages per minute from the caller. */
  readonly messages: number
  readonly subscriptions: number
  /** Maximum number of concurrent posts. */
  readonly posts: number
}

/** The environment of every session. */
export interface SocketSurroundings {
  readonly limits: Limits
  readonly now: () => number
  /** Closes the socket. Called once. */
  readonly close: (closing: Closing) => void
}

const minute = 60_000

/** Maximum number of bytes per minute, for each message that a caller may send in it. */
const bytesPerMessage = 4096

/** One socket of a caller. */
export abstract class SocketSession {
  caller: Caller
  readonly socket: Socket
  readonly openedAt: number
  /** The headers that identify the page that opened it; `undefined` for a program. */
  page: HttpServerRequest["headers"] | undefined
  /** The number of frames read from the caller. */
  received = 0
  closing: Closing | undefined
  isOver = false
  /** The time of the last progress, and the byte counts at that time; see `watch`. */
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
  /** Returns whether a caller's scope covers it and its subscriptions. */
  abstract isCoveredBy(caller: Caller): boolean
  /** Handles one message of the caller. */
  protected abstract handle(text: string): void
  /** Ends its subscriptions. */
  protected abstract leave(): void

  /** Closes the socket with a reason. Later calls have no effect. */
  close(closing: Closing): void {
    if (this.closing !== undefined || this.isOver) return
    this.closing = closing
    this.leave()
    this.outbox.close()
    this.#around.close(closing)
  }

  /** Releases all resources of a closed socket. */
  end(): void {
    this.isOver = true
    this.leave()
    this.outbox.close()
  }

  /** Handles frames that were received together. */
  receive(frames: ReadonlyArray<string | Uint8Array>): void {
    for (const frame of frames) {
      if (this.closing !== undefined || this.isOver) return
      if (!Predicate.isString(frame)) return this.close("binary")
      if (!this.#counts(frame.length)) return this.close("rate")
      this.handle(frame)
    }
    this.outbox.flush()
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
