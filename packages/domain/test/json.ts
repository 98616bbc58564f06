/** Arbitrary JSON values, and arbitrary spellings of them. */
import * as Schema from "effect/Schema"

const Integer = Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: -(2n ** 80n), maximum: 2n ** 80n }))

/** Doubles that are no integers: those have their own row. */
const Fraction = Schema.Finite.check(Schema.makeFilter((value) => !Number.isInteger(value)))

/** Keys that V8 reads as they are written: one of a single character may be an escape, which `refuse` keeps out. */
export const JsonKey = Schema.String.check(Schema.makeFilter((key) => key.length !== 1))

/** A JSON value whose integers are bigints. */
export type JsonValue = null | boolean | string | bigint | number | ReadonlyArray<JsonValue> | {
  readonly [key: string]: JsonValue
}

export const JsonValue: Schema.Codec<JsonValue> = Schema.Union([
  Schema.Null,
  Schema.Boolean,
  Schema.String,
  Integer,
  Fraction,
  Schema.Array(Schema.suspend(() => JsonValue)),
  Schema.Record(JsonKey, Schema.suspend(() => JsonValue))
])

const isSafe = (value: bigint) => value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER

/** The value as a reader that keeps digits gives it: safe integers as numbers, larger ones as bigints. */
export const asRead = (value: JsonValue): unknown => {
  if (typeof value === "bigint") return isSafe(value) ? Number(value) : value
  if (typeof value !== "object" || value === null) return value
  return Array.isArray(value)
    ? value.map(asRead)
    : Object.fromEntries(Object.entries(value).map(([key, member]) => [key, asRead(member)]))
}

const gaps = ["", " ", "\n", "\t", "\r\n", "  \t"]

/** Numbers that decide how a value is spelled, used round and round. */
export const Choices = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 35 }))).check(
  Schema.isMinLength(1)
)

/** A string literal in which every other chosen character is spelled as an escape. */
const literal = (text: string, choose: () => number): string =>
  `"${
    Array.from({ length: text.length }, (_, index) => {
      const raw = text.charAt(index)
      return choose() % 2 === 0
        ? `\\u${text.charCodeAt(index).toString(16).padStart(4, "0")}`
        : JSON.stringify(raw).slice(1, -1)
    }).join("")
  }"`

/** A text of the value with gaps and escapes as the choices tell. */
export const spell = (value: JsonValue, choices: ReadonlyArray<number>): string => {
  let taken = 0
  const choose = () => choices[taken++ % choices.length] ?? 0
  const gap = () => gaps[choose() % gaps.length] ?? ""
  const list = (open: string, items: ReadonlyArray<string>, close: string) =>
    `${open}${gap()}${items.join(`${gap()},${gap()}`)}${gap()}${close}`
  const write = (value: JsonValue): string => {
    if (typeof value === "bigint") return value.toString()
    if (typeof value === "string") return literal(value, choose)
    if (typeof value !== "object" || value === null) return JSON.stringify(value)
    if (Array.isArray(value)) return list("[", value.map(write), "]")
    const members = Object.entries(value).map(([key, member]) =>
      `${literal(key, choose)}${gap()}:${gap()}${write(member)}`
    )
    return list("{", members, "}")
  }
  return `${gap()}${write(value)}${gap()}`
}
