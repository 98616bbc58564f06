/** One WebSocket of a caller: its frames are read and answered as the venue does. */
import type { Caller } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Json"
import { notPermitted } from "@trigate/domain/operations/Operation"
import * as ResumePosition from "@trigate/domain/streams/ResumePosition"
import type { Normalised } from "@trigate/domain/streams/Subscription"
import * as Subscriptions from "@trigate/domain/streams/Subscriptions"
import * as ResumableSeat from "@trigate/trading/streams/ResumableSeat"
import type { SharedStreams } from "@trigate/trading/streams/Streams"
import * as VenueProtocol from "@trigate/trading/streams/VenueProtocol"
import type { Seat } from "@trigate/upstream/streams/Seat"
import type { Frame, Topic } from "@trigate/upstream/streams/Topic"
import * as Effect from "effect/Effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
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

/** What a socket may take. */
export interface Limits {
  /** Frames and bytes of events that may wait for a socket that is not read. */
  readonly queue: Bounds
  /** Messages of the caller in a minute. */
  readonly messages: number
  readonly subscriptions: number
  /** Posts that are under way at the same time. */
  readonly posts: number
}

/** What a session does through its surroundings. */
export interface Surroundings {
  readonly streams: SharedStreams
  readonly limits: Limits
  /** Where a caller continues who can resume; undefined for one who speaks the venue's protocol alone. */
  readonly resume: ResumableSeat.Start | undefined
  readonly now: () => number
  /** Runs an effect that ends with the session. */
  readonly fork: (effect: Effect.Effect<void>) => void
  /** Closes the socket. Called once. */
  readonly close: (closing: Closing) => void
  /** Answers a post: returns the member `response` of its frame; undefined for a query that the venue cannot read. */
  readonly post: (kind: "action" | "info", payload: string, caller: Caller) => Effect.Effect<string | undefined>
}

/** The nesting of a frame. */
export const frameLimits: Json.Limits = { maxDepth: 32, maxValues: 10_000 }

const minute = 60_000

/** Bytes in a minute, for each message that a caller may send in it. */
const bytesPerMessage = 4096

const pongFrame = WebSocketFrame.textFrame(VenueProtocol.pong)

const isPostId = (id: unknown): boolean =>
  Predicate.isBigInt(id) ? id >= 0n && id < 2n ** 64n : Number.isSafeInteger(id) && Number(id) >= 0

/** Returns why a caller may not read a subscription of a name, or any without one; undefined where it may. */
const scopeRefusal = ({ scope }: Caller, name?: string) =>
  notPermitted(scope, { chain: "trading", class: "read", ...(name === undefined ? {} : { name }) })

/** Whether the scope of a caller covers subscriptions that it has. */
export const isCovered = (caller: Caller, topics: Iterable<Topic>): boolean => {
  if (scopeRefusal(caller) !== undefined) return false
  for (const { name } of topics) if (scopeRefusal(caller, name) !== undefined) return false
  return true
}

/** One socket of a caller. */
export class Session {
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
  readonly #around: Surroundings
  readonly #seat: Seat
  /** Subscriptions whose names are being looked up. */
  readonly #pending = new Set<string>()
  #posts = 0
  #window = { start: 0, messages: 0, bytes: 0 }

  constructor(caller: Caller, socket: Socket, around: Surroundings) {
    this.caller = caller
    this.socket = socket
    this.#around = around
    this.openedAt = around.now()
    this.outbox = new Outbox(socket, around.limits.queue, () => this.close("slow"))
    const sink = {
      subscribed: ({ key }: Topic) => this.#write(VenueProtocol.acknowledgement("subscribe", key)),
      deliver: (frame: Frame, position?: ResumePosition.ResumePosition) =>
        position === undefined
          ? this.outbox.push(WebSocketFrame.wireOf(frame), frame.state)
          : this.#write(ResumePosition.withPosition(frame.text, position)),
      refused: (_topic: Topic, message: string) => this.#fail(message),
      flush: () => this.outbox.flush()
    }
    this.#seat = around.resume === undefined
      ? around.streams.join(caller.id, sink)
      : ResumableSeat.join(around.streams, caller.id, {
        ...sink,
        resumed: (resumption) =>
          this.#write(VenueProtocol.dataFrame(ResumePosition.channel, ResumePosition.printResumption(resumption)))
      }, around.resume)
    this.outbox.flush()
  }

  /** The number of its subscriptions. */
  get subscriptions(): number {
    return this.#pending.size + this.#seat.size()
  }

  /** Whether the scope of a caller covers its subscriptions. */
  isCoveredBy(caller: Caller): boolean {
    return isCovered(caller, this.#seat.topics())
  }

  /** Closes the socket with a reason; does nothing the second time. */
  close(closing: Closing): void {
    if (this.closing !== undefined || this.isOver) return
    this.closing = closing
    this.#seat.leave()
    this.outbox.close()
    this.#around.close(closing)
  }

  /** Lets go of everything; the socket is closed. */
  end(): void {
    this.isOver = true
    this.#seat.leave()
    this.outbox.close()
  }

  /** Reads the frames of the caller that came together. */
  receive(frames: ReadonlyArray<string | Uint8Array>): void {
    for (const frame of frames) {
      if (this.closing !== undefined || this.isOver) return
      if (!Predicate.isString(frame)) return this.close("binary")
      if (!this.#counts(frame.length)) return this.close("rate")
      this.#handle(frame)
    }
    this.outbox.flush()
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

  #write(text: string): void {
    this.outbox.push(WebSocketFrame.textFrame(text))
  }

  #fail(message: string): void {
    this.#write(VenueProtocol.errorFrame(message))
  }

  #handle(text: string): void {
    const parsed = Json.parseStrict(text, frameLimits)
    const frame = Result.isSuccess(parsed) && Predicate.isObject(parsed.success) ? parsed.success : {}
    const method = Predicate.hasProperty(frame, "method") ? frame.method : undefined
    switch (method) {
      case "ping":
        return this.outbox.push(pongFrame)
      case "subscribe":
      case "unsubscribe":
        if (!Predicate.hasProperty(frame, "subscription")) break
        return this.#subscription(method, frame.subscription, text)
      case "post":
        if (!Predicate.hasProperty(frame, "id") || !Predicate.hasProperty(frame, "request")) break
        if (isPostId(frame.id)) return this.#post(String(frame.id), frame.request, text)
    }
    this.#fail(VenueProtocol.unreadable(text))
  }

  #subscription(method: "subscribe" | "unsubscribe", value: unknown, text: string): void {
    const read = Subscriptions.read(value)
    if (Result.isFailure(read)) {
      const isWellFormed = Predicate.hasProperty(value, "coin") ? Predicate.isString(value.coin) : true
      return this.#fail(
        read.failure === "unknown type" || !isWellFormed
          ? VenueProtocol.unreadable(text)
          : VenueProtocol.invalidSubscription(Json.stringify(value))
      )
    }
    if (method === "subscribe") this.#subscribe(read.success)
    else this.#unsubscribe(read.success)
  }

  #subscribe(subscription: Normalised): void {
    const { declaration, key } = subscription
    const { streams, limits } = this.#around
    const topic = streams.topicOf(subscription)
    if (this.#pending.has(key) || this.#seat.has(topic)) return this.#fail(`Already subscribed: ${key}`)
    const refusal = scopeRefusal(this.caller, declaration.name)
    if (refusal !== undefined) {
      return this.#fail(`${VenueProtocol.invalidSubscription(key)}: ${refusal._tag}: ${refusal.message}`)
    }
    const most = this.caller.quota.subscriptions ?? limits.subscriptions
    if (this.subscriptions >= most) return this.#fail(VenueProtocol.protocol.refusal("subscriptions", most))
    if (streams.knows(subscription)) return this.#seat.subscribe(topic)
    this.#pending.add(key)
    this.#around.fork(Effect.map(streams.check(subscription), (found) => {
      // the caller may have unsubscribed meanwhile
      if (!this.#pending.delete(key) || this.isOver) return
      if (found === undefined) this.#seat.subscribe(topic)
      else this.#fail(found)
      this.outbox.flush()
    }))
  }

  #unsubscribe(subscription: Normalised): void {
    const { key } = subscription
    const isPending = this.#pending.delete(key)
    if (!this.#seat.unsubscribe(this.#around.streams.topicOf(subscription)) && !isPending) {
      return this.#fail(`Already unsubscribed: ${key}`)
    }
    this.outbox.forget(key)
    this.#write(VenueProtocol.acknowledgement("unsubscribe", key))
  }

  #post(id: string, request: unknown, text: string): void {
    const kind = Predicate.hasProperty(request, "type") ? request.type : undefined
    const payload = sliceAt(text, ["request", "payload"])
    if ((kind !== "action" && kind !== "info") || payload === undefined || !payload.startsWith("{")) {
      return this.#fail(VenueProtocol.unreadable(text))
    }
    if (this.#posts >= this.#around.limits.posts) return this.#fail(`too many pending post requests id=${id}`)
    this.#posts++
    this.#around.fork(Effect.map(this.#around.post(kind, payload, this.caller), (response) => {
      this.#posts--
      if (response === undefined) this.#fail(VenueProtocol.unreadable(text))
      else this.#write(`{"channel":"post","data":{"id":${id},"response":${response}}}`)
      this.outbox.flush()
    }))
  }
}

/** The JSON at a path of members in a valid JSON text. */
const sliceAt = (text: string, path: ReadonlyArray<string>): string | undefined => {
  let from = 0
  let end = text.length
  for (const member of path) {
    const span = Json.members(text, from).get(member)
    if (span === undefined) return undefined
    from = span.start
    end = span.end
  }
  return text.slice(from, end)
}
