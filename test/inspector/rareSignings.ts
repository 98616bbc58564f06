/** Signings of programs without an SDK: plain messages, other integers, the types of other actions, another clock. */
import type { SignatureMistake } from "@trigate/domain/Inspection"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as UserSigned from "@trigate/signing/actions/UserSigned"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as Predicate from "effect/Predicate"
import { concat, encodeAbiParameters, hashMessage, keccak256, numberToHex, stringToHex } from "viem/utils"
import type { Break, Sound } from "./breaks.ts"
import type { Hex, Typed } from "./signing.ts"
import { agent, connectionId, digestOf, pack, rightTail, signDigest } from "./signing.ts"
import { packed, spaced } from "./signingMistakes.ts"

type Members = Readonly<Record<string, unknown>>

/** The digest that a program signs, and what it sends where that is not the sound action with its nonce. */
interface Signed {
  readonly digest: Hex
  readonly action?: Members
  readonly nonce?: number
  readonly beside?: Members
  readonly path?: string
}

const signing = (
  name: string,
  mistake: SignatureMistake,
  scheme: "l1" | "userSigned" | "any",
  sign: (sound: Sound) => Signed | undefined
): Break => ({
  name,
  make: async (sound) => {
    const isOther = scheme !== "any" && (scheme === "l1") !== (sound.typed === undefined)
    const signed = isOther ? undefined : sign(sound)
    if (signed === undefined) return undefined
    const { action = sound.action, beside = {}, digest, nonce = sound.nonce, path } = signed
    const signature = await signDigest(digest, keys.trader.privateKey)
    return { body: { action, nonce, signature, ...beside }, mistake, ...(path === undefined ? {} : { path }) }
  }
})

const rightDigest = ({ action, nonce, typed }: Sound): Hex => digestOf(typed ?? agent(connectionId(action, { nonce })))

const packedDigest = (bytes: Hex, nonce: number): Hex =>
  digestOf(agent(keccak256(concat([bytes, ...rightTail({ nonce })]))))

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  return Predicate.isObject(value)
    ? Object.fromEntries(
      Object.entries(value).toSorted(([a], [b]) => a < b ? -1 : 1).map(([key, item]) => [key, sorted(item)])
    )
    : value
}

const bodyIn = ({ action, nonce }: Sound): Members => ({ action, nonce })

const nulls = { vaultAddress: null, expiresAfter: null }

const parts: ReadonlyArray<readonly [string, (sound: Sound) => unknown, Members?]> = [
  ["action", ({ action }) => action],
  ["action without its type", ({ action: { type: _, ...members } }) => members],
  ["body", bodyIn],
  ["body with nulls", (sound) => ({ ...bodyIn(sound), ...nulls }), nulls],
  ["body without its nulls", bodyIn, nulls],
  ["body, nonce first", ({ action, nonce }) => ({ nonce, action })]
]

const printers: ReadonlyArray<readonly [string, (value: unknown) => string]> = [
  ["", (value) => JSON.stringify(value)],
  [", spaced", spaced],
  [", sorted", (value) => JSON.stringify(sorted(value))],
  [", sorted and spaced", (value) => spaced(sorted(value))]
]

const hashOf = (text: string): Hex => keccak256(stringToHex(text))

const ofText = (
  name: string,
  textOf: (sound: Sound) => string,
  digest: (text: string) => Hex,
  beside: Members = {},
  mistake: SignatureMistake = "personalSign"
): Break => signing(name, mistake, "any", (sound) => ({ digest: digest(textOf(sound)), beside }))

const messages: ReadonlyArray<Break> = [
  ...parts.flatMap(([part, valueOf, beside]) =>
    printers.map(([printer, print]) =>
      ofText(`personal_sign of JSON: ${part}${printer}`, (sound) => print(valueOf(sound)), hashMessage, beside)
    )
  ),
  ofText("personal_sign of JSON: action, indented", ({ action }) => JSON.stringify(action, null, 2), hashMessage),
  ...printers.flatMap(([printer, print]) => {
    const textOf = ({ action }: Sound) => print(action)
    return [
      ofText(`personal_sign of a hash of JSON${printer}`, textOf, (text) => hashMessage({ raw: hashOf(text) })),
      ofText(`personal_sign of a hash of JSON as hex${printer}`, textOf, (text) => hashMessage(hashOf(text))),
      ofText(`a hash of JSON signed${printer}`, textOf, hashOf, {}, "hashSigned")
    ]
  }),
  signing(
    "personal_sign of the signed fields' JSON",
    "personalSign",
    "userSigned",
    ({ typed }) => typed === undefined ? undefined : { digest: hashMessage(JSON.stringify(typed.message)) }
  ),
  ...([
    ["bytes", (id) => hashMessage({ raw: id })],
    ["hex", (id) => hashMessage(id)],
    ["hex without 0x", (id) => hashMessage(id.slice(2))]
  ] as ReadonlyArray<readonly [string, (hash: Hex) => Hex]>).flatMap(([form, sign]) => [
    signing(`personal_sign of the digest as ${form}`, "personalSign", "any", (sound) => ({
      digest: sign(rightDigest(sound))
    })),
    signing(`personal_sign of the connectionId as ${form}`, "personalSign", "l1", ({ action, nonce }) => ({
      digest: sign(connectionId(action, { nonce }))
    }))
  ])
]

const tagged = (tag: number, bits: number) => (value: bigint): Hex =>
  concat([numberToHex(tag, { size: 1 }), numberToHex(BigInt.asUintN(bits, value), { size: bits / 8 })])

const fits = (value: bigint, bits: number, isSigned: boolean): boolean =>
  isSigned
    ? value >= -(1n << BigInt(bits - 1)) && value < 1n << BigInt(bits - 1)
    : value >= 0n && value < 1n << BigInt(bits)

const types = [
  ["int8", 0xd0, 8, true],
  ["int16", 0xd1, 16, true],
  ["int32", 0xd2, 32, true],
  ["int64", 0xd3, 64, true],
  ["uint8", 0xcc, 8, false],
  ["uint16", 0xcd, 16, false],
  ["uint32", 0xce, 32, false],
  ["uint64", 0xcf, 64, false]
] as const

const [, int16, int32, int64, , uint16, uint32, uint64] = types

type IntegerType = (typeof types)[number]

const write = ([, tag, bits, isSigned]: IntegerType, value: bigint): Hex =>
  fits(value, bits, isSigned) ? tagged(tag, bits)(value) : pack(Number(value))

/** A map whose integers have the types of their members, as the fields of a struct have; `""` is any other member. */
const structured = (
  value: unknown,
  typeOf: (name: string, value: number) => IntegerType | undefined,
  name = ""
): Hex => {
  const head = (fixed: number, wide: number, size: number) =>
    numberToHex(size < 16 ? fixed | size : (BigInt(wide) << 16n) | BigInt(size))
  if (Predicate.isNumber(value) && Number.isInteger(value)) {
    const type = typeOf(name, value)
    return type === undefined ? pack(value) : write(type, BigInt(value))
  }
  if (Array.isArray(value)) {
    return concat([head(0x90, 0xdc, value.length), ...value.map((item: unknown) => structured(item, typeOf, name))])
  }
  if (!Predicate.isObject(value)) return pack(value)
  const members = Object.entries(value)
  return concat([
    head(0x80, 0xde, members.length),
    ...members.flatMap(([key, item]) => [pack(key), structured(item, typeOf, key)])
  ])
}

const ofPacking = (name: string, mistake: SignatureMistake, bytesOf: (action: Members) => Hex): Break =>
  signing(name, mistake, "l1", ({ action, nonce }) => {
    const bytes = bytesOf(action)
    return bytes === pack(action) ? undefined : { digest: packedDigest(bytes, nonce) }
  })

const ofStruct = (name: string, typeOf: (name: string, value: number) => IntegerType | undefined): Break =>
  ofPacking(name, "integerWidth", (action) => structured(action, typeOf))

const ofSize = (name: string, type: IntegerType, from: bigint): Break =>
  ofPacking(
    name,
    "integerWidth",
    packed({ integer: (value) => value >= from ? write(type, value) : pack(Number(value)) })
  )

const integers: ReadonlyArray<Break> = [
  ...types.map((type) => ofSize(`integers as ${type[0]}, if they fit`, type, 0n)),
  ...[int16, int32, int64, uint32, uint64].map((type) =>
    ofSize(`integers above 127 as ${type[0]}, if they fit`, type, 128n)
  ),
  ofStruct("asset as int64", (name) => name === "a" || name === "asset" ? int64 : undefined),
  ofStruct("oid as int64", (name) => name === "o" || name === "oid" ? int64 : undefined),
  ofStruct("oid as int32", (name) => name === "o" || name === "oid" ? int32 : undefined),
  ofStruct("wei, usd and ntli as int64", (name) => ["wei", "usd", "ntli", "weight"].includes(name) ? int64 : undefined),
  ofStruct("asset as uint32, oid as uint64", (_name, value) => value < 65_536 ? uint32 : uint64),
  ofStruct("asset as uint16, oid as int64", (_name, value) => value < 65_536 ? uint16 : int64),
  ofStruct("asset as int16", (name) => name === "a" || name === "asset" ? int16 : undefined)
]

const ofTyped = (
  name: string,
  mistake: SignatureMistake,
  change: (typed: Typed, sound: Sound) => Typed | undefined,
  path?: (sound: Sound) => string
): Break =>
  signing(name, mistake, "userSigned", (sound) => {
    const typed = sound.typed === undefined ? undefined : change(sound.typed, sound)
    return typed === undefined || digestOf(typed) === rightDigest(sound)
      ? undefined
      : { digest: digestOf(typed), ...(path === undefined ? {} : { path: path(sound) }) }
  })

const zeros: { readonly [type: string]: unknown } = {
  string: "",
  bool: false,
  uint64: 0,
  uint32: 0,
  address: `0x${"0".repeat(40)}`
}

/** Each user-signed action under the type of each other one: with its own fields, then with the fields of the other. */
const otherActions: ReadonlyArray<Break> = Object.values(UserSigned.types).flatMap((type) => {
  const { fields, primaryType } = UserSigned.struct(mainnet)(type)
  const own = ofTyped(`own fields under the type of ${type.actionType}`, "primaryType", (typed) => ({
    ...typed,
    primaryType
  }))
  // its data are bytes, for which there is no zero
  return type.actionType === "sendToEvmWithData" ? [own] : [
    own,
    ofTyped(`type of ${type.actionType}`, "primaryType", (typed, { nonce }) => {
      const { message } = typed
      // the value of another field of the same type could be signed
      const isGuess = fields.some(({ name, type }) =>
        !(name in message) && type !== "string" && name !== "time" && name !== "nonce" &&
        (zeros[type] === undefined || typed.fields.some((field) => field.type === type))
      )
      if (primaryType === typed.primaryType || isGuess) return undefined
      const valueOf = (name: string, type: string) =>
        message[name] ?? (name === "time" || name === "nonce" ? nonce : zeros[type])
      return {
        ...typed,
        primaryType,
        fields,
        message: Object.fromEntries(fields.map(({ name, type }) => [name, valueOf(name, type)]))
      }
    })
  ]
})

const string = (name: string) => ({ name, type: "string" })

const olderChains = [42_161, 421_614, 421_613]

/** An action in a type of before May 2024; `undefined` for another action. */
const olderType = (actionType: string, primaryType: string, amountName: string) => (chainId: number): Break =>
  ofTyped(
    `${primaryType} in chain ${chainId}`,
    "olderTypedData",
    (typed, { action: { amount, destination, time, type } }) =>
      type !== actionType ? undefined : {
        ...typed,
        name: "Exchange",
        chainId,
        primaryType,
        fields: [string("destination"), string(amountName), { name: "time", type: "uint64" }],
        message: { destination, [amountName]: amount, time }
      }
  )

const olderAgent = (isNamed: boolean) => (chainId: number): Break =>
  ofTyped(
    `agent ${isNamed ? "with" : "without"} its name in chain ${chainId}`,
    "olderTypedData",
    (_typed, { action: { agentAddress, agentName, type } }) => {
      if (type !== "approveAgent") return undefined
      const address: Hex = `0x${String(agentAddress).slice(2)}`
      const connected = keccak256(
        isNamed
          ? encodeAbiParameters([{ type: "address" }, { type: "string" }], [address, String(agentName)])
          : encodeAbiParameters([{ type: "address" }], [address])
      )
      return { ...agent(connected), chainId, message: { source: "https://hyperliquid.xyz", connectionId: connected } }
    }
  )

const olderDomain = (chainId: number): Break =>
  ofTyped(`type of today in the older domain, chain ${chainId}`, "otherDomain", (typed) => ({
    ...typed,
    name: "Exchange",
    chainId
  }))

const older: ReadonlyArray<Break> = [
  olderType("usdSend", "UsdTransferSignPayload", "amount"),
  olderType("withdraw3", "WithdrawFromBridge2SignPayload", "usd"),
  olderAgent(false),
  olderAgent(true),
  olderDomain
].flatMap((make) => olderChains.map(make))

const scaled = (text: string, places: number): bigint => {
  const [whole = "", fraction = ""] = text.split(".")
  return BigInt(`${whole}${fraction.padEnd(places, "0")}`)
}

const amounts: ReadonlyArray<Break> = [
  ...["uint256", "uint64", "int256"].flatMap((type) =>
    [6, 8, 18].map((places) =>
      ofTyped(`amount as ${type} with ${places} places`, "fieldType", (typed) => {
        const { amount } = typed.message
        return !Predicate.isString(amount) ? undefined : {
          ...typed,
          fields: typed.fields.map((field) => field.name === "amount" ? { name: "amount", type } : field),
          message: { ...typed.message, amount: scaled(amount, places) }
        }
      })
    )
  ),
  ...["uint256", "int64", "string"].map((type) =>
    ofTyped(`the time as ${type}`, "fieldType", (typed) => ({
      ...typed,
      fields: typed.fields.map((field) => field.name === "time" || field.name === "nonce" ? { ...field, type } : field),
      message: type === "string"
        ? Object.fromEntries(
          Object.entries(typed.message).map((
            [key, value]
          ) => [key, key === "time" || key === "nonce" ? String(value) : value])
        )
        : typed.message
    }))
  ),
  ...["uint256", "string"].map((type) =>
    ofTyped(`wei as ${type}`, "fieldType", (typed) =>
      !("wei" in typed.message) ? undefined : ({
        ...typed,
        fields: typed.fields.map((field) => field.name === "wei" ? { ...field, type } : field),
        message: { ...typed.message, wei: type === "string" ? String(typed.message["wei"]) : typed.message["wei"] }
      }))
  )
]

/** An optional text of typed data that is not sent, or sent as null or empty, and signed as a word. */
const words: ReadonlyArray<Break> = ["null", "None", "undefined", "nil"].flatMap((word) =>
  ([["absent", undefined], ["null", null], ["empty", ""]] as const).map(([form, sent]) =>
    signing(`${form} text signed as ${word}`, "absentSigned", "userSigned", ({ action, typed }) => {
      const name = ["agentName", "fromSubAccount"].find((each) => each in action)
      if (typed === undefined || name === undefined) return undefined
      const { [name]: _, ...rest } = action
      return {
        action: sent === undefined
          ? rest
          : Object.fromEntries(Object.entries(action).map(([key, value]) => [key, key === name ? sent : value])),
        digest: digestOf({ ...typed, message: { ...typed.message, [name]: word } }),
        path: `action.${name}`
      }
    })
  )
)

const retimed = (action: Members, from: number, to: number): Members =>
  Object.fromEntries(Object.entries(action).map(([key, value]) => [key, value === from ? to : value]))

const offsets = [
  -1,
  1,
  7,
  -23,
  50,
  200,
  -300,
  1000,
  -1500,
  2500,
  -3000,
  5000,
  -10_000,
  30_000,
  60_000,
  3_600_000,
  -28_800_000
]

const clocks: ReadonlyArray<Break> = [
  ...offsets.map((off) =>
    signing(`nonce signed ${off} ms off`, "otherNonce", "any", ({ action, nonce, typed }) => {
      const at = nonce + off
      const wrong = retimed(action, nonce, at)
      return {
        digest: digestOf(
          typed === undefined
            ? agent(connectionId(wrong, { nonce: at }))
            : { ...typed, message: retimed(typed.message, nonce, at) }
        )
      }
    })
  ),
  signing(
    "only the member of the action is another nonce",
    "otherNonce",
    "userSigned",
    ({ action, nonce, typed }) =>
      typed === undefined ? undefined : { action: retimed(action, nonce, nonce + 5), digest: digestOf(typed) }
  ),
  signing("nonce signed in whole seconds, 2 s before", "otherNonce", "any", ({ action, nonce, typed }) => {
    const at = Math.floor(nonce / 1000) * 1000 - 2000
    return {
      digest: digestOf(
        typed === undefined
          ? agent(connectionId(retimed(action, nonce, at), { nonce: at }))
          : { ...typed, message: retimed(typed.message, nonce, at) }
      )
    }
  })
]

/** All of them. */
export const rareSignings: ReadonlyArray<Break> = [
  ...messages,
  ...integers,
  ...otherActions,
  ...older,
  ...amounts,
  ...words,
  ...clocks
]
