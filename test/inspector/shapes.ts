/** Bodies that are wrong in what they say: words, types, shapes, values and levels. They are signed as they are sent. */
import type { SignatureMistake } from "@trigate/domain/unstable/Inspection"
import * as Predicate from "effect/Predicate"
import type { Break, Sound } from "./breaks.ts"
import { bodyOf, rightRecipe } from "./signingMistakes.ts"

type Action = Readonly<Record<string, unknown>>
type Path = ReadonlyArray<string | number>

/** A wrong action, and the names and the place that it may be reported by. */
export interface Wrong {
  readonly action: Action
  readonly mistakes: ReadonlyArray<SignatureMistake>
  readonly path: string
}

/** A way to get an action wrong. */
export interface Shape {
  readonly name: string
  readonly mistake: SignatureMistake
  readonly make: (sound: Sound) => Wrong | undefined
}

interface Leaf {
  readonly path: Path
  readonly value: unknown
}

const nodesOf = (value: unknown, path: Path = []): ReadonlyArray<Leaf> => [
  { path, value },
  ...(Array.isArray(value)
    ? value.flatMap((item: unknown, at) => nodesOf(item, [...path, at]))
    : Predicate.isObject(value)
    ? Object.entries(value).flatMap(([key, item]) => nodesOf(item, [...path, key]))
    : [])
]

const put = (value: unknown, [key, ...rest]: Path, item: unknown): unknown => {
  if (key === undefined) return item
  if (Array.isArray(value)) return value.map((each: unknown, at) => at === key ? put(each, rest, item) : each)
  return Predicate.isObject(value)
    ? Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, name === key ? put(each, rest, item) : each])
    )
    : value
}

const drop = (value: unknown, [key, ...rest]: Path): unknown => {
  if (Array.isArray(value)) return value.map((each: unknown, at) => at === key ? drop(each, rest) : each)
  if (!Predicate.isObject(value)) return value
  return rest.length === 0
    ? Object.fromEntries(Object.entries(value).filter(([name]) => name !== key))
    : Object.fromEntries(Object.entries(value).map(([name, each]) => [name, name === key ? drop(each, rest) : each]))
}

const asAction = (value: unknown): Action => Predicate.isReadonlyObject(value) ? value : {}

const textOf = (path: Path): string => ["action", ...path].join(".")

/** The first node that a test picks, changed. */
const at = (
  mistakes: ReadonlyArray<SignatureMistake>,
  which: (leaf: Leaf) => boolean,
  change: (value: unknown) => unknown,
  l1Only = false
): Shape["make"] =>
({ action, typed }) => {
  const found = l1Only && typed !== undefined
    ? undefined
    : nodesOf(action).find((leaf) => leaf.path.length > 0 && which(leaf))
  return found === undefined
    ? undefined
    : { action: asAction(put(action, found.path, change(found.value))), mistakes, path: textOf(found.path) }
}

const named = (...names: ReadonlyArray<string>) => ({ path }: Leaf): boolean =>
  names.includes(String(path.findLast(Predicate.isString))) && Predicate.isString(path.at(-1))

const isObject = ({ path, value }: Leaf): boolean => Predicate.isObject(value) && Predicate.isString(path.at(-1))
const isList = ({ value }: Leaf): boolean => Array.isArray(value)
const isAddress = ({ path, value }: Leaf): boolean =>
  Predicate.isString(value) && /^0x[0-9a-f]{40}$/u.test(value) && Predicate.isString(path.at(-1)) &&
  path.at(-1) !== "destinationRecipient"
const decimals = new Set(["p", "s", "triggerPx", "oraclePx", "startPx", "riskFreeRate"])
const isDecimal = ({ path, value }: Leaf): boolean =>
  decimals.has(String(path.at(-1))) && Predicate.isString(value) && /^[0-9.]+$/u.test(value)
const isAmount = ({ path, value }: Leaf): boolean =>
  path.at(-1) === "amount" && Predicate.isString(value) && /^[0-9.]+$/u.test(value)

const typed = (change: (type: string) => string): Shape["make"] => ({ action }) => ({
  action: { ...action, type: change(String(action["type"])) },
  mistakes: ["unknownType"],
  path: "action.type"
})

const words = named("tif", "tpsl", "grouping", "abstraction", "operation", "addressEncoding")

const isWord = (leaf: Leaf): boolean => words(leaf) && Predicate.isString(leaf.value) && leaf.value !== ""

/** Members that may not be missing. */
const isNeeded = ({ path, value }: Leaf): boolean =>
  Predicate.isString(path.at(-1)) && value !== null &&
  ![
    "type",
    "c",
    "f",
    "builder",
    "time",
    "destination",
    "details",
    "fullName",
    "a",
    "nSeededLevels",
    "noHyperliquidity",
    "blacklistUsers",
    "signatureChainId",
    "hyperliquidChain",
    "nonce"
  ]
    .includes(String(path.at(-1)))

const otherCase = (word: unknown): string => {
  const text = String(word)
  return text.toUpperCase() === text ? text.toLowerCase() : text.toUpperCase()
}

/** All of them. */
export const shapes: ReadonlyArray<Shape> = [
  {
    name: "a word in upper case",
    mistake: "unknownWord",
    make: at(
      ["unknownWord"],
      isWord,
      otherCase
    )
  },
  {
    name: "a time in force of another venue",
    mistake: "unknownWord",
    make: at(["unknownWord"], named("tif"), () => "GTX")
  },
  {
    name: "a time in force that the venue has not",
    mistake: "unknownWord",
    make: at(["unknownWord"], named("tif"), () => "FOK")
  },
  { name: "tpsl in words", mistake: "unknownWord", make: at(["unknownWord"], named("tpsl"), () => "stopLoss") },
  {
    name: "no grouping",
    mistake: "missingMember",
    make: ({ action }) =>
      "grouping" in action
        ? { action: asAction(drop(action, ["grouping"])), mistakes: ["missingMember"], path: "action.grouping" }
        : undefined
  },
  {
    name: "the type in lower case",
    mistake: "unknownType",
    make: (sound) =>
      /[A-Z]/u.test(String(sound.action["type"])) ? typed((type) => type.toLowerCase())(sound) : undefined
  },
  {
    name: "the type in snake case",
    mistake: "unknownType",
    make: (sound) =>
      /[A-Z]/u.test(String(sound.action["type"])) && !/^C[A-Z]/u.test(String(sound.action["type"]))
        ? typed((type) => type.replaceAll(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`))(sound)
        : undefined
  },
  {
    name: "the type with an older version",
    mistake: "unknownType",
    make: (sound) =>
      /[2-9]$/u.test(String(sound.action["type"])) ? typed((type) => type.replace(/[0-9]$/u, "1"))(sound) : undefined
  },
  {
    name: "the type in plural",
    mistake: "unknownType",
    make: (sound) => String(sound.action["type"]).endsWith("s") ? undefined : typed((type) => `${type}s`)(sound)
  },
  {
    name: "JSON text for an object",
    mistake: "wrongShape",
    make: at(["wrongShape"], isObject, (value) => JSON.stringify(value), true)
  },
  {
    name: "a word for an object",
    mistake: "wrongShape",
    make: at(
      ["wrongShape", "valueType", "unknownWord"],
      (leaf) => isObject(leaf) && leaf.path.at(-1) === "t",
      () => "Limit",
      true
    )
  },
  {
    name: "two forms in one object",
    mistake: "wrongShape",
    make: at(
      ["wrongShape"],
      ({ value }) => Predicate.hasProperty(value, "limit") || Predicate.hasProperty(value, "trigger"),
      (value) => ({
        limit: { tif: "Gtc" },
        trigger: { isMarket: true, triggerPx: "1", tpsl: "sl" },
        ...asAction(value)
      }),
      true
    )
  },
  {
    name: "an object for a list",
    mistake: "wrongShape",
    make: at(["wrongShape"], isList, (value) => Array.isArray(value) ? value[0] : value, true)
  },
  { name: "a list for an object", mistake: "wrongShape", make: at(["wrongShape"], isObject, (value) => [value], true) },
  {
    name: "an empty list",
    mistake: "emptyList",
    make: at(
      ["emptyList"],
      ({ path, value }) => Array.isArray(value) && ["orders", "cancels", "modifies"].includes(String(path.at(-1))),
      () => []
    )
  },
  {
    name: "members one level too deep",
    mistake: "misplacedMember",
    make: ({ action: { type, ...members }, typed }) =>
      typed !== undefined || Object.keys(members).length === 0
        ? undefined
        : { action: { type, data: members }, mistakes: ["misplacedMember", "missingMember"], path: "" }
  },
  {
    name: "order type one level too high",
    mistake: "misplacedMember",
    make: ({ action }) => {
      const found = nodesOf(action).find(({ path, value }) => path.at(-1) === "t" && Predicate.isObject(value))
      return found === undefined || !Predicate.isObject(found.value) ? undefined : {
        action: asAction(
          put(action, found.path.slice(0, -1), {
            ...asAction(drop(
              found.path.slice(0, -1).reduce<unknown>(
                (part, key) => Predicate.hasProperty(part, key) ? part[key] : undefined,
                action
              ),
              ["t"]
            )),
            ...found.value
          })
        ),
        mistakes: ["misplacedMember", "missingMember"],
        path: ""
      }
    }
  },
  {
    name: "a member is missing",
    mistake: "missingMember",
    make: ({ action }) => {
      const found = nodesOf(action).find((leaf) => leaf.path.length > 0 && isNeeded(leaf))
      return found === undefined
        ? undefined
        : { action: asAction(drop(action, found.path)), mistakes: ["missingMember"], path: "" }
    }
  },
  {
    name: "a member under a long name",
    mistake: "misplacedMember",
    make: ({ action, typed }) => {
      const long: Readonly<Record<string, string>> = {
        p: "price",
        s: "size",
        b: "isBuy",
        r: "reduceOnly",
        isCross: "is_cross",
        usd: "amount",
        toPerp: "isPerp",
        destination: "to"
      }
      const found = nodesOf(action).find(({ path }) => typed === undefined && String(path.at(-1)) in long)
      const name = long[String(found?.path.at(-1))]
      return found === undefined || name === undefined ? undefined : {
        action: asAction(JSON.parse(JSON.stringify(action).replace(`"${String(found.path.at(-1))}":`, `"${name}":`))),
        mistakes: ["misplacedMember"],
        path: ""
      }
    }
  },
  {
    name: "a negative price or size",
    mistake: "unacceptedValue",
    make: at(["unacceptedValue"], isDecimal, (value) => `-${String(value)}`, true)
  },
  {
    name: "a negative amount",
    mistake: "unacceptedValue",
    make: at(["unacceptedValue"], isAmount, (value) => `-${String(value)}`)
  },
  {
    name: "a price of nine decimal places",
    mistake: "unacceptedValue",
    make: at(["unacceptedValue"], isDecimal, () => "1.123456789", true)
  },
  {
    name: "a price of seven digits",
    mistake: "unacceptedValue",
    make: at(["unacceptedValue"], named("p", "triggerPx"), () => "1234.567", true)
  },
  {
    name: "a price with a thousands separator",
    mistake: "decimalText",
    make: at(["decimalText"], named("p", "triggerPx"), () => "1,234.5", true)
  },
  {
    name: "a percent sign",
    mistake: "unacceptedValue",
    make: at(["unacceptedValue", "decimalText", "valueType"], isAmount, (value) => `${String(value)}%`)
  },
  {
    name: "no percent sign",
    mistake: "unacceptedValue",
    make: at(["unacceptedValue"], named("maxFeeRate"), (value) => String(value).replace("%", ""))
  },
  {
    name: "a token without its id",
    mistake: "unacceptedValue",
    make: ({ action }) =>
      ["spotSend", "sendAsset", "agentSendAsset", "subAccountSpotTransfer"].includes(String(action["type"]))
        ? { action: { ...action, token: "PURR" }, mistakes: ["unacceptedValue"], path: "action.token" }
        : undefined
  },
  {
    name: "an address without 0x",
    mistake: "unacceptedValue",
    make: at(["unacceptedValue", "valueType"], isAddress, (value) => String(value).slice(2))
  },
  {
    name: "an address of another chain",
    mistake: "unacceptedValue",
    make: at(["unacceptedValue", "valueType"], isAddress, () => "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU")
  },
  {
    name: "an address of 39 digits",
    mistake: "unacceptedValue",
    make: at(["unacceptedValue", "valueType"], isAddress, (value) => String(value).slice(0, -1))
  },
  {
    name: "text for a flag",
    mistake: "valueType",
    make: at(["valueType"], ({ value }) => Predicate.isBoolean(value), String, true)
  },
  {
    name: "a number for a flag",
    mistake: "valueType",
    make: at(["valueType"], ({ value }) => Predicate.isBoolean(value), Number, true)
  },
  {
    name: "an integer with a fraction",
    mistake: "valueType",
    make: at(
      ["valueType"],
      ({ path, value }) =>
        Number.isInteger(value) && path.at(-1) !== "nonce" && path.at(-1) !== "time" && Predicate.isString(path.at(-1)),
      (value) => Number(value) + 0.5,
      true
    )
  },
  {
    name: "a chain id as decimal text",
    mistake: "chainIdText",
    make: at(["chainIdText"], named("signatureChainId"), () => "421614")
  },
  {
    name: "a chain id as a number",
    mistake: "chainIdText",
    make: at(["chainIdText"], named("signatureChainId"), () => 421_614)
  }
]

const noSignature = { r: "0x1", s: "0x1", v: 27 }

/** Each of them, signed as it is sent; what has no typed data comes with a signature of nobody. */
export const shaped: ReadonlyArray<Break> = shapes.map(({ make, mistake, name }) => ({
  name,
  make: async (sound) => {
    const wrong = make(sound)
    if (wrong === undefined) return undefined
    const { action, mistakes, path } = wrong
    const broken = { ...sound, action }
    const body = await bodyOf(rightRecipe(broken), broken).catch(() => ({
      action,
      nonce: sound.nonce,
      signature: noSignature
    }))
    return { body, mistake, others: mistakes, ...(path === "" ? {} : { path }) }
  }
}))
