/**
 * A caller's connection with its protocol: the venue's WebSocket protocol, JSON-RPC, or a stream of Server-Sent Events.
 */
import { type Caller, type Chain, CurrentCaller } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { Overloaded } from "@trigate/domain/errors/GatewayError"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import type { RpcCall } from "@trigate/domain/evm/EvmProtocol"
import { invalidFilter, RangeFilter } from "@trigate/domain/evm/EvmResources"
import { type Need, notPermitted } from "@trigate/domain/operations/Operation"
import type { EvmSink, Interest, Subscribed } from "@trigate/domain/unstable/evm/EvmStreams"
import * as Subscription from "@trigate/domain/unstable/streams/Subscription"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import type { EvmFeed } from "@trigate/evm/unstable/EvmFeed"
import type { SharedStreams } from "@trigate/trading/streams/Streams"
import * as ResumableSubscriber from "@trigate/trading/unstable/streams/ResumableSubscriber"
import * as VenueProtocol from "@trigate/trading/unstable/streams/VenueProtocol"
import type { Frame, Subscriber, Topic } from "@trigate/upstream/unstable/streams/Topic"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as SocketSession from "./SocketSession.ts"

/** The environment of a session: the shared streams, and the function that serves `post` messages. */
export interface Surroundings extends SocketSession.SocketSurroundings {
  readonly streams: SharedStreams
  /**
   * Serves a `post` message. Returns the field `response` of the frame to send; `undefined` for a query that the venue
   * cannot decode.
   */
  readonly post: (kind: "action" | "info", payload: string, caller: Caller) => Effect.Effect<string | undefined>
}

/** The JSON limits of a frame. */
export const frameLimits: Encoding.Limits = { maxDepth: 32, maxValues: 10_000 }

const pongFrame = SocketSession.textFrame(VenueProtocol.pong)

const isPostId = (id: unknown): boolean =>
  Predicate.isBigInt(id) ? id >= 0n && id < 2n ** 64n : Number.isSafeInteger(id) && Number(id) >= 0

/**
 * Returns the error if a caller's scope does not allow the subscription `name` or, if `name` is absent, reads of the
 * venue. Returns `undefined` if the scope allows them.
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
export class Session extends SocketSession.SocketSession implements ResumableSubscriber.ResumableSink {
  readonly #around: Surroundings
  readonly #subscriber: Subscriber
  /** The subscriptions that wait until the gateway has looked up the names in them, such as a coin's name. */
  #pending: Set<string> | undefined
  #posts = 0

  /** `resume`: the position from which the caller resumes; `undefined` for a caller that uses only the venue's protocol. */
  constructor(opened: SocketSession.Opened, around: Surroundings, resume: ResumableSubscriber.Start | undefined) {
    super(opened, around)
    this.#around = around
    const { caller } = opened
    this.#subscriber = resume === undefined
      ? around.streams.join(caller.id, this)
      : ResumableSubscriber.join(around.streams, caller.id, this, resume)
    this.outbox.flush()
  }

  subscribed({ key }: Topic): void {
    this.write(VenueProtocol.acknowledgement("subscribe", key))
  }

  deliver(frame: Frame, position?: Subscription.ResumePosition): void {
    if (position === undefined) this.outbox.push(SocketSession.wireBytes(frame), frame.state)
    else this.write(Subscription.withPosition(frame.text, position))
  }

  refused(_topic: Topic, message: string, wasSubscribed: boolean): void {
    // a client ignores an error that follows no request, and would wait for frames that do not come
    if (wasSubscribed) this.close("ended")
    else this.#fail(message)
  }

  resumed(resumption: Subscription.Resumption): void {
    this.write(VenueProtocol.dataFrame(Subscription.channel, Subscription.printResumption(resumption)))
  }

  /** The number of the socket's subscriptions, including the pending ones. */
  get subscriptions(): number {
    return (this.#pending?.size ?? 0) + this.#subscriber.size()
  }

  /** Returns whether a caller's scope allows the socket's subscriptions. */
  isCoveredBy(caller: Caller): boolean {
    return isCovered(caller, this.#subscriber.topics())
  }

  protected leave(): void {
    this.#subscriber.leave()
  }

  #fail(message: string): void {
    this.write(VenueProtocol.errorFrame(message))
  }

  protected handle(text: string): void {
    const parsed = Encoding.parseStrict(text, frameLimits)
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
          : VenueProtocol.unreadableSubscription(read.failure, Encoding.stringify(value))
      )
    }
    if (method === "subscribe") this.#subscribe(read.success)
    else this.#unsubscribe(read.success)
  }

  #subscribe(subscription: Subscription.Normalised): void {
    const { declaration, key } = subscription
    const { streams, limits } = this.#around
    const topic = streams.topicOf(subscription)
    if (this.#pending?.has(key) === true || this.#subscriber.has(topic)) return this.#fail(`Already subscribed: ${key}`)
    const refusal = scopeRefusal(this.caller, declaration.name)
    if (refusal !== undefined) {
      return this.#fail(`${VenueProtocol.invalidSubscription(key)}: ${refusal._tag}: ${refusal.message}`)
    }
    const most = this.caller.quota.subscriptions ?? limits.subscriptions
    if (this.subscriptions >= most) return this.#fail(VenueProtocol.protocol.refusal("subscriptions", most))
    if (streams.knows(subscription)) return this.#subscriber.subscribe(topic)
    const pending = this.#pending ??= new Set()
    pending.add(key)
    const check = Effect.provideService(streams.check(subscription), CurrentCaller, this.caller)
    this.fork(Effect.map(check, (found) => {
      // the caller may have unsubscribed during the lookup
      if (!pending.delete(key) || this.isOver) return
      if (found === undefined) this.#subscriber.subscribe(topic)
      else this.#fail(found)
      this.outbox.flush()
    }))
  }

  #unsubscribe(subscription: Subscription.Normalised): void {
    const { key } = subscription
    const isPending = this.#pending?.delete(key) === true
    if (!this.#subscriber.unsubscribe(this.#around.streams.topicOf(subscription)) && !isPending) {
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
    const span = Encoding.members(text, from).get(member)
    if (span === undefined) return undefined
    from = span.start
    end = span.end
  }
  return text.slice(from, end)
}

/** Counts the bytes of the filters of open subscriptions, in total and by caller. */
export interface FilterUse {
  /** Reserves bytes. Returns `false`, and reserves nothing, beyond the limit of all callers or of one. */
  readonly reserve: (caller: string, bytes: number) => boolean
  readonly release: (caller: string, bytes: number) => void
  /** The reserved bytes, by caller. */
  readonly byCaller: ReadonlyMap<string, number>
}

/** The bytes that a subscription with a short filter takes. */
const subscriptionBytes = 256

/** The environment of a session: its chain, the chain's block feed, and the function that serves calls. */
export interface RpcSurroundings extends SocketSession.SocketSurroundings {
  readonly chain: Chain
  readonly feed: EvmFeed
  readonly filters: FilterUse
  /** Returns the response that the HTTP route would return to a message. */
  readonly reply: (text: string, caller: Caller) => Effect.Effect<string | undefined>
}

const rpcFrameLimits: Encoding.Limits = { ...Encoding.defaultLimits, maxValues: 20_000 }

const Filter = Schema.Struct({
  address: RangeFilter.fields.address,
  topics: RangeFilter.fields.topics,
  // a tag such as `latest` has no effect: logs are sent as blocks arrive
  fromBlock: Schema.optionalKey(Schema.Union([Encoding.Quantity, Schema.Null, Schema.String])),
  positions: Schema.optionalKey(Schema.Boolean)
})
const decodeFilter = Schema.decodeUnknownOption(Filter)

/**
 * Decodes the block at which a `newHeads` subscription starts. Other values are ignored, such as the empty object that
 * MetaMask sends.
 */
const decodeStart = Schema.decodeUnknownOption(
  Schema.Struct({ fromBlock: Schema.Union([Schema.Literal("latest"), Encoding.Quantity]) })
)

const rpcError = (id: string | undefined, code: number, message: string): string =>
  JsonRpc.errorText(id ?? "null", JSON.stringify({ code, message }))

const asList = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/** Returns the subscription that a call requests; an error if the request is invalid. */
const interestIn = (
  { params }: RpcCall
): Result.Result<Interest, { readonly code: number; readonly message: string }> => {
  const given: unknown = params.valueOrUndefined
  const [kind, detail] = asList(given)
  switch (kind) {
    case "newHeads":
      return Result.succeed({ kind, ...Option.getOrUndefined(decodeStart(detail)) })
    case "syncing":
      return Result.succeed({ kind })
    case "newPendingTransactions":
      return detail === true
        ? Result.fail({
          code: -32602,
          message: "invalid params: newPendingTransactions sends hashes only, not whole transactions"
        })
        : Result.succeed({ kind })
    case "logs": {
      const filter = decodeFilter(detail ?? {})
      if (Option.isNone(filter)) return Result.fail({ code: -32602, message: invalidFilter })
      const { address, fromBlock, positions, topics } = filter.value
      return Result.succeed({
        kind,
        filter: {
          ...(Predicate.isNullish(address) ? {} : { address }),
          ...(Predicate.isNullish(topics) ? {} : { topics })
        },
        ...(typeof fromBlock === "bigint" ? { fromBlock } : {}),
        ...(positions === true ? { hasPositions: true } : {})
      })
    }
    default:
      return Result.fail({
        code: -32601,
        message: `no "${String(kind).slice(0, 64)}" subscription in eth namespace`
      })
  }
}

/** One JSON-RPC socket of a caller. */
export class RpcSession extends SocketSession.SocketSession {
  readonly #need: Need
  readonly #around: RpcSurroundings
  readonly #subscribed = new Map<string, Subscribed>()
  readonly #sink: EvmSink
  #calls = 0

  constructor(opened: SocketSession.Opened, around: RpcSurroundings) {
    super(opened, around)
    this.#around = around
    this.#need = { chain: around.chain, class: "read" }
    this.#sink = {
      caller: this.caller,
      deliver: (frame) => this.outbox.push(SocketSession.wireBytes(frame)),
      flush: () => this.outbox.flush()
    }
  }

  get subscriptions(): number {
    return this.#subscribed.size
  }

  isCoveredBy({ scope }: Caller): boolean {
    return notPermitted(scope, this.#need) === undefined
  }

  protected leave(): void {
    for (const { end } of this.#subscribed.values()) end()
    this.#subscribed.clear()
  }

  protected handle(text: string): void {
    const call = subscriptionCall(text)
    if (call?.method === "eth_subscribe") return this.#subscribe(call)
    if (call?.method === "eth_unsubscribe") return this.#unsubscribe(call)
    if (this.#calls >= this.#around.limits.posts) {
      const refusal = new Overloaded({ retryAfter: 1, detail: "This WebSocket has too many concurrent calls" })
      return this.write(JsonRpc.errorText(idIn(text), JsonRpc.errorObject(refusal)))
    }
    this.#calls++
    this.fork(Effect.map(this.#around.reply(text, this.caller), (response) => {
      this.#calls--
      if (response !== undefined && !this.isOver) this.write(response)
      this.outbox.flush()
    }))
  }

  #subscribe(call: RpcCall): void {
    const interest = interestIn(call)
    if (Result.isFailure(interest)) {
      return this.write(rpcError(call.id, interest.failure.code, interest.failure.message))
    }
    const refusal = notPermitted(this.caller.scope, { ...this.#need, name: call.method })
    if (refusal !== undefined) return this.write(JsonRpc.errorText(call.id ?? "null", JsonRpc.errorObject(refusal)))
    const most = this.caller.quota.subscriptions ?? this.#around.limits.subscriptions
    if (this.#subscribed.size >= most) {
      return this.write(rpcError(call.id, -32005, `a WebSocket has at most ${most} subscriptions`))
    }
    const bytes = subscriptionBytes + call.params.text.length
    const { filters } = this.#around
    const { id: caller } = this.caller
    if (!filters.reserve(caller, bytes)) {
      return this.write(
        rpcError(call.id, -32005, "the filters of open subscriptions are too long: unsubscribe from some")
      )
    }
    const { end, id } = this.#around.feed.subscribe(interest.success, this.#sink)
    this.#subscribed.set(id, {
      id,
      end: () => {
        end()
        filters.release(caller, bytes)
      }
    })
    this.write(JsonRpc.resultText(call.id ?? "null", JSON.stringify(id)))
  }

  #unsubscribe(call: RpcCall): void {
    const params: unknown = call.params.valueOrUndefined
    const [id] = asList(params)
    const found = Predicate.isString(id) ? this.#subscribed.get(id.toLowerCase()) : undefined
    if (found === undefined) return this.write(rpcError(call.id, -32000, "subscription not found"))
    this.#subscribed.delete(found.id)
    found.end()
    this.write(JsonRpc.resultText(call.id ?? "null", "true"))
  }
}

/** Decodes a call that subscribes or unsubscribes; `undefined` for any other message. */
const subscriptionCall = (text: string): RpcCall | undefined => {
  if (!text.includes("subscribe")) return undefined
  const parsed = Encoding.parseStrict(text, rpcFrameLimits)
  if (Result.isFailure(parsed)) return undefined
  return Result.getOrUndefined(JsonRpc.readCall(Encoding.parsed(text, parsed.success)))
}

/** Returns the ID of a call as JSON; `null` if the call cannot be parsed or has no valid ID. */
export const idIn = (text: string): string => {
  const parsed = Encoding.parse(text)
  const id = Result.isSuccess(parsed) ? JsonRpc.member(parsed.success, "id") : undefined
  return Predicate.isString(id) || Predicate.isNumber(id) || Predicate.isBigInt(id) ? Encoding.stringify(id) : "null"
}

/** Options of a stream. */
export interface Options {
  readonly streams: SharedStreams
  /** The validated subscriptions of the stream. */
  readonly topics: ReadonlyArray<Topic>
  /** The position from which the stream resumes; `undefined` if the caller sent no position, or a malformed one. */
  readonly from: Subscription.ResumePosition | undefined
  readonly queue: SocketSession.Bounds
  readonly now: () => Encoding.MonotonicTime
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
  readonly closing: SocketSession.Closing | undefined
  /** Whether the stream waits because the caller has used up its bytes per second. */
  isThrottled: boolean
  readonly conflated: number
  /** The bytes of events that the client has not read yet. */
  readonly pending: number
  /** Returns whether a caller's scope includes the stream. */
  readonly isCoveredBy: (caller: Caller) => boolean
  /** The text of the stream, which ends when the gateway closes the stream. */
  readonly texts: Stream.Stream<Uint8Array>
  /** Ends the stream with a reason. Later calls have no effect. */
  readonly close: (closing: SocketSession.Closing) => void
  /** Ends the stream and drops pending events. */
  readonly end: () => void
  /** Writes a comment if no event was written for {@link quietFor} milliseconds. */
  readonly keepAlive: () => void
}

/** An event stream with frames of the venue. */
export class EventStream implements ServedEvents {
  caller: Caller
  readonly openedAt: Encoding.MonotonicTime
  /** The headers that identify the page that opened the stream; `undefined` if the client is not a web page. */
  page: HttpServerRequest["headers"] | undefined
  closing: SocketSession.Closing | undefined
  isThrottled = false
  written = 0
  conflated = 0
  readonly #options: Options
  readonly #subscriber: Subscriber
  #events: Array<string> = [retry]
  #bytes = 0
  #states = new Map<string, string>()
  #isOver = false
  /** Whether all subscriptions of the stream were requested. */
  isSubscribed = false
  /** Whether the stream ends after its pending events. */
  #isEnding = false
  #wake: (() => void) | undefined
  #writtenAt: Encoding.MonotonicTime

  constructor(caller: Caller, options: Options) {
    this.caller = caller
    this.#options = options
    this.openedAt = options.now()
    this.#writtenAt = this.openedAt
    this.#subscriber = ResumableSubscriber.join(options.streams, caller.id, {
      resumed: (resumption) =>
        this.#push(
          eventText(
            Subscription.printResumption(resumption),
            Subscription.print(resumption),
            Subscription.channel
          )
        ),
      subscribed: ({ key }) => this.#push(eventText(VenueProtocol.acknowledgement("subscribe", key), undefined)),
      deliver: ({ state, text }, position) =>
        this.#push(eventText(text, position && Subscription.print(position)), state),
      refused: (_topic, message, wasSubscribed) => {
        this.#push(eventText(VenueProtocol.errorFrame(message), undefined))
        if (wasSubscribed || (this.isSubscribed && this.#subscriber.size() === 0)) this.#finish()
      },
      flush: () => this.#flush()
    }, options)
    for (const topic of options.topics) this.#subscriber.subscribe(topic)
    this.isSubscribed = true
    if (this.#subscriber.size() === 0) this.#finish()
  }

  get pending(): number {
    return this.#bytes
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
    return Stream.fromPull(Effect.succeed(Effect.map(this.#take, (text) => [Encoding.encode(text)] as const)))
  }

  /** Ends the stream with a reason. Later calls have no effect. */
  close(closing: SocketSession.Closing): void {
    if (this.#isOver) return
    this.closing = closing
    this.end()
  }

  /** Ends the stream after its pending events, because a subscription cannot continue: the client connects again. */
  #finish(): void {
    this.#isEnding = true
    this.#subscriber.leave()
    this.#flush()
  }

  /** Ends the stream and drops pending events. */
  end(): void {
    this.#isOver = true
    this.#subscriber.leave()
    this.#events = []
    this.#states = new Map()
    this.#flush()
  }

  /** Writes a comment if no event was written for {@link quietFor} milliseconds. */
  keepAlive(): void {
    if (Encoding.millisBetween(this.#writtenAt, this.#options.now()) < quietFor) return
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
