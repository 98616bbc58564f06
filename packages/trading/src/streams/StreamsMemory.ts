/** `Streams` in memory: a test defines the frames that the venue sends, over an in-process venue. */
import * as Json from "@trigate/domain/encoding/Encoding"
import * as Subscription from "@trigate/domain/unstable/streams/Subscription"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import { type SocketLost, SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as EventStore from "../accounts/AccountEvents.ts"
import * as Streams from "./Streams.ts"
import * as VenueProtocol from "./VenueProtocol.ts"

/** Returns the `data` members of a subscription's frames; `undefined` for a subscription that the venue refuses. */
export type Frames = (subscription: Subscription.Normalised) => Stream.Stream<unknown> | undefined

/** Makes the transport of an in-process venue. Each connection is independent and ends with its scope. */
export const makeSocket = (frames: Frames): SocketTransport["Service"] =>
  SocketTransport.of({
    open: Effect.fnUntraced(function*() {
      const texts = yield* Queue.unbounded<string, SocketLost>()
      const running = yield* FiberMap.make<string>()
      const write = (text: string) => Effect.sync(() => void Queue.offerUnsafe(texts, text))
      const refuse = (message: string) => write(VenueProtocol.errorFrame(message))

      const subscribe = Effect.fnUntraced(function*(subscription: Subscription.Normalised) {
        const { key } = subscription
        if (yield* FiberMap.has(running, key)) return yield* refuse(`Already subscribed: ${key}`)
        const data = frames(subscription)
        if (data === undefined) {
          return yield* refuse(`${VenueProtocol.invalidSubscription(key)}: the sandbox does not support it`)
        }
        yield* write(VenueProtocol.acknowledgement("subscribe", key))
        const channel = VenueProtocol.channelName(subscription)
        yield* FiberMap.run(
          running,
          key,
          Stream.runForEach(
            data,
            (data) => write(VenueProtocol.dataFrame(channel, Json.stringify(data)))
          ).pipe(Effect.andThen(Effect.never))
        )
      })

      const unsubscribe = Effect.fnUntraced(function*({ key }: Subscription.Normalised) {
        if (!(yield* FiberMap.has(running, key))) return yield* refuse(`Already unsubscribed: ${key}`)
        yield* FiberMap.remove(running, key)
        yield* write(VenueProtocol.acknowledgement("unsubscribe", key))
      })

      const handle = Effect.fnUntraced(function*(text: string) {
        const frame = Result.getOrUndefined(Json.parse(text))
        const method = Subscription.valueAt(frame, "method")
        if (method === "ping") return yield* write(VenueProtocol.pong)
        const read = Subscriptions.read(Subscription.valueAt(frame, "subscription"))
        if (Result.isFailure(read)) return yield* refuse(VenueProtocol.unreadable(text))
        yield* (method === "unsubscribe" ? unsubscribe(read.success) : subscribe(read.success))
      })

      return { receive: Queue.takeAll(texts), send: handle }
    })
  })

/**
 * The controls with which a test sends frames and waits for subscriptions.
 *
 * Provided by `StreamsMemory.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { trades } from "@trigate/domain/streams/MarketSubscriptions"
 * import { Streams, StreamsMemory } from "@trigate/trading"
 * import { Console, Effect, Fiber, Option, Stream } from "effect"
 *
 * const hash = `0x${"12".repeat(32)}` as const
 * const trade = { coin: "BTC", side: "B", px: "60000", sz: "1", time: 0, tid: 1, hash } as const
 *
 * const program = Effect.gen(function*() {
 *   const streams = yield* Streams.Streams
 *   const { send, subscribed } = yield* StreamsMemory.StreamsState
 *   const head = yield* Effect.forkChild(Stream.runHead(streams.trades({ coin: "BTC" })))
 *   yield* subscribed(trades, { coin: "BTC" })
 *   yield* send(trades, { coin: "BTC" }, [trade])
 *   yield* Console.log(Option.map(yield* Fiber.join(head), ({ px }) => px))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, StreamsMemory.layer()))
 * ```
 * ```text
 * { _id: 'Option', _tag: 'Some', value: '60000' }
 * ```
 */
export class StreamsState extends Context.Service<StreamsState, {
  /** Waits until the venue has received a subscription. */
  readonly subscribed: <S extends Subscription.Subscription>(
    subscription: S,
    request: S["request"]["Encoded"]
  ) => Effect.Effect<void>
  /**
   * Sends items to the subscribers: all items in one frame if the subscription's frames contain lists, otherwise each
   * item in its own frame.
   */
  readonly send: <S extends Subscription.Subscription>(
    subscription: S,
    request: S["request"]["Encoded"],
    items: ReadonlyArray<Subscription.Item<S>>
  ) => Effect.Effect<void>
  /** Sends a frame with any `data`, including `data` that cannot be decoded. */
  readonly sendRaw: (
    subscription: Subscription.Subscription,
    request: unknown,
    data: unknown
  ) => Effect.Effect<void>
}>()("@trigate/trading/streams/StreamsMemory/StreamsState") {}

const addresses = [Redacted.make("memory")]

const make = Effect.gen(function*() {
  const open = new Map<string, Set<Queue.Queue<unknown>>>()
  const waiting = new Map<string, Deferred.Deferred<void>>()

  const subscriptionKey = (subscription: Subscription.Subscription, request: unknown): Effect.Effect<string> =>
    Effect.map(
      Effect.orDie(Effect.fromResult(
        Subscriptions.read({ type: subscription.name, ...(typeof request === "object" ? request : {}) })
      )),
      ({ key }) => key
    )

  const waitFor = (key: string) => {
    const known = waiting.get(key) ?? Deferred.makeUnsafe<void>()
    waiting.set(key, known)
    return known
  }

  const frames: Frames = ({ key }) =>
    Stream.unwrap(Effect.map(
      Effect.acquireRelease(
        Effect.tap(Queue.unbounded<unknown>(), (queue) =>
          Effect.sync(() => {
            open.set(key, (open.get(key) ?? new Set()).add(queue))
            Deferred.doneUnsafe(waitFor(key), Effect.void)
          })),
        (queue) => Effect.sync(() => open.get(key)?.delete(queue))
      ),
      Stream.fromQueue
    ))

  const sendRaw = Effect.fnUntraced(function*(
    subscription: Subscription.Subscription,
    request: unknown,
    data: unknown
  ) {
    for (const queue of open.get(yield* subscriptionKey(subscription, request)) ?? []) yield* Queue.offer(queue, data)
  })

  const state = StreamsState.of({
    subscribed: (subscription, request) =>
      Effect.flatMap(subscriptionKey(subscription, request), (key) => Deferred.await(waitFor(key))),
    sendRaw,
    send: Effect.fnUntraced(function*(subscription, request, items) {
      const encode = Schema.encodeUnknownEffect(subscription.item)
      const encoded = yield* Effect.orDie(Effect.forEach(items, (item) => encode(item)))
      for (const data of subscription.isList === true ? [encoded] : encoded) {
        yield* sendRaw(subscription, request, data)
      }
    })
  })
  const shared = yield* Streams.makeShared(undefined, { addresses }).pipe(
    Effect.provideService(SocketTransport, makeSocket(frames)),
    Effect.provideServiceEffect(EventStore.EventStore, EventStore.makeMemory)
  )
  return Context.make(Streams.Streams, Streams.make(shared)).pipe(Context.add(StreamsState, state))
})

/**
 * Provides `Streams` and its state. Each call returns a new layer with separate state.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (): Layer.Layer<Streams.Streams | StreamsState> => Layer.effectContext(make)
