/** Converts amounts of HYPE between decimal strings and the venue's integer unit `wei`. */
import { formatUnits } from "@trigate/domain/evm/Gas"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

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
