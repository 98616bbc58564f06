/** Gas prices and costs in wei: exact on `bigint`, printed and read in gwei (10^9 wei) and ether (10^18 wei). */
import * as Option from "effect/Option"

const GWEI_DECIMALS = 9
const ETHER_DECIMALS = 18

const format = (wei: bigint, decimals: number): string => {
  const sign = wei < 0n ? "-" : ""
  const digits = (wei < 0n ? -wei : wei).toString().padStart(decimals + 1, "0")
  const fraction = digits.slice(-decimals).replace(/0+$/u, "")
  return `${sign}${digits.slice(0, -decimals)}${fraction === "" ? "" : `.${fraction}`}`
}

const amount = /^(?<whole>[0-9]{1,60})(?:\.(?<fraction>[0-9]{1,60}))?$/u

const parse = (text: string, decimals: number): Option.Option<bigint> => {
  const groups = amount.exec(text)?.groups
  if (groups === undefined) return Option.none()
  // zeros beyond the last decimal say nothing; other digits there would be lost
  const fraction = (groups["fraction"] ?? "").replace(/0+$/u, "")
  return fraction.length > decimals
    ? Option.none()
    : Option.some(BigInt(`${groups["whole"] ?? ""}${fraction.padEnd(decimals, "0")}`))
}

/** Wei printed in gwei without trailing zeros: `1500000000n` is `"1.5"`. */
export const formatGwei = (wei: bigint): string => format(wei, GWEI_DECIMALS)

/** Wei printed in ether without trailing zeros: `1n` is `"0.000000000000000001"`. */
export const formatEther = (wei: bigint): string => format(wei, ETHER_DECIMALS)

/** Gwei as a plain decimal number, to wei; none for anything else and for fractions of a wei. */
export const parseGwei = (text: string): Option.Option<bigint> => parse(text, GWEI_DECIMALS)

/** Ether as a plain decimal number, to wei; none for anything else and for fractions of a wei. */
export const parseEther = (text: string): Option.Option<bigint> => parse(text, ETHER_DECIMALS)

/** Most that a transaction costs, in wei: gas price x gas limit. */
export const cost = (price: { readonly gasPrice: bigint; readonly gasLimit: bigint }): bigint =>
  price.gasPrice * price.gasLimit
