/** The venue's streams: trades, books, bars, orders and fills as they happen. */
import { CurrentCaller } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Json"
import { SlowConsumer, SubscriptionRefused } from "@trigate/domain/streams/StreamError"
import type { StreamError } from "@trigate/domain/streams/StreamError"
import * as StreamItems from "@trigate/domain/streams/StreamItems"
import type * as Subscription from "@trigate/domain/streams/Subscription"
import * as Subscriptions from "@trigate/domain/streams/Subscriptions"
import * as Hub from "@trigate/upstream/streams/Hub"
import type { ReplicaUse } from "@trigate/upstream/streams/ReplicaUse"
import type { Seat, Sink } from "@trigate/upstream/streams/Seat"
import type { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import type { Counts } from "@trigate/upstream/streams/StreamCounts"
import { defaults } from "@trigate/upstream/streams/StreamLimits"
import type { Limits } from "@trigate/upstream/streams/StreamLimits"
import type { Frame, Topic } from "@trigate/upstream/streams/Topic"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import * as AccountChecks from "../accounts/AccountChecks.ts"
import * as AccountComparison from "../accounts/AccountComparison.ts"
import type { AccountEvents, Options as EventOptions } from "../accounts/AccountEvents.ts"
import type { AccountMirror } from "../accounts/AccountMirror.ts"
import * as EventStore_ from "../accounts/EventStore.ts"
import type { EventStore } from "../accounts/EventStore.ts"
import type { OrderEvents } from "../accounts/OrderEvents.ts"
import { Info } from "../Info.ts"
import * as AccountRecorder from "../internal/accounts/AccountRecorder.ts"
import * as CoinCatalog from "./CoinCatalog.ts"
import * as StreamRefills from "./StreamRefills.ts"
import * as VenueProtocol from "./VenueProtocol.ts"

/** The typed method for a subscription. */
export type Method<S extends Subscription.Subscription> = (
  request: S["request"]["Encoded"]
) => Stream.Stream<Subscription.Item<S>, StreamError>

/** The type-level function from a subscription to its typed method. */
interface MethodOf extends Struct.Lambda {
  <S extends Subscription.Subscription>(subscription: S): Method<S>
  readonly "~lambda.out": Method<Extract<this["~lambda.in"], Subscription.Subscription>>
}

/** The typed methods for all subscriptions. */
export type Methods = {
  readonly [Name in keyof typeof Subscriptions.subscriptions]: Method<(typeof Subscriptions.subscriptions)[Name]>
}

/** The part of the service that `/ws` uses: frames as text, which all callers share. */
export interface SharedStreams {
  /** Takes a seat for a caller's connection; subscriptions of the connection are made through the seat. */
  readonly join: (caller: string, sink: Sink) => Seat
  readonly topicOf: (subscription: Subscription.Normalised) => Topic
  /** Returns whether a subscription can be sent to the venue without a lookup of its names. */
  readonly knows: (subscription: Subscription.Normalised) => boolean
  /** Returns why a subscription must not be sent to the venue; `undefined` if it is allowed. */
  readonly check: (subscription: Subscription.Normalised) => Effect.Effect<string | undefined>
  /** The log of account events, such as fills and order updates. */
  readonly events: AccountEvents
  readonly status: () => Hub.Status
  readonly counts: Counts
}

/**
 * The venue's streams, with a method for each of `subscriptions`.
 *
 * All readers of equal subscriptions share one subscription at the venue. After a lost connection, that subscription
 * resumes without duplicates, and missed data is queried if the venue still has it.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { bbo } from "@trigate/domain/streams/MarketSubscriptions"
 * import { Streams, StreamsMemory } from "@trigate/trading"
 * import { Console, Effect, Fiber, Stream } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const streams = yield* Streams.Streams
 *   const state = yield* StreamsMemory.StreamsState
 *   const first = yield* Effect.forkChild(
 *     streams.bbo({ coin: "BTC" }).pipe(Stream.take(1), Stream.runForEach(({ coin }) => Console.log(coin)))
 *   )
 *   yield* state.subscribed(bbo, { coin: "BTC" })
 *   yield* state.send(bbo, { coin: "BTC" }, [{ coin: "BTC", time: 0, bbo: [null, null] }])
 *   yield* Fiber.join(first)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, StreamsMemory.layer()))
 * ```
 * ```text
 * BTC
 * ```
 */
export class Streams extends Context.Service<Streams, Methods & { readonly shared: SharedStreams }>()(
  "@trigate/trading/streams/Streams"
) {}

/** Maximum number of frames queued for one reader of a typed stream. */
const maxBehind = 10_000

/**
 * Maximum number of frames queued for one reader of a typed stream whose frames are complete states. If the queue is
 * full, a new state replaces the oldest.
 */
const maxStates = 16

const typed = (shared: SharedStreams, declaration: Subscription.Subscription) => {
  const readItems = StreamItems.reader(declaration)
  const isState = declaration.delivery === "state"

  return (request: unknown): Stream.Stream<unknown, StreamError> =>
    Stream.unwrap(Effect.gen(function*() {
      const value = { type: declaration.name, ...(typeof request === "object" ? request : {}) }
      const refused = (message: string) =>
        Stream.fail(new SubscriptionRefused({ message, subscription: Json.stringify(value) }))
      const read = Subscriptions.read(value)
      if (Result.isFailure(read)) {
        return refused(VenueProtocol.unreadableSubscription(read.failure, Json.stringify(value)))
      }
      const refusal = yield* shared.check(read.success)
      if (refusal !== undefined) return refused(refusal)
      const topic = shared.topicOf(read.success)
      const frames = yield* (isState
        ? Queue.sliding<Frame, StreamError | Cause.Done>(maxStates)
        : Queue.dropping<Frame, StreamError | Cause.Done>(maxBehind))
      const end = (error: StreamError) => void Queue.failCauseUnsafe(frames, Cause.fail(error))
      const seat = shared.join((yield* CurrentCaller).id, {
        subscribed: () => {},
        flush: () => {},
        deliver: (frame) => {
          if (!Queue.offerUnsafe(frames, frame) && !isState) {
            end(new SlowConsumer({ message: `The reader is more than ${maxBehind} frames behind` }))
          }
        },
        refused: ({ key }, message) => end(new SubscriptionRefused({ message, subscription: key }))
      })
      seat.subscribe(topic)
      return Stream.fromQueue(frames).pipe(
        Stream.mapEffect((frame) => Effect.fromResult(readItems(frame.text))),
        Stream.flatMap(Stream.fromIterable),
        Stream.ensuring(Effect.sync(() => seat.leave()))
      )
    }))
}

/** The location of the venue's streams, and their limits. */
export interface Options {
  /** WebSocket URLs such as `wss://api.hyperliquid.xyz/ws`, in order of preference. */
  readonly addresses: ReadonlyArray<Redacted.Redacted> | (() => ReadonlyArray<Redacted.Redacted>)
  readonly limits?: Partial<Limits>
  /** Users with priority when a limit is reached, in lower case, such as users with accepted actions. */
  readonly familiar?: ReadonlySet<string>
  /** Exchanges, with other replicas, how much of the venue's limits each replica uses. Default: no other replicas. */
  readonly replicas?: ReplicaUse["Service"]
  /** The accounts whose events are logged, and the limits of the event log. */
  readonly events?: Pick<EventOptions, "accounts" | "bounds">
  /** The mirror that serves queries about watched accounts. Default: no mirror. */
  readonly mirror?: AccountMirror | undefined
  /** Receives the order events of watched accounts. Default: no receiver. */
  readonly orders?: OrderEvents | undefined
}

/** Why a subscription is refused whose names the catalog does not know. */
const reasons: { readonly [Reason in Exclude<CoinCatalog.Found, "known">]: string } = {
  unknown: "",
  unavailable: ": the venue's list of coins is unavailable, try again",
  limited: ": too many unknown names were looked up, try again in 10 seconds"
}

/**
 * Makes the shared streams of a venue. With `info`, the streams check the coin and dex names of each subscription, and
 * query `POST /info` for the data that they missed during a lost connection. Without `info`, they do neither.
 */
export const makeShared = Effect.fnUntraced(function*(
  info: CoinCatalog.Queries | undefined,
  { addresses, events: logging, mirror, orders, ...options }: Options
): Effect.fn.Return<SharedStreams, never, EventStore | SocketTransport | Scope.Scope> {
  const hub = yield* Hub.make({
    ...options,
    addresses: typeof addresses === "function" ? addresses : () => addresses,
    protocol: VenueProtocol.protocol,
    observe: mirror?.observe
  })
  const catalog = info === undefined ? CoinCatalog.open : CoinCatalog.make(info)
  const makeRefill = info === undefined ? () => undefined : StreamRefills.make(info)
  const topicOf: SharedStreams["topicOf"] = (subscription) =>
    VenueProtocol.makeTopic(subscription, makeRefill(subscription))
  const events = yield* AccountRecorder.make({
    join: hub.join,
    topicOf: (type, user) => Result.getOrUndefined(Result.map(Subscriptions.read({ type, user }), topicOf)),
    refusal: (limit) => VenueProtocol.protocol.refusal("users", limit)
  }, {
    ...logging,
    states: mirror?.observer,
    usersOfCaller: options.limits?.usersOfCaller ?? defaults.usersOfCaller
  })
  mirror?.follow({ events, heardAt: hub.heardAt })
  orders?.follow(events.log)
  if (info !== undefined) {
    const ask = StreamRefills.askInBackground(info)
    yield* AccountChecks.start({
      accounts: logging?.accounts ?? [],
      isOwner: () => events.status().role !== "reader",
      quietFor: mirror === undefined
        ? () => Number.POSITIVE_INFINITY
        : yield* AccountComparison.start({ events, mirror, heardAt: hub.heardAt, ask }),
      ask
    })
  }
  return {
    join: hub.join,
    status: hub.status,
    counts: hub.counts,
    topicOf,
    events,
    knows: catalog.knows,
    check: (subscription) =>
      Effect.map(
        catalog.find(subscription),
        (found) =>
          found === "known" ? undefined : `${VenueProtocol.invalidSubscription(subscription.key)}${reasons[found]}`
      )
  }
})

/** Makes the `Streams` service over shared streams. */
export const make = (shared: SharedStreams): Streams["Service"] => {
  const methods = Struct.map(
    Subscriptions.subscriptions,
    Struct.lambda<MethodOf>((declaration) => typed(shared, declaration))
  )
  return Streams.of({ ...methods, shared })
}

/**
 * Provides the streams at the given addresses, over the `Info` and the `SocketTransport` of the context.
 *
 * Each call returns a new layer with separate upstream connections and a separate event log.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { InfoUpstream, Streams } from "@trigate/trading"
 * import { SocketTransport } from "@trigate/upstream"
 * import { Layer, Redacted } from "effect"
 *
 * export const live = Streams.layer({ addresses: [Redacted.make("wss://api.hyperliquid.xyz/ws")] }).pipe(
 *   Layer.provide(SocketTransport.layerWebSocket),
 *   Layer.provide(InfoUpstream.layerFetch({ url: "https://api.hyperliquid.xyz" }))
 * )
 * ```
 */
export const layer = (options: Options): Layer.Layer<Streams, never, Info | SocketTransport> =>
  Layer.effect(Streams, Effect.flatMap(Info, (info) => Effect.map(makeShared(info, options), make))).pipe(
    Layer.provide(EventStore_.layerMemory())
  )
