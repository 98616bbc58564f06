/**
 * A stream of Server-Sent Events for one caller: sends the frames of `/ws`, with positions from which the client can
 * resume the stream.
 */
import type { Caller } from "@trigate/domain/Caller"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as ResumePosition from "@trigate/domain/streams/ResumePosition"
import * as ResumableSeat from "@trigate/trading/streams/ResumableSeat"
import type { SharedStreams } from "@trigate/trading/streams/Streams"
import * as VenueProtocol from "@trigate/trading/streams/VenueProtocol"
import type { Seat } from "@trigate/upstream/streams/Seat"
import type { Topic } from "@trigate/upstream/streams/Topic"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Stream from "effect/Stream"
import type { Bounds } from "./Outbox.ts"
import { isCovered } from "./Session.ts"
import type { Closing } from "./SocketSession.ts"

/** Options of a stream. */
export interface Options {
  readonly streams: SharedStreams
  /** The validated subscriptions of the stream. */
  readonly topics: ReadonlyArray<Topic>
  /** The position from which the stream resumes; `undefined` if the caller sent no position, or a malformed one. */
  readonly from: ResumePosition.ResumePosition | undefined
  readonly queue: Bounds
  readonly now: () => number
}

/** Milliseconds without an event after which a comment is sent, so that the connection stays open. */
export const quietFor = 15_000

/** Headers of an event stream. They disable response buffering in proxies, which would delay the stream. */
export const eventStreamHeaders = { "cache-control": "no-store", "x-accel-buffering": "no" } as const

/** A comment, which clients ignore. */
export const keepalive = ": keepalive\n\n"

/** The frame that makes a client wait 1000 milliseconds before it reconnects. */
const retry = "retry: 1000\n\n"

// text without a line break is one line of data
const eventText = (data: string, id: string | undefined, event?: string): string =>
  `${event === undefined ? "" : `event: ${event}\n`}${id === undefined ? "" : `id: ${id}\n`}data: ${
    data.replaceAll(/\r?\n|\r/gu, "\ndata: ")
  }\n\n`

/** An event stream that the gateway counts, drains and closes. */
export interface ServedEvents {
  caller: Caller
  /** The headers that identify the page that opened the stream; `undefined` if the client is not a web page. */
  page: HttpServerRequest["headers"] | undefined
  readonly closing: Closing | undefined
  /** Whether the stream waits because the caller has used up its bytes per second. */
  isThrottled: boolean
  readonly conflated: number
  /** Returns whether a caller's scope includes the stream. */
  readonly isCoveredBy: (caller: Caller) => boolean
  /** The text of the stream, which ends when the gateway closes the stream. */
  readonly texts: Stream.Stream<Uint8Array>
  /** Ends the stream with a reason. Later calls have no effect. */
  readonly close: (closing: Closing) => void
  /** Ends the stream and drops pending events. */
  readonly end: () => void
  /** Writes a comment if no event was written for {@link quietFor} milliseconds. */
  readonly keepAlive: () => void
}

/** An event stream with frames of the venue. */
export class EventStream implements ServedEvents {
  caller: Caller
  readonly openedAt: number
  /** The headers that identify the page that opened the stream; `undefined` if the client is not a web page. */
  page: HttpServerRequest["headers"] | undefined
  closing: Closing | undefined
  isThrottled = false
  written = 0
  conflated = 0
  readonly #options: Options
  readonly #seat: Seat
  #events: Array<string> = [retry]
  #bytes = 0
  #states = new Map<string, string>()
  #isOver = false
  /** Whether all subscriptions of the stream were requested. */
  #isAsked = false
  /** Whether the stream ends after its pending events. */
  #isEnding = false
  #wake: (() => void) | undefined
  #writtenAt: number

  constructor(caller: Caller, options: Options) {
    this.caller = caller
    this.#options = options
    this.openedAt = options.now()
    this.#writtenAt = this.openedAt
    this.#seat = ResumableSeat.join(options.streams, caller.id, {
      resumed: (resumption) =>
        this.#push(
          eventText(
            ResumePosition.printResumption(resumption),
            ResumePosition.print(resumption),
            ResumePosition.channel
          )
        ),
      subscribed: ({ key }) => this.#push(eventText(VenueProtocol.acknowledgement("subscribe", key), undefined)),
      deliver: ({ state, text }, position) =>
        this.#push(eventText(text, position && ResumePosition.print(position)), state),
      refused: (_topic, message, wasSubscribed) => {
        this.#push(eventText(VenueProtocol.errorFrame(message), undefined))
        if (wasSubscribed || (this.#isAsked && this.#seat.size() === 0)) this.#finish()
      },
      flush: () => this.#flush()
    }, options)
    for (const topic of options.topics) this.#seat.subscribe(topic)
    this.#isAsked = true
    if (this.#seat.size() === 0) this.#finish()
  }

  /** The number of the stream's subscriptions. */
  get subscriptions(): number {
    return this.#options.topics.length
  }

  /** Returns whether a caller's scope allows the stream's subscriptions. */
  isCoveredBy(caller: Caller): boolean {
    return isCovered(caller, this.#options.topics)
  }

  /** The text of the stream, which ends when the gateway closes the stream. */
  get texts(): Stream.Stream<Uint8Array> {
    return Stream.fromPull(Effect.succeed(Effect.map(this.#take, (text) => [Utf8.encode(text)] as const)))
  }

  /** Ends the stream with a reason. Later calls have no effect. */
  close(closing: Closing): void {
    if (this.#isOver) return
    this.closing = closing
    this.end()
  }

  /** Ends the stream after its pending events, because a subscription cannot continue: the client connects again. */
  #finish(): void {
    this.#isEnding = true
    this.#seat.leave()
    this.#flush()
  }

  /** Ends the stream and drops pending events. */
  end(): void {
    this.#isOver = true
    this.#seat.leave()
    this.#events = []
    this.#states = new Map()
    this.#flush()
  }

  /** Writes a comment if no event was written for {@link quietFor} milliseconds. */
  keepAlive(): void {
    if (this.#options.now() - this.#writtenAt < quietFor) return
    if (this.#events.length > 0 || this.#states.size > 0) return
    this.#push(keepalive)
    this.#flush()
  }

  /**
   * Queues a frame. A frame with `state` replaces the pending frame that has the same `state`. A frame without `state`
   * is an event, and is never dropped.
   */
  #push(text: string, state?: string): void {
    if (this.#isOver) return
    if (state !== undefined) {
      if (this.#states.delete(state)) this.conflated++
      this.#states.set(state, text)
      return
    }
    this.#bytes += text.length
    const { bytes, frames } = this.#options.queue
    // up to 64 pending events can exceed the limit of bytes, because a single snapshot can be larger than the limit
    if (this.#events.push(text) > frames || (this.#bytes > bytes && this.#events.length > 64)) {
      this.close(this.isThrottled ? "bytesOut" : "slow")
    }
  }

  #flush(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }

  /** Waits for frames, and returns all pending frames as one text. */
  readonly #take: Effect.Effect<string, Cause.Done> = Effect.suspend(() => {
    if (this.#isOver) return Cause.done()
    if (this.#events.length > 0 || this.#states.size > 0) {
      const texts = [...this.#events, ...this.#states.values()]
      this.#events = []
      this.#states = new Map()
      this.#bytes = 0
      this.written += texts.length
      this.#writtenAt = this.#options.now()
      return Effect.succeed(texts.join(""))
    }
    if (this.#isEnding) {
      this.closing = "ended"
      return Cause.done()
    }
    return Effect.andThen(
      Effect.callback<void>((resume) => {
        this.#wake = () => resume(Effect.void)
      }),
      this.#take
    )
  })
}
