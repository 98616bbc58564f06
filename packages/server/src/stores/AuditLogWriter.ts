/**
 * Writes the audit log as lines of JSON, to a file or to standard output.
 *
 * Sending an action never waits for the audit log. While the log cannot be written, for example because the disk is
 * full, lines are buffered. Beyond {@link backlog} lines, the newest lines are dropped, counted, and reported in the
 * program's log.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeStdio from "@effect/platform-node/NodeStdio"
import { type ActionLog, type AuditEntry, AuditLog, layerAudited } from "@trigate/trading/actionLog/ActionLog"
import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as ScopedRef from "effect/ScopedRef"
import * as Semaphore from "effect/Semaphore"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { metrics } from "../process/Metrics.ts"
import { jsonLine, type Line, LineFormat } from "../requests/Observe.ts"
import { settings as declared } from "../settings/Settings.ts"
import { SettingsError } from "../settings/SettingsSources.ts"

/** Maximum number of buffered lines. */
export const backlog = 8192

/**
 * The audit log of a gateway.
 *
 * @since 0.1.0
 * @category services
 */
export class AuditLogWriter extends Context.Service<AuditLogWriter, {
  /** Writes an entry. Absent if there is no audit log. */
  readonly write?: AuditLog["Service"]["write"]
  /** Reopens the file after log rotation. If that fails, logs a warning and keeps the open file in use. */
  readonly reopen: Effect.Effect<void>
}>()("@trigate/server/stores/AuditLogWriter") {}

const lost = metrics.auditLogLost.series({})

const failureReason = ({ reason }: PlatformError): string => reason._tag

/** Makes the function that writes entries: one line for each entry, in order. Retries a failed write every second. */
export const lineWriter = Effect.fnUntraced(function*(
  append: (text: string) => Effect.Effect<void, PlatformError>,
  format: (line: Line) => string
) {
  const context = yield* Effect.context()
  const lines = yield* Queue.dropping<string, Cause.Done>(backlog)
  let isFailing = false
  let lostHere = 0

  const reportFailure = (error: PlatformError) =>
    Effect.suspend(() => {
      if (isFailing) return Effect.void
      isFailing = true
      return Effect.logError(
        `The audit log cannot be written (${
          failureReason(error)
        }): ${backlog} lines are buffered, and further lines are lost`
      )
    })

  const recover = Effect.suspend(() => {
    if (!isFailing) return Effect.void
    const count = lostHere
    isFailing = false
    lostHere = 0
    return Effect.logInfo(`The audit log can be written again; ${count} lines were lost`)
  })

  // a failed write may have left a partial line; a line break ends that line
  const writeBatch = (text: string) =>
    Effect.suspend(() => append(isFailing ? `\n${text}` : text)).pipe(
      Effect.tapError(reportFailure),
      Effect.retry(Schedule.spaced("1 second")),
      Effect.andThen(recover)
    )

  const writer = yield* Effect.forkDetach(
    Effect.ignore(Effect.forever(Effect.flatMap(Queue.takeAll(lines), (batch) => writeBatch(batch.join("")))))
  )
  yield* Effect.addFinalizer(() =>
    Queue.end(lines).pipe(
      Effect.andThen(Effect.timeoutOption(Fiber.await(writer), "1 second")),
      Effect.andThen(Fiber.interrupt(writer))
    )
  )

  return ({ time, ...entry }: AuditEntry): void => {
    if (Queue.offerUnsafe(lines, `${format({ time, level: "info", message: "action", ...entry })}\n`)) return
    lostHere += 1
    lost.updateUnsafe(1, context)
  }
})

const setting = declared.auditLog.env

/**
 * The audit log in a file that only its owner can read. Fails if the file cannot be opened.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerFile = (path: string): Layer.Layer<AuditLogWriter, SettingsError, FileSystem.FileSystem> =>
  Layer.effect(
    AuditLogWriter,
    Effect.gen(function*() {
      const files = yield* FileSystem.FileSystem
      const open = files.open(path, { flag: "a", mode: 0o600 })
      const file = yield* ScopedRef.fromAcquire(open).pipe(
        Effect.mapError((error) =>
          new SettingsError({
            setting,
            message: `${setting} names a file that cannot be opened (${failureReason(error)})`
          })
        )
      )
      const one = yield* Semaphore.make(1)
      const encoder = new TextEncoder()
      const write = yield* lineWriter(
        (text) =>
          one.withPermits(1)(Effect.flatMap(ScopedRef.get(file), (opened) => opened.writeAll(encoder.encode(text)))),
        jsonLine
      )
      return AuditLogWriter.of({
        write,
        reopen: one.withPermits(1)(ScopedRef.set(file, open)).pipe(
          Effect.catch((error) =>
            Effect.logError(`The audit log cannot be opened again (${failureReason(error)}): the old file stays open`)
          )
        )
      })
    })
  )

/**
 * The audit log on standard output, where its lines are mixed with those of the program's log and the access log.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerStdout: Layer.Layer<AuditLogWriter, never, Stdio.Stdio> = Layer.effect(
  AuditLogWriter,
  Effect.gen(function*() {
    const stdio = yield* Stdio.Stdio
    const format = yield* LineFormat
    const write = yield* lineWriter((text) => Stream.run(Stream.make(text), stdio.stdout()), format)
    return AuditLogWriter.of({ write, reopen: Effect.void })
  })
)

/**
 * No audit log.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerOff: Layer.Layer<AuditLogWriter> = Layer.succeed(AuditLogWriter, { reopen: Effect.void })

/**
 * The configured audit log.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (place: Option.Option<string>): Layer.Layer<AuditLogWriter, SettingsError> =>
  Option.match(place, {
    onNone: () => layerOff,
    onSome: (path): Layer.Layer<AuditLogWriter, SettingsError> =>
      path === "stdout"
        ? Layer.provide(layerStdout, NodeStdio.layer)
        : Layer.provide(layerFile(path), NodeFileSystem.layer)
  })

/** Provides an action log that also writes to the context's audit log, if the context has one. */
export const audited = (log: Layer.Layer<ActionLog>): Layer.Layer<ActionLog, never, AuditLogWriter> =>
  Layer.unwrap(Effect.map(AuditLogWriter, ({ write }) =>
    write === undefined
      ? log
      : Layer.provide(layerAudited(), [log, Layer.succeed(AuditLog, { write })])))
