/** The transport of streams: WebSockets with text messages. */
import * as Arr from "effect/Array"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Socket from "effect/socket/Socket"

/** The connection is closed, or could not be opened. `code` is 1006 if the peer sent no close code. */
export class SocketLost extends Data.TaggedError("SocketLost")<{
  readonly code: number
  readonly reason: string
  /** The HTTP status with which the peer refused to open the connection, if the implementation reports it. */
  readonly status?: number
}> {}

/** An open connection. It closes with the scope in which it was opened. */
export interface Connection {
  /** Waits for the next messages, in order. Fails once the connection is closed. */
  readonly receive: Effect.Effect<Arr.NonEmptyReadonlyArray<string>, SocketLost>
  /** Sends one message. */
  readonly send: (text: string) => Effect.Effect<void, SocketLost>
}

/**
 * Opens WebSockets.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { SocketTransport } from "@trigate/upstream"
 * import { Console, Effect, Redacted } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { open } = yield* SocketTransport.SocketTransport
 *   const { receive, send } = yield* open(Redacted.make("ws://localhost:8080/ws"))
 *   yield* send(`{"method":"ping"}`)
 *   yield* Console.log(yield* receive)
 * })
 *
 * await Effect.runPromise(Effect.scoped(Effect.provide(program, SocketTransport.layerWebSocket)))
 * ```
 * ```text
 * [ '{"channel":"pong"}' ]
 * ```
 */
export class SocketTransport extends Context.Service<SocketTransport, {
  /** Connects to a URL, which can contain an endpoint key. Fails if the connection is not open after 10 seconds. */
  readonly open: (address: Redacted.Redacted) => Effect.Effect<Connection, SocketLost, Scope.Scope>
}>()("@trigate/upstream/streams/SocketTransport") {}

/** The timeout of the opening handshake. */
const openTimeout = "10 seconds"

/** Maximum number of buffered bytes, if the implementation can pause the socket. */
const highWaterMark = 1024 * 1024

/** Returns the status in the error event of the package `ws`; `undefined` for other errors and implementations. */
const refusalStatus = (event: unknown): number | undefined => {
  const message = Predicate.hasProperty(event, "message") ? String(event.message) : ""
  const status = /^Unexpected server response: (?<status>\d{3})$/u.exec(message)?.groups?.["status"]
  return status === undefined ? undefined : Number(status)
}

const lost = ({ reason }: Socket.SocketError): SocketLost => {
  if (reason._tag === "SocketCloseError") {
    return new SocketLost({ code: reason.code, reason: reason.closeReason ?? "" })
  }
  const status = reason._tag === "SocketOpenError" ? refusalStatus(reason.cause) : undefined
  return new SocketLost({ code: 1006, reason: reason._tag, ...(status === undefined ? {} : { status }) })
}

/**
 * Provides WebSockets over the constructor of the context, such as the constructor of the package `ws`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<SocketTransport, never, Socket.WebSocketConstructor> = Layer.effect(
  SocketTransport,
  Effect.map(Socket.WebSocketConstructor, (construct) =>
    SocketTransport.of({
      open: Effect.fnUntraced(function*(address) {
        const socket = yield* Effect.provideService(
          Socket.makeWebSocket(Redacted.value(address), { openTimeout, highWaterMark }),
          Socket.WebSocketConstructor,
          construct
        )
        const { pull } = yield* Effect.mapError(socket.reader, lost)
        const { write } = yield* socket.writer
        // the venue sends text only
        const receive: Connection["receive"] = Effect.flatMap(Effect.mapError(pull, lost), (batch) => {
          const texts = Arr.filter(batch, Predicate.isString)
          return Arr.isReadonlyArrayNonEmpty(texts) ? Effect.succeed(texts) : receive
        })
        return { receive, send: (text) => Effect.mapError(write(text), lost) }
      })
    }))
)

/**
 * Provides the WebSockets of the platform: Node's or a browser's.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerWebSocket: Layer.Layer<SocketTransport> = Layer.provide(
  layer,
  Socket.layerWebSocketConstructorGlobal
)
