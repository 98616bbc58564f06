/**
 * The outgoing frames of one WebSocket.
 *
 * Frames are written directly while the socket accepts them. If the socket's buffer is full, or the caller has used up
 * its bytes of the current second, frames wait. For each state, such as an order book, only the latest frame waits. All
 * other frames are events. Events wait in a queue that has a maximum length and size, and are never dropped: if the
 * queue exceeds its limits, the socket is closed.
 */
import type { Socket } from "node:net"

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
  readonly #socket: Socket
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
  constructor(socket: Socket, bounds: Bounds, allowance: Allowance, onOverflow: (isSlow: boolean) => void) {
    this.#socket = socket
    this.#bounds = bounds
    this.#allowance = allowance
    this.#onOverflow = onOverflow
    socket.on("drain", this.#drained)
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
