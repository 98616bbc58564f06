/**
 * A caller's WebSocket, independent of its protocol: its outgoing frames, its limits, and how it ends.
 *
 * Frames are written directly while the socket accepts them. If the socket's buffer is full, or the caller has used up
 * its bytes of the current second, frames wait. For each state, such as an order book, only the latest frame waits. All
 * other frames are events. Events wait in a queue that has a maximum length and size, and are never dropped: if the
 * queue exceeds its limits, the socket is closed.
 */
import type { Caller } from "@trigate/domain/Caller"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import type { Frame } from "@trigate/upstream/unstable/streams/Topic"
import type * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Predicate from "effect/Predicate"
import type { CallerConnection, CallerSocket, Ending, SocketReader } from "../requests/Request.ts"

const TEXT = 0x81
const PING = 0x89

/** Encodes a text frame. */
export const textFrame = (text: string): Uint8Array => {
  const body = Utf8.encode(text)
  const { length } = body
  const head = length < 126 ? 2 : length < 65_536 ? 4 : 10
  // a socket would make a Buffer of any other Uint8Array, at each of the frame's deliveries
  const bytes = Buffer.alloc(head + length)
  bytes[0] = TEXT
  if (head === 2) bytes[1] = length
  else {
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    bytes[1] = head === 4 ? 126 : 127
    if (head === 4) view.setUint16(2, length)
    else view.setBigUint64(2, BigInt(length))
  }
  bytes.set(body, head)
  return bytes
}

/** Returns the bytes of a frame, encoded once for all callers that receive the frame. */
export const wireBytes = (frame: Pick<Frame, "text" | "wire">): Uint8Array => frame.wire ??= textFrame(frame.text)

/** The bytes of a ping without content. */
export const ping: Uint8Array = Uint8Array.of(PING, 0)

/** The limits of pending frames. */
export interface Bounds {
  readonly frames: number
  readonly bytes: number
}

/** The bytes that a caller can still send or receive in the current second, in total on all of its sockets. */
export interface Allowance {
  left: number
}

/** The outgoing frames of one WebSocket. */
export class Outbox {
  readonly #socket: CallerConnection
  readonly #bounds: Bounds
  readonly #allowance: Allowance
  readonly #onOverflow: (isSlow: boolean) => void
  #events: Array<Uint8Array> = []
  #eventBytes = 0
  #states: Map<string, Uint8Array> | undefined
  #isFull = false
  #isCorked = false
  #isClosed = false
  /** The number of written frames. */
  written = 0
  /** The number of pending frames that a later frame of the same state replaced. */
  conflated = 0

  /**
   * `allowance` is shared by all sockets of the caller. `onOverflow` receives `true` if the client does not read the
   * socket, `false` if the allowance is used up.
   */
  constructor(socket: CallerConnection, bounds: Bounds, allowance: Allowance, onOverflow: (isSlow: boolean) => void) {
    this.#socket = socket
    this.#bounds = bounds
    this.#allowance = allowance
    this.#onOverflow = onOverflow
    socket.on("drain", this.#drained)
  }

  /** The bytes of written and queued events that the client has not read yet. */
  get pending(): number {
    return this.#eventBytes + this.#socket.writableLength
  }

  /** Whether the socket's buffer is full. */
  get isFull(): boolean {
    return this.#isFull
  }

  /**
   * Writes or queues a frame. A frame with `state` replaces the pending frame that has the same `state`. A frame
   * without `state` is an event.
   */
  push(bytes: Uint8Array, state?: string): void {
    if (this.#isClosed) return
    if (!this.#isFull && this.#allowance.left > 0) this.#write(bytes)
    else if (state !== undefined) {
      this.#states ??= new Map()
      if (this.#states.delete(state)) this.conflated++
      this.#states.set(state, bytes)
    } else {
      this.#eventBytes += bytes.length
      if (this.#events.push(bytes) > this.#bounds.frames || this.#eventBytes > this.#bounds.bytes) {
        this.close()
        this.#onOverflow(this.#isFull)
      }
    }
  }

  /** Drops the pending states of a subscription that has ended. */
  forget(key: string): void {
    for (const state of this.#states?.keys() ?? []) {
      if (state === key || state.startsWith(`${key}#`)) this.#states?.delete(state)
    }
  }

  /** Writes the pending frames in one system call. */
  flush(): void {
    if (!this.#isCorked) return
    this.#isCorked = false
    this.#socket.uncork()
  }

  /** Stops writing and drops pending frames. */
  close(): void {
    this.#isClosed = true
    this.flush()
    this.#events = []
    this.#eventBytes = 0
    this.#states = undefined
    this.#socket.off("drain", this.#drained)
  }

  #write(bytes: Uint8Array): void {
    if (!this.#isCorked) {
      this.#isCorked = true
      this.#socket.cork()
    }
    this.written++
    this.#allowance.left -= bytes.length
    if (!this.#socket.write(bytes)) this.#isFull = true
  }

  /** Writes pending frames, as far as the socket and the allowance permit. */
  resume(): void {
    if (this.#isFull || (this.#events.length === 0 && this.#states === undefined)) return
    let taken = 0
    while (taken < this.#events.length && !this.#isFull && this.#allowance.left > 0) {
      const bytes = this.#events[taken++]
      if (bytes !== undefined) {
        this.#eventBytes -= bytes.length
        this.#write(bytes)
      }
    }
    if (taken > 0) this.#events = this.#events.slice(taken)
    for (const [state, bytes] of this.#states ?? []) {
      if (this.#isFull || this.#allowance.left <= 0) break
      this.#states?.delete(state)
      this.#write(bytes)
    }
    this.flush()
  }

  readonly #drained = (): void => {
    this.#isFull = false
    this.resume()
  }
}

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
  readonly now: () => Utf8.MonotonicTime
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
  readonly connection: CallerConnection
  readonly openedAt: Utf8.MonotonicTime
  /** The number of frames read from the caller. */
  received = 0
  closing: Closing | undefined
  /** The time at which a close frame was sent. */
  closedAt: Utf8.MonotonicTime | undefined
  isOver = false
  /**
   * `at` is the time of the latest progress, `pinged` the time of the latest ping. The byte counts are from the latest
   * check: see `SessionChecks.checkProgress`.
   */
  readonly progress: { at: Utf8.MonotonicTime; written: number; read: number; pinged: Utf8.MonotonicTime }
  readonly outbox: Outbox
  readonly #socket: CallerSocket
  readonly #allowance: Allowance
  readonly #around: SocketSurroundings
  #running: Set<Fiber.Fiber<void>> | undefined
  #window = { start: Utf8.longAgo, messages: 0, bytes: 0 }

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

  /** The bytes of events that the client has not read yet. */
  get pending(): number {
    return this.outbox.pending
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
    this.outbox.push(textFrame(text))
  }

  #counts(bytes: number): boolean {
    const now = this.#around.now()
    if (Utf8.millisBetween(this.#window.start, now) >= minute) this.#window = { start: now, messages: 0, bytes: 0 }
    this.received++
    this.#window.messages++
    this.#window.bytes += bytes
    const messages = this.caller.quota.messagesPerMinute ?? this.#around.limits.messages
    return this.#window.messages <= messages && this.#window.bytes <= messages * bytesPerMessage
  }
}
