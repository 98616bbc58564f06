/** A WebSocket of a test: keeps every frame that came, and waits for frames instead of sleeping. */
import * as Effect from "effect/Effect"
import { WebSocket } from "ws"

export interface Frame {
  readonly channel: string
  readonly data: unknown
  /** The text as it came. */
  readonly text: string
}

export interface Closed {
  readonly code: number
  readonly reason: string
}

export const parse = (text: string): Frame => {
  try {
    const value: unknown = JSON.parse(text)
    const channel = typeof value === "object" && value !== null && "channel" in value ? String(value.channel) : ""
    return {
      channel,
      data: typeof value === "object" && value !== null && "data" in value ? value.data : undefined,
      text
    }
  } catch {
    return { channel: "", data: undefined, text }
  }
}

export class TestSocket {
  readonly frames: Array<Frame> = []
  readonly closed: Promise<Closed>
  /** The status and body of a refused upgrade. */
  readonly refused: Promise<{ readonly status: number; readonly body: string }>
  readonly opened: Promise<void>
  readonly raw: WebSocket
  #taken = 0
  #end: Closed | undefined
  #waiting: Array<() => void> = []

  constructor(url: string, headers: Readonly<Record<string, string>> = {}) {
    this.raw = new WebSocket(url.replace(/^http/u, "ws"), { headers, perMessageDeflate: false })
    const refused = Promise.withResolvers<{ readonly status: number; readonly body: string }>()
    const opened = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<Closed>()
    this.refused = refused.promise
    this.opened = opened.promise
    this.closed = closed.promise
    for (const promise of [this.refused, this.opened]) promise.catch(() => {})
    this.raw.on("open", () => {
      opened.resolve()
      refused.reject(new Error("the upgrade was accepted"))
    })
    this.raw.on("unexpected-response", (_, response) => {
      let body = ""
      response.on("data", (chunk: Buffer) => (body += chunk.toString("utf8")))
      response.on("end", () => {
        refused.resolve({ status: response.statusCode ?? 0, body })
        opened.reject(new Error(`the upgrade was refused: ${response.statusCode} ${body}`))
        closed.resolve({ code: 0, reason: "" })
      })
    })
    this.raw.on("message", (data, isBinary) => {
      if (!isBinary) this.frames.push(parse(Buffer.isBuffer(data) ? data.toString("utf8") : ""))
      this.#wake()
    })
    this.raw.on("error", (error) => {
      opened.reject(error)
      refused.reject(error)
    })
    this.raw.on("close", (code, reason) => {
      this.#end = { code, reason: String(reason) }
      closed.resolve(this.#end)
      this.#wake()
    })
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const wake of waiting) wake()
  }

  send(frame: unknown): void {
    this.raw.send(typeof frame === "string" ? frame : JSON.stringify(frame))
  }

  subscribe(subscription: unknown): void {
    this.send({ method: "subscribe", subscription })
  }

  unsubscribe(subscription: unknown): void {
    this.send({ method: "unsubscribe", subscription })
  }

  /** Waits until a condition holds over all frames; fails if the socket closes before. */
  async until(isMet: (frames: ReadonlyArray<Frame>) => boolean, what = "a condition"): Promise<void> {
    while (!isMet(this.frames)) {
      if (this.#end !== undefined) {
        throw new Error(`closed with ${this.#end.code} ${this.#end.reason} before ${what}: ${this.#shown()}`)
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  #shown(): string {
    return this.frames.slice(-8).map(({ text }) => text.slice(0, 200)).join("\n")
  }

  /** The next frame that no `next` returned, of a channel if one is given; those of other channels are passed over. */
  async next(channel?: string): Promise<Frame> {
    const find = () =>
      this.frames.findIndex((frame, index) =>
        index >= this.#taken && (channel === undefined || frame.channel === channel)
      )
    await this.until(() => find() >= 0, `a frame of ${channel ?? "any channel"}`)
    const index = find()
    this.#taken = index + 1
    const frame = this.frames[index]
    if (frame === undefined) throw new Error("unreachable")
    return frame
  }

  of(channel: string): ReadonlyArray<Frame> {
    return this.frames.filter((frame) => frame.channel === channel)
  }
}

/** An open socket; it ends with the scope. */
export const openSocket = (url: string, headers: Readonly<Record<string, string>> = {}) =>
  Effect.tap(
    Effect.acquireRelease(
      Effect.sync(() => new TestSocket(url, headers)),
      (socket) => Effect.sync(() => socket.raw.terminate())
    ),
    (socket) => Effect.promise(() => socket.opened)
  )
