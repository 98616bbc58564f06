/**
 * The log on standard output: program messages and the access log, whose lines have a common format.
 *
 * A line is a JSON object. On a terminal, a line is readable text with the fields of that object, in their order.
 */
import { printable, printableLines } from "@trigate/domain/encoding/TerminalEscape"
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { format as textOf } from "effect/Formatter"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Predicate from "effect/Predicate"
import * as References from "effect/References"
import { jsonLine, LineFormat } from "../requests/AccessLog.ts"
import type { Line } from "../requests/AccessLog.ts"

const text = (value: unknown): string => Predicate.isString(value) ? value : textOf(value)

/** Converts a program message to a log line. */
const toLine = ({ cause, date, fiber, logLevel, message }: Logger.Options<unknown>): Line => ({
  ...fiber.getRef(References.CurrentLogAnnotations),
  time: date.getTime(),
  level: logLevel.toLowerCase(),
  message: Array.isArray(message) ? message.map(text).join(" ") : text(message),
  ...(cause.reasons.length === 0 ? {} : { cause: Cause.pretty(cause) }),
  ...(fiber.cache.tracer === undefined || fiber.cache.span === undefined ? {} : { traceId: fiber.cache.span.traceId })
})

const clockTime = (time: number): string => DateTime.formatIso(DateTime.makeUnsafe(time)).slice(11)

const valueText = (value: unknown): string => {
  if (Array.isArray(value)) return value.map(text).join(",")
  const plain = text(value)
  return printable(/^[^\s"=]+$/u.test(plain) ? plain : JSON.stringify(plain))
}

/**
 * Formats a line for a terminal: the time of day in UTC, the level, the message, and each further field as
 * `name=value`. The cause, if any, follows on separate lines.
 */
export const peopleLine = ({ cause, level, message, time, ...members }: Line): string => {
  const rest = Object.entries(members).filter(([, value]) =>
    value !== undefined && !(Array.isArray(value) && value.length === 0)
  )
  return [`${clockTime(time)} ${level.toUpperCase().padEnd(5)} ${printable(message)}`]
    .concat(rest.map(([name, value]) => `${name}=${valueText(value)}`)).join(" ") +
    (cause === undefined ? "" : `\n${printableLines(text(cause))}`)
}

/**
 * Makes a logger that converts program messages to text with `format`. The messages can quote text from clients and
 * servers, so control characters are escaped.
 */
export const logger = (format: (line: Line) => string): Logger.Logger<unknown, string> =>
  Logger.make((options) => printableLines(format(toLine(options))))

/**
 * Writes program messages to standard output, and selects the format of the access log.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<never> = Layer.unwrap(Effect.sync(() => {
  const format = process.stdout.isTTY ? peopleLine : jsonLine
  return Layer.merge(Layer.succeed(LineFormat, format), Logger.layer([Logger.withConsoleLog(logger(format))]))
}))
