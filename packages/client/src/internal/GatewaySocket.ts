/** A WebSocket of a gateway: its URL, its messages, and its retries. */
import { StreamLost } from "@trigate/domain/unstable/streams/Subscription"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Socket from "effect/socket/Socket"
import * as Stream from "effect/Stream"
import type { Options } from "../Connection.ts"

/**
 * Returns the WebSocket URL. The caller's key is in the query string, because a page cannot set headers of a WebSocket.
 */
const addressIn = ({ baseUrl, endpointKey, key }: Options, path: string): string => {
  const base = String(baseUrl).replace(/\/+$/u, "").replace(/^http/u, "ws")
  const before = endpointKey === undefined ? "" : `/${encodeURIComponent(Redacted.value(endpointKey))}`
  const query = key === undefined
    ? ""
    : `${path.includes("?") ? "&" : "?"}api_key=${encodeURIComponent(Redacted.value(key))}`
  return `${base}${before}${path}${query}`
}

const lost = ({ reason }: Socket.SocketError): StreamLost =>
  reason._tag === "SocketCloseError"
    ? new StreamLost({ code: reason.code, message: reason.closeReason ?? "The connection was closed" })
    : new StreamLost({ code: 1006, message: "The gateway cannot be reached" })

/** Opens a WebSocket of the gateway at a path with an optional query. The WebSocket closes when the scope ends. */
export const open = Effect.fnUntraced(
  function*(construct: Socket.WebSocketConstructor["Service"], options: Options, path: string) {
    const socket = yield* Effect.provideService(
      Socket.makeWebSocket(addressIn(options, path)),
      Socket.WebSocketConstructor,
      construct
    )
    const { pull } = yield* Effect.mapError(socket.reader, lost)
    const { write } = yield* socket.writer
    return {
      texts: Stream.fromEffectRepeat(Effect.mapError(pull, lost)).pipe(
        Stream.flatMap((batch) => Stream.fromIterable(Arr.filter(batch, Predicate.isString)))
      ),
      write: (text: string) => Effect.mapError(write(text), lost)
    }
  }
)

/**
 * Maximum number of consecutive attempts to connect to an unreachable gateway. They last a little more than two
 * minutes, so that the stream survives a restart of the gateway.
 */
const maxAttempts = 30

const pause = Schedule.min([Schedule.exponential("250 millis"), Schedule.spaced("5 seconds")])

/** Returns the schedule that reopens a stream after the errors that `isRetried` accepts. */
export const retrying = <E>(isRetried: (error: E) => boolean) =>
  Schedule.while(
    Schedule.passthrough(Schedule.setInputType<E>()(pause)),
    ({ attempt, input }) => Effect.succeed(attempt <= maxAttempts && isRetried(input))
  )
