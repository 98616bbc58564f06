/** The streams of a gateway over its WebSocket: trades, books, bars, orders and fills. */
import * as Paths from "@trigate/api/Paths"
import * as Subscription from "@trigate/domain/unstable/streams/Subscription"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Socket from "effect/socket/Socket"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import type { Options } from "./Connection.ts"
import * as GatewaySocket from "./internal/GatewaySocket.ts"

/** The errors of a gateway's stream. */
export type StreamFailure = Subscription.MalformedFrame | Subscription.StreamLost | Subscription.SubscriptionRefused

export type { ResumeOptions } from "@trigate/domain/unstable/streams/Subscription"

/** The typed method for a subscription. */
export type Method<S extends Subscription.Subscription> = (
  request: S["request"]["Encoded"],
  options?: Subscription.ResumeOptions
) => Stream.Stream<Subscription.Item<S>, StreamFailure>

interface MethodOf extends Struct.Lambda {
  <S extends Subscription.Subscription>(subscription: S): Method<S>
  readonly "~lambda.out": Method<Extract<this["~lambda.in"], Subscription.Subscription>>
}

/** The typed methods for all subscriptions. */
export type Methods = {
  readonly [Name in keyof typeof Subscriptions.subscriptions]: Method<(typeof Subscriptions.subscriptions)[Name]>
}

/**
 * The streams of a gateway, with a method for each of `subscriptions`.
 *
 * Each running stream has its own WebSocket. If the connection is lost, the stream reconnects. It continues without
 * loss if the gateway logs the account's events, or if each frame contains the complete state. It fails with
 * `StreamLost` if events could be missing, or if the gateway is unreachable for more than two minutes.
 *
 * Provided by `Streams.layerWebSocket` or `Streams.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Streams } from "@trigate/client"
 * import { Console, Effect, Stream } from "effect"
 *
 * const program = Streams.Streams.use(({ trades }) =>
 *   trades({ coin: "BTC" }).pipe(Stream.take(1), Stream.runForEach(({ coin }) => Console.log(coin)))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Streams.layerWebSocket({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * BTC
 * ```
 */
export class Streams extends Context.Service<Streams, Methods>()("@trigate/client/Streams") {}

/** The interval between pings. The venue and proxies close a connection on which nothing was sent for 60 seconds. */
const pingEvery = "30 seconds"

const ping = "{\"method\":\"ping\"}"

/** Returns the path and query of a stream that resumes at a position. */
const resumedAt = (position: Subscription.ResumePosition | undefined): string =>
  `${Paths.socket}?${Paths.resume}=${position === undefined ? "" : encodeURIComponent(Subscription.print(position))}`

const hole = new Subscription.StreamLost({
  code: 1006,
  message: "The connection was lost, and events may be missing: the gateway could not resume the stream"
})

const typed =
  (construct: Socket.WebSocketConstructor["Service"], options: Options) => (declaration: Subscription.Subscription) => {
    const readItems = Subscription.itemReader(declaration)
    const channels = new Set(Subscription.channelNames(declaration))

    /** Runs a stream over successive connections. */
    const resuming = (
      subscription: string,
      resume: Subscription.ResumeOptions
    ): Stream.Stream<unknown, StreamFailure> => {
      const { onPosition } = resume
      const from = Subscription.readResume(resume, subscription)
      if (Result.isFailure(from)) return Stream.fail(from.failure)
      let position = from.success
      let reported = position

      const read = (text: string): Effect.Effect<ReadonlyArray<unknown>, StreamFailure> => {
        if (position !== undefined && position !== reported) onPosition?.(Subscription.print(position))
        reported = position
        const frame = Result.getOrUndefined(Result.try((): unknown => JSON.parse(text)))
        const channel = Subscription.valueAt(frame, "channel")
        if (channel === "error") {
          const message = String(Subscription.valueAt(frame, "data"))
          return Effect.fail(new Subscription.SubscriptionRefused({ message, subscription }))
        }
        const wasResuming = position !== undefined
        position = Subscription.ofFrame(frame) ?? position
        if (channel === Subscription.channel) {
          // a stream of whole states loses nothing, because each state replaces the earlier ones
          return wasResuming && declaration.delivery !== "state" &&
              Subscription.valueAt(frame, "data.recovered") !== true
            ? Effect.fail(hole)
            : Effect.succeed([])
        }
        return Predicate.isString(channel) && channels.has(channel)
          ? Effect.fromResult(readItems(text))
          : Effect.succeed([])
      }

      const connection = Stream.unwrap(Effect.gen(function*() {
        const { texts, write } = yield* GatewaySocket.open(construct, options, resumedAt(position))
        yield* write(`{"method":"subscribe","subscription":${subscription}}`)
        yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(pingEvery), Effect.ignore(write(ping)))))
        return texts.pipe(
          Stream.mapEffect(read)
        )
      }))
      const retrying = GatewaySocket.retrying((input) =>
        position !== undefined && input !== hole && Predicate.isTagged(input, "StreamLost")
      )
      // every frame resets the retry schedule, so that the next retry counts as the first; therefore a frame without
      // items is passed on as an empty element
      return Stream.flattenIterable(Stream.retry(connection, retrying))
    }

    return (request: unknown, options: Subscription.ResumeOptions = {}): Stream.Stream<unknown, StreamFailure> => {
      const members = Predicate.isObject(request) ? request : {}
      return Stream.suspend(() => resuming(JSON.stringify({ type: declaration.name, ...members }), options))
    }
  }

/**
 * Provides the streams of the gateway that `options` names, with the `WebSocketConstructor` of the context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<Streams, never, Socket.WebSocketConstructor> =>
  Layer.effect(
    Streams,
    Effect.map(Socket.WebSocketConstructor, (construct) =>
      Streams.of(Struct.map(Subscriptions.subscriptions, Struct.lambda<MethodOf>(typed(construct, options)))))
  )

/**
 * Provides {@link layer} with the platform's `WebSocket`: Node's or a browser's.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerWebSocket = (options: Options): Layer.Layer<Streams> =>
  Layer.provide(layer(options), Socket.layerWebSocketConstructorGlobal)
