/**
 * The outgoing frames of one WebSocket.
 *
 * Frames go straight into the socket while it takes them. Once its buffer is full, states wait as the latest one of each kind, and
 * events wait in a queue that is bounded in number and bytes. An event is never dropped: beyond the bound the socket is closed.
 */
import type { Socket } from "node:net"

/** What may wait for a socket that is not read. */
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
  /** Frames that were written, and states that later ones replaced. */
  written = 0
  conflated = 0

  constructor(socket: Socket, bounds: Bounds, onOverflow: () => void) {
    this.#socket = socket
    this.#bounds = bounds
    this.#onOverflow = onOverflow
    socket.on("drain", this.#drained)
  }

  /** Whether the socket takes nothing more for now. */
  get isFull(): boolean {
    return this.#isFull
  }

  /** Writes a frame, or lets it wait; a state replaces the one of the same name that still waits. */
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

  /** Drops the states of a subscription that has ended. */
  forget(key: string): void {
    for (const state of this.#states?.keys() ?? []) {
      if (state === key || state.startsWith(`${key}#`)) this.#states?.delete(state)
    }
  }

  /** Hands the pending frames to the system, in one call. */
  flush(): void {
    if (!this.#isCorked) return
    this.#isCorked = false
    this.#socket.uncork()
  }

  /** Writes nothing any more, and lets go of what waits. */
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
