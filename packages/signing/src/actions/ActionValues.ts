/** Validates each value of an action: its type, its closed set of words, and its range; suggests the intended value. */
import type { Mistake } from "@trigate/domain/Inspection"
import * as Predicate from "effect/Predicate"
import * as Decimal from "../Decimal.ts"
import { isAddress } from "../internal/bytes.ts"
import * as ActionNames from "./ActionNames.ts"
import type { Kind } from "./ActionOrder.ts"

/** A value that the venue formats differently or refuses, and the expected value. */
export interface ValueFault {
  readonly mistake: Mistake["mistake"]
  /** The intended value; `undefined` if it cannot be inferred. */
  readonly repaired: unknown
  /** A description of the expected value, used if the intended value cannot be inferred. */
  readonly expected: string
}

const kinds: { readonly [K in Kind]: string } = {
  integer: "an integer",
  decimal: "a decimal number as text",
  percent: "a percentage as text, such as \"0.01%\"",
  text: "text",
  flag: "true or false",
  mark: "true, or no member",
  address: "0x and 40 hex digits",
  cloid: "0x and 32 hex digits",
  id: "an order id, or 0x and 32 hex digits",
  json: "JSON as text",
  null: "null",
  any: "any value"
}

/** Describes the values that a kind accepts. */
export const described = (kind: Kind): string => kinds[kind]

/** Formats a list of words for a message. */
export const listed = (words: ReadonlyArray<string>): string => {
  const quoted = words.map((word) => JSON.stringify(word))
  return quoted.length < 2 ? quoted.join() : `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`
}

const isInteger = (value: unknown): value is number | bigint => Predicate.isBigInt(value) || Number.isInteger(value)

const isCloid = (value: unknown): value is string => Predicate.isString(value) && /^0x[0-9a-fA-F]{32}$/.test(value)

/** Parses an integer that was sent as text. */
const integerIn = (value: unknown): unknown => {
  if (!Predicate.isString(value) || !/^-?[0-9]{1,20}$/.test(value)) return undefined
  const integer = BigInt(value)
  return Number.isSafeInteger(Number(integer)) ? Number(integer) : integer
}

/** Removes formatting from a decimal: spaces, a plus sign, thousands separators, a currency or a percent sign. */
const withoutOrnaments = (text: string): string | undefined => {
  const bare = text.trim().replace(/^\+/, "").replaceAll(/[\s$_]/g, "").replace(
    /^([0-9]{1,3})((?:,[0-9]{3})+)(?=\.|$)/,
    (all) => all.replaceAll(",", "")
  )
  return Decimal.canonical(/^[0-9]+,[0-9]+$/.test(bare) ? bare.replace(",", ".") : bare)
}

const addressIn = (value: unknown): string | undefined => {
  if (!Predicate.isString(value)) return undefined
  if (isAddress(value) || value === "") return value.toLowerCase()
  const bare = value.trim().replace(/^0[xX]/, "")
  if (/^[0-9a-fA-F]{40}$/.test(bare)) return `0x${bare.toLowerCase()}`
  return /^0{24}[0-9a-fA-F]{40}$/.test(bare) ? `0x${bare.slice(24).toLowerCase()}` : undefined
}

const cloidIn = (value: unknown): string | undefined => {
  if (isCloid(value)) return value.toLowerCase()
  const bare = Predicate.isString(value) ? value.trim().replace(/^0[xX]/, "").replaceAll("-", "") : ""
  return /^[0-9a-fA-F]{32}$/.test(bare) ? `0x${bare.toLowerCase()}` : undefined
}

/** Parses a percentage as text. A number could be a fraction. */
const percentIn = (value: unknown): string | undefined => {
  if (!Predicate.isString(value)) return undefined
  if (/^[0-9]+(?:\.[0-9]+)?%$/.test(value)) return value
  const bare = Decimal.canonical(value.replace("%", "").trim())
  return bare === undefined || bare.startsWith("-") ? undefined : `${bare}%`
}

const flags: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  ["true", true],
  ["false", false],
  ["True", true],
  ["False", false],
  [1, true],
  [0, false],
  ["1", true],
  ["0", false],
  ["buy", true],
  ["sell", false],
  ["B", true],
  ["A", false]
])

const intendedValues: { readonly [K in Kind]: (value: unknown) => unknown } = {
  integer: (value) => isInteger(value) ? value : integerIn(value),
  decimal: (value) =>
    Predicate.isString(value) || Predicate.isNumber(value) || Predicate.isBigInt(value)
      ? Decimal.canonical(String(value)) ?? withoutOrnaments(String(value))
      : undefined,
  percent: percentIn,
  text: (value) => Predicate.isString(value) ? value : isInteger(value) ? String(value) : undefined,
  flag: (value) => Predicate.isBoolean(value) ? value : flags.get(value),
  mark: (value) => Predicate.isBoolean(value) ? value : flags.get(value),
  address: addressIn,
  cloid: cloidIn,
  id: (value) => isInteger(value) ? value : cloidIn(value) ?? integerIn(value),
  json: (value) => Predicate.isString(value) ? value : undefined,
  null: (value) => value === null ? value : undefined,
  any: (value) => value
}

const mistakeIn = (kind: Kind, value: unknown, repaired: unknown): Mistake["mistake"] => {
  if (!Predicate.isString(value) || kind === "integer" || kind === "flag" || kind === "mark") return "valueType"
  if (kind === "id" && isInteger(repaired)) return "valueType"
  if (kind === "decimal") {
    if (repaired === undefined) return "unacceptedValue"
    return /^[^eE,\s]*\.[0-9]*0$|\.$/.test(value) ? "trailingZero" : "decimalText"
  }
  if (repaired === undefined) {
    return kind === "address" || kind === "cloid" || kind === "id" || kind === "percent"
      ? "unacceptedValue"
      : "valueType"
  }
  return Predicate.isString(repaired) && repaired === value.toLowerCase() ? "letterCase" : "unacceptedValue"
}

const signedDecimals = new Set(["setFundingInterestRates"])
const signedIntegers = new Set(["ntli", "evmExtraWeiDecimals"])
const prices = new Set(["p", "triggerPx"])
const tokens = new Set(["spotSend", "sendAsset", "agentSendAsset", "subAccountSpotTransfer"])
const amounts = /^[0-9]+(?:\.[0-9]+)?(?: subaccount:0x[0-9a-fA-F]{40})?$/

/** Maximum decimal places of a price or size of any asset. */
const maxPlaces = 8

/** Maximum significant digits of a price that is not an integer. */
const maxDigits = 5

const countDigits = (decimal: string): number => decimal.replace(/^-/, "").replace(".", "").replace(/^0+/, "").length

const fault = (expected: string, repaired?: unknown, mistake: Mistake["mistake"] = "unacceptedValue"): ValueFault => ({
  mistake,
  repaired,
  expected
})

const outOfRange = (
  kind: Kind,
  value: unknown,
  name: string,
  path: ReadonlyArray<string | number>
): ValueFault | undefined => {
  const isSigned = path.some((key) => signedDecimals.has(String(key)) || signedIntegers.has(String(key)))
  if (isInteger(value) && kind !== "decimal") {
    return value < 0 && !isSigned
      ? fault("an integer of 0 or more")
      : undefined
  }
  if (kind !== "decimal" || !Predicate.isString(value)) return undefined
  if (value.startsWith("-") && !isSigned) return fault("a number of 0 or more")
  const places = value.split(".")[1]?.length ?? 0
  if (places > maxPlaces) return fault(`a number of at most ${maxPlaces} decimal places`)
  return prices.has(name) && places > 0 && countDigits(value) > maxDigits
    ? fault(`a price of at most ${maxDigits} significant digits, or an integer`)
    : undefined
}

const chainIdIn = (value: unknown): string | undefined => {
  if (isInteger(value) && value >= 0) return `0x${value.toString(16)}`
  if (!Predicate.isString(value)) return undefined
  if (/^0[xX][0-9a-fA-F]{1,16}$/.test(value)) return `0x${value.slice(2).toLowerCase().replace(/^0+(?=.)/, "")}`
  if (/^[0-9]{1,16}$/.test(value)) return `0x${BigInt(value).toString(16)}`
  const caip = /^eip155:([0-9]{1,16})$/.exec(value)?.[1]
  return caip === undefined ? undefined : `0x${BigInt(caip).toString(16)}`
}

/** The position of a value: its member, its path, and the type of its action. */
export interface Position {
  readonly type: unknown
  readonly name: string
  readonly path: ReadonlyArray<string | number>
}

/**
 * Checks the format of a chain ID. The exact format matters only inside a multi-sig wrapper, where the text is hashed;
 * elsewhere, any 0x hex is valid.
 */
export const chainIdFault = (value: unknown, isHashed: boolean): ValueFault | undefined => {
  const repaired = chainIdIn(value)
  if (repaired === value) return undefined
  if (!isHashed && Predicate.isString(value) && /^0x[0-9a-fA-F]{1,16}$/.test(value)) return undefined
  return fault("a chain id as text in 0x hex, such as \"0xa4b1\" for Arbitrum One", repaired, "chainIdText")
}

const tokenFault = ({ name, type }: Position, value: unknown): ValueFault | undefined =>
  name === "token" && tokens.has(String(type)) && Predicate.isString(value) && !/^[^:]+:0x[0-9a-fA-F]{32}$/.test(value)
    ? fault("name and id of the token, such as \"PURR:0xc1fb593aeffbeb02f85e0308e9956a90\"")
    : undefined

const destinations = new Set(["usdSend", "spotSend", "withdraw3", "sendAsset"])

/** Checks a string in a user-signed action. The exact text of the string is signed. */
const textFault = (position: Position, value: unknown): ValueFault | undefined => {
  const { name, type } = position
  if (!Predicate.isString(value)) return undefined
  if (name === "destination" && destinations.has(String(type)) && !isAddress(value)) {
    return fault(kinds.address, addressIn(value))
  }
  if (name === "amount" && !amounts.test(value)) {
    const repaired = Decimal.canonical(value) ?? withoutOrnaments(value)
    return fault("a positive decimal number as text", repaired?.startsWith("-") === true ? undefined : repaired)
  }
  return tokenFault(position, value)
}

/** Returns the mistake in a value of a kind; `undefined` for a valid value. */
export const valueFault = (kind: Kind, value: unknown, position: Position): ValueFault | undefined => {
  const repaired = intendedValues[kind](value)
  if (repaired === value) {
    return kind === "text" ? textFault(position, value) : outOfRange(kind, value, position.name, position.path)
  }
  return { mistake: mistakeIn(kind, value, repaired), repaired, expected: kinds[kind] }
}

/**
 * Returns the mistake in a value that must be one word of a closed set; `undefined` for a valid value, and for a word that
 * resembles none of the set, because the venue can have added it.
 */
export const wordFault = (words: ReadonlyArray<string>, value: unknown): ValueFault | undefined => {
  if (!Predicate.isString(value)) return fault(listed(words), undefined, "valueType")
  const repaired = ActionNames.nearestWord(value, words)
  return words.includes(value) || (repaired === undefined && !ActionNames.isForeignWord(value))
    ? undefined
    : fault(listed(words), repaired, "unknownWord")
}
