/** The access log: a line on standard output for each request. */
import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"

/** What the access log says of one request. */
export interface RequestLogEntry {
  /** Milliseconds since 1970, at the end of the request. */
  readonly time: number
  readonly id: string
  readonly method: string
  readonly route: string
  readonly status: number
  readonly milliseconds: number
  /** Name or address of the caller. */
  readonly caller: string | undefined
  /** Prefix of the caller's key. */
  readonly key: string | undefined
  readonly operations: ReadonlyArray<string>
  readonly error: string | undefined
  /** The trace that the request belongs to, where the program has a tracer. */
  readonly traceId: string | undefined
  /** What a WebSocket was, at its end. */
  readonly socket?: {
    readonly closed: string
    readonly received: number
    readonly sent: number
    readonly conflated: number
  }
}

/**
 * The access log. `write` returns at once; when entries come faster than they can be written, the oldest are dropped.
 *
 * @since 0.1.0
 * @category services
 */
export class AccessLog extends Context.Service<AccessLog, {
  /** Absent without a log: then no entries are built. */
  readonly write?: (entry: RequestLogEntry) => void
}>()("@trigate/server/requests/AccessLog") {}

/**
 * No access log.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerOff: Layer.Layer<AccessLog> = Layer.succeed(AccessLog, {})

const backlog = 8192

/** A line of the log, of a request as well as of the program: the same three members, then those that it is about. */
export interface Line {
  /** Milliseconds since 1970. */
  readonly time: number
  readonly level: string
  readonly message: string
  readonly [member: string]: unknown
}

/** A line as JSON. */
export const jsonLine = ({ level, message, time, ...members }: Line): string =>
  JSON.stringify({ time, level, message, ...members })

/** How a line of the access log is written; as JSON unless a terminal shows it. */
export const LineFormat = Context.Reference<(line: Line) => string>("@trigate/server/LineFormat", {
  defaultValue: () => jsonLine
})

/**
 * Writes lines to standard output. Closing the layer's scope flushes the queue.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<AccessLog, never, Stdio.Stdio> = Layer.effect(
  AccessLog,
  Effect.gen(function*() {
    const stdio = yield* Stdio.Stdio
    const format = yield* LineFormat
    const formatLine = ({ time, ...entry }: RequestLogEntry) =>
      `${format({ time, level: "info", message: "request", ...entry })}\n`
    const lines = yield* Queue.sliding<string, Cause.Done>(backlog)
    const writer = yield* Effect.forkDetach(Effect.ignore(Stream.run(Stream.fromQueue(lines), stdio.stdout())))
    yield* Effect.addFinalizer(() => Effect.andThen(Queue.end(lines), Fiber.await(writer)))
    return AccessLog.of({ write: (entry) => void Queue.offerUnsafe(lines, formatLine(entry)) })
  })
)
