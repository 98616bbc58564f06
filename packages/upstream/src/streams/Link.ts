/** One persistent connection to an upstream: reconnected after a loss, and watched while it is quiet. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import type * as Redacted from "effect/Redacted"
import { SocketLost } from "./SocketTransport.ts"
import type { SocketTransport } from "./SocketTransport.ts"
import type { MinuteBudget } from "./StreamLimits.ts"

/** Options of a link. */
export interface Options {
  readonly transport: SocketTransport["Service"]
  /** Returns the addresses in order of preference; the next one is tried after a failure. */
  readonly addresses: () => ReadonlyArray<Redacted.Redacted>
  /** The text that keeps a quiet connection open. */
  readonly ping: string
  readonly connections: MinuteBudget
  readonly messages: MinuteBudget
  /** Called when a connection is open, before its first text. */
  readonly onUp: () => void
  readonly onTexts: (texts: ReadonlyArray<string>) => void
  /** Called when an open connection is lost; nothing that was sent before may still be awaited. */
  readonly onDown: (lost: SocketLost, opened: boolean) => void
}

/** A persistent connection. */
export interface Link {
  /** Sends a text over the open connection, within the budget of messages; does nothing without a connection. */
  readonly send: (text: string, onSent?: () => void) => void
  /** Whether texts wait for the budget of messages. */
  readonly isWaiting: () => boolean
  /** Closes the connection and opens another one. */
  readonly drop: (reason: string) => void
  /** Keeps the connection for as long as it runs. */
  readonly run: Effect.Effect<never>
}

/** After this many milliseconds without a text the upstream is asked for one. The venue closes after 60 seconds of silence. */
const quietAfter = 20_000

/** It has this many milliseconds to answer. */
const answerWithin = 8_000

const firstBackoff = 250
const mostBackoff = 10_000

/** Milliseconds that a connection has to last, so that the next one does not wait for longer than the first. */
const soundAfter = 10_000

/** A connection; `run` opens it. */
export const make = Effect.fnUntraced(function*(options: Options) {
  const { addresses, connections, messages, onDown, onTexts, onUp, ping, transport } = options
  const clock = yield* Clock.Clock
  const outbox = yield* Queue.unbounded<{ readonly text: string; readonly onSent: (() => void) | undefined }>()
  let isOpen = false
  let isDelayed = false
  let dropped: Deferred.Deferred<never, SocketLost> | undefined
  let place = 0
  let failures = 0

  const send: Link["send"] = (text, onSent) => {
    if (isOpen) Queue.offerUnsafe(outbox, { text, onSent })
  }

  const session = Effect.fnUntraced(function*(address: Redacted.Redacted) {
    const lossRequested = yield* Deferred.make<never, SocketLost>()
    const connection = yield* transport.open(address)
    const openedAt = clock.currentTimeMillisUnsafe()
    let receivedAt = openedAt
    let askedAt: number | undefined
    dropped = lossRequested
    yield* Queue.clear(outbox)
    isOpen = true
    isDelayed = false
    onUp()
    const reading = Effect.forever(
      Effect.map(connection.receive, (texts) => {
        receivedAt = clock.currentTimeMillisUnsafe()
        askedAt = undefined
        if (receivedAt - openedAt >= soundAfter) failures = 0
        onTexts(texts)
      })
    )
    const sending = Effect.forever(
      Effect.flatMap(Queue.take(outbox), ({ onSent, text }) => {
        isDelayed = messages.left() === 0
        return Effect.andThen(
          messages.take,
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
        const now = clock.currentTimeMillisUnsafe()
        if (askedAt !== undefined && now - askedAt >= answerWithin) {
          return Effect.fail(new SocketLost({ code: 1006, reason: "silent" }))
        }
        if (askedAt === undefined && now - receivedAt >= quietAfter) {
          askedAt = now
          // past the outbox, which may be waiting for the budget
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
      // an address that cannot be reached, or that fails again and again, makes room for the next one
      if (!wasOpen || failures > 1) place++
      onDown(lost, wasOpen)
      return Cause.hasDies(cause) ? Effect.logError("A stream connection ended in a fault", cause) : Effect.void
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
      Duration.millis(Math.min(mostBackoff, firstBackoff * 2 ** (failures - 1)) * (0.5 + fraction / 2))
    ))

  const link: Link = {
    send,
    isWaiting: () => isDelayed,
    drop: (reason) => {
      if (dropped !== undefined) Deferred.doneUnsafe(dropped, Effect.fail(new SocketLost({ code: 1006, reason })))
    },
    run: Effect.forever(Effect.andThen(pause, Effect.andThen(connections.take, attempt)))
  }
  return link
})
