/**
 * The load of the process. While the event loop lags, or the memory for requests in flight is exhausted, new work is
 * refused. At shutdown, requests in flight finish first.
 *
 * The counted memory consists of request bodies that are being read or processed, and of unread responses. A body
 * counts with its declared length before it is read, and with its current size afterwards. A response is never refused:
 * if the unread responses exceed the limit, the gateway closes the connections of the oldest unread responses.
 */
import { local } from "@trigate/domain/Caller"
import { millisBetween, monotonicTime } from "@trigate/domain/encoding/Encoding"
import { Overloaded } from "@trigate/domain/errors/GatewayError"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Metrics from "./Metrics.ts"

const measured = Effect.fnUntraced(function*(milliseconds: number) {
  const clock = yield* Clock.Clock
  const began = monotonicTime(clock)
  yield* Effect.sleep(milliseconds)
  return millisBetween(began, monotonicTime(clock)) - milliseconds
})

/** Measures event-loop lag in milliseconds, with a timer of the given length. */
export const EventLoopLag = Context.Reference<(milliseconds: number) => Effect.Effect<number>>(
  "@trigate/server/process/Load/EventLoopLag",
  { defaultValue: () => measured }
)

/**
 * The number of consecutive late timers that indicate an overload. One slow turn of the event loop is not an overload.
 */
const lateInARow = 5

/** The memory reserved for a body. */
export interface BodyReservation {
  /** The ID of the caller. */
  readonly caller: string
  bytes: number
}

/**
 * The load of a process, and its limits.
 *
 * @since 0.1.0
 * @category services
 */
export class Load extends Context.Service<Load, {
  /** Whether the event loop lags. While it lags, no new work starts. */
  readonly isBusy: boolean
  /**
   * Raises the reservation of a body to `bytes` in total. Returns `false`, and changes nothing, if the memory limit of
   * all callers or of the body's caller would be exceeded.
   */
  readonly take: (held: BodyReservation, bytes: number) => boolean
  /** Releases the bytes of a body. */
  readonly release: (held: BodyReservation) => void
  /**
   * Counts the bytes of a response as unread until the returned function is called. If unread responses exceed the
   * limit before that, the gateway calls `cut` of the oldest responses. `cut` has to close the response's connection.
   */
  readonly unread: (bytes: number, cut: () => void) => () => void
}>()("@trigate/server/process/Load") {}

/** Refuses new work, with a `retryAfter` of one second, which is enough for the event loop's queue to shrink. */
export const overloaded: Effect.Effect<never, Overloaded> = Effect.suspend(() =>
  Effect.fail(new Overloaded({ retryAfter: 1, detail: "The gateway is overloaded" }))
)

/** A `Load` that refuses nothing, for requests outside a gateway. */
export const unlimited: Load["Service"] = {
  isBusy: false,
  take: () => true,
  release: constVoid,
  unread: () => constVoid
}

/** The load limits of a process. */
export interface Options {
  /** The maximum event-loop lag, which is also the interval of the timer that measures it. */
  readonly maxLag: Duration.Duration
  /** The maximum total bytes of request bodies. The same limit applies separately to unread responses. */
  readonly memory: number
}

/** The default limits, in an embedding server and in the settings. */
export const defaults: Options = { maxLag: Duration.millis(100), memory: 64 * 1024 * 1024 }

/**
 * Maximum size of a small body, in bytes. The last quarter of the memory limit is reserved for small bodies, so that
 * large bodies do not block them.
 */
const largeBody = 64 * 1024

interface PendingResponse {
  readonly bytes: number
  readonly cut: () => void
}

const make = Effect.fnUntraced(function*({ maxLag, memory }: Options) {
  const lateness = yield* EventLoopLag
  const byCaller = new Map<string, number>()
  // oldest first
  const responses = new Set<PendingResponse>()
  let bodyBytes = 0
  let unreadBytes = 0

  const add = (held: BodyReservation, more: number) => {
    held.bytes += more
    bodyBytes += more
    const all = (byCaller.get(held.caller) ?? 0) + more
    if (all === 0) byCaller.delete(held.caller)
    else byCaller.set(held.caller, all)
  }

  // one caller can reserve at most a quarter of the memory, so that other callers can send bodies too
  const isFree = ({ caller }: BodyReservation, bytes: number, more: number): boolean =>
    more <= 0 ||
    bodyBytes + more <= (bytes > largeBody ? memory * 3 / 4 : memory) &&
      (caller === local.id || (byCaller.get(caller) ?? 0) + more <= memory / 4)

  const forget = (response: PendingResponse) => {
    if (responses.delete(response)) unreadBytes -= response.bytes
  }

  yield* Metrics.registered([
    Metrics.sampledGauge(Metrics.metrics.bodyBytes.series({}), () => bodyBytes),
    Metrics.sampledGauge(Metrics.metrics.unreadBytes.series({}), () => unreadBytes)
  ])

  // `isBusy` is a property rather than a function, because every request reads it
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
      const response = { bytes, cut }
      responses.add(response)
      unreadBytes += bytes
      for (const oldest of responses) {
        if (unreadBytes <= memory || oldest === response) break
        forget(oldest)
        oldest.cut()
      }
      return () => forget(response)
    }
  }

  const limit = Duration.toMillis(maxLag)
  let late = 0
  yield* Effect.forkScoped(Effect.forever(Effect.map(lateness(limit), (milliseconds) => {
    late = milliseconds < limit ? 0 : late + 1
    load.isBusy = late >= lateInARow
  })))
  return Load.of(load)
})

/**
 * The load of this process, with its metrics.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<Load> => Layer.effect(Load, make(options))

/**
 * The count of requests in flight, for a graceful shutdown.
 *
 * Draining makes readiness fail and waits for the requests in flight. Close the server after that.
 *
 * @since 0.1.0
 * @category services
 */
export class Drain extends Context.Service<Drain, {
  /** Counts a request as in flight until the returned function is called. */
  readonly enter: () => () => void
  readonly isDraining: () => boolean
  /** Waits until the requests in flight at the time of the call have completed. */
  readonly current: Effect.Effect<void>
  /** Makes `/health/ready` fail, then waits, for at most `maxWait`, until no requests are in flight. */
  readonly drain: (maxWait: Duration.Input) => Effect.Effect<void>
}>()("@trigate/server/process/Load/Drain") {}

/**
 * Provides one counter of requests in flight for the process.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerDrain: Layer.Layer<Drain> = Layer.effect(
  Drain,
  Effect.gen(function*() {
    const idle = yield* Deferred.make<void>()
    let inFlight = 0
    let draining = false
    const settle = () => {
      if (draining && inFlight === 0) Deferred.doneUnsafe(idle, Effect.void)
    }
    const begin = () => {
      const over = Deferred.makeUnsafe<void>()
      const round = {
        count: 0,
        isLast: true,
        over,
        settle: () => {
          if (!round.isLast && round.count === 0) Deferred.doneUnsafe(over, Effect.void)
        },
        leave: () => {
          inFlight--
          round.count--
          round.settle()
          settle()
        }
      }
      return round
    }
    let round = begin()
    return Drain.of({
      enter: () => {
        inFlight++
        round.count++
        return round.leave
      },
      current: Effect.suspend(() => {
        const last = round
        round = begin()
        last.isLast = false
        last.settle()
        return Deferred.await(last.over)
      }),
      isDraining: () => draining,
      drain: (maxWait) =>
        Effect.suspend(() => {
          draining = true
          settle()
          return Effect.timeoutOrElse(Deferred.await(idle), { duration: maxWait, orElse: () => Effect.void })
        })
    })
  })
)
