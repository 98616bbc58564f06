/**
 * The inputs and outputs of commands: files, arguments and flags; tables or JSON on standard output, new files, and
 * progress on standard error.
 */
import { CandleInterval } from "@trigate/domain/candles/Candle"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as TonAddress from "@trigate/domain/tokens/TokenData"
import * as Argument from "effect/cli/Argument"
import { displayWidth } from "effect/cli/CliOutput"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Console from "effect/Console"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Terminal from "effect/Terminal"

/** The command cannot run with these arguments; the message is one line that states what to change. */
export class UsageFault extends Schema.TaggedError<UsageFault>()("UsageFault", { message: Schema.String }) {}

/** Makes a {@link UsageFault}. */
export const fault = (message: string): UsageFault => new UsageFault({ message })

const decodeManifest = Schema.decodeEffect(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))

/** The version of this package. */
export const readVersion = FileSystem.FileSystem.pipe(
  Effect.flatMap((files) => files.readFileString(`${import.meta.dirname}/../package.json`)),
  Effect.flatMap(decodeManifest),
  Effect.map(({ version }) => version),
  Effect.orDie
)

const bytesAt = Effect.fnUntraced(function*(path: string) {
  if (path !== "-") return yield* FileSystem.FileSystem.use((files) => files.readFile(path))
  const { stdin } = yield* Stdio.Stdio
  return Buffer.concat(yield* Stream.runCollect(stdin))
})

/** Returns the name of a path in messages: `-` is standard input. */
export const displayName = (path: string): string => path === "-" ? "Standard input" : path

/** Reads the bytes of a file, or of standard input for `-`. Fails with {@link UsageFault}. */
export const bytes = (path: string) =>
  Effect.mapError(bytesAt(path), () => fault(`${displayName(path)} cannot be read`))

/** Reads the text of a file, or of standard input for `-`. Fails with {@link UsageFault}. */
export const text = (path: string) => Effect.map(bytes(path), (read) => new TextDecoder().decode(read))

const readAddress = Schema.decodeOption(Encoding.Address)
const notAddress = () => "20 bytes in hex, 0x first"

/** Declares an argument that accepts a 20-byte address. */
export const address = (name: string) => Argument.String(name).pipe(Argument.filterMap(readAddress, notAddress))

/** Declares a flag that accepts a 20-byte address. */
export const addressFlag = (name: string) =>
  Flag.String(name).pipe(Flag.withMetavar("address"), Flag.filterMap(readAddress, notAddress))

/**
 * Declares an argument that accepts an address of the token chain, in raw or user-friendly form. The text is not
 * changed.
 */
export const tonAddress = (name: string) =>
  Argument.String(name).pipe(
    Argument.filterMap(
      (text) => Result.getSuccess(TonAddress.check(text)),
      (text) =>
        Result.match(TonAddress.parse(text), {
          onFailure: ({ reason }) => `an address of the token chain; ${reason}`,
          onSuccess: () => ""
        })
    )
  )

/** Declares an argument that accepts a 32-byte transaction hash. */
export const hash = (name: string) =>
  Argument.String(name).pipe(Argument.filterMap(Schema.decodeOption(Encoding.Hash), () => "32 bytes in hex, 0x first"))

const readSlot = Schema.decodeOption(Encoding.StorageSlot)
const decimal = /^[0-9]{1,78}$/u

/** Declares an argument that accepts a storage position, in hex or as a decimal number. */
export const slot = (name: string) =>
  Argument.String(name).pipe(
    Argument.filterMap(
      (text) => decimal.test(text) ? readSlot(`0x${BigInt(text).toString(16)}`) : readSlot(text),
      () => "a storage position: 0x and 1 to 64 hex digits, or a decimal number"
    )
  )

/** Declares a flag without a value. */
export const booleanFlag = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDefault(false), Flag.withDescription(description))

/** Declares an optional flag with a text as its value. */
export const textFlag = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.optional)

/** Declares a flag that accepts a whole number from 1 to `most`. */
export const countFlag = (name: string, most: number) =>
  Flag.String(name).pipe(
    Flag.withMetavar("count"),
    Flag.filterMap(
      (text) =>
        /^[0-9]{1,4}$/u.test(text) && Number(text) >= 1 && Number(text) <= most
          ? Option.some(Number(text))
          : Option.none(),
      () => `a whole number from 1 to ${most}`
    )
  )

/** Matches milliseconds since 1970 (12 to 14 digits). Ten digits would be seconds. */
const millis = /^[0-9]{12,14}$/u

/** Declares a flag that accepts a nonce in milliseconds since 1970. */
export const millisFlag = (name: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("ms"),
    Flag.filterMap(
      (text) => millis.test(text) ? Option.some(Number(text)) : Option.none(),
      () => "milliseconds since 1970, such as 1767225600000"
    )
  )

/** The argument for the coin of candles. */
export const coin = Argument.String("coin").pipe(
  Argument.withDescription("BTC (a perpetual, case-sensitive), PURR/USDC or @107 (spot), dex:COIN (a builder's)")
)

/** The argument for the interval of candles. */
export const interval = Argument.Literals("interval", CandleInterval.literals).pipe(
  Argument.withDescription(`Length of a bar: ${CandleInterval.literals.join(" ")} (1M is a month)`)
)

/** The option `--network`. */
export const network = Flag.Literals("network", ["mainnet", "testnet"]).pipe(
  Flag.withDefault("mainnet"),
  Flag.withDescription("Network that the signature is for (default: mainnet)")
)

const units: { readonly [unit: string]: number } = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000
}

/** Parses a number with a unit, and converts it to milliseconds. */
const parseLength = (pattern: RegExp, text: string): Option.Option<number> => {
  const { count, unit } = pattern.exec(text)?.groups ?? {}
  return Option.map(Option.fromUndefinedOr(units[unit ?? ""]), (length) => Number(count) * length)
}

const duration = /^(?<count>[0-9]{1,6})(?<unit>ms|[smhdw])$/u

/** Parses a duration with its unit: `500ms`, `30s`, `5m`, `90d`. */
export const readDuration = (text: string): Option.Option<Duration.Duration> =>
  Option.map(parseLength(duration, text), Duration.millis)

/** A time: absolute, or relative to the time at which the command runs. */
export type Moment =
  | { readonly kind: "at"; readonly millis: number }
  | { readonly kind: "ago"; readonly millis: number }

const ago = /^(?<count>[0-9]{1,6})(?<unit>[smhdw])$/u
const dateTime =
  /^(?<day>[0-9]{4}-[0-9]{2}-[0-9]{2})(?:T(?<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,3})?)?)(?<zone>Z|[+-][0-9]{2}:[0-9]{2})?)?$/u

/** Describes the time formats that {@link readMoment} parses. */
export const expectedMoment =
  "a date (2026-01-31), a date and time (2026-01-31T12:00Z; default zone: UTC), milliseconds since 1970, or how " +
  "long ago (90s, 30m, 12h, 7d, 2w)"

/** Returns whether a day is in the calendar: `DateTime` parses February 30 as March 2. */
const isDay = (day: string): boolean =>
  Option.exists(DateTime.make(`${day}T00:00Z`), (found) => DateTime.formatIsoDateUtc(found) === day)

/** Parses a time in one of the formats of {@link expectedMoment}. Returns `None` for any other text. */
export const readMoment = (text: string): Option.Option<Moment> => {
  if (text === "now") return Option.some({ kind: "ago", millis: 0 })
  const length = parseLength(ago, text)
  if (Option.isSome(length)) return Option.some({ kind: "ago", millis: length.value })
  if (millis.test(text)) return Option.some({ kind: "at", millis: Number(text) })
  const { day, time, zone } = dateTime.exec(text)?.groups ?? {}
  if (day === undefined || !isDay(day)) return Option.none()
  return Option.map(
    DateTime.make(`${day}T${time ?? "00:00"}${zone ?? "Z"}`),
    (found) => ({ kind: "at", millis: DateTime.toEpochMillis(found) })
  )
}

/** Returns the time in milliseconds since 1970. A relative time is counted back from `now`. */
export const toInstant = (moment: Moment, now: number): number =>
  moment.kind === "at" ? moment.millis : now - moment.millis

const keyLike = /(?:0x)?[0-9a-fA-F]{64,}/gu

/** Replaces each run of 64 or more hex digits, which could be a private key that was typed in the wrong place. */
export const withoutKeys = (text: string): string => text.replace(keyLike, "<64 hex digits>")

/** A column of a table. */
export interface Column {
  readonly heading: string
  readonly align: "left" | "right"
}

/** Makes a left-aligned column. */
export const left = (heading: string): Column => ({ heading, align: "left" })

/** Makes a right-aligned column. */
export const right = (heading: string): Column => ({ heading, align: "right" })

const padded = (cell: string, width: number, align: Column["align"]): string => {
  const space = " ".repeat(width - displayWidth(cell))
  return align === "left" ? `${cell}${space}` : `${space}${cell}`
}

/** Formats a table: headings, then aligned rows, with two spaces between columns. Cells can contain any text. */
export const rows = (columns: ReadonlyArray<Column>, cells: ReadonlyArray<ReadonlyArray<string>>): string => {
  const lines = [columns.map(({ heading }) => heading), ...cells.map((row) => row.map(Encoding.printable))]
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => displayWidth(line[at] ?? ""))))
  return lines.map((line) =>
    columns.map(({ align }, at) => padded(line[at] ?? "", widths[at] ?? 0, align)).join("  ").trimEnd()
  ).join("\n")
}

/** Breaks a text between words into lines of a width. A longer word has a line of its own. */
export const wrapped = (width: number, text: string): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of text.split(" ")) {
    const last = lines.at(-1)
    if (last !== undefined && displayWidth(`${last} ${word}`) <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** Names with their values. {@link facts} omits a name whose value is `undefined`. */
export type Facts = ReadonlyArray<readonly [name: string, value: string | undefined]>

/**
 * Formats names and values, one pair per line. Breaks values that are wider than the terminal, and aligns the lines of
 * a value.
 */
export const facts = (pairs: Facts, terminal: number = Infinity): string => {
  const known = pairs.flatMap(([name, value]) => value === undefined ? [] : [[name, value] as const])
  const width = Math.max(...known.map(([name]) => name.length)) + 2
  return known.flatMap(([name, value]) =>
    wrapped(terminal - width, Encoding.printable(value)).map((line, at) =>
      `${(at === 0 ? name : "").padEnd(width)}${line}`.trimEnd()
    )
  ).join("\n")
}

/** The width of the terminal in characters; infinite without a terminal. */
export const terminalWidth: Effect.Effect<number, never, Terminal.Terminal> = Terminal.Terminal.use(({ columns }) =>
  Effect.map(columns, (count) => count > 0 ? count : Infinity)
)

/** Cuts each line of a text at a width, with an ellipsis. */
export const cutAt = (width: number, text: string): string =>
  text.split("\n").map((line) => line.length <= width ? line : `${line.slice(0, width - 1)}…`).join("\n")

/** Formats the {@link rows} of a table, or the {@link facts} of each row if the table is wider than the terminal. */
export const rowsFor = (
  width: number,
  columns: ReadonlyArray<Column>,
  cells: ReadonlyArray<ReadonlyArray<string>>
): string => {
  const table = rows(columns, cells)
  return table.split("\n").every((line) => displayWidth(line) <= width)
    ? table
    : cells.map((row) => facts(columns.map(({ heading }, at) => [heading.toLowerCase(), row[at] ?? ""]))).join("\n\n")
}

/** The option `--json`. */
export const AsJson = GlobalFlag.Setting("json")({
  flag: booleanFlag("json", "Print JSON instead of a table")
})

/**
 * Prints text of several lines. Escapes terminal control characters as JSON does, so that escaped JSON text has the
 * same value.
 */
export const printText = (text: string): Effect.Effect<void> => Console.log(Encoding.printableLines(text))

/** Prints a JSON document. Integers keep all their digits. */
export const printJson = (document: unknown): Effect.Effect<void> => printText(Encoding.stringifyPretty(document))

/** Prints the table, or the JSON document if `--json` is set. Integers keep all their digits. */
export const print = Effect.fnUntraced(function*(data: { readonly json: unknown; readonly table: string }) {
  yield* (yield* AsJson) ? printJson(data.json) : Console.log(data.table)
})

/** Prints sentences to standard error, one per line. */
export const printNotes = (sentences: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.forEach(sentences, (sentence) => Console.error(Encoding.printable(sentence)), { discard: true })

/** The option `--save`. */
export const saveFlag = textFlag("save", "path", "Write to a new file instead of standard output")

/** Writes a document to a new file, or to standard output. Never overwrites a file. */
export const save = Effect.fnUntraced(function*(path: Option.Option<string>, document: string) {
  if (Option.isNone(path)) return yield* printText(document)
  const files = yield* FileSystem.FileSystem
  yield* Effect.mapError(
    files.writeFileString(path.value, `${document}\n`, { flag: "wx" }),
    () => fault(`${path.value} exists or cannot be written; nothing was changed`)
  )
  return yield* Console.error(`trigate: written to ${path.value}`)
})

/** Escapes the lines of a text stream as {@link printText} does. */
export const printableBytes = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Uint8Array, E, R> =>
  bytes.pipe(Stream.decodeText, Stream.map(Encoding.printableLines), Stream.encodeText)

/** Streams bytes to a new file, or to standard output. Never overwrites a file. */
export const saveBytes = Effect.fnUntraced(function*<E, R>(
  path: Option.Option<string>,
  bytes: Stream.Stream<Uint8Array, E, R>
) {
  if (Option.isNone(path)) {
    const stdio = yield* Stdio.Stdio
    const sink = Sink.mapError(stdio.stdout({ endOnDone: false }), () => fault("standard output cannot be written"))
    return yield* Stream.run(bytes, sink)
  }
  const files = yield* FileSystem.FileSystem
  const sink = Sink.mapError(
    files.sink(path.value, { flag: "wx" }),
    () => fault(`${path.value} exists or cannot be written`)
  )
  return yield* Stream.run(bytes, sink)
})

const eraseLine = "\r\u001B[2K"
const barWidth = 24

/** Formats a progress bar. */
export const bar = (done: number, total: number): string => {
  const filled = total === 0 ? barWidth : Math.round(barWidth * Math.min(1, done / total))
  return `[${"#".repeat(filled)}${"-".repeat(barWidth - filled)}] ${done}/${total}`
}

/** Replaces the progress line. */
export type Show = (line: string) => Effect.Effect<void>

/** Runs an effect. On a terminal, shows its progress in one line on standard error, and erases the line at the end. */
export const withProgress = Effect.fnUntraced(function*<A, E, R>(work: (show: Show) => Effect.Effect<A, E, R>) {
  const stdio = yield* Stdio.Stdio
  if (!(yield* stdio.stderrIsTerminal)) return yield* work(() => Effect.void)
  // the effect continues if its progress cannot be shown
  const write = (text: string) => Effect.ignore(Stream.run(Stream.make(text), stdio.stderr({ endOnDone: false })))
  return yield* Effect.ensuring(work((line) => write(`${eraseLine}${line}`)), write(eraseLine))
})
