/**
 * The outgoing frames of one WebSocket.
 *
 * Frames are written directly while the socket accepts them. Once its buffer is full, states wait as the latest one of each kind,
 * and events wait in a queue with a maximum number and size. An event is never dropped: over the limit the socket is closed.
 */
import type { Socket } from "node:net"

/** The limits of pending frames. */
export interface Bounds {
  readonly frames: number
  readonly bytes: number
}

/** The frames of one socket. */
export class Outbox {
  readonly #socket: Socket
  readonly #bounds: Bounds
  readonly #onOverflow: () => void
  #events: Array<Uint8Array> = []
  #eventBytes = 0
  #states: Map<string, Uint8Array> | undefined
  #isFull = false
  #isCorked = false
  #isClosed = false
  /** The number of written frames, and of states that later ones replaced. */
  written = 0
  conflated = 0

  constructor(socket: Socket, bounds: Bounds, onOverflow: () => void) {
    this.#socket = socket
    this.#bounds = bounds
    this.#onOverflow = onOverflow
    socket.on("drain", this.#drained)
  }

  /** Whether the socket's buffer is full. */
  get isFull(): boolean {
    return this.#isFull
  }

  /** Writes or queues a frame; a state replaces the pending one of the same name. */
  push(bytes: Uint8Array, state?: string): void {
    if (this.#isClosed) return
    if (!this.#isFull) this.#write(bytes)
    else if (state !== undefined) {
      this.#states ??= new Map()
      if (this.#states.delete(state)) this.conflated++
      this.#states.set(state, bytes)
    } else {
      this.#eventBytes += bytes.length
      if (this.#events.push(bytes) > this.#bounds.frames || this.#eventBytes > this.#bounds.bytes) {
        this.close()
        this.#onOverflow()
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
    if (!this.#socket.write(bytes)) this.#isFull = true
  }

  readonly #drained = (): void => {
    this.#isFull = false
    let taken = 0
    while (taken < this.#events.length && !this.#isFull) {
      const bytes = this.#events[taken++]
      if (bytes !== undefined) {
        this.#eventBytes -= bytes.length
        this.#write(bytes)
      }
    }
    if (taken > 0) this.#events = this.#events.slice(taken)
    for (const [state, bytes] of this.#states ?? []) {
      if (this.#isFull) break
      this.#states?.delete(state)
      this.#write(bytes)
    }
    this.flush()
  }
}
