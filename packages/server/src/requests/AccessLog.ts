/** The access log: a line on standard output for each request. */
import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"

/** The access log's record of one request. */
export interface RequestLogEntry {
  /** The time at which the request ended, in milliseconds since 1970. */
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
  /** The ID of the request's trace; absent without a tracer. */
  readonly traceId: string | undefined
  /** Statistics of the request's WebSocket, recorded when the WebSocket is closed. Absent for other requests. */
  readonly socket?: {
    readonly closed: string
    readonly received: number
    readonly sent: number
    readonly conflated: number
  }
}

/**
 * The access log. `write` does not block; if entries arrive faster than they can be written, the oldest entries are
 * dropped.
 *
 * @since 0.1.0
 * @category services
 */
export class AccessLog extends Context.Service<AccessLog, {
  /** Writes an entry. Absent if there is no access log, so that no entries are built. */
  readonly write?: (entry: RequestLogEntry) => void
}>()("@trigate/server/requests/AccessLog") {}

/**
 * Provides an access log that writes nothing.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerOff: Layer.Layer<AccessLog> = Layer.succeed(AccessLog, {})

const backlog = 8192

/** A line of the access log or of the program's log: three fields that every line has, then further fields. */
export interface Line {
  /** Milliseconds since 1970. */
  readonly time: number
  readonly level: string
  readonly message: string
  readonly [member: string]: unknown
}

/** Formats a line as JSON. */
export const jsonLine = ({ level, message, time, ...members }: Line): string =>
  JSON.stringify({ time, level, message, ...members })

/** The format of access log lines. Default: JSON. */
export const LineFormat = Context.Reference<(line: Line) => string>("@trigate/server/LineFormat", {
  defaultValue: () => jsonLine
})

/**
 * Provides an access log that writes to standard output. Closing the layer's scope writes the queued lines.
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
