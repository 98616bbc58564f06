/**
 * An in-process venue behind `SocketTransport`. It acknowledges subscriptions as the venue does, and sends the frames
 * of a given function.
 */
import * as Json from "@trigate/domain/encoding/Json"
import * as Subscription from "@trigate/domain/streams/Subscription"
import * as Subscriptions from "@trigate/domain/streams/Subscriptions"
import type { SocketLost } from "@trigate/upstream/streams/SocketTransport"
import { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as VenueProtocol from "./VenueProtocol.ts"

/** Returns the `data` members of a subscription's frames; `undefined` for a subscription that the venue refuses. */
export type Frames = (subscription: Subscription.Normalised) => Stream.Stream<unknown> | undefined

/** Makes the transport of an in-process venue. Each connection is independent and ends with its scope. */
export const make = (frames: Frames): SocketTransport["Service"] =>
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
