/** JSON texts broken in every way that a text can be broken, from a seed. */

/** A source of numbers that a seed decides. */
export interface Dice {
  /** An integer from 0 to `sides` - 1. */
  readonly roll: (sides: number) => number
  readonly pick: <A>(from: ReadonlyArray<A>) => A
}

export const dice = (seed: number): Dice => {
  let state = seed
  const roll = (sides: number): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % sides
  }
  return {
    roll,
    pick: (from) => {
      const picked = from[roll(from.length)]
      if (picked === undefined) throw new Error("There is nothing to pick from")
      return picked
    }
  }
}

type Path = ReadonlyArray<string | number>

/** What a field takes: names a pool of raw texts that it does not take. */
export type Kind = keyof typeof wrong

export interface Field {
  readonly path: Path
  readonly kind: Kind
  /** Whether the body is valid without it. */
  readonly optional?: boolean
}

/** A valid body and what may be broken of it. */
export interface Template {
  readonly name: string
  readonly body: unknown
  readonly fields: ReadonlyArray<Field>
}

const digits = "7".repeat(1_000_000)
const anyNumber = ["1e400", "-1e400", "-1", "1.5", "18446744073709551616", "1".repeat(1025)]
const notText = ["null", "true", "0", "1e400", "[]", "{}", "[\"a\"]", "12345678901234567890"]
const inherited = ["\"__proto__\"", "\"constructor\"", "\"toString\"", "\"hasOwnProperty\"", "\"valueOf\""]
const badHex = [
  "\"\"",
  "\"0x\"",
  "\"0xzz\"",
  "\"12\"",
  "\"0x 1\"",
  "\"0x12\\u0000\"",
  "\"0x\\ud800\"",
  "\"\\u0030x12g4\"",
  "\"0x\u0660\u0661\"",
  `"0x${"a".repeat(41)}b${"a".repeat(40)}"`,
  `"0x${"f".repeat(900_000)}"`
]

/** Raw texts that a field of a kind does not take. */
export const wrong = {
  address: [...badHex, ...inherited, ...notText, "\"0X0123456789abcdef0123456789abcdef01234567\""],
  hash: [...badHex, ...inherited, ...notText, `"0x${"a".repeat(63)}"`],
  signaturePart: [...badHex.filter((raw) => raw !== "\"0x12\""), ...notText],
  recovery: ["29", "-1", "27.5", "\"27\"", "null", "1e400", "[]", "{}", "true"],
  millis: [...anyNumber, digits, "\"1\"", "null", "true", "[]", "{}", "\"1e400\""],
  uint64: [...anyNumber, digits, "\"1\"", "null", "false", "[]", "{}"],
  nothing: ["true", "0", "\"\"", "[]", "{}", "\"null\""],
  boolean: ["\"true\"", "0", "1", "null", "[]", "{}", "1e400"],
  word: [...inherited, ...notText, "\"\"", "\"\\ud800\"", `"${"\\u0001".repeat(150_000)}"`],
  tokenAddress: [
    ...inherited,
    ...notText,
    "\"\"",
    "\"\\ud800\"",
    "\"0:zz\"",
    `"${"E".repeat(48)}"`,
    `"${"E".repeat(500_000)}"`
  ],
  shortText: [...notText, "\"\"", `"${"B".repeat(65)}"`, `"${"\\ud83d".repeat(100_000)}"`],
  block: ["\"earliest\"", "\"0x1\"", "1", "null", "[]", "{}", "\"Latest\"", "{\"blockHash\":\"0x1\"}"],
  integer: ["1.5", "\"x\"", "null", "true", "[]", "{}", "1e400", digits],
  object: ["null", "1", "\"x\"", "true", "1e400"],
  array: ["1", "\"x\"", "true", "1e400", "{\"length\":2}"],
  envelopeId: ["true", "{}", "{\"toString\":1}"],
  listedId: ["[]", "[1]"],
  params: ["1", "\"x\"", "true", "1e400", "[[]]", "{\"__proto__\":[]}"],
  version: ["\"1.0\"", "2", "2.0", "null", "[]", "\"2.0 \""]
} as const

const hole = "@@hole@@"

type Members = ReadonlyArray<readonly [name: string, value: unknown]>

const membersOf = (value: unknown): Members => typeof value === "object" && value !== null ? Object.entries(value) : []

/** The value with its member at a path changed: to other members, or to none. */
const changed = (value: unknown, path: Path, change: (name: string, member: unknown) => Members): unknown => {
  const [key, ...rest] = path
  const members = membersOf(value).flatMap(([name, member]): Members =>
    name !== String(key)
      ? [[name, member]]
      : rest.length === 0
      ? change(name, member)
      : [[name, changed(member, rest, change)]]
  )
  return Array.isArray(value) ? members.map(([, member]) => member) : Object.fromEntries(members)
}

const placed = (value: unknown, path: Path, leaf: unknown): unknown =>
  path.length === 0 ? leaf : changed(value, path, (name) => [[name, leaf]])

const without = (value: unknown, path: Path): unknown => changed(value, path, () => [])

/** The text of a body with a raw text at a path. */
export const withRaw = (body: unknown, path: Path, raw: string): string =>
  JSON.stringify(placed(body, path, hole)).replace(JSON.stringify(hole), () => raw)

const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce((at, key) => membersOf(at).find(([name]) => name === String(key))?.[1], value)

const objectPaths = (value: unknown, path: Path = []): ReadonlyArray<Path> => {
  if (typeof value !== "object" || value === null) return []
  const inner = membersOf(value).flatMap(([key, each]) =>
    objectPaths(each, [...path, Array.isArray(value) ? Number(key) : key])
  )
  return Array.isArray(value) || Object.keys(value).length === 0 ? inner : [path, ...inner]
}

const escaped = (key: string): string =>
  `"${Array.from(key, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")}"`

/** One field of the body with a value that it does not take. */
export const wrongField = ({ pick }: Dice, { body, fields }: Template): string => {
  const { kind, path } = pick(fields)
  return withRaw(body, path, pick<string>(wrong[kind]))
}

/** A body without one of the fields that it needs. */
export const missingField = ({ pick }: Dice, { body, fields }: Template): string =>
  JSON.stringify(without(body, pick(fields.filter(({ optional }) => optional !== true)).path))

/** A body in which some object, at any depth, has one of its keys twice: in the same spelling or an escaped one. */
export const doubledKey = ({ pick, roll }: Dice, { body }: Template): string => {
  const path = pick(objectPaths(body))
  const object = valueAt(body, path)
  const text = JSON.stringify(object)
  const [key] = pick(membersOf(object))
  const again = `${roll(2) === 0 ? escaped(key) : JSON.stringify(key)}:${pick(["1", "null", "{}", "\"x\""])}`
  return withRaw(body, path, roll(2) === 0 ? `{${again},${text.slice(1)}` : `${text.slice(0, -1)},${again}}`)
}

const spoilers: ReadonlyArray<(text: string, dice: Dice) => string> = [
  (text, { roll }) => text.slice(0, 1 + roll(text.length - 1)),
  (text, { pick }) => text + pick(["x", "}", "]", ",", "\0", "{}", "//", "\u2028", "null"]),
  (text, { pick }) => pick(["\ufeff", "\0", ",", "\u00a0", "]", ")]}'\n", "x"]) + text,
  (text) => text.replaceAll("\"", "'"),
  (text) => text.replace("{", "{/* */"),
  (text) => `${text.slice(0, -1)},}`,
  (text, { pick }) => text.replace(":", pick(["=", ": :", "", ":+", ":0", ":,"])),
  (text, { pick }) =>
    text.replace("{", `{"more":${pick(["NaN", "undefined", "Infinity", "01", "0x1", "1.", ".5", "-"])},`),
  (text, { pick }) => text.replace("{", `{"more":"${pick(["\n", "\t", "\\x", "\\u12", "\\", "\u0000"])}",`),
  (text) => text.replace("{", "{\"\\q\":1,")
]

/** A body that is no JSON any more. */
export const spoiled = (some: Dice, { body }: Template): string => some.pick(spoilers)(JSON.stringify(body), some)

/** Bytes that stand in no UTF-8 text: a stray one, an overlong one, a surrogate, one beyond Unicode, half of one. */
export const notUtf8: ReadonlyArray<ReadonlyArray<number>> = [
  [0xff],
  [0xc0, 0xaf],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0xe2, 0x82]
]

/** A body with bytes that are no UTF-8 inside its first string. */
export const brokenBytes = ({ pick }: Dice, { body }: Template): Uint8Array => {
  const bytes = new TextEncoder().encode(JSON.stringify(body))
  const at = bytes.indexOf(0x22) + 1
  return Uint8Array.from([...bytes.subarray(0, at), ...pick(notUtf8), ...bytes.subarray(at)])
}

/** Documents that are valid JSON and no request of any route. */
export const strangers: ReadonlyArray<string> = [
  "null",
  "true",
  "0",
  "1e400",
  digits,
  "\"\"",
  "\"\\ud800\"",
  "{}",
  "[]",
  "[[]]",
  "[null]",
  "{\"__proto__\":{\"type\":\"spotMeta\"}}",
  "{\"constructor\":{\"prototype\":{\"type\":\"spotMeta\"}}}",
  "[[[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_gasPrice\"}]]]"
]

/** Texts that are no JSON document at all. */
export const noDocuments: ReadonlyArray<string> = [
  "",
  " ",
  "\0",
  "\ufeff",
  "undefined",
  "type=spotMeta",
  "<xml/>",
  "[".repeat(100_000),
  "{\"a\":".repeat(100_000),
  "[".repeat(100_000) + "]".repeat(100_000),
  "\"\\".repeat(300_000),
  `[${",".repeat(900_000)}]`
]
