/** Decimal strings in the venue's canonical form, and amounts of HYPE in the venue's integer unit `wei`. */
import { formatUnits } from "@trigate/domain/evm/EvmResources"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

const plain = /^(?<sign>-?)(?<whole>[0-9]*)(?:\.(?<fraction>[0-9]*))?$/

const scientific = /^(?<sign>-?)(?<whole>[0-9]+)(?:\.(?<fraction>[0-9]+))?[eE](?<exponent>[+-]?[0-9]{1,3})$/

const spelled = (sign: string, whole: string, fraction: string): string => {
  const units = whole.replace(/^0+(?=.)/, "") || "0"
  const rest = fraction.replace(/0+$/, "")
  const digits = rest === "" ? units : `${units}.${rest}`
  return digits === "0" ? digits : `${sign}${digits}`
}

/**
 * Returns a decimal in the venue's canonical form: `1100.50` is `1100.5`, `.5` is `0.5`, `-0` is `0`, `1e-7` is
 * `0.0000001`.
 *
 * Returns `undefined` if the text is not a decimal number.
 */
export const canonical = (text: string): string | undefined => {
  const { fraction = "", sign = "", whole = "" } = plain.exec(text)?.groups ?? {}
  if (whole !== "" || fraction !== "") return spelled(sign, whole, fraction)
  const power = scientific.exec(text)?.groups
  if (power === undefined) return undefined
  const digits = `${power["whole"]}${power["fraction"] ?? ""}`
  const point = (power["whole"] ?? "").length + Number(power["exponent"])
  return point <= 0
    ? spelled(power["sign"] ?? "", "0", `${"0".repeat(-point)}${digits}`)
    : spelled(power["sign"] ?? "", digits.slice(0, point).padEnd(point, "0"), digits.slice(point))
}

/** Truncates a canonical decimal to at most `places` decimal places. */
export const atMostPlaces = (decimal: string, places: number): string => {
  const [whole = "0", fraction = ""] = decimal.split(".")
  return spelled("", whole, fraction.slice(0, Math.max(0, places)))
}

/** Truncates a canonical decimal to at most `digits` significant digits. The integer part is never shortened. */
export const atMostDigits = (decimal: string, digits: number): string => {
  const [whole = "0", fraction = ""] = decimal.split(".")
  const places = whole === "0" ? digits + (/^0*/.exec(fraction)?.[0].length ?? 0) : digits - whole.length
  return atMostPlaces(decimal, places)
}

const decimals = 8

const maxWei = 2n ** 64n - 1n

/**
 * An amount that cannot be expressed in `wei`.
 *
 * `notDecimal`: not a plain decimal number, for example because of a sign, an exponent or thousands separators.
 * `tooPrecise`: a nonzero digit after the eighth decimal place. `tooLarge`: above 2^64 - 1 wei.
 */
export class UnrepresentableHype extends Schema.TaggedError<UnrepresentableHype>()("UnrepresentableHype", {
  reason: Schema.Literals(["notDecimal", "tooPrecise", "tooLarge"]),
  amount: Schema.String
}) {
  get group() {
    return "fix-request" as const
  }
  override get message() {
    return `${this.amount} HYPE cannot be expressed in wei: ${this.reason}`
  }
}

const pattern = /^(?<whole>[0-9]{1,30})(?:\.(?<fraction>[0-9]{1,30}))?$/

/** Converts a decimal amount to `wei` (HYPE x 10^8). Never rounds; fails with {@link UnrepresentableHype}. */
export const weiFromHype = (amount: string): Result.Result<bigint, UnrepresentableHype> => {
  const fail = (reason: UnrepresentableHype["reason"]) =>
    Result.fail(new UnrepresentableHype({ reason, amount: amount.slice(0, 64) }))
  const groups = pattern.exec(amount)?.groups
  if (groups === undefined) return fail("notDecimal")
  const fraction = (groups["fraction"] ?? "").replace(/0+$/, "")
  if (fraction.length > decimals) return fail("tooPrecise")
  const wei = BigInt(`${groups["whole"]}${fraction.padEnd(decimals, "0")}`)
  return wei > maxWei ? fail("tooLarge") : Result.succeed(wei)
}

/** Formats `wei` as a decimal amount of HYPE, without trailing zeros. */
export const hypeFromWei = (wei: bigint): string => formatUnits(wei, decimals)
