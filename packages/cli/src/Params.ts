/** Values that several commands take, with what to say when they are not what they should be. */
import { Address, Hash, StorageSlot } from "@trigate/domain/Hex"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

const reads = <S extends Schema.Codec<string, string>>(schema: S) => Schema.decodeOption(schema)

const readAddress = reads(Address)
const notAddress = () => "20 bytes in hex, 0x first"

/** A 20-byte address as an argument. */
export const address = (name: string) => Argument.String(name).pipe(Argument.filterMap(readAddress, notAddress))

/** A 20-byte address as a flag. */
export const addressFlag = (name: string) =>
  Flag.String(name).pipe(Flag.withMetavar("address"), Flag.filterMap(readAddress, notAddress))

/** A transaction hash. */
export const hash = (name: string) =>
  Argument.String(name).pipe(Argument.filterMap(reads(Hash), () => "32 bytes in hex, 0x first"))

const readSlot = reads(StorageSlot)
const decimal = /^[0-9]{1,78}$/u

/** A storage position, in hex or as a decimal number. */
export const slot = (name: string) =>
  Argument.String(name).pipe(
    Argument.filterMap(
      (text) => decimal.test(text) ? readSlot(`0x${BigInt(text).toString(16)}`) : readSlot(text),
      () => "a storage position: 1 to 64 digits of hex, 0x first, or a decimal number"
    )
  )

/** A whole number from 1 to a limit. */
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

// ten digits would be seconds
const millis = /^[0-9]{12,14}$/u

/** An instant as a nonce. */
export const millisFlag = (name: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("ms"),
    Flag.filterMap(
      (text) => millis.test(text) ? Option.some(Number(text)) : Option.none(),
      () => "milliseconds since 1970, such as 1767225600000"
    )
  )

/** One of the two networks of the venue. */
export const network = Flag.Literals("network", ["mainnet", "testnet"]).pipe(
  Flag.withDefault("mainnet"),
  Flag.withDescription("Network that the signature is for (default: mainnet)")
)

const duration = /^(?<count>[0-9]{1,6})(?<unit>ms|s|m|h)$/u
const unitLengths: { readonly [unit: string]: number } = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** A duration with its unit. */
export const readDuration = (text: string): Option.Option<Duration.Duration> => {
  const { count, unit } = duration.exec(text)?.groups ?? {}
  return count === undefined || unit === undefined
    ? Option.none()
    : Option.some(Duration.millis(Number(count) * (unitLengths[unit] ?? 0)))
}
