/** Typical ways to get a signature wrong, each made on purpose, with the name and the place that it should be told by. */
import type { SignatureMistake } from "@trigate/domain/unstable/Inspection"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as UserSigned from "@trigate/signing/unstable/actions/CanonicalAction"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as Predicate from "effect/Predicate"
import { concat, getAddress, hashMessage } from "viem/utils"
import type { Body } from "./samples.ts"
import type { Context, Hex, Signature, Typed } from "./signing.ts"
import { agent, connectionId, digestOf, Double, expires, nonceBytes, signDigest, vault } from "./signing.ts"

/** A body that is wrong, and how. */
export interface Broken {
  readonly body: unknown
  readonly mistake: SignatureMistake
  /** Other names that are right as well, or the second of two mistakes. */
  readonly others?: ReadonlyArray<SignatureMistake>
  /** Whether both have to be named. */
  readonly isPair?: boolean
  /** Where it has to be found; left out where any place is right. */
  readonly path?: string
  /** Who should have signed; the trader where nobody is named. */
  readonly signer?: string
}

type Action = Readonly<Record<string, unknown>>

/** A sound action, to be signed wrongly. */
export interface Sound {
  readonly action: Action
  readonly nonce: number
  /** The typed data of a user-signed action; absent for an L1 action. */
  readonly typed: Typed | undefined
}

type Making = Promise<Broken | undefined> | undefined

/** A way to break it; `undefined` where it does not apply. */
export interface Break {
  readonly name: string
  readonly make: (sound: Sound) => Making
}

const { agent: apiWallet, trader } = keys

const account: Hex = keys.multiSigUser.address

const typedOf = (action: Action): Typed | undefined => {
  const type = UserSigned.find(action["type"])
  if (type === undefined) return undefined
  const { fields, primaryType } = UserSigned.struct(mainnet)(type)
  return {
    name: "HyperliquidSignTransaction",
    chainId: Number(action["signatureChainId"]),
    primaryType,
    fields,
    message: Object.fromEntries(fields.map(({ name }) => [name, action[name]]))
  }
}

export const soundOf = ({ action, nonce }: Pick<Body, "action" | "nonce">): Sound => ({
  action,
  nonce,
  typed: typedOf(action)
})

const byTrader = (digest: Hex) => signDigest(digest, trader.privateKey)

const envelope = (action: unknown, context: Context, signature: Signature) => ({
  action,
  nonce: context.nonce,
  signature,
  ...(context.vaultAddress === undefined ? {} : { vaultAddress: context.vaultAddress }),
  ...(context.expiresAfter === undefined ? {} : { expiresAfter: context.expiresAfter })
})

/** The digest that a program signs for an action. */
const digestFor = (action: Action, context: Context): Hex => {
  const typed = typedOf(action)
  return digestOf(typed ?? agent(connectionId(action, context)))
}

interface Told {
  readonly mistake: SignatureMistake
  readonly path?: string
}

const broken = async (sent: unknown, context: Context, digest: Hex, told: Told): Promise<Broken> => ({
  body: envelope(sent, context, await byTrader(digest)),
  ...told
})

type Path = ReadonlyArray<string | number>

interface Leaf {
  readonly path: Path
  readonly value: unknown
}

const leavesOf = (value: unknown, path: Path = []): ReadonlyArray<Leaf> => {
  if (Array.isArray(value)) return value.flatMap((item: unknown, at) => leavesOf(item, [...path, at]))
  return Predicate.isObject(value)
    ? Object.entries(value).flatMap(([key, item]) => leavesOf(item, [...path, key]))
    : [{ path, value }]
}

const put = (value: unknown, [key, ...rest]: Path, item: unknown): unknown => {
  if (key === undefined) return item
  if (Array.isArray(value)) return value.map((each: unknown, at) => at === key ? put(each, rest, item) : each)
  return Predicate.isObject(value)
    ? Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, name === key ? put(each, rest, item) : each])
    )
    : value
}

const asAction = (value: unknown): Action => Predicate.isReadonlyObject(value) ? value : {}

/** Text that the venue reads as a number; not what only looks like one, such as a version. */
const decimals = new Set([
  "p",
  "s",
  "triggerPx",
  "amount",
  "oraclePx",
  "startPx",
  "orderSz",
  "maxSupply",
  "scale",
  "leverage",
  "riskFreeRate",
  "settleFraction"
])

const isDecimal = ({ path, value }: Leaf): boolean =>
  decimals.has(String(path.at(-1))) && Predicate.isString(value) && /^-?[0-9.]+$/.test(value)

const firstOf = (action: Action, which: (leaf: Leaf) => boolean): Leaf | undefined =>
  leavesOf(action).find((leaf) => leaf.path[0] !== "type" && leaf.path[0] !== "nonce" && which(leaf))

const textOf = (path: Path): string => ["action", ...path].join(".")

const zeroed = (text: string): string => text.includes(".") ? `${text}0` : `${text}.0`

/** A value that is signed wrongly, and sent as it was signed or as it has to be. */
const valued = (
  which: (leaf: Leaf) => boolean,
  change: (value: unknown) => unknown,
  mistake: SignatureMistake,
  sending: "asSigned" | "asItHasToBe",
  scheme: "l1" | "any" = "l1"
): Break["make"] =>
({ action, nonce, typed }) => {
  const leaf = firstOf(action, which)
  if (leaf === undefined || (typed !== undefined && scheme === "l1")) return undefined
  const wrong = asAction(put(action, leaf.path, change(leaf.value)))
  const sent = sending === "asSigned" ? wrong : action
  return broken(sent, { nonce }, digestFor(wrong, { nonce }), { mistake, path: textOf(leaf.path) })
}

const isText = Predicate.isString
const isCount = ({ value }: Leaf): boolean => Number.isInteger(value)
const isAddressLeaf = ({ value }: Leaf): boolean => isText(value) && /^0x[0-9a-f]{40}$/.test(value)
const checksum = (value: unknown): unknown => isText(value) ? getAddress(value) : value

type Members = ReadonlyArray<readonly [string, unknown]>

const reordered = (value: unknown, order: (members: Members) => Members): unknown => {
  if (Array.isArray(value)) return value.map((item: unknown) => reordered(item, order))
  return Predicate.isObject(value)
    ? Object.fromEntries(order(Object.entries(value)).map(([key, item]) => [key, reordered(item, order)]))
    : value
}

const inOrder =
  (order: (members: Members) => Members, sending: "asSigned" | "asItHasToBe"): Break["make"] =>
  ({ action, nonce, typed }) => {
    const wrong = asAction(reordered(action, order))
    if (typed !== undefined || JSON.stringify(wrong) === JSON.stringify(action)) return undefined
    const sent = sending === "asSigned" ? wrong : action
    return broken(sent, { nonce }, digestFor(wrong, { nonce }), { mistake: "fieldOrder" })
  }

/** The two last members of the innermost object that has more than one have changed places, in all objects of its kind. */
const lastTwoSwapped: Break["make"] = ({ action, nonce, typed }) => {
  const sets = new Set<string>()
  const collect = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(collect)
    else if (Predicate.isObject(value)) {
      if (Object.keys(value).length > 1) sets.add(Object.keys(value).join())
      Object.values(value).forEach(collect)
    }
  }
  collect(action)
  const innermost = [...sets].at(-1)
  if (typed !== undefined || innermost === undefined) return undefined
  const wrong = asAction(reordered(action, (all) => {
    if (all.map(([key]) => key).join() !== innermost) return all
    const [beforeLast, last] = all.slice(-2)
    return beforeLast === undefined || last === undefined ? all : [...all.slice(0, -2), last, beforeLast]
  }))
  return broken(action, { nonce }, digestFor(wrong, { nonce }), { mistake: "fieldOrder" })
}

const optional: { readonly [type: string]: (action: Action) => unknown } = {
  order: (action) => ({ ...action, builder: null }),
  cancel: (action) => ({ ...action, f: null }),
  cancelByCloid: (action) => ({ ...action, f: null }),
  modify: (action) => ({ ...action, a: null }),
  batchModify: (action) => ({ ...action, a: null }),
  scheduleCancel: (action) => ({ ...action, time: null }),
  reserveRequestWeight: (action) => ({ ...action, destination: null }),
  twapOrder: (action) => ({ ...action, details: null })
}

const nullSigned: Break["make"] = ({ action, nonce }) => {
  const wrong = optional[String(action["type"])]?.(action)
  if (wrong === undefined || Object.keys(asAction(wrong)).length === Object.keys(action).length) return undefined
  const path = textOf([Object.keys(asAction(wrong)).at(-1) ?? ""])
  return broken(action, { nonce }, digestFor(asAction(wrong), { nonce }), { mistake: "nullHashed", path })
}

/** The flag of an action that the venue hashes only if it is true. */
const marks: { readonly [type: string]: string } = { cancel: "f", cancelByCloid: "f", modify: "a", batchModify: "a" }

const falseSigned = (isSent: boolean): Break["make"] => ({ action, nonce }) => {
  const mark = marks[String(action["type"])]
  if (mark === undefined || mark in action) return undefined
  const wrong = { ...action, [mark]: false }
  const finding = { mistake: "falseHashed", path: textOf([mark]) } as const
  return broken(isSent ? wrong : action, { nonce }, digestFor(wrong, { nonce }), finding)
}

const withoutNulls = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutNulls)
  return Predicate.isObject(value)
    ? Object.fromEntries(
      Object.entries(value).filter(([, item]) => item !== null).map(([key, item]) => [key, withoutNulls(item)])
    )
    : value
}

const nullsLeftOut: Break["make"] = ({ action, nonce, typed }) => {
  const leaf = firstOf(action, ({ path, value }) => value === null && Predicate.isString(path.at(-1)))
  if (typed !== undefined || leaf === undefined) return undefined
  const digest = digestFor(asAction(withoutNulls(action)), { nonce })
  return broken(action, { nonce }, digest, { mistake: "nullDropped", path: textOf(leaf.path) })
}

const lastMemberLeftOut: Break["make"] = ({ action, nonce, typed }) => {
  const last = Object.keys(action).at(-1)
  if (typed !== undefined || last === undefined || last === "type" || action[last] === null) return undefined
  const { [last]: _, ...wrong } = action
  return broken(action, { nonce }, digestFor(wrong, { nonce }), { mistake: "memberNotSigned", path: textOf([last]) })
}

const retimed = (action: Action, from: number, to: number): Action =>
  Object.fromEntries(Object.entries(action).map(([key, value]) => [key, value === from && key !== "type" ? to : value]))

/** The signature is changed after it was made. */
const resigned =
  (change: (signature: Signature) => Signature | undefined, mistake: SignatureMistake): Break["make"] =>
  async ({ action, nonce }) => {
    const signature = change(await byTrader(digestFor(action, { nonce })))
    return signature === undefined ? undefined : { body: envelope(action, { nonce }, signature), mistake }
  }

/** The two halves in hex without padding, cut after 64 digits: only where the first has lost one. */
const cutWrongly: Break["make"] = async ({ action, nonce }) => {
  for (let at = nonce; at < nonce + 400; at++) {
    const moved = retimed(action, nonce, at)
    const { r, s, v } = await byTrader(digestFor(moved, { nonce: at }))
    if (!/^0x0[1-9a-f]/.test(r) || !/^0x[1-9a-f]/.test(s)) continue
    const digits = `${r.slice(3)}${s.slice(2)}`
    const signature = { r: `0x${digits.slice(0, 64)}`, s: `0x${digits.slice(64)}`, v }
    return { body: envelope(moved, { nonce: at }, signature), mistake: "shiftedHalves" }
  }
  return undefined
}

const l1 = (make: (action: Action, nonce: number) => Promise<Broken>): Break["make"] => ({ action, nonce, typed }) =>
  typed === undefined ? make(action, nonce) : undefined

const userSigned = (
  mistake: SignatureMistake,
  change: (typed: Typed, action: Action) => Typed | undefined
): Break["make"] =>
({ action, nonce, typed }) => {
  const wrong = typed === undefined ? undefined : change(typed, action)
  return wrong === undefined ? undefined : broken(action, { nonce }, digestOf(wrong), { mistake })
}

const { cosigner } = keys

interface Wrapping {
  readonly nonce: number
  readonly vaultAddress?: string
  /** The value whose hash the leader signs, of the wrapper. */
  readonly hashed?: (wrapper: Action) => unknown
  readonly chain?: string
  /** Whether the leader names the vault. */
  readonly hashesVault?: boolean
  readonly innerDigest?: Hex
  /** How the inner signature is written. */
  readonly written?: (signature: Signature) => Signature
}

const trimmed = (half: string): string => `0x${half.slice(2).replace(/^0+/u, "")}`

const innerDigestOf = (action: Action, context: Context): Hex => {
  const typed = typedOf(action)
  if (typed === undefined) return digestOf(agent(connectionId([account, trader.address, action], context)))
  const [chain, ...fields] = typed.fields
  return digestOf({
    ...typed,
    fields: [
      ...(chain === undefined ? [] : [chain]),
      { name: "payloadMultiSigUser", type: "address" },
      { name: "outerSigner", type: "address" },
      ...fields
    ],
    message: { ...typed.message, payloadMultiSigUser: account, outerSigner: trader.address }
  })
}

const withoutType = ({ type: _, ...wrapper }: Action): unknown => wrapper

const short = ({ r, s, v }: Signature): Signature => ({ r: trimmed(r), s: trimmed(s), v })

/** A wrapper that the co-signer and the leader have signed, as a program does it. */
const wrapped = async (action: Action, wrapping: Wrapping) => {
  const { chain = "Mainnet", hashed = withoutType, hashesVault = true, nonce, vaultAddress, written = short } = wrapping
  const context = { nonce, ...(vaultAddress === undefined ? {} : { vaultAddress }) }
  const inner = await signDigest(wrapping.innerDigest ?? innerDigestOf(action, context), cosigner.privateKey)
  const wrapper = {
    type: "multiSig",
    signatureChainId: "0x66eee",
    signatures: [written(inner)],
    payload: { multiSigUser: account, outerSigner: trader.address, action }
  }
  const outer = await byTrader(digestOf({
    name: "HyperliquidSignTransaction",
    chainId: 421_614,
    primaryType: "HyperliquidTransaction:SendMultiSig",
    fields: [
      { name: "hyperliquidChain", type: "string" },
      { name: "multiSigActionHash", type: "bytes32" },
      { name: "nonce", type: "uint64" }
    ],
    message: {
      hyperliquidChain: chain,
      multiSigActionHash: connectionId(hashed(wrapper), hashesVault ? context : { nonce }),
      nonce
    }
  }))
  return { inner, body: envelope(wrapper, context, outer) }
}

/** ccxt wraps nothing, and prints what a user signs in an order that a wrapper must not have. */
const isWrapped = (action: Action): boolean =>
  typedOf(action) === undefined || Object.keys(action).indexOf("signatureChainId") === 1

const multiSig =
  (mistake: SignatureMistake, wrapping: Omit<Wrapping, "nonce">): Break["make"] => async ({ action, nonce }) =>
    isWrapped(action) ? { body: (await wrapped(action, { nonce, ...wrapping })).body, mistake } : undefined

/** Only where the co-signer's signature has a leading zero. */
const zerosHashed: Break["make"] = async ({ action, nonce }) => {
  if (!isWrapped(action)) return undefined
  for (let at = nonce; at < nonce + 100; at++) {
    const moved = retimed(action, nonce, at)
    const { body, inner } = await wrapped(moved, { nonce: at, written: (signature) => signature })
    if (/^0x0[1-9a-f]/.test(inner.r) || /^0x0[1-9a-f]/.test(inner.s)) return { body, mistake: "untrimmedSignature" }
  }
  return undefined
}

const minute = 60_000

/** All of them. */
export const breaks: ReadonlyArray<Break> = [
  {
    name: "signed for testnet",
    make: ({ action, nonce, typed }) =>
      broken(
        action,
        { nonce },
        digestOf(
          typed === undefined
            ? agent(connectionId(action, { nonce }), "b")
            : { ...typed, message: { ...typed.message, hyperliquidChain: "Testnet" } }
        ),
        { mistake: "otherNetwork" }
      )
  },
  {
    name: "vaultAddress sent, not signed",
    make: l1((action, nonce) =>
      broken(action, { nonce, vaultAddress: account }, digestFor(action, { nonce }), {
        mistake: "vaultNotSigned",
        path: "vaultAddress"
      })
    )
  },
  {
    name: "own address signed as the vault, none sent",
    make: l1((action, nonce) =>
      broken(action, { nonce }, digestFor(action, { nonce, vaultAddress: trader.address }), {
        mistake: "vaultNotSent",
        path: "vaultAddress"
      })
    )
  },
  {
    name: "vault hashed without its marker",
    make: l1((action, nonce) => {
      const context = { nonce, vaultAddress: account }
      const id = connectionId(action, context, (all) => [nonceBytes(all), vault(all)])
      return broken(action, context, digestOf(agent(id)), { mistake: "vaultMarker", path: "vaultAddress" })
    })
  },
  {
    name: "no marker for no vault",
    make: l1((action, nonce) => {
      const id = connectionId(action, { nonce }, (all) => [nonceBytes(all)])
      return broken(action, { nonce }, digestOf(agent(id)), { mistake: "vaultMarker", path: "vaultAddress" })
    })
  },
  {
    name: "expiresAfter sent, not signed",
    make: l1((action, nonce) =>
      broken(action, { nonce, expiresAfter: nonce + minute }, digestFor(action, { nonce }), {
        mistake: "expiresAfterNotSigned",
        path: "expiresAfter"
      })
    )
  },
  {
    name: "expiresAfter signed, not sent",
    make: l1((action, nonce) =>
      broken(action, { nonce }, digestFor(action, { nonce, expiresAfter: nonce + minute }), {
        mistake: "expiresAfterNotSent",
        path: "expiresAfter"
      })
    )
  },
  {
    name: "expiresAfter hashed without its marker",
    make: l1((action, nonce) => {
      const context = { nonce, expiresAfter: nonce + minute }
      const id = connectionId(action, context, (all) => [nonceBytes(all), "0x00", expires(all)])
      return broken(action, context, digestOf(agent(id)), { mistake: "expiresAfterMarker", path: "expiresAfter" })
    })
  },
  {
    name: "nonce in seconds, signed and sent",
    make: ({ action, nonce }) => {
      const seconds = Math.floor(nonce / 1000)
      const wrong = retimed(action, nonce, seconds)
      return broken(wrong, { nonce: seconds }, digestFor(wrong, { nonce: seconds }), {
        mistake: "timeUnit",
        path: "nonce"
      })
    }
  },
  {
    name: "nonce signed in seconds, sent in milliseconds",
    make: ({ action, nonce }) => {
      const seconds = Math.floor(nonce / 1000)
      return broken(action, { nonce }, digestFor(retimed(action, nonce, seconds), { nonce: seconds }), {
        mistake: "timeUnit"
      })
    }
  },
  {
    name: "nonce signed in microseconds, sent in milliseconds",
    make: ({ action, nonce }) => {
      const micros = nonce * 1000
      return broken(action, { nonce }, digestFor(retimed(action, nonce, micros), { nonce: micros }), {
        mistake: "timeUnit"
      })
    }
  },
  {
    name: "another nonce sent than signed",
    make: ({ action, nonce }) =>
      broken(action, { nonce: nonce + 1 }, digestFor(action, { nonce }), { mistake: "otherNonce" })
  },
  {
    name: "members in alphabetical order",
    make: inOrder((all) => all.toSorted(([a], [b]) => a < b ? -1 : 1), "asItHasToBe")
  },
  { name: "members reversed, signed and sent", make: inOrder((all) => all.toReversed(), "asSigned") },
  {
    name: "type last",
    make: inOrder(
      (all) => [...all.filter(([key]) => key !== "type"), ...all.filter(([key]) => key === "type")],
      "asItHasToBe"
    )
  },
  { name: "two members swapped", make: lastTwoSwapped },
  {
    name: "trailing zero, signed and sent",
    make: valued(isDecimal, (text) => zeroed(String(text)), "trailingZero", "asSigned")
  },
  {
    name: "trailing zero signed, not sent",
    make: valued(isDecimal, (text) => zeroed(String(text)), "trailingZero", "asItHasToBe", "any")
  },
  {
    name: "trailing zero sent, not signed",
    make: ({ action, nonce, typed }) => {
      const leaf = firstOf(action, isDecimal)
      if (typed !== undefined || leaf === undefined) return undefined
      const sent = put(action, leaf.path, zeroed(String(leaf.value)))
      return broken(sent, { nonce }, digestFor(action, { nonce }), { mistake: "trailingZero", path: textOf(leaf.path) })
    }
  },
  { name: "number for text, signed and sent", make: valued(isDecimal, Number, "valueType", "asSigned") },
  { name: "number signed, text sent", make: valued(isDecimal, Number, "valueType", "asItHasToBe") },
  { name: "text for an integer, signed and sent", make: valued(isCount, String, "valueType", "asSigned") },
  { name: "text signed, integer sent", make: valued(isCount, String, "valueType", "asItHasToBe") },
  {
    name: "integer packed as a double",
    make: valued(isCount, (value) => new Double(Number(value)), "integerAsFloat", "asItHasToBe")
  },
  { name: "address with checksum, signed and sent", make: valued(isAddressLeaf, checksum, "letterCase", "asSigned") },
  {
    name: "address with checksum signed, not sent",
    make: valued(isAddressLeaf, checksum, "letterCase", "asItHasToBe")
  },
  { name: "null signed for an optional member", make: nullSigned },
  { name: "false signed for a flag that is left out, and sent", make: falseSigned(true) },
  { name: "false signed for a flag that is left out, not sent", make: falseSigned(false) },
  { name: "nulls left out of the signed content", make: nullsLeftOut },
  { name: "a member left out of the signed content", make: lastMemberLeftOut },
  { name: "v of the other key", make: resigned(({ r, s, v }) => ({ r, s, v: 55 - v }), "otherRecoveryBit") },
  { name: "v of 0 or 1", make: resigned(({ r, s, v }) => ({ r, s, v: v - 27 }), "recoveryBitForm") },
  { name: "r and s exchanged", make: resigned(({ r, s, v }) => ({ r: s, s: r, v }), "swappedHalves") },
  { name: "signature without leading zero cut at 64 digits", make: cutWrongly },
  {
    name: "signed as a plain message",
    make: ({ action, nonce }) =>
      broken(action, { nonce }, hashMessage({ raw: digestFor(action, { nonce }) }), { mistake: "personalSign" })
  },
  {
    name: "hash signed without typed data",
    make: l1((action, nonce) => broken(action, { nonce }, connectionId(action, { nonce }), { mistake: "hashSigned" }))
  },
  {
    name: "domain of the connected chain",
    make: l1((action, nonce) =>
      broken(action, { nonce }, digestOf({ ...agent(connectionId(action, { nonce })), chainId: 42_161 }), {
        mistake: "otherChainId"
      })
    )
  },
  {
    name: "domain of user-signed actions",
    make: l1((action, nonce) =>
      broken(
        action,
        { nonce },
        digestOf({ ...agent(connectionId(action, { nonce })), name: "HyperliquidSignTransaction" }),
        { mistake: "otherDomain" }
      )
    )
  },
  {
    name: "hash of the published sample",
    make: l1((action, nonce) => {
      const id = connectionId(action, { nonce }, (all) => [concat([`0x${"00".repeat(20)}`]), nonceBytes(all)])
      return broken(action, { nonce }, digestOf(agent(id)), { mistake: "documentedPreimage" })
    })
  },
  {
    name: "signed by the API wallet of the signers",
    make: async ({ action, nonce }) => ({
      body: envelope(action, { nonce }, await signDigest(digestFor(action, { nonce }), apiWallet.privateKey)),
      mistake: "otherKey"
    })
  },
  {
    name: "primary type without its prefix",
    make: userSigned("primaryType", (typed) => ({ ...typed, primaryType: typed.primaryType.split(":")[1] ?? "" }))
  },
  {
    name: "uint256 for uint64",
    make: userSigned("fieldType", (typed) => ({
      ...typed,
      fields: typed.fields.map(({ name, type }) => ({ name, type: type === "uint64" ? "uint256" : type }))
    }))
  },
  {
    name: "text for an address in the type",
    make: userSigned("fieldType", (typed) =>
      typed.fields.every(({ type }) => type !== "address") ? undefined : {
        ...typed,
        fields: typed.fields.map(({ name, type }) => ({ name, type: type === "address" ? "string" : type }))
      })
  },
  {
    name: "fields in another order",
    make: userSigned("typeFields", (typed) => ({
      ...typed,
      fields: [...typed.fields.slice(1, 2), ...typed.fields.slice(0, 1), ...typed.fields.slice(2)]
    }))
  },
  {
    name: "a field left out of the type",
    make: userSigned("typeFields", (typed) => ({ ...typed, fields: typed.fields.slice(1) }))
  },
  {
    name: "another chain id in the domain",
    make: userSigned("otherChainId", (typed) => ({ ...typed, chainId: 42_161 }))
  },
  {
    name: "domain of L1 actions",
    make: userSigned("otherDomain", (typed) => ({ ...typed, name: "Exchange", chainId: 1337 }))
  },
  {
    name: "signed as an L1 action",
    make: ({ action, nonce, typed }) =>
      typed === undefined
        ? undefined
        : broken(action, { nonce }, digestOf(agent(connectionId(action, { nonce }))), { mistake: "otherScheme" })
  },
  { name: "multi-sig, its leader for testnet", make: multiSig("otherNetwork", { chain: "Testnet" }) },
  { name: "multi-sig hashed with its type", make: multiSig("typeHashed", { hashed: (wrapper) => wrapper }) },
  {
    name: "multi-sig of a vault that its leader left out",
    make: multiSig("vaultNotSigned", { vaultAddress: account, hashesVault: false })
  },
  { name: "multi-sig with leading zeros hashed", make: zerosHashed },
  {
    name: "multi-sig whose co-signer signed the bare action",
    make: async ({ action, nonce }) => {
      if (!isWrapped(action)) return undefined
      const { body } = await wrapped(action, { nonce, innerDigest: digestFor(action, { nonce }) })
      return { body, mistake: "notWrapped", signer: cosigner.address }
    }
  }
]

export type { Body }
