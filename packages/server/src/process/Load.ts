/**
 * How busy the process is. While its event loop lags, or the memory for requests in flight is spent, new work is refused.
 *
 * Memory in flight is the bodies being read or processed, and unread responses. A body counts with its declared length, before it is
 * read, or its size as it grows. A response is never refused: beyond the limit the connection with the oldest
 * unread one is closed.
 */
import { local } from "@trigate/domain/Caller"
import { Overloaded } from "@trigate/domain/errors/CallerError"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import * as Layer from "effect/Layer"
import { metrics } from "./Metrics.ts"
import * as ProcessMetrics from "./ProcessMetrics.ts"

const measured = Effect.fnUntraced(function*(milliseconds: number) {
  const began = yield* Clock.currentTimeNanos
  yield* Effect.sleep(milliseconds)
  return Number((yield* Clock.currentTimeNanos) - began) / 1e6 - milliseconds
})

/** Measures event-loop lag in milliseconds, with a timer of the given length. */
export const Lateness = Context.Reference<(milliseconds: number) => Effect.Effect<number>>(
  "@trigate/server/process/Load/Lateness",
  { defaultValue: () => measured }
)

/** Late timers in a row that make a busy process: one slow turn of the event loop does not. */
const lateInTurn = 5

/** The memory that a body takes. */
export interface BodyReservation {
  /** Whose request it is. */
  readonly caller: string
  bytes: number
}

/**
 * What a process takes on.
 *
 * @since 0.1.0
 * @category services
 */
export class Load extends Context.Service<Load, {
  /** Whether the event loop lags, so that no work begins. */
  readonly isBusy: boolean
  /** Reserves `bytes` in total for a body. Returns `false`, and changes nothing, if that exceeds the limit. */
  readonly take: (held: BodyReservation, bytes: number) => boolean
  /** Releases the bytes of a body. */
  readonly release: (held: BodyReservation) => void
  /** Counts the bytes of an answer until the returned function is called. `cut` may be called before: it ends the connection. */
  readonly unread: (bytes: number, cut: () => void) => () => void
}>()("@trigate/server/process/Load") {}

/** Refuses new work; a second is enough for a queue that no longer grows. */
export const overloaded: Effect.Effect<never, Overloaded> = Effect.suspend(() =>
  Effect.fail(new Overloaded({ retryAfter: 1, detail: "The gateway is busy with earlier requests" }))
)

/** Takes on everything: for requests around which there is not a gateway. */
export const unlimited: Load["Service"] = {
  isBusy: false,
  take: () => true,
  release: constVoid,
  unread: () => constVoid
}

/** What a process takes on at most. */
export interface Options {
  /** How long the timers are whose lateness is measured, and from which lateness on they are late. */
  readonly maxLag: Duration.Duration
  /** The maximum bytes of bodies, and separately of unread responses. */
  readonly memory: number
}

/** What a server of one's own takes on; the settings of the bundled one have the same defaults. */
export const defaults: Options = { maxLag: Duration.millis(100), memory: 64 * 1024 * 1024 }

/** Bodies up to this many bytes may take the last quarter of the memory too, so that large ones do not keep them out. */
const largeBody = 64 * 1024

interface PendingResponse {
  readonly bytes: number
  readonly cut: () => void
}

const make = Effect.fnUntraced(function*({ maxLag, memory }: Options) {
  const lateness = yield* Lateness
  const byCaller = new Map<string, number>()
  // the oldest comes first
  const answers = new Set<PendingResponse>()
  let bodyBytes = 0
  let answerBytes = 0

  const add = (held: BodyReservation, more: number) => {
    held.bytes += more
    bodyBytes += more
    const all = (byCaller.get(held.caller) ?? 0) + more
    if (all === 0) byCaller.delete(held.caller)
    else byCaller.set(held.caller, all)
  }

  // one caller may have a quarter, so that others have room beside it
  const isFree = ({ caller }: BodyReservation, bytes: number, more: number): boolean =>
    more <= 0 ||
    bodyBytes + more <= (bytes > largeBody ? memory * 3 / 4 : memory) &&
      (caller === local.id || (byCaller.get(caller) ?? 0) + more <= memory / 4)

  const forget = (answer: PendingResponse) => {
    if (answers.delete(answer)) answerBytes -= answer.bytes
  }

  yield* ProcessMetrics.registered([
    ProcessMetrics.gauge(metrics.bodyBytes.series({}), () => bodyBytes),
    ProcessMetrics.gauge(metrics.unreadBytes.series({}), () => answerBytes)
  ])

  // a member instead of a function: every request reads it
  const load = {
    isBusy: false,
    take: (held: BodyReservation, bytes: number) => {
      const more = bytes - held.bytes
      const free = isFree(held, bytes, more)
      if (free) add(held, more)
      return free
    },
    release: (held: BodyReservation) => add(held, -held.bytes),
    unread: (bytes: number, cut: () => void) => {
      const answer = { bytes, cut }
      answers.add(answer)
      answerBytes += bytes
      for (const oldest of answers) {
        if (answerBytes <= memory || oldest === answer) break
        forget(oldest)
        oldest.cut()
      }
      return () => forget(answer)
    }
  }

  const limit = Duration.toMillis(maxLag)
  let late = 0
  yield* Effect.forkScoped(Effect.forever(Effect.map(lateness(limit), (milliseconds) => {
    late = milliseconds < limit ? 0 : late + 1
    load.isBusy = late >= lateInTurn
  })))
  return Load.of(load)
})

/**
 * The load of this process, with metrics of it.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<Load> => Layer.effect(Load, make(options))
