/**
 * The transport of streams: WebSockets with text messages, and connections that reconnect after a loss and ping while
 * they are idle.
 */
import { millisBetween, type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Socket from "effect/socket/Socket"
import type { MinuteBudget } from "./StreamShares.ts"

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
 * Provided by `SocketTransport.layerWebSocket` or `SocketTransport.layer`.
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

/** Options of a link (a persistent connection to an upstream). */
export interface Options {
  readonly transport: SocketTransport["Service"]
  /** Returns the URLs in order of preference. After a failure, the next URL is tried. */
  readonly addresses: () => ReadonlyArray<Redacted.Redacted>
  /** The message that keeps an idle connection open. */
  readonly ping: string
  readonly connections: MinuteBudget
  readonly messages: MinuteBudget
  /** Called when a connection is open, before any message is sent or received over it. */
  readonly onUp: () => void
  readonly onTexts: (texts: ReadonlyArray<string>) => void
  /**
   * Called when an open connection is lost (`opened` is `true`), or when a connection cannot be opened (`opened` is
   * `false`). The upstream's responses to messages that were sent before the loss will not arrive.
   */
  readonly onDown: (lost: SocketLost, opened: boolean) => void
}

/** A persistent connection. */
export interface Link {
  /**
   * Sends a message over the open connection, as soon as the limit on messages per minute permits. Does nothing without
   * a connection.
   */
  readonly send: (text: string, onSent?: () => void) => void
  /** Returns whether messages wait because of the limit on messages per minute. */
  readonly isWaiting: () => boolean
  /** Closes the connection and opens a new one. */
  readonly drop: (reason: string) => void
  /** Maintains the connection until it is interrupted. */
  readonly run: Effect.Effect<never>
}

/** Milliseconds without a message after which a ping is sent. The venue closes idle connections after 60 seconds. */
const quietAfter = 20_000

/** Maximum milliseconds to wait for the response to a ping. */
const responseWithin = 8_000

const firstBackoff = 250
const maxBackoff = 10_000

/**
 * Minimum duration of a connection, in milliseconds, that resets the pause before the next reconnection to the shortest
 * pause.
 */
const soundAfter = 10_000

/** Makes a connection; `run` opens it. */
export const make = Effect.fnUntraced(function*(options: Options) {
  const { addresses, connections, messages, onDown, onTexts, onUp, ping, transport } = options
  const clock = yield* Clock.Clock
  const now = () => monotonicTime(clock)
  const outbox = yield* Queue.unbounded<{ readonly text: string; readonly onSent: (() => void) | undefined }>()
  let isOpen = false
  let isDelayed = false
  let dropped: Deferred.Deferred<never, SocketLost> | undefined
  let place = 0
  let failures = 0
  let isFirst = true

  const send: Link["send"] = (text, onSent) => {
    if (isOpen) Queue.offerUnsafe(outbox, { text, onSent })
  }

  const session = Effect.fnUntraced(function*(address: Redacted.Redacted) {
    const lossRequested = yield* Deferred.make<never, SocketLost>()
    const connection = yield* transport.open(address)
    const openedAt = now()
    let receivedAt = openedAt
    let pingedAt: MonotonicTime | undefined
    dropped = lossRequested
    yield* Queue.clear(outbox)
    isOpen = true
    isDelayed = false
    onUp()
    const reading = Effect.forever(
      Effect.map(connection.receive, (texts) => {
        receivedAt = now()
        pingedAt = undefined
        if (millisBetween(openedAt, receivedAt) >= soundAfter) failures = 0
        onTexts(texts)
      })
    )
    const sending = Effect.forever(
      Effect.flatMap(Queue.take(outbox), ({ onSent, text }) => {
        isDelayed = messages.left() === 0
        return Effect.andThen(
          messages.take(true),
          Effect.suspend(() => {
            isDelayed = false
            onSent?.()
            return connection.send(text)
          })
        )
      })
    )
    const watching = Effect.forever(Effect.andThen(
      Effect.sleep("1 second"),
      Effect.suspend(() => {
        const at = now()
        if (pingedAt !== undefined && millisBetween(pingedAt, at) >= responseWithin) {
          return Effect.fail(new SocketLost({ code: 1006, reason: "silent" }))
        }
        if (pingedAt === undefined && millisBetween(receivedAt, at) >= quietAfter) {
          pingedAt = at
          // a ping is not queued in the outbox, which may be waiting for the message limit
          messages.spend()
          return connection.send(ping)
        }
        return Effect.void
      })
    ))
    return yield* Effect.raceAllFirst([reading, sending, watching, Deferred.await(lossRequested)])
  }, Effect.scoped)

  const toSocketLost = (cause: Cause.Cause<SocketLost>): SocketLost => {
    const failure = cause.reasons.find((reason) => reason._tag === "Fail")
    return failure === undefined ? new SocketLost({ code: 1006, reason: "fault" }) : failure.error
  }

  const attempt: Effect.Effect<void> = Effect.suspend(() => {
    const known = addresses()
    const address = known[place % Math.max(1, known.length)]
    return address === undefined ? Effect.sleep("1 second") : session(address)
  }).pipe(
    Effect.catchCause((cause) => {
      const wasOpen = isOpen
      isOpen = false
      dropped = undefined
      if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
      const lost = toSocketLost(cause)
      failures++
      // if an address is unreachable or fails repeatedly, the next one is tried
      if (!wasOpen || failures > 1) place++
      onDown(lost, wasOpen)
      return Cause.hasDies(cause) ? Effect.logError("A stream connection failed", cause) : Effect.void
    }),
    // `onDown` threw: the next attempt is made nevertheless
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.logError("The handler of a lost stream connection failed", cause)
    )
  )

  const pause = Effect.flatMap(Random.next, (fraction) =>
    failures === 0 ? Effect.void : Effect.sleep(
      Duration.millis(Math.min(maxBackoff, firstBackoff * 2 ** (failures - 1)) * (0.5 + fraction / 2))
    ))

  const link: Link = {
    send,
    isWaiting: () => isDelayed,
    drop: (reason) => {
      if (dropped !== undefined) Deferred.doneUnsafe(dropped, Effect.fail(new SocketLost({ code: 1006, reason })))
    },
    run: Effect.forever(Effect.andThen(
      pause,
      Effect.suspend(() => {
        const taken = connections.take(!isFirst)
        isFirst = false
        return Effect.andThen(taken, attempt)
      })
    ))
  }
  return link
})
