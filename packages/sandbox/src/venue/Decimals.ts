/**
 * Converts between decimal text and integers in the smallest unit: ticks for prices, lots for sizes, millionths of a
 * dollar or wei for amounts.
 */

const shape = /^(-?)([0-9]+)(?:\.([0-9]+))?$/u

/**
 * Parses a decimal string into units of `10^-decimals`.
 *
 * Returns `undefined` for text that is not a decimal number, and for a number with more than `decimals` decimals.
 */
export const parse = (text: string, decimals: number): bigint | undefined => {
  const match = shape.exec(text)
  if (match === null) return undefined
  const [, sign = "", whole = "0", fraction = ""] = match
  const digits = fraction.replace(/0+$/u, "")
  if (digits.length > decimals) return undefined
  const value = BigInt(whole + digits.padEnd(decimals, "0"))
  return sign === "-" ? -value : value
}

/** Formats units of `10^-decimals` as the venue does: no trailing zeros, at least one decimal. */
export const print = (value: bigint, decimals: number): string => {
  if (decimals === 0) return `${value}.0`
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, "0")
  const cut = digits.length - decimals
  let end = digits.length
  while (end > cut + 1 && digits.charCodeAt(end - 1) === 48) end--
  return `${value < 0n ? "-" : ""}${digits.slice(0, cut)}.${digits.slice(cut, end)}`
}

/**
 * Returns the number of significant digits of decimal text. Returns 0 for a whole number, because prices that are whole
 * numbers can have any number of digits.
 */
export const significantDigits = (text: string): number => {
  const [whole = "", fraction = ""] = text.split(".")
  const decimals = fraction.replace(/0+$/u, "")
  return decimals === "" ? 0 : (whole + decimals).replace(/^0+/u, "").length
}

/** Returns the absolute value of a number. */
export const abs = (value: bigint): bigint => value < 0n ? -value : value

/** Returns the lesser of two numbers. */
export const min = (a: bigint, b: bigint): bigint => a < b ? a : b

/** Returns the greater of two numbers. */
export const max = (a: bigint, b: bigint): bigint => a > b ? a : b

/** Divides two positive numbers and rounds up. */
export const divideUp = (value: bigint, by: bigint): bigint => (value + by - 1n) / by

/** Converts units of `10^-decimals` to the nearest double. Use the result for ratios only. */
export const toNumber = (value: bigint, decimals: number): number => Number(value) / 10 ** decimals
