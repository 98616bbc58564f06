/** `Streams` in memory: a test defines the frames that the venue sends. */
import type * as Subscription from "@trigate/domain/streams/Subscription"
import * as Subscriptions from "@trigate/domain/streams/Subscriptions"
import { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as EventStore from "../accounts/EventStore.ts"
import * as Streams from "./Streams.ts"
import * as VenueSocket from "./VenueSocket.ts"

/**
 * The controls with which a test sends frames and waits for subscriptions.
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

  const frames: VenueSocket.Frames = ({ key }) =>
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
    Effect.provideService(SocketTransport, VenueSocket.make(frames)),
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
