/** A caller's WebSocket with the venue's protocol: reads its frames and responds as the venue does. */
import { type Caller, CurrentCaller } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Json"
import { notPermitted } from "@trigate/domain/operations/Operation"
import * as ResumePosition from "@trigate/domain/streams/ResumePosition"
import type { Normalised } from "@trigate/domain/streams/Subscription"
import * as Subscriptions from "@trigate/domain/streams/Subscriptions"
import * as ResumableSeat from "@trigate/trading/streams/ResumableSeat"
import type { ResumableSink, Start } from "@trigate/trading/streams/ResumableSeat"
import type { SharedStreams } from "@trigate/trading/streams/Streams"
import * as VenueProtocol from "@trigate/trading/streams/VenueProtocol"
import type { Seat } from "@trigate/upstream/streams/Seat"
import type { Frame, Topic } from "@trigate/upstream/streams/Topic"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { SocketSession } from "./SocketSession.ts"
import type { Opened, SocketSurroundings } from "./SocketSession.ts"
import * as WebSocketFrame from "./WebSocketFrame.ts"

/** The environment of a session: the shared streams, and the function that serves `post` messages. */
export interface Surroundings extends SocketSurroundings {
  readonly streams: SharedStreams
  /**
   * Serves a `post` message. Returns the field `response` of the frame to send; `undefined` for a query that the venue
   * cannot decode.
   */
  readonly post: (kind: "action" | "info", payload: string, caller: Caller) => Effect.Effect<string | undefined>
}

/** The JSON limits of a frame. */
export const frameLimits: Json.Limits = { maxDepth: 32, maxValues: 10_000 }

const pongFrame = WebSocketFrame.textFrame(VenueProtocol.pong)

const isPostId = (id: unknown): boolean =>
  Predicate.isBigInt(id) ? id >= 0n && id < 2n ** 64n : Number.isSafeInteger(id) && Number(id) >= 0

/**
 * Returns the error if a caller's scope does not allow the subscription `name` or, if `name` is absent, reads of the
 * trading chain. Returns `undefined` if the scope allows them.
 */
const scopeRefusal = ({ scope }: Caller, name?: string) =>
  notPermitted(scope, { chain: "trading", class: "read", ...(name === undefined ? {} : { name }) })

/** Returns whether a caller's scope allows subscriptions to all of the given topics, such as the trades of a coin. */
export const isCovered = (caller: Caller, topics: Iterable<Topic>): boolean => {
  if (scopeRefusal(caller) !== undefined) return false
  for (const { name } of topics) if (scopeRefusal(caller, name) !== undefined) return false
  return true
}

/** One socket of a caller, with the venue's protocol. */
export class Session extends SocketSession implements ResumableSink {
  readonly #around: Surroundings
  readonly #seat: Seat
  /** The subscriptions that wait until the gateway has looked up the names in them, such as a coin's name. */
  #pending: Set<string> | undefined
  #posts = 0

  /** `resume`: the position from which the caller resumes; `undefined` for a caller that uses only the venue's protocol. */
  constructor(opened: Opened, around: Surroundings, resume: Start | undefined) {
    super(opened, around)
    this.#around = around
    const { caller } = opened
    this.#seat = resume === undefined
      ? around.streams.join(caller.id, this)
      : ResumableSeat.join(around.streams, caller.id, this, resume)
    this.outbox.flush()
  }

  subscribed({ key }: Topic): void {
    this.write(VenueProtocol.acknowledgement("subscribe", key))
  }

  deliver(frame: Frame, position?: ResumePosition.ResumePosition): void {
    if (position === undefined) this.outbox.push(WebSocketFrame.wireBytes(frame), frame.state)
    else this.write(ResumePosition.withPosition(frame.text, position))
  }

  refused(_topic: Topic, message: string, wasSubscribed: boolean): void {
    // a client ignores an error that follows no request, and would wait for frames that do not come
    if (wasSubscribed) this.close("ended")
    else this.#fail(message)
  }

  resumed(resumption: ResumePosition.Resumption): void {
    this.write(VenueProtocol.dataFrame(ResumePosition.channel, ResumePosition.printResumption(resumption)))
  }

  /** The number of the socket's subscriptions, including the pending ones. */
  get subscriptions(): number {
    return (this.#pending?.size ?? 0) + this.#seat.size()
  }

  /** Returns whether a caller's scope allows the socket's subscriptions. */
  isCoveredBy(caller: Caller): boolean {
    return isCovered(caller, this.#seat.topics())
  }

  protected leave(): void {
    this.#seat.leave()
  }

  #fail(message: string): void {
    this.write(VenueProtocol.errorFrame(message))
  }

  protected handle(text: string): void {
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
          : VenueProtocol.unreadableSubscription(read.failure, Json.stringify(value))
      )
    }
    if (method === "subscribe") this.#subscribe(read.success)
    else this.#unsubscribe(read.success)
  }

  #subscribe(subscription: Normalised): void {
    const { declaration, key } = subscription
    const { streams, limits } = this.#around
    const topic = streams.topicOf(subscription)
    if (this.#pending?.has(key) === true || this.#seat.has(topic)) return this.#fail(`Already subscribed: ${key}`)
    const refusal = scopeRefusal(this.caller, declaration.name)
    if (refusal !== undefined) {
      return this.#fail(`${VenueProtocol.invalidSubscription(key)}: ${refusal._tag}: ${refusal.message}`)
    }
    const most = this.caller.quota.subscriptions ?? limits.subscriptions
    if (this.subscriptions >= most) return this.#fail(VenueProtocol.protocol.refusal("subscriptions", most))
    if (streams.knows(subscription)) return this.#seat.subscribe(topic)
    const pending = this.#pending ??= new Set()
    pending.add(key)
    const check = Effect.provideService(streams.check(subscription), CurrentCaller, this.caller)
    this.fork(Effect.map(check, (found) => {
      // the caller may have unsubscribed during the lookup
      if (!pending.delete(key) || this.isOver) return
      if (found === undefined) this.#seat.subscribe(topic)
      else this.#fail(found)
      this.outbox.flush()
    }))
  }

  #unsubscribe(subscription: Normalised): void {
    const { key } = subscription
    const isPending = this.#pending?.delete(key) === true
    if (!this.#seat.unsubscribe(this.#around.streams.topicOf(subscription)) && !isPending) {
      return this.#fail(`Already unsubscribed: ${key}`)
    }
    this.outbox.forget(key)
    this.write(VenueProtocol.acknowledgement("unsubscribe", key))
  }

  #post(id: string, request: unknown, text: string): void {
    const kind = Predicate.hasProperty(request, "type") ? request.type : undefined
    const payload = sliceAt(text, ["request", "payload"])
    if ((kind !== "action" && kind !== "info") || payload === undefined || !payload.startsWith("{")) {
      return this.#fail(VenueProtocol.unreadable(text))
    }
    if (this.#posts >= this.#around.limits.posts) return this.#fail(`too many pending post requests id=${id}`)
    this.#posts++
    this.fork(Effect.map(this.#around.post(kind, payload, this.caller), (response) => {
      this.#posts--
      if (response === undefined) this.#fail(VenueProtocol.unreadable(text))
      else this.write(`{"channel":"post","data":{"id":${id},"response":${response}}}`)
      this.outbox.flush()
    }))
  }
}

/** Returns the JSON text at a path of field names in a valid JSON text. */
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
