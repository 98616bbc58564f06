/**
 * Writes the audit log as lines of JSON, to a file or to standard output.
 *
 * Sending an action never waits for the audit log. While the log cannot be written, for example because the disk is
 * full, lines are buffered. Beyond {@link backlog} lines, the newest lines are dropped, counted, and reported in the
 * program's log and in the audit log.
 *
 * The lines of a file form a chain: each contains the hash of the line before it, also after a restart and in a new file
 * after log rotation. {@link verify} finds a line that was changed, removed or moved.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeStdio from "@effect/platform-node/NodeStdio"
import { encode } from "@trigate/domain/encoding/Encoding"
import { type ActionLog, type AuditEntry, AuditLog, layerAudited } from "@trigate/trading/actionLog/ActionLog"
import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import { constVoid } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as ScopedRef from "effect/ScopedRef"
import * as Semaphore from "effect/Semaphore"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- a hash without a promise, for each line
import { hash } from "node:crypto"
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

const hashLine = (line: string): string => hash("sha256", line)

/**
 * Makes the function that writes entries: one line for each entry, in order. Retries a failed write every second. With
 * `previous`, the hash of the line to which the first one is appended, the lines form a chain.
 */
export const lineWriter = Effect.fnUntraced(function*(
  append: (text: string) => Effect.Effect<void, PlatformError>,
  format: (line: Line) => string,
  previous?: string
) {
  const context = yield* Effect.context()
  const lines = yield* Queue.dropping<Line, Cause.Done>(backlog)
  let last = previous
  let isFailing = false
  let lostHere = 0
  /** The number of lost lines that the log does not report yet. */
  let lostBefore = 0

  const formatLine = (entry: Line): string => {
    const line = format(last === undefined ? entry : { ...entry, previous: last })
    if (last !== undefined) last = hashLine(line)
    return `${line}\n`
  }

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
    lostBefore += count
    return Effect.logInfo(`The audit log can be written again; ${count} lines were lost`)
  })

  // lines are only lost while others are buffered, so a further batch follows
  const formatBatch = (batch: ReadonlyArray<Line>): string => {
    const time = batch.at(-1)?.time ?? 0
    const lost = lostBefore === 0 ? [] : [{ time, level: "error", message: "lost", lines: lostBefore }]
    lostBefore = 0
    return [...batch, ...lost].map(formatLine).join("")
  }

  // a failed write may have left a partial line; a line break ends that line
  const writeBatch = (text: string) =>
    Effect.suspend(() => append(isFailing ? `\n${text}` : text)).pipe(
      Effect.tapError(reportFailure),
      Effect.retry(Schedule.spaced("1 second")),
      Effect.andThen(recover)
    )

  const writer = yield* Effect.forkDetach(
    Effect.ignore(
      Effect.forever(Effect.flatMap(Queue.takeAll(lines), (batch) => writeBatch(formatBatch(batch))))
    )
  )
  yield* Effect.addFinalizer(() =>
    Queue.end(lines).pipe(
      Effect.andThen(Effect.timeoutOption(Fiber.await(writer), "1 second")),
      Effect.andThen(Fiber.interrupt(writer))
    )
  )

  return (entry: AuditEntry): void => {
    if (Queue.offerUnsafe(lines, { level: "info", ...entry })) return
    lostHere += 1
    lost.updateUnsafe(1, context)
  }
})

/** The first line of a log contains this instead of a hash. */
const none = ""

/** Maximum length of a line, in bytes. */
const longestLine = 65_536

const decodeLine = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ previous: Schema.optionalKey(Schema.String) }))
)

/** Returns the hash of a file's last whole line, to which new lines are appended. */
const hashLastLine = Effect.fnUntraced(function*(files: FileSystem.FileSystem, path: string) {
  const size = Number((yield* files.stat(path)).size)
  const tail = yield* files.stream(path, {
    offset: Math.max(0, size - longestLine),
    bytesToRead: Math.min(size, longestLine)
  }).pipe(
    Stream.decodeText(),
    Stream.mkString
  )
  const line = tail.split("\n").findLast((each) => Option.isSome(decodeLine(each)))
  return { previous: line === undefined ? none : hashLine(line), isEnded: tail === "" || tail.endsWith("\n") }
})

/** The result of a check: the number of lines, and the hash by which the log can be compared with a later one. */
export interface Chain {
  readonly lines: number
  /** The number of lines at the start that an earlier version of this program wrote without hashes. */
  readonly unchained: number
  /** The number of lines that cannot be read: the rest of a write that failed, or text of another origin. */
  readonly unreadable: number
  /** The hash that the first line contains; empty if the log begins with it. */
  readonly first: string
  /** The hash of the last line. Only with this hash can a log be found that lacks its newest lines. */
  readonly last: string
}

/** A line that does not follow the line before it. */
export class BrokenChain extends Schema.TaggedError<BrokenChain>()("BrokenChain", { line: Schema.Natural }) {
  override get message(): string {
    return `Line ${this.line} does not follow the line before it: lines were changed, removed or moved`
  }
}

/**
 * Checks that lines form one chain, beginning with the oldest. After a failed write, a line can occur twice: the second
 * one then counts. `onLine` is called with the hash of each line.
 */
export const verify = <E, R>(
  lines: Stream.Stream<string, E, R>,
  onLine: (hash: string) => void = constVoid
): Effect.Effect<Chain, BrokenChain | E, R> => {
  const chain: { -readonly [K in keyof Chain]: Chain[K] } = {
    lines: 0,
    unchained: 0,
    unreadable: 0,
    first: none,
    last: none
  }
  let line = 0
  // the hashes of the latest lines, which a repeated batch can contain
  const recent = new Set<string>()
  return Stream.runForEach(lines, (text) => {
    line++
    if (text === "") return Effect.void
    const found = Option.getOrUndefined(decodeLine(text))
    if (found === undefined) {
      chain.unreadable++
      return Effect.void
    }
    const own = hashLine(text)
    onLine(own)
    const { previous } = found
    const { last } = chain
    const isRepeated = recent.has(own)
    chain.last = own
    if (isRepeated) return Effect.void
    if (previous === undefined && chain.lines === chain.unchained) chain.unchained++
    else if (chain.lines === 0) chain.first = previous ?? none
    else if (previous !== last) return Effect.fail(new BrokenChain({ line }))
    chain.lines++
    recent.add(own)
    const [oldest] = recent
    if (oldest !== undefined && recent.size > 2 * backlog) recent.delete(oldest)
    return Effect.void
  }).pipe(Effect.as(chain))
}

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
      const toError = (done: string) => (error: PlatformError) =>
        new SettingsError({
          setting,
          message: `${setting} names a file that cannot be ${done} (${failureReason(error)})`
        })
      const file = yield* Effect.mapError(ScopedRef.fromAcquire(open), toError("opened"))
      const one = yield* Semaphore.make(1)
      const append = (text: string) =>
        one.withPermits(1)(Effect.flatMap(ScopedRef.get(file), (opened) => opened.writeAll(encode(text))))
      const { isEnded, previous } = yield* Effect.mapError(hashLastLine(files, path), toError("read"))
      // the process may have been killed within a line
      if (!isEnded) yield* Effect.ignore(append("\n"))
      const write = yield* lineWriter(append, jsonLine, previous)
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

/** The audit log of the context, if it has one. */
export const current: Effect.Effect<AuditLog["Service"] | undefined> = Effect.map(
  Effect.serviceOption(AuditLogWriter),
  (found) => {
    const write = Option.getOrUndefined(found)?.write
    return write === undefined ? undefined : { write }
  }
)

/** Provides an action log that also writes to the context's audit log, if the context has one. */
export const audited = (log: Layer.Layer<ActionLog>): Layer.Layer<ActionLog, never, AuditLogWriter> =>
  Layer.unwrap(Effect.map(Effect.andThen(AuditLogWriter, current), (audit) =>
    audit === undefined
      ? log
      : Layer.provide(layerAudited(), [log, Layer.succeed(AuditLog, audit)])))
