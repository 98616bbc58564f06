/**
 * A view of a request: a hypothesis about how the signer deviated from the venue's hashing and signing, and the digest
 * that results from it.
 */
import * as Json from "@trigate/domain/encoding/Encoding"
import type { Difference, Mistake } from "@trigate/domain/unstable/Inspection"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Struct from "effect/Struct"
import * as ActionForm from "../actions/ActionForm.ts"
import * as ActionHash from "../actions/ActionHash.ts"
import { concat, fromHex, isAddress, keccak256, toHex, toUint64, uint64Bytes } from "../actions/ActionHash.ts"
import * as MultiSig from "../actions/CanonicalAction.ts"
import type * as CanonicalAction from "../actions/CanonicalAction.ts"
import type { Action } from "../actions/CanonicalAction.ts"
import type { VenueProfile } from "../VenueProfile.ts"

type Width = 1 | 2 | 4 | 8

/** The MessagePack type of integers. */
export interface IntegerStyle {
  /** The least number of bytes after the type byte. */
  readonly least: Width
  readonly signed: boolean
  /** Whether integers from -32 to 127 are encoded in the type byte. */
  readonly fixed: boolean
  /** Whether an integer that does not fit into `least` bytes gets the venue's type instead of a wider one. */
  readonly onlyLeast?: boolean
}

/** The venue's type of an integer: the smallest one, unsigned if the integer is not negative. */
const smallest: IntegerStyle = { least: 1, signed: false, fixed: true }

/** An integer that is encoded in a style of its own, or as a double. */
export class Packed {
  readonly value: number | bigint
  readonly style: IntegerStyle | "double"
  constructor(value: number | bigint, style: IntegerStyle | "double") {
    this.value = value
    this.style = style
  }
}

/**
 * The MessagePack type of text. `shortest`: a string with the shortest header. `str8`, `str16`, `str32`: a string with
 * at least this header. `noStr8`: a string with the shortest header except `str8`. `bin`: binary data, except for keys.
 * `addressBytes`: binary data for addresses and client order IDs.
 */
export type TextStyle = "shortest" | "str8" | "str16" | "str32" | "noStr8" | "bin" | "addressBytes"

/** The encoding of the number of items in a list or map. */
export type SizeStyle = "shortest" | "wide16" | "wide32"

/** A variant of MessagePack. */
export interface Encoding {
  readonly integer: IntegerStyle
  readonly text: TextStyle
  readonly size: SizeStyle
}

/** The variant of MessagePack that the venue uses. */
export const standard: Encoding = { integer: smallest, text: "shortest", size: "shortest" }

/** Combines two variants of MessagePack. If both change a property, the second variant applies. */
export const combinedEncodings = (first: Encoding, second: Encoding): Encoding => ({
  integer: second.integer === standard.integer ? first.integer : second.integer,
  text: second.text === standard.text ? first.text : second.text,
  size: second.size === standard.size ? first.size : second.size
})

const tagged = (tag: number, value: bigint, width: Width): Uint8Array => {
  const bytes = new Uint8Array(width + 1)
  bytes[0] = tag
  for (let at = width, rest = BigInt.asUintN(width * 8, value); at > 0; at--, rest >>= 8n) {
    bytes[at] = Number(rest & 0xffn)
  }
  return bytes
}

const widths = [[1, 0], [2, 1], [4, 2], [8, 3]] as const

const fits = (value: bigint, width: Width, signed: boolean): boolean =>
  signed
    ? value >= -(1n << BigInt(width * 8 - 1)) && value < 1n << BigInt(width * 8 - 1)
    : value >= 0n && value < 1n << BigInt(width * 8)

const sized = (value: bigint, least: Width, signed: boolean): Uint8Array => {
  for (const [width, step] of widths) {
    if (width >= least && fits(value, width, signed)) return tagged((signed ? 0xd0 : 0xcc) + step, value, width)
  }
  return tagged(signed ? 0xcf : 0xd3, value, 8)
}

const double = (value: number): Uint8Array => {
  const bytes = new Uint8Array(9)
  bytes[0] = 0xcb
  new DataView(bytes.buffer).setFloat64(1, value)
  return bytes
}

const integer = (value: bigint, { fixed, least, onlyLeast = false, signed }: IntegerStyle): Uint8Array => {
  if (fixed && value >= -32n && value < 128n) return Uint8Array.of(Number(BigInt.asUintN(8, value)))
  return onlyLeast && !fits(value, least, signed)
    ? integer(value, smallest)
    : sized(value, least, signed || value < 0n)
}

const header = (fixed: number, limit: number, wide: readonly [tag: number, width: 1 | 2 | 4][], length: number) => {
  if (length < limit) return Uint8Array.of(fixed | length)
  const found = wide.find(([, width]) => length < 2 ** (8 * width)) ?? wide.at(-1)
  return found === undefined ? new Uint8Array(0) : tagged(found[0], BigInt(length), found[1])
}

const textHeaders = {
  shortest: [32, [[0xd9, 1], [0xda, 2], [0xdb, 4]]],
  addressBytes: [32, [[0xd9, 1], [0xda, 2], [0xdb, 4]]],
  str8: [0, [[0xd9, 1], [0xda, 2], [0xdb, 4]]],
  str16: [0, [[0xda, 2], [0xdb, 4]]],
  str32: [0, [[0xdb, 4]]],
  noStr8: [32, [[0xda, 2], [0xdb, 4]]],
  bin: [0, [[0xc4, 1], [0xc5, 2], [0xc6, 4]]]
} as const satisfies { readonly [Style in TextStyle]: readonly [number, ReadonlyArray<readonly [number, 1 | 2 | 4]>] }

const textBytes = (value: string, style: TextStyle, isKey: boolean): Uint8Array => {
  if (style === "addressBytes" && !isKey && /^0x(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{40})$/.test(value)) {
    const bytes = fromHex(value)
    return concat(Uint8Array.of(0xc4, bytes.length), bytes)
  }
  const [limit, wide] = textHeaders[style === "bin" && isKey ? "shortest" : style]
  const bytes = Json.encode(value)
  return concat(header(0xa0, limit, wide.map(([tag, width]) => [tag, width]), bytes.length), bytes)
}

const sizes = {
  shortest: [16, [2, 4]],
  wide16: [0, [2, 4]],
  wide32: [0, [4]]
} as const

const size = (count: number, style: SizeStyle, fixed: number, tag: number): Uint8Array => {
  const [limit, wide] = sizes[style]
  return header(fixed, limit, wide.map((width) => [width === 2 ? tag : tag + 1, width]), count)
}

const write = (encoding: Encoding, value: unknown, parts: Array<Uint8Array>): void => {
  if (value instanceof Packed) {
    parts.push(value.style === "double" ? double(Number(value.value)) : integer(BigInt(value.value), value.style))
  } else if (Predicate.isString(value)) parts.push(textBytes(value, encoding.text, false))
  else if (Predicate.isNumber(value)) {
    parts.push(Number.isInteger(value) ? integer(BigInt(value), encoding.integer) : double(value))
  } else if (Predicate.isBigInt(value)) parts.push(integer(value, encoding.integer))
  else if (Predicate.isBoolean(value)) parts.push(Uint8Array.of(value ? 0xc3 : 0xc2))
  else if (Array.isArray(value)) {
    parts.push(size(value.length, encoding.size, 0x90, 0xdc))
    for (const item of value) write(encoding, item, parts)
  } else if (Predicate.isObject(value)) {
    const members = Object.entries(value)
    parts.push(size(members.length, encoding.size, 0x80, 0xde))
    for (const [key, item] of members) {
      parts.push(textBytes(key, encoding.text, true))
      write(encoding, item, parts)
    }
  } else parts.push(Uint8Array.of(0xc0))
}

/** Encodes a value in a variant of MessagePack. The caller must limit the nesting depth of the value first. */
export const encode = (encoding: Encoding, value: unknown): Uint8Array => {
  const parts: Array<Uint8Array> = []
  write(encoding, value, parts)
  return concat(...parts)
}

/** JSON styles: without spaces, with Python's spaces, and with line breaks. */
export type JsonStyle = "compact" | "spaced" | "indented by 2" | "indented by 4"

const indents: { readonly [Style in JsonStyle]?: string } = { "indented by 2": "  ", "indented by 4": "    " }

/** Prints a value as JSON. */
export const printJson = (style: JsonStyle, value: unknown): string => {
  const indent = indents[style]
  const colon = style === "compact" ? ":" : ": "
  const block = (open: string, items: ReadonlyArray<string>, close: string, margin: string): string => {
    if (items.length === 0) return `${open}${close}`
    if (indent === undefined) return `${open}${items.join(style === "compact" ? "," : ", ")}${close}`
    return `${open}\n${items.map((item) => `${margin}${indent}${item}`).join(",\n")}\n${margin}${close}`
  }
  const print = (part: unknown, margin: string): string => {
    const inner = `${margin}${indent ?? ""}`
    if (Array.isArray(part)) return block("[", part.map((item: unknown) => print(item, inner)), "]", margin)
    if (!Predicate.isObject(part)) return Json.stringify(part)
    const members = Object.entries(part).map(([key, item]) => `${JSON.stringify(key)}${colon}${print(item, inner)}`)
    return block("{", members, "}", margin)
  }
  return print(value, "")
}

/**
 * The signatures that are examined: the signature of the request itself, or the signatures inside a multi-sig wrapper.
 */
export type Part = "outer" | "inner"

/** Changes a value before it is hashed; `sent` is the corresponding value in the body as sent. */
export type Rewrite = (value: unknown, sent: unknown) => unknown

/** The hashed bytes: the action, then its context (nonce, vault, expiry). The bytes of an absent value are empty. */
export interface Preimage {
  readonly action: Uint8Array
  readonly nonce: Uint8Array
  readonly vault: Uint8Array
  readonly expires: Uint8Array
}

/** A hypothesis about how a request was signed: the function or value for each step of signing. */
export interface View {
  readonly profile: VenueProfile
  /** The multi-sig wrapper, if any; {@link View.action} replaces its inner action. */
  readonly wrapper: MultiSig.MultiSigAction | undefined
  /** The action in the venue's form; for a wrapper, its inner action. */
  readonly action: Action
  readonly context: ActionHash.HashContext
  /** Changes the action, or the value that contains it, before it is encoded and hashed. */
  readonly rewrite: Rewrite
  /** The encoding of the action before it is hashed; `undefined` for the venue's encoding. */
  readonly encoding: Encoding | undefined
  /** The style of JSON to hash instead of MessagePack. */
  readonly json: JsonStyle | undefined
  /** Concatenates the parts of the hashed bytes; `undefined` for the venue's order, with its marker bytes. */
  readonly arrange: ((parts: Preimage, context: ActionHash.HashContext) => Uint8Array) | undefined
  readonly hashBytes: (bytes: Uint8Array) => Uint8Array
  /** Changes the typed data. */
  readonly reshape: (signable: ActionHash.Signable) => ActionHash.Signable
  readonly digest: (signable: ActionHash.Signable) => Uint8Array
  /**
   * Makes the typed data that the signer signed for an L1 action, if it was not the phantom agent (the venue's typed
   * data, which contains the action only as a hash); `undefined` if the signer signed the phantom agent.
   */
  readonly asTyped: ((action: Action) => ActionHash.Signable | undefined) | undefined
  /**
   * Whether the signer signed the message of the other role: the leader signed the co-signers' message, or a co-signer
   * signed the leader's message.
   */
  readonly otherPart: boolean
  /** Whether the message of the inner signers contains the addresses of the multi-sig account and the leader. */
  readonly wrapped: boolean
  /** Whether a user-signed action is hashed as a whole, like an L1 action. */
  readonly asL1: boolean
}

/**
 * Members of a view that only one mistake can change. Two mistakes cannot be combined if both change the same member in
 * this list.
 */
const exclusive = ["profile", "wrapper", "json", "arrange", "hashBytes", "digest", "asTyped"] as const

/** Returns the correct view of a request; `canonical` is the request's action in the venue's form. */
export const right = (
  profile: VenueProfile,
  canonical: CanonicalAction.CanonicalAction,
  context: ActionHash.HashContext
): View => ({
  profile,
  ...(canonical.kind === "multiSig"
    ? { wrapper: canonical.action, action: canonical.action.payload.action }
    : { wrapper: undefined, action: canonical.action }),
  context,
  rewrite: (value) => value,
  encoding: undefined,
  json: undefined,
  arrange: undefined,
  hashBytes: keccak256,
  reshape: (signable) => signable,
  digest: ActionHash.digestBytes,
  asTyped: undefined,
  otherPart: false,
  wrapped: true,
  asL1: false
})

/**
 * Returns the member that repeats the nonce of the body. All user-signed actions and some L1 actions have such a
 * member.
 */
export const nonceKey = ({ action, context }: View): string | undefined =>
  ["nonce", "time"].find((key) => {
    const value = toUint64(action[key])
    return value !== undefined && ("signatureChainId" in action || value === BigInt(context.nonce))
  })

/** Returns a copy of the view in which `nonce` is the nonce of both the envelope and the action. */
export const withNonce = (view: View, nonce: bigint): View => {
  const key = nonceKey(view)
  return {
    ...view,
    context: { ...view.context, nonce },
    action: key === undefined ? view.action : { ...view.action, [key]: nonce }
  }
}

/** Returns a copy of the view for the given profile, in which the action also names the profile's network. */
export const withProfile = (view: View, profile: VenueProfile): View => ({
  ...view,
  profile,
  action: view.profile.chainField in view.action
    ? Object.fromEntries(
      Object.entries(view.action).map(([key, value]) =>
        key === view.profile.chainField ? [profile.chainField, profile.chainName] : [key, value]
      )
    )
    : view.action
})

/** Returns a copy of the view in which `signatureChainId` is the chain ID of both the action and the wrapper. */
export const withChainId = (view: View, signatureChainId: string): View => ({
  ...view,
  action: "signatureChainId" in view.action ? { ...view.action, signatureChainId } : view.action,
  wrapper: view.wrapper === undefined ? undefined : { ...view.wrapper, signatureChainId }
})

/** Returns a copy of the view with one more rewrite of the hashed value. */
export const withRewrite = (view: View, rewrite: Rewrite): View => ({
  ...view,
  rewrite: (value, sent) => rewrite(view.rewrite(value, sent), sent)
})

/**
 * Combines two changes of an action's members; `undefined` if both change the same member, or if both change the order.
 */
const combinedActions = (right: Action, first: Action, second: Action): Action | undefined => {
  if (second === right) return first
  if (first === right) return second
  const names = Object.keys(right)
  if ([first, second].some((each) => Object.keys(each).join() !== names.join())) return undefined
  if (names.some((name) => first[name] !== right[name] && second[name] !== right[name])) return undefined
  return Object.fromEntries(names.map((name) => [name, second[name] === right[name] ? first[name] : second[name]]))
}

/**
 * Combines two views of the same request: the changes of `first`, then those of `second`.
 *
 * Rewrites, encodings and changes of the typed data are composed. Returns `undefined` if the views conflict, for
 * example if both change the same member of the action.
 */
export const combined = (right: View, first: View, second: View): View | undefined => {
  const action = combinedActions(right.action, first.action, second.action)
  const isChanged = (view: View, name: keyof View): boolean => view[name] !== right[name]
  const isFree = (name: keyof View): boolean => !isChanged(first, name) || !isChanged(second, name)
  if (action === undefined || !exclusive.every(isFree)) return undefined
  const inContext = <Name extends keyof ActionHash.HashContext>(name: Name): ActionHash.HashContext[Name] =>
    second.context[name] === right.context[name] ? first.context[name] : second.context[name]
  const [one, other] = [first.encoding, second.encoding]
  const merged: View = {
    ...first,
    ...Struct.pick(second, Struct.keys(second).filter((name) => isChanged(second, name))),
    action,
    encoding: one === undefined || other === undefined ? other ?? one : combinedEncodings(one, other)
  }
  return {
    ...merged,
    context: isFree("context") ? merged.context : {
      nonce: inContext("nonce"),
      vaultAddress: inContext("vaultAddress"),
      expiresAfter: inContext("expiresAfter")
    },
    rewrite: isFree("rewrite")
      ? merged.rewrite
      : (value, sent) => second.rewrite(first.rewrite(value, sent), sent),
    reshape: isFree("reshape") ? merged.reshape : (signable) => second.reshape(first.reshape(signable))
  }
}

/** Returns an object's own member, or a list's item. */
export const readMember = (value: unknown, key: string | number): unknown =>
  Predicate.isObjectOrArray(value) && Object.hasOwn(value, key) && Predicate.hasProperty(value, key)
    ? value[key]
    : undefined

/** Returns the path of a view's action in the body. */
export const actionPath = ({ wrapper }: View): ActionForm.Path =>
  wrapper === undefined ? ["action"] : ["action", "payload", "action"]

/** Returns the multi-sig wrapper around a view's action; `undefined` without a wrapper. */
export const viewWrapper = ({ action, wrapper }: View): MultiSig.MultiSigAction | undefined =>
  wrapper === undefined ? undefined : { ...wrapper, payload: { ...wrapper.payload, action } }

/**
 * Returns the value that is hashed for the outer or inner signatures according to a view, and the corresponding value
 * of the action `sent`.
 */
export const hashedValue = (view: View, part: Part, sent: unknown) => {
  const whole = viewWrapper(view)
  if (whole !== undefined && part === "outer") {
    return { value: view.rewrite(MultiSig.hashedWrapper(whole), sent), sent, path: ["action"] }
  }
  const sentAction = whole === undefined ? sent : readMember(readMember(sent, "payload"), "action")
  return { value: view.rewrite(view.action, sentAction), sent: sentAction, path: actionPath(view) }
}

const maxDifferences = 16

/**
 * Returns the differences between two values: unequal values, members that only one of them has, and a different order
 * of the members that both have.
 */
export const differences = (
  sent: unknown,
  canonical: unknown,
  path: ActionForm.Path = []
): ReadonlyArray<Difference> => {
  if (Array.isArray(sent) && Array.isArray(canonical) && sent.length === canonical.length) {
    return sent.flatMap((item: unknown, index) => differences(item, canonical[index], [...path, index]))
      .slice(0, maxDifferences)
  }
  if (!Predicate.isReadonlyObject(sent) || !Predicate.isReadonlyObject(canonical)) {
    const [left, right] = [ActionForm.quoted(sent), ActionForm.quoted(canonical)]
    return left === right ? [] : [{ path, sent: left, canonical: right }]
  }
  const found: Array<Difference> = []
  const common = Object.keys(sent).filter((key) => Object.hasOwn(canonical, key)).join(", ")
  const ordered = Object.keys(canonical).filter((key) => Object.hasOwn(sent, key)).join(", ")
  if (common !== ordered) found.push({ path, sent: common, canonical: ordered })
  for (const key of new Set([...Object.keys(canonical), ...Object.keys(sent)])) {
    if (found.length >= maxDifferences) break
    const at = [...path, key]
    if (!Object.hasOwn(sent, key)) found.push({ path: at, canonical: ActionForm.quoted(canonical[key]) })
    else if (!Object.hasOwn(canonical, key)) found.push({ path: at, sent: ActionForm.quoted(sent[key]) })
    else found.push(...differences(sent[key], canonical[key], at))
  }
  return found.slice(0, maxDifferences)
}

const maxFindings = 4

const mistakeAt = (mistake: Mistake["mistake"], { canonical, path, sent }: Difference): Mistake => ({
  mistake,
  path,
  ...(sent === undefined ? {} : { found: sent }),
  ...(canonical === undefined ? {} : { expected: canonical })
})

/** Returns the differences between a view's hashed value and the correct one, each as a mistake with the given name. */
export const mistakesBetween = (
  mistake: Mistake["mistake"],
  view: View,
  rightView: View,
  part: Part,
  sent: unknown
): ReadonlyArray<Mistake> => {
  const hashed = hashedValue(view, part, sent)
  const found = differences(hashed.value, hashedValue(rightView, part, sent).value, hashed.path).slice(0, maxFindings)
  return found.length === 0 ? [{ mistake, path: [] }] : found.map((difference) => mistakeAt(mistake, difference))
}

const noBytes = new Uint8Array(0)

const encoded = ({ encoding, json }: View, value: unknown): Bytes => {
  if (json !== undefined) return Result.succeed(Json.encode(printJson(json, value)))
  return encoding === undefined ? ActionHash.encode(value) : Result.succeed(encode(encoding, value))
}

/**
 * Encodes a value to the bytes that are hashed. `name` identifies the value, because one view can hash several values.
 */
type Encode = (view: View, name: "action" | "wrapper" | "payload", value: () => unknown) => Bytes

type Bytes = Result.Result<Uint8Array, unknown>

const encodeAnew: Encode = (view, _name, value) => encoded(view, value())

const hashed = (view: View, bytes: Bytes): Bytes => {
  const { arrange, context, hashBytes } = view
  const { expiresAfter, vaultAddress } = context
  const nonce = toUint64(context.nonce)
  const expires = expiresAfter === null || expiresAfter === undefined ? undefined : toUint64(expiresAfter)
  if (nonce === undefined) return Result.fail("nonce")
  return Result.map(bytes, (action) => {
    const parts: Preimage = {
      action,
      nonce: uint64Bytes(nonce),
      vault: isAddress(vaultAddress) ? fromHex(vaultAddress) : noBytes,
      expires: expires === undefined ? noBytes : uint64Bytes(expires)
    }
    return hashBytes(arrange === undefined ? venuePreimage(parts) : arrange(parts, context))
  })
}

/**
 * Concatenates the preimage in the venue's order: action, nonce, vault, expiry. The byte 1 precedes a vault; without a
 * vault, only the byte 0 is inserted. The byte 0 precedes an expiry; without an expiry, nothing is added.
 */
export const venuePreimage = ({ action, expires, nonce, vault }: Preimage): Uint8Array =>
  concat(
    action,
    nonce,
    Uint8Array.of(vault.length === 0 ? 0 : 1),
    vault,
    expires.length === 0 ? noBytes : Uint8Array.of(0),
    expires
  )

type SignableOf = Result.Result<ActionHash.Signable, unknown>

const agentTypedData = (view: View, bytes: Bytes): SignableOf =>
  Result.map(hashed(view, bytes), (hash) => ActionHash.agentSignable(view.profile, toHex(hash)))

const innerSignable = (
  view: View,
  whole: MultiSig.MultiSigAction | undefined,
  sent: unknown,
  encode: Encode
): SignableOf => {
  const { action, asTyped, profile } = view
  const parties = view.wrapped ? whole?.payload : undefined
  const scheme = MultiSig.signingScheme(action)
  if (Result.isFailure(scheme)) return Result.fail<unknown>(scheme.failure)
  if (scheme.success.scheme === "userSigned" && !view.asL1) {
    const { type } = scheme.success
    return parties === undefined
      ? MultiSig.signable(profile, type, action)
      : MultiSig.innerSignable(profile, type, action, parties)
  }
  if (asTyped !== undefined) {
    const signable = asTyped(action)
    return signable === undefined ? Result.fail<unknown>("typed") : Result.succeed(signable)
  }
  if (whole === undefined || parties === undefined) {
    return agentTypedData(view, encode(view, "action", () => hashedValue(view, "inner", sent).value))
  }
  const payload = readMember(sent, "payload")
  const sentValue = ["multiSigUser", "outerSigner", "action"].map((key) => readMember(payload, key))
  return agentTypedData(view, encode(view, "payload", () => view.rewrite(MultiSig.innerValue(whole), sentValue)))
}

/**
 * Returns the typed data that the outer or inner signatures cover according to a view, before {@link View.reshape} is
 * applied.
 */
const viewSignable = (view: View, given: Part, sent: unknown, encode: Encode = encodeAnew): SignableOf => {
  const part = view.otherPart ? given === "outer" ? "inner" : "outer" : given
  const whole = viewWrapper(view)
  if (whole === undefined || part === "inner") return innerSignable(view, whole, sent, encode)
  const bytes = encode(view, "wrapper", () => hashedValue(view, part, sent).value)
  return view.asL1
    ? agentTypedData(view, bytes)
    : Result.flatMap(
      hashed(view, bytes),
      (hash) => MultiSig.leaderSignable(view.profile, whole.signatureChainId, toHex(hash), view.context.nonce)
    )
}

/** Returns the value of a key; makes the value on first use. */
const remembered = <Key, Value>(known: Map<Key, Value>, key: Key, make: () => Value): Value => {
  const found = known.get(key)
  if (found !== undefined) return found
  const made = make()
  known.set(key, made)
  return made
}

/** Returns the digest that was signed if a view is correct. A view is a hypothesis about the signing. */
export type DigestOf = (view: View) => Bytes

/**
 * Makes a function that computes the digests of views (hypotheses about the signing); `sent` is the action as sent.
 *
 * The digests are those of the outer or the inner signatures (`part`). Views with the same action, rewrite and encoding
 * share the encoded bytes. Views that differ only in `reshape` or `digest` share the typed data that precedes these two
 * steps.
 */
export const digester = (part: Part, sent: unknown): DigestOf => {
  const ids = new Map<unknown, number>()
  const numberInstance = (value: unknown): number => remembered(ids, value, () => ids.size)
  const encodedOnce = new Map<string, Bytes>()
  const signableOnce = new Map<string, SignableOf>()
  const valueKey = ({ action, encoding, json, otherPart, rewrite, wrapped, wrapper }: View): string =>
    [action, rewrite, encoding, json, wrapper, wrapped, otherPart].map(numberInstance).join()
  return (view) => {
    const value = valueKey(view)
    const key = [
      value,
      ...[view.profile, view.context, view.arrange, view.hashBytes, view.asTyped, view.asL1].map(numberInstance)
    ].join()
    const signable = remembered(
      signableOnce,
      key,
      () =>
        viewSignable(
          view,
          part,
          sent,
          (_view, name, make) => remembered(encodedOnce, `${value} ${name}`, () => encoded(view, make()))
        )
    )
    return Result.map(signable, (found) => view.digest(view.reshape(found)))
  }
}

/**
 * Returns the typed data that the outer or inner signatures cover according to a view (a hypothesis about the signing),
 * after {@link View.reshape} was applied; `undefined` if the view's action cannot be converted to typed data.
 */
export const viewTypedData = (view: View, part: Part, sent: unknown): ActionHash.Signable | undefined =>
  Option.getOrUndefined(Option.map(Result.getSuccess(viewSignable(view, part, sent)), view.reshape))

/**
 * The chains to which wallets connect, most likely first: Ethereum and the chains of the venue's bridge, the venue's
 * EVM, then other chains that wallets list.
 */
export const walletChains: ReadonlyArray<{ readonly id: number; readonly name: string }> = [
  { id: 42_161, name: "Arbitrum One" },
  { id: 1, name: "Ethereum" },
  { id: 421_614, name: "Arbitrum Sepolia" },
  { id: 999, name: "HyperEVM" },
  { id: 998, name: "HyperEVM testnet" },
  { id: 8453, name: "Base" },
  { id: 1337, name: "the chain ID of L1 actions" },
  { id: 10, name: "OP Mainnet" },
  { id: 56, name: "BNB Smart Chain" },
  { id: 137, name: "Polygon" },
  { id: 31_337, name: "a local chain of Hardhat or Anvil" },
  { id: 11_155_111, name: "Sepolia" },
  { id: 43_114, name: "Avalanche" },
  { id: 59_144, name: "Linea" },
  { id: 100, name: "Gnosis" },
  { id: 250, name: "Fantom" },
  { id: 324, name: "zkSync Era" },
  { id: 1101, name: "Polygon zkEVM" },
  { id: 5000, name: "Mantle" },
  { id: 534_352, name: "Scroll" },
  { id: 81_457, name: "Blast" },
  { id: 84_532, name: "Base Sepolia" },
  { id: 42_220, name: "Celo" },
  { id: 130, name: "Unichain" },
  { id: 146, name: "Sonic" },
  { id: 480, name: "World Chain" },
  { id: 80_094, name: "Berachain" },
  { id: 7777777, name: "Zora" },
  { id: 34_443, name: "Mode" },
  { id: 25, name: "Cronos" },
  { id: 1284, name: "Moonbeam" },
  { id: 2020, name: "Ronin" },
  { id: 204, name: "opBNB" },
  { id: 169, name: "Manta Pacific" },
  { id: 252, name: "Fraxtal" },
  { id: 167_000, name: "Taiko" },
  { id: 97, name: "BNB Smart Chain testnet" },
  { id: 5, name: "Goerli" },
  { id: 17_000, name: "Holesky" },
  { id: 80_001, name: "Mumbai" },
  { id: 80_002, name: "Amoy" },
  { id: 421_613, name: "Arbitrum Goerli" },
  { id: 42_170, name: "Arbitrum Nova" },
  { id: 11_155_420, name: "OP Sepolia" },
  { id: 0, name: "no chain" }
]

const names: ReadonlyMap<number, string> = new Map(walletChains.map(({ id, name }) => [id, name]))

/** Formats a chain ID with the name of its chain. */
export const chainName = (id: number | bigint): string => {
  const name = names.get(Number(id))
  return name === undefined ? String(id) : `${id}, ${name}`
}
