/**
 * Converts token amounts between an exact `bigint` of smallest units and a decimal string. Converts gas prices and fees
 * between wei, gwei (10^9 wei) and ether (10^18 wei).
 */
import * as Option from "effect/Option"

const GWEI_DECIMALS = 9
const ETHER_DECIMALS = 18

/**
 * Formats an amount in smallest units as a decimal number without trailing zeros: `1500000000n` with 9 decimals is
 * `"1.5"`.
 */
export const formatUnits = (units: bigint, decimals: number): string => {
  const sign = units < 0n ? "-" : ""
  const digits = (units < 0n ? -units : units).toString().padStart(decimals + 1, "0")
  const point = digits.length - decimals
  const fraction = digits.slice(point).replace(/0+$/u, "")
  return `${sign}${digits.slice(0, point)}${fraction === "" ? "" : `.${fraction}`}`
}

const amount = /^(?<whole>[0-9]{1,60})(?:\.(?<fraction>[0-9]{1,60}))?$/u

const parse = (text: string, decimals: number): Option.Option<bigint> => {
  const groups = amount.exec(text)?.groups
  if (groups === undefined) return Option.none()
  // trailing zeros beyond the last decimal place are insignificant; any other digit there makes the number invalid
  const fraction = (groups["fraction"] ?? "").replace(/0+$/u, "")
  return fraction.length > decimals
    ? Option.none()
    : Option.some(BigInt(`${groups["whole"] ?? ""}${fraction.padEnd(decimals, "0")}`))
}

/** Formats wei in gwei without trailing zeros: `1500000000n` is `"1.5"`. */
export const formatGwei = (wei: bigint): string => formatUnits(wei, GWEI_DECIMALS)

/** Formats wei in ether without trailing zeros: `1n` is `"0.000000000000000001"`. */
export const formatEther = (wei: bigint): string => formatUnits(wei, ETHER_DECIMALS)

/** Parses a plain decimal number in gwei to wei; `None` for other text and for fractions of a wei. */
export const parseGwei = (text: string): Option.Option<bigint> => parse(text, GWEI_DECIMALS)

/** Parses a plain decimal number in ether to wei; `None` for other text and for fractions of a wei. */
export const parseEther = (text: string): Option.Option<bigint> => parse(text, ETHER_DECIMALS)

/** Returns the maximum cost of a transaction in wei: gas price x gas limit. */
export const cost = (price: { readonly gasPrice: bigint; readonly gasLimit: bigint }): bigint =>
  price.gasPrice * price.gasLimit
