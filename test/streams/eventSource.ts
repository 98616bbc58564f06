/** A stream of Server-Sent Events of a test: keeps every event that came, and waits for events instead of sleeping. */
import * as Effect from "effect/Effect"
import { parse } from "./socket.ts"
import type { Frame } from "./socket.ts"
import { machineTime } from "./venue/clock.ts"

export interface Event extends Frame {
  /** The name of the event; `message` when it has none. */
  readonly event: string
  readonly id: string | undefined
  /** When it came, in milliseconds of the machine's monotonic clock. */
  readonly at: number
}

const fieldOf = (lines: ReadonlyArray<string>, name: string): string | undefined =>
  lines.findLast((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)

export class TestEvents {
  readonly events: Array<Event> = []
  /** Comments, which keep the connection open. */
  comments = 0
  #isOver = false
  #isCut = false
  #waiting: Array<() => void> = []
  readonly #aborting: AbortController

  constructor(body: ReadableStream<Uint8Array>, aborting: AbortController) {
    this.#aborting = aborting
    this.#read(body).catch(() => {
      this.#isCut = true
    }).finally(() => {
      this.#isOver = true
      this.#wake()
    })
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    let text = ""
    const decoder = new TextDecoder()
    for await (const chunk of body) {
      text += decoder.decode(chunk, { stream: true })
      const blocks = text.split("\n\n")
      text = blocks.pop() ?? ""
      for (const block of blocks) this.#take(block.split("\n"))
      this.#wake()
    }
  }

  #take(lines: ReadonlyArray<string>): void {
    if (lines.some((line) => line.startsWith(":"))) this.comments++
    const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n")
    if (data === "") return
    this.events.push({
      ...parse(data),
      event: fieldOf(lines, "event") ?? "message",
      id: fieldOf(lines, "id"),
      at: machineTime()
    })
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const wake of waiting) wake()
  }

  /** The id that an EventSource would send when it connects again. */
  get lastId(): string | undefined {
    return this.events.findLast(({ id }) => id !== undefined)?.id
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Whether the body ended without its end. */
  get isCut(): boolean {
    return this.#isCut
  }

  of(channel: string): ReadonlyArray<Event> {
    return this.events.filter((event) => event.event === "message" && event.channel === channel)
  }

  /** Waits until a condition holds over all events; fails if the stream ends before. */
  async until(isMet: (events: ReadonlyArray<Event>) => boolean, what: string): Promise<void> {
    while (!isMet(this.events)) {
      if (this.#isOver) {
        throw new Error(
          `ended before ${what}: ${this.events.slice(-8).map(({ text }) => text.slice(0, 200)).join("\n")}`
        )
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  /** Waits for the end of the stream. */
  async over(): Promise<void> {
    while (!this.#isOver) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  close(): void {
    this.#aborting.abort()
  }
}

/** The response to a request for a stream. */
export const requestEvents = (
  url: string,
  subscriptions: ReadonlyArray<unknown>,
  { headers = {}, path = "/streams", signal }: {
    readonly headers?: Readonly<Record<string, string>>
    readonly path?: string
    readonly signal?: AbortSignal
  } = {}
) => {
  const query = subscriptions.map((each) =>
    `subscribe=${encodeURIComponent(typeof each === "string" ? each : JSON.stringify(each))}`
  )
  return fetch(`${url}${path}${path.includes("?") ? "&" : "?"}${query.join("&")}`, {
    headers,
    ...(signal === undefined ? {} : { signal })
  })
}

/** An open stream; it ends with the scope. */
export const openEvents = (url: string, subscriptions: ReadonlyArray<unknown>, lastId?: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const aborting = new AbortController()
      const response = await requestEvents(url, subscriptions, {
        headers: lastId === undefined ? {} : { "last-event-id": lastId },
        signal: aborting.signal
      })
      if (response.status !== 200 || response.body === null) {
        throw new Error(`refused: ${response.status} ${await response.text()}`)
      }
      return new TestEvents(response.body, aborting)
    }),
    (stream) => Effect.sync(() => stream.close())
  )
