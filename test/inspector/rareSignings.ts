/** Signings of programs without an SDK: plain messages, other integers, the types of other actions, another clock. */
import type { SignatureMistake } from "@trigate/domain/unstable/Inspection"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as UserSigned from "@trigate/signing/unstable/actions/CanonicalAction"
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

/** A break with the mistake that it makes. */
interface RareSigning extends Break {
  readonly mistake: SignatureMistake
}

const signing = (
  name: string,
  mistake: SignatureMistake,
  scheme: "l1" | "userSigned" | "any",
  sign: (sound: Sound) => Signed | undefined
): RareSigning => ({
  name,
  mistake,
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
): RareSigning => signing(name, mistake, "any", (sound) => ({ digest: digest(textOf(sound)), beside }))

const messages: ReadonlyArray<RareSigning> = [
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

const ofPacking = (name: string, mistake: SignatureMistake, bytesOf: (action: Members) => Hex): RareSigning =>
  signing(name, mistake, "l1", ({ action, nonce }) => {
    const bytes = bytesOf(action)
    return bytes === pack(action) ? undefined : { digest: packedDigest(bytes, nonce) }
  })

const ofStruct = (name: string, typeOf: (name: string, value: number) => IntegerType | undefined): RareSigning =>
  ofPacking(name, "integerWidth", (action) => structured(action, typeOf))

const ofSize = (name: string, type: IntegerType, from: bigint): RareSigning =>
  ofPacking(
    name,
    "integerWidth",
    packed({ integer: (value) => value >= from ? write(type, value) : pack(Number(value)) })
  )

const integers: ReadonlyArray<RareSigning> = [
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
): RareSigning =>
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
const otherActions: ReadonlyArray<RareSigning> = Object.values(UserSigned.types).flatMap((type) => {
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
const olderType = (actionType: string, primaryType: string, amountName: string) => (chainId: number): RareSigning =>
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

const olderAgent = (isNamed: boolean) => (chainId: number): RareSigning =>
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

const olderDomain = (chainId: number): RareSigning =>
  ofTyped(`type of today in the older domain, chain ${chainId}`, "otherDomain", (typed) => ({
    ...typed,
    name: "Exchange",
    chainId
  }))

const older: ReadonlyArray<RareSigning> = [
  olderType("usdSend", "UsdTransferSignPayload", "amount"),
  olderType("withdraw3", "WithdrawFromBridge2SignPayload", "usd"),
  olderAgent(false),
  olderAgent(true),
  olderDomain
].flatMap((make) => olderChains.map(make))

const scaled = (text: string, places: number): bigint => {
  const [whole = "", fraction = ""] = text.split(".")
  return BigInt(`${whole}${fraction.slice(0, places).padEnd(places, "0")}`)
}

const amounts: ReadonlyArray<RareSigning> = [
  ...["uint256", "uint64", "int256"].flatMap((type) =>
    [0, 6, 8, 18].map((places) =>
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
const words: ReadonlyArray<RareSigning> = ["null", "None", "undefined", "nil"].flatMap((word) =>
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

const clocks: ReadonlyArray<RareSigning> = [
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

const l1Digest = (action: unknown, nonce: number): Hex => digestOf(agent(connectionId(action, { nonce })))

/** An L1 action that is hashed and sent in the given forms; absent where a form is that of the sound action. */
const hashedAs = (
  name: string,
  mistake: SignatureMistake,
  change: (
    sound: Sound
  ) =>
    | { readonly hashed?: Members; readonly sent?: Members; readonly path?: string; readonly beside?: Members }
    | undefined
): RareSigning =>
  signing(name, mistake, "l1", (sound) => {
    const { action, nonce } = sound
    const changed = change(sound)
    if (changed === undefined) return undefined
    const { beside = {}, hashed = action, path, sent = action } = changed
    return {
      action: sent,
      beside,
      digest: l1Digest(hashed, nonce),
      ...(path === undefined ? {} : { path })
    }
  })

const mapped = (value: unknown, change: (value: unknown, name: string) => unknown, name = ""): unknown => {
  const changed = change(value, name)
  if (changed !== value) return changed
  if (Array.isArray(value)) return value.map((item: unknown) => mapped(item, change, name))
  return Predicate.isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapped(item, change, key)]))
    : value
}

const asMembers = (value: unknown): Members => Predicate.isReadonlyObject(value) ? value : {}

/** A second form for the actions that have several. */
const otherForms: { readonly [type: string]: readonly [name: string, value: unknown] } = {
  spotDeploy: ["disableQuoteToken", { token: 1 }],
  perpDeploy: ["disableDex", "x"],
  userOutcome: ["mergeOutcome", { outcome: 1, amount: "1" }]
}

const forms: ReadonlyArray<RareSigning> = [
  hashedAs("two forms of an action", "wrongShape", ({ action }) => {
    const [name, value] = otherForms[String(action["type"])] ?? []
    if (name === undefined || name in action) return undefined
    const both = { ...action, [name]: value }
    return { hashed: both, sent: both, path: "action" }
  })
]

/** Lists of pairs of an action, with three pairs instead of one or two. */
const isPairs = (value: unknown): value is ReadonlyArray<readonly [string, unknown]> =>
  Array.isArray(value) && value.length > 0 &&
  value.every((pair: unknown) => Array.isArray(pair) && pair.length === 2 && Predicate.isString(pair[0]))

const longer = ({ action }: Sound, names: ReadonlyArray<string>): Members | undefined => {
  const type = action["type"]
  if (type !== "perpDeploy" && type !== "spotDeploy") return undefined
  const made = mapped(
    action,
    (value, name) =>
      isPairs(value) && value[0]?.[0].startsWith("0x") !== true && name !== "nameAndDescription"
        ? names.map((key) => [key, value[0]?.[1]])
        : value
  )
  return JSON.stringify(made) === JSON.stringify(action) ? undefined : asMembers(made)
}

const orders: { readonly [name: string]: readonly [signed: ReadonlyArray<string>, sent: ReadonlyArray<string>] } = {
  "signed unsorted": [["x:C", "x:A", "x:B"], ["x:A", "x:B", "x:C"]],
  "signed reversed": [["x:C", "x:B", "x:A"], ["x:A", "x:B", "x:C"]],
  "sent unsorted": [["x:A", "x:B", "x:C"], ["x:B", "x:A", "x:C"]],
  "signed and sent unsorted": [["x:B", "x:A", "x:C"], ["x:B", "x:A", "x:C"]],
  "signed and sent in two wrong orders": [["x:C", "x:A", "x:B"], ["x:B", "x:A", "x:C"]],
  "six names, signed reversed": [["x:F", "x:E", "x:D", "x:C", "x:B", "x:A"], ["x:A", "x:B", "x:C", "x:D", "x:E", "x:F"]]
}

const lists: ReadonlyArray<RareSigning> = Object.entries(orders).map(([name, [signed, sent]]) =>
  hashedAs(`list of pairs ${name}`, "unsortedList", (sound) => {
    const [hashed, body] = [longer(sound, signed), longer(sound, sent)]
    return hashed === undefined || body === undefined ? undefined : { hashed, sent: body }
  })
)

const added: ReadonlyArray<RareSigning> = [
  hashedAs(
    "vaultAddress hashed as null",
    "nullHashed",
    ({ action }) =>
      "vaultAddress" in action ? undefined : { hashed: { ...action, vaultAddress: null }, path: "action.vaultAddress" }
  ),
  hashedAs("expiresAfter hashed as null", "nullHashed", ({ action }) => ({
    hashed: { ...action, expiresAfter: null },
    path: "action.expiresAfter"
  })),
  hashedAs(
    "vaultAddress and expiresAfter sent and hashed as null",
    "nullHashed",
    ({ action }) => "vaultAddress" in action ? undefined : { hashed: { ...action, ...nulls }, beside: nulls }
  ),
  hashedAs(
    "nonce hashed with the action",
    "memberAdded",
    ({ action, nonce }) => "nonce" in action ? undefined : { hashed: { ...action, nonce }, path: "action.nonce" }
  ),
  hashedAs(
    "nonce and a null hashed with the action",
    "memberAdded",
    ({ action, nonce }) =>
      "nonce" in action || "vaultAddress" in action ? undefined : { hashed: { ...action, nonce, vaultAddress: null } }
  )
]

const first = <A>(
  value: unknown,
  found: (value: unknown, path: ReadonlyArray<string | number>) => A | undefined,
  path: ReadonlyArray<string | number> = []
): A | undefined => {
  const here = found(value, path)
  if (here !== undefined) return here
  for (const [key, item] of Predicate.isObjectOrArray(value) ? Object.entries(value) : []) {
    const inner = first(item, found, [...path, Array.isArray(value) ? Number(key) : key])
    if (inner !== undefined) return inner
  }
  return undefined
}

/** Members of an action's objects that are absent, and their last place. */
const optional: { readonly [type: string]: readonly [name: string, zero: unknown] } = {
  order: ["c", ""],
  batchModify: ["c", ""],
  scheduleCancel: ["time", 0],
  reserveRequestWeight: ["destination", ""]
}

const withAbsent = ({ action }: Sound, value: (zero: unknown) => unknown): Members | undefined => {
  const [name, zero] = optional[String(action["type"])] ?? []
  if (name === undefined || JSON.stringify(action).includes(`"${name}":`)) return undefined
  return name === "c"
    ? asMembers(
      mapped(
        action,
        (part) => Predicate.hasProperty(part, "t") && Predicate.isObject(part) ? { ...part, c: value(zero) } : part
      )
    )
    : { ...action, [name]: value(zero) }
}

const absences: ReadonlyArray<RareSigning> = [
  ...["null", "None", "undefined"].map((word) =>
    hashedAs(`absent member hashed as ${word}`, "absentSigned", (sound) => {
      const hashed = withAbsent(sound, (zero) => zero === "" ? word : undefined)
      return hashed === undefined || JSON.stringify(hashed) === JSON.stringify(sound.action) ? undefined : { hashed }
    })
  ),
  hashedAs("absent member hashed as its zero", "absentSigned", (sound) => {
    const hashed = withAbsent(sound, (zero) => zero)
    return hashed === undefined ? undefined : { hashed }
  }),
  ...["null", ""].map((word) =>
    hashedAs(`null hashed as ${word === "" ? "empty text" : word}`, "absentSigned", ({ action }) => {
      const path = first(
        action,
        (value, at) =>
          value === null && ["displayName", "name", "amount", "oracleUpdater"].includes(String(at.at(-1)))
            ? at
            : undefined
      )
      if (path === undefined) return undefined
      const last = path.at(-1)
      return {
        hashed: asMembers(mapped(action, (value, name) => value === null && name === last ? word : value)),
        path: ["action", ...path].join(".")
      }
    })
  )
]

const drop = (value: unknown, [key, ...rest]: ReadonlyArray<string | number>): unknown =>
  Predicate.isObject(value)
    ? Object.fromEntries(
      Object.entries(value).flatMap(([name, item]) =>
        name !== key ? [[name, item]] : rest.length === 0 ? [] : [[name, drop(item, rest)]]
      )
    )
    : value

const oneNull: RareSigning = hashedAs("one of several nulls not hashed", "nullDropped", ({ action }) => {
  const path = first(action, (value, at) => value === null ? at : undefined)
  if (path === undefined || JSON.stringify(action).split("null").length < 3) return undefined
  return { hashed: asMembers(drop(action, path)), path: ["action", ...path].join(".") }
})

const missingNulls: ReadonlyArray<RareSigning> = [true, false].map((isHashed) =>
  hashedAs(`null not sent, ${isHashed ? "hashed" : "not hashed"}`, "missingMember", ({ action }) => {
    const path = first(
      action,
      (value, at) =>
        value === null && Predicate.isString(at.at(-1)) && !at.includes("star") &&
          !["jailSelf", "unjailSelf", "unregister", "deactivate"].includes(String(at.at(-1)))
          ? at
          : undefined
    )
    if (path === undefined) return undefined
    const sent = asMembers(drop(action, path))
    return { sent, hashed: isHashed ? action : sent, path: ["action", ...path].join(".") }
  })
)

/** The whole body in MessagePack, with and without what is appended to an action. */
const wholeBodies: ReadonlyArray<RareSigning> = [
  signing("the whole body hashed", "memberAdded", "l1", (sound) => ({
    digest: packedDigest(pack(bodyIn(sound)), sound.nonce)
  })),
  signing("the whole body with nulls hashed alone", "memberAdded", "l1", (sound) => ({
    digest: digestOf(agent(keccak256(pack({ ...bodyIn(sound), ...nulls })))),
    beside: nulls
  })),
  signing(
    "only the nonce beside the action is another",
    "otherNonce",
    "l1",
    ({ action, nonce }) => action["nonce"] === nonce ? { digest: l1Digest(action, nonce + 2500) } : undefined
  )
]

const minute = 60_000

const otherVault = keys.agent.address

/** A vault or an expiry that is sent, and another that is signed. */
const besides: ReadonlyArray<RareSigning> = [
  ...([
    ["in seconds", (time: number) => Math.floor(time / 1000)],
    ["a minute later", (time: number) => time + 60_000],
    ["3 ms later", (time: number) => time + 3],
    ["of 30 s", (time: number) => time - 30_000]
  ] as const).map(([name, change]) =>
    signing(`another expiresAfter signed, ${name}`, "expiresAfterNotSent", "l1", ({ action, nonce }) => {
      const expiresAfter = nonce + minute
      const signed = { nonce, expiresAfter: change(expiresAfter) }
      return { digest: digestOf(agent(connectionId(action, signed))), beside: { expiresAfter }, path: "expiresAfter" }
    })
  ),
  signing("another vaultAddress signed", "vaultNotSent", "l1", ({ action, nonce }) => ({
    digest: digestOf(agent(connectionId(action, { nonce, vaultAddress: otherVault }))),
    beside: { vaultAddress: keys.multiSigUser.address },
    path: "vaultAddress"
  }))
]

const typeNames: ReadonlyArray<RareSigning> = [
  hashedAs("type of another action hashed", "otherType", ({ action }) => {
    const other = {
      setReferrer: "registerReferrer",
      registerReferrer: "setReferrer",
      noop: "claimRewards",
      claimRewards: "noop"
    }[String(action["type"])]
    return other === undefined ? undefined : { hashed: { ...action, type: other }, path: "action.type" }
  }),
  hashedAs("type hashed in lower case", "otherType", ({ action }) => {
    const type = String(action["type"]).toLowerCase()
    return type === action["type"] ? undefined : { hashed: { ...action, type }, path: "action.type" }
  }),
  ofTyped("network in lower case", "sourceLetter", (typed) => ({
    ...typed,
    message: { ...typed.message, hyperliquidChain: "mainnet" }
  })),
  ofTyped("network named Arbitrum", "sourceLetter", (typed) => ({
    ...typed,
    message: { ...typed.message, hyperliquidChain: "Arbitrum" }
  }))
]

/** All of them. */
export const rareSignings: ReadonlyArray<RareSigning> = [
  ...messages,
  ...integers,
  ...otherActions,
  ...older,
  ...amounts,
  ...words,
  ...clocks,
  ...forms,
  ...lists,
  ...added,
  ...absences,
  oneNull,
  ...missingNulls,
  ...besides,
  ...wholeBodies,
  ...typeNames
]
