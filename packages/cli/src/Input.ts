/** The inputs of commands: files, arguments and flags, each with a description of the expected text. */
import { Address, Hash, StorageSlot } from "@trigate/domain/encoding/Hex"
import * as TonAddress from "@trigate/domain/tokens/TonAddress"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"

/** The command cannot run with these arguments; the message is one line that states what to change. */
export class UsageFault extends Schema.TaggedError<UsageFault>()("UsageFault", { message: Schema.String }) {}

/** Makes a {@link UsageFault}. */
export const fault = (message: string): UsageFault => new UsageFault({ message })

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

const readAddress = Schema.decodeOption(Address)
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
  Argument.String(name).pipe(Argument.filterMap(Schema.decodeOption(Hash), () => "32 bytes in hex, 0x first"))

const readSlot = Schema.decodeOption(StorageSlot)
const decimal = /^[0-9]{1,78}$/u

/** Declares an argument that accepts a storage position, in hex or as a decimal number. */
export const slot = (name: string) =>
  Argument.String(name).pipe(
    Argument.filterMap(
      (text) => decimal.test(text) ? readSlot(`0x${BigInt(text).toString(16)}`) : readSlot(text),
      () => "a storage position: 0x and 1 to 64 hex digits, or a decimal number"
    )
  )

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
