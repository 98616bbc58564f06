/**
 * Messages that a signer may have signed by mistake, instead of the message that belongs to a request.
 *
 * A wrong signature recovers to an address that nobody holds, which says nothing about the mistake. So each likely mistake
 * is made here on purpose. If the resulting digest recovers to the expected signer, the signer made that mistake.
 */
import type { Mistake, SignatureMistake } from "@trigate/domain/Inspection"
import * as Utf8 from "@trigate/domain/Utf8"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ActionForm from "./ActionForm.ts"
import * as ActionHash from "./ActionHash.ts"
import * as ActionOrder from "./ActionOrder.ts"
import type { CanonicalAction } from "./CanonicalAction.ts"
import { concat, fromHex, type Hex, isAddress, keccak256, toHex, trimmedHex, uint64Bytes } from "./internal/bytes.ts"
import * as MsgPack from "./MsgPack.ts"
import * as Signable from "./Signable.ts"
import * as SignedView from "./SignedView.ts"
import type { Part, Rewrite, View } from "./SignedView.ts"
import type { SignedRequest } from "./SignerRecovery.ts"
import * as UserSigned from "./UserSigned.ts"
import { documentedChainField, otherThan, type VenueProfile } from "./VenueProfile.ts"

/** A digest that may have been signed, and the mistakes that lead to it: at least one, told when it is asked for. */
export interface SignedReading {
  readonly mistakes: () => ReadonlyArray<Mistake>
  readonly digest: Hex
}

/** A view with one mistake; `finding` is where it is, if comparing what is hashed does not show it. */
interface Slip {
  readonly view: View
  readonly finding?: Omit<Mistake, "mistake">
}

interface Subject {
  readonly view: View
  readonly request: SignedRequest
  readonly part: Part
  /** Addresses that may have been signed as the vault: the expected signer, and those that are known besides. */
  readonly known: ReadonlyArray<string>
}

type Vary = (subject: Subject) => Iterable<Slip>

interface Variation {
  readonly mistake: SignatureMistake
  readonly vary: Vary
  /** Whether it is also tried together with others: only mistakes with few views are. */
  readonly pairs: boolean
}

const paired = (mistake: SignatureMistake, vary: Vary): Variation => ({ mistake, vary, pairs: true })

const alone = (mistake: SignatureMistake, vary: Vary): Variation => ({ mistake, vary, pairs: false })

// values

type Members = ReadonlyArray<readonly [key: string, value: unknown]>

interface Change {
  readonly leaf?: (value: unknown, sent: unknown, key: string) => unknown
  readonly members?: (members: Members, sent: unknown) => Members
}

const rewriter = ({ leaf = (value) => value, members = (all) => all }: Change): Rewrite => {
  const walk = (value: unknown, sent: unknown, key: string): unknown => {
    if (Array.isArray(value)) {
      return value.map((item: unknown, index) => walk(item, SignedView.memberOf(sent, index), key))
    }
    if (!Predicate.isObject(value)) return leaf(value, sent, key)
    const changed = members(Object.entries(value), sent)
    return Object.fromEntries(changed.map(([name, item]) => [name, walk(item, SignedView.memberOf(sent, name), name)]))
  }
  return (value, sent) => walk(value, sent, "")
}

const rewriting = (...rewrites: ReadonlyArray<Rewrite>): Vary => ({ view }) =>
  rewrites.map((rewrite) => ({ view: SignedView.withRewrite(view, rewrite) }))

type Edit = (value: unknown) => unknown

const editAt = (value: unknown, [key, ...rest]: ActionForm.Path, edit: Edit): unknown => {
  if (key === undefined) return edit(value)
  if (Array.isArray(value)) return value.map((item: unknown, at) => at === key ? editAt(item, rest, edit) : item)
  return Predicate.isObject(value)
    ? Object.fromEntries(
      Object.entries(value).map(([name, item]) => [
        name,
        name === key ? editAt(item, rest, edit) : item
      ])
    )
    : value
}

/** The view with its action edited at some paths. */
const edited = (view: View, paths: ReadonlyArray<ActionForm.Path>, edit: Edit): View => {
  let action: unknown = view.action
  for (const path of paths) action = editAt(action, path, edit)
  return Predicate.isReadonlyObject(action) ? { ...view, action } : view
}

/** Values that are looked at one by one; a batch of more is a program's, which treats all alike. */
const maxLeaves = 16

const orderOf = ({ action, profile }: View): ActionOrder.ActionOrder | undefined => {
  const type = UserSigned.find(action["type"])
  if (type !== undefined) return UserSigned.order(profile)(type)
  return Predicate.isString(action["type"]) ? ActionOrder.l1.get(action["type"]) : undefined
}

const leavesIn = (view: View, ...kinds: ReadonlyArray<ActionOrder.Kind>): ReadonlyArray<ActionForm.Leaf> => {
  const order = orderOf(view)
  return order === undefined ? [] : ActionForm.leavesOf(order, view.action).filter(({ kind }) => kinds.includes(kind))
}

/** A user-signed amount is text, though it stands for a number. */
const decimalsIn = (view: View): ReadonlyArray<ActionForm.Leaf> => [
  ...leavesIn(view, "decimal"),
  ...leavesIn(view, "text").filter(({ path }) => path.at(-1) === "amount")
]

/** All the leaves in one spelling, then each by itself. */
const spelling = (leaves: (view: View) => ReadonlyArray<ActionForm.Leaf>, ...edits: ReadonlyArray<Edit>): Vary =>
  function*({ view }) {
    const paths = leaves(view).map(({ path }) => path)
    for (const edit of edits) {
      yield { view: edited(view, paths, edit) }
      if (paths.length > 1) { for (const path of paths.slice(0, maxLeaves)) yield { view: edited(view, [path], edit) } }
    }
  }

const ofText = (edit: (text: string) => unknown): Edit => (value) => Predicate.isString(value) ? edit(value) : value

const fraction = (text: string): string => text.split(".")[1] ?? ""

/** The number with at least so many decimal places, as programs print it that fix their number. */
const places = (count: number): Edit =>
  ofText((text) =>
    fraction(text).length >= count ? text : `${text.split(".")[0] ?? ""}.${fraction(text).padEnd(count, "0")}`
  )

const trailingZeros: ReadonlyArray<Edit> = [
  places(1),
  ofText((text) => text.includes(".") ? `${text}0` : `${text}.0`),
  ...[2, 3, 4, 5, 6, 7, 8].map(places)
]

const exponent: Edit = ofText((text) => {
  const digits = /^0\.(0*)([1-9][0-9]*)$/.exec(text)
  const [, zeros = "", [first = "", ...rest] = ""] = digits ?? []
  if (digits === null) return text
  return `${first}${rest.length === 0 ? "" : `.${rest.join("")}`}e-${zeros.length + 1}`
})

/** As Python prints the exponent, with two digits. */
const longExponent: Edit = (value) => {
  const text = exponent(value)
  return Predicate.isString(text) ? text.replace(/e-([0-9])$/, "e-0$1") : text
}

const checksummed = (address: string): string => {
  const digits = address.slice(2).toLowerCase()
  const hash = toHex(keccak256(Utf8.encode(digits))).slice(2)
  return `0x${
    Array.from(digits, (digit, at) => Number(`0x${hash[at] ?? "0"}`) >= 8 ? digit.toUpperCase() : digit).join("")
  }`
}

const upperCase = (hex: string): string => `0x${hex.slice(2).toUpperCase()}`

const addressesIn = (view: View): ReadonlyArray<ActionForm.Leaf> =>
  leavesIn(view, "address", "cloid", "id", "text").filter(({ value }) =>
    Predicate.isString(value) && /^0x[0-9a-f]{32,40}$/.test(value)
  )

const numberOf: Edit = ofText((text) => /^-?[0-9]+(?:\.[0-9]+)?$/.test(text) ? Number(text) : text)

const textOf: Edit = (value) => Predicate.isNumber(value) || Predicate.isBigInt(value) ? value.toString() : value

const rounded: Edit = (value) => Predicate.isBigInt(value) ? BigInt(Number(value)) : value

/** The integers whose nearest double is this one. */
const unrounded = function*({ view }: Subject): Iterable<Slip> {
  for (const { path, value } of leavesIn(view, "integer").slice(0, maxLeaves)) {
    if (!Predicate.isBigInt(value) || BigInt(Number(value)) !== value) continue
    const step = 2n ** BigInt(Math.max(0, value.toString(2).length - 53))
    for (let off = 1n; off <= step / 2n && off <= 64n; off++) {
      yield { view: edited(view, [path], () => value + off) }
      yield { view: edited(view, [path], () => value - off) }
    }
  }
}

const normalized = (form: "NFC" | "NFD"): Rewrite =>
  rewriter({ leaf: (value) => Predicate.isString(value) ? value.normalize(form) : value })

const jsonIn = ofText((text) => text.replaceAll(/\s*([,:])\s*/g, "$1"))
const spacedJson = ofText((text) => text.replaceAll(/\s*([,:])\s*/g, "$1 "))

// members

const sameHex = (a: unknown, b: unknown): boolean =>
  Predicate.isString(a) && Predicate.isString(b) && /^0x[0-9a-fA-F]+$/.test(a) && /^0x[0-9a-fA-F]+$/.test(b) &&
  trimmedHex(a) === trimmedHex(b)

const isScalar = (key: string): boolean => key === "r" || key === "s"

/** The scalars of inner signatures with the leading zeros that they were sent with. */
const signaturesAsSent = rewriter({
  leaf: (value, sent, key) => isScalar(key) && sameHex(value, sent) ? sent : value
})

const signaturesPadded = rewriter({
  leaf: (value, _sent, key) =>
    isScalar(key) && Predicate.isString(value) && /^0x[0-9a-f]{1,64}$/.test(value)
      ? `0x${value.slice(2).padStart(64, "0")}`
      : value
})

const chainIds = (spell: (chainId: Hex) => string): Rewrite =>
  rewriter({
    leaf: (value, _sent, key) =>
      key === "signatureChainId" && Predicate.isString(value) ? spell(trimmedHex(value)) : value
  })

/** Members in the order in which they were sent. */
const keysAsSent = rewriter({
  members: (members, sent) => {
    const order = new Map(Predicate.isObject(sent) ? Object.keys(sent).map((key, index) => [key, index]) : [])
    const at = (key: string) => order.get(key) ?? order.size
    return members.toSorted(([a], [b]) => at(a) - at(b))
  }
})

/** In alphabetical order, as serializers with sorted maps print them. */
const sortedKeys = rewriter({ members: (all) => all.toSorted(([a], [b]) => a < b ? -1 : 1) })

const typeLast = rewriter({
  members: (all) => [...all.filter(([key]) => key !== "type"), ...all.filter(([key]) => key === "type")]
})

/** The objects of an action, those at like places together. */
const objectsIn = (value: unknown): ReadonlyArray<ReadonlyArray<ActionForm.Path>> => {
  const groups = new Map<string, Array<ActionForm.Path>>()
  const walk = (part: unknown, path: ActionForm.Path): void => {
    if (Array.isArray(part)) part.forEach((item: unknown, at) => walk(item, [...path, at]))
    else if (Predicate.isObject(part)) {
      const place = `${path.filter(Predicate.isString).join(".")}:${Object.keys(part).join()}`
      const group = groups.get(place)
      if (group === undefined) groups.set(place, [path])
      else group.push(path)
      for (const [key, item] of Object.entries(part)) walk(item, [...path, key])
    }
  }
  walk(value, [])
  return [...groups.values()].slice(0, maxLeaves)
}

const at = (value: unknown, path: ActionForm.Path): unknown =>
  path.reduce<unknown>((part, key) => SignedView.memberOf(part, key), value)

const entriesAt = (view: View, paths: ReadonlyArray<ActionForm.Path>): Members => {
  const [first = []] = paths
  const value = at(view.action, first)
  return Predicate.isObject(value) ? Object.entries(value) : []
}

const ofMembers = (edit: (members: Members) => Members): Edit => (value) =>
  Predicate.isObject(value) ? Object.fromEntries(edit(Object.entries(value))) : value

/** Two members that are neighbours have changed places, in every object that has them side by side. */
const swappedNeighbours: Vary = function*({ view }) {
  const pairs = new Map<string, readonly [string, string]>()
  for (const paths of objectsIn(view.action)) {
    const names = entriesAt(view, paths).map(([name]) => name)
    for (const [index, second] of names.entries()) {
      const first = names[index - 1]
      if (first !== undefined) pairs.set(`${first},${second}`, [first, second])
    }
  }
  for (const [first, second] of pairs.values()) {
    yield {
      view: SignedView.withRewrite(
        view,
        rewriter({
          members: (all) =>
            all.map((entry, place) => {
              const [name] = entry
              const other = name === first ? all[place + 1] : name === second ? all[place - 1] : undefined
              return other !== undefined && other[0] === (name === first ? second : first) ? other : entry
            })
        })
      )
    }
  }
}

const droppedMembers: Vary = function*({ view }) {
  for (const paths of objectsIn(view.action)) {
    for (const [key] of entriesAt(view, paths)) {
      yield { view: edited(view, paths, ofMembers((all) => all.filter(([name]) => name !== key))) }
    }
  }
}

/** Optional members as null at their place in the venue's order, all together and each by itself. */
const addedNulls: Vary = function*({ view }) {
  const order = orderOf(view)
  if (order === undefined) return
  const addTo = (members: ActionOrder.ActionOrder, value: unknown, only?: string): unknown => {
    if (Array.isArray(value)) return value.map((item: unknown) => addTo(members, item, only))
    if (!Predicate.isReadonlyObject(value)) return value
    return Object.fromEntries(
      [...members].flatMap(([name, { members: inner, presence }]): Members =>
        Object.hasOwn(value, name)
          ? [[name, addTo(inner, value[name], only)]]
          : presence === "optional" && (only === undefined || only === name)
          ? [[name, null]]
          : []
      )
    )
  }
  const names = new Set<string>()
  const collect = (members: ActionOrder.ActionOrder): void => {
    for (const [name, { members: inner, presence }] of members) {
      if (presence === "optional") names.add(name)
      collect(inner)
    }
  }
  collect(order)
  for (const only of [...names, undefined]) {
    const action = addTo(order, view.action, only)
    if (Predicate.isReadonlyObject(action)) yield { view: { ...view, action } }
  }
}

const nullsDropped = rewriter({ members: (all) => all.filter(([, item]) => item !== null) })

// bytes

const hashOf = (...parts: ReadonlyArray<Uint8Array>): Hex => toHex(keccak256(concat(...parts)))

const noBytes = new Uint8Array(0)

const vaultBytes = (vault: unknown): Uint8Array => isAddress(vault) ? fromHex(vault) : noBytes

/** The bytes that follow the action, put together by hand. */
const tail =
  (write: (nonce: Uint8Array, vault: Uint8Array, expires: Uint8Array) => Uint8Array): View["hash"] =>
  (value, { expiresAfter, nonce, vaultAddress }) =>
    Result.map(
      MsgPack.encode(value),
      (encoded) =>
        hashOf(
          encoded,
          write(
            uint64Bytes(BigInt(nonce)),
            vaultBytes(vaultAddress),
            expiresAfter === null || expiresAfter === undefined ? noBytes : uint64Bytes(BigInt(expiresAfter))
          )
        )
    )

const marked = (marker: number, bytes: Uint8Array): Uint8Array =>
  bytes.length === 0 ? noBytes : concat(Uint8Array.of(marker), bytes)

const vaultMarked = (vault: Uint8Array): Uint8Array => vault.length === 0 ? Uint8Array.of(0) : marked(1, vault)

/** The hash of a published sample: vault before nonce, zeros for no vault, no markers. */
const documentedHash = tail((nonce, vault) => concat(vault.length === 0 ? new Uint8Array(20) : vault, nonce))

const withoutVaultMarker = tail((nonce, vault, expires) => concat(nonce, vault, marked(0, expires)))

const withoutExpiryMarker = tail((nonce, vault, expires) => concat(nonce, vaultMarked(vault), expires))

const float64 = (value: number): Uint8Array => {
  const bytes = new Uint8Array(9)
  const view = new DataView(bytes.buffer)
  view.setUint8(0, 0xcb)
  view.setFloat64(1, value)
  return bytes
}

/**
 * The hash with some integers as doubles.
 *
 * The encoder writes none so. They get a half, which it writes as a double, and then lose the half again.
 */
const floatHash = (integers: ReadonlyArray<number>): View["hash"] => (value, context) =>
  Result.map(ActionHash.preimage(value, context), (bytes) => {
    const hex = integers.reduce(
      (text, integer) => text.replaceAll(toHex(float64(integer + 0.5)).slice(2), toHex(float64(integer)).slice(2)),
      toHex(bytes).slice(2)
    )
    return toHex(keccak256(fromHex(`0x${hex}`)))
  })

const halvable = 2 ** 51

const integersAsFloats: Vary = function*({ view }) {
  const leaves = leavesIn(view, "integer", "id").flatMap(({ path, value }) =>
    Predicate.isNumber(value) && Math.abs(value) < halvable ? [{ path, value }] : []
  )
  const large = leaves.filter(({ value }) => value > 0xffff_ffff)
  for (const group of [large, leaves, ...leaves.slice(0, maxLeaves).map((leaf) => [leaf])]) {
    const [first] = group
    if (first === undefined) continue
    const paths = group.map(({ path }) => path)
    const floating = edited(view, paths, (value) => Predicate.isNumber(value) ? value + 0.5 : value)
    yield {
      view: { ...floating, hash: floatHash(group.map(({ value }) => value)) },
      finding: {
        path: [...SignedView.actionPath(view), ...first.path],
        found: `${first.value}.0`,
        expected: String(first.value)
      }
    }
  }
}

const personal = (digest: Uint8Array): Hex => hashOf(Utf8.encode("\u0019Ethereum Signed Message:\n32"), digest)

/** The connection id or the wrapper's hash, which the typed data holds. */
const hashIn = (signable: Signable.Signable): Uint8Array => {
  const found = signable.members.find(({ type }) => type === "bytes32")
  return found?.type === "bytes32" ? fromHex(found.value) : Signable.digestBytes(signable)
}

// times

/** Slips in a nonce: one digit off by one, neighbouring digits swapped. */
const nonceSlips = (nonce: bigint): ReadonlyArray<bigint> => {
  const digits = nonce.toString()
  const oneOff = Array.from(digits, (_, place) => 10n ** BigInt(place)).flatMap((step) => [nonce + step, nonce - step])
  const swapped = Array.from(
    digits.slice(1),
    (second, place) =>
      BigInt(`${digits.slice(0, place)}${second}${digits.slice(place, place + 1)}${digits.slice(place + 2)}`)
  )
  return [nonce / 1000n * 1000n, ...oneOff, ...swapped]
}

const nonceField = (view: View): ActionForm.Path => {
  const key = SignedView.nonceKey(view)
  return key === undefined || !isUserSigned(view) ? ["nonce"] : ["action", key]
}

const nonces = (slips: (nonce: bigint) => ReadonlyArray<bigint>): Vary => ({ request, view }) => {
  const right = BigInt(request.nonce)
  return slips(right).filter((nonce) => nonce >= 0n).map((nonce) => ({
    view: SignedView.withNonce(view, nonce),
    finding: {
      path: nonceField(view),
      found: String(nonce),
      expected: String(right)
    }
  }))
}

/** Lifetimes in seconds that programs give their actions; one that was signed but not sent can only be guessed. */
const lifetimes = [5, 10, 15, 20, 30, 60, 120, 300, 600, 3600]

const withContext = (view: View, change: Partial<ActionHash.HashContext>): View => ({
  ...view,
  context: { ...view.context, ...change }
})

const isGiven = (value: unknown): value is string | number | bigint => value !== undefined && value !== null

const zeroAddress = "0x0000000000000000000000000000000000000000"

// typed data

/** Chains that wallets are connected to: Ethereum, the venue's two, Arbitrum, its test network, Base, the L1 agent's. */
const walletChains = ["0x1", "0x3e7", "0x3e6", "0xa4b1", "0x66eee", "0x2105", "0x539"]

type Reshape = View["reshape"]

const reshaped = (view: View, reshape: Reshape, finding: Omit<Mistake, "mistake">): Slip => ({
  view: { ...view, reshape },
  finding
})

/** The typed data of a view; `undefined` where there is none. */
const typedOf = ({ part, request, view }: Subject): Signable.Signable | undefined => {
  let seen: Signable.Signable | undefined
  const spy: View = {
    ...view,
    digest: (signable) => {
      seen = signable
      return "0x"
    }
  }
  SignedView.digestOf(spy, part, request.action)
  return seen
}

const domainSlips = (
  changes: (domain: Signable.Domain) => ReadonlyArray<Pick<Signable.Domain, "name" | "chainId">>,
  shown: (domain: Pick<Signable.Domain, "name" | "chainId">) => string,
  path: (view: View) => ActionForm.Path
): Vary =>
(subject) => {
  const typed = typedOf(subject)
  if (typed === undefined) return []
  return changes(typed.domain).map(({ chainId, name }) =>
    reshaped(subject.view, (signable) => ({ ...signable, domain: Signable.domain(name, chainId) }), {
      path: path(subject.view),
      found: shown({ chainId, name }),
      expected: shown(typed.domain)
    })
  )
}

const isUserSigned = (view: View): boolean => UserSigned.find(view.action["type"]) !== undefined

const chainSlips: Vary = (subject) =>
  isUserSigned(subject.view) || subject.view.wrapper !== undefined
    ? walletChains.map((id) => ({
      view: SignedView.withChainId(subject.view, id),
      finding: {
        path: subject.part === "outer" ? ["action", "signatureChainId"] : [
          ...SignedView.actionPath(subject.view),
          "signatureChainId"
        ],
        found: id,
        expected: String(
          subject.part === "outer" && subject.view.wrapper !== undefined
            ? subject.view.wrapper.signatureChainId
            : subject.view.action["signatureChainId"]
        )
      }
    }))
    : domainSlips(
      ({ name }) => walletChains.map((id) => ({ name, chainId: Number(id) })),
      ({ chainId }) => `chainId ${chainId}`,
      () => []
    )(subject)

const structSlips = (
  change: (struct: Signable.StructType, signable: Signable.Signable, subject: Subject) => Iterable<{
    readonly primaryType?: string
    readonly fields?: ReadonlyArray<Signable.NamedType>
    readonly members?: ReadonlyArray<Signable.Member>
    readonly found: string
    readonly expected: string
    readonly path?: ActionForm.Path
  }>
): Vary =>
  function*(subject) {
    const typed = typedOf(subject)
    if (typed === undefined) return
    const { fields, primaryType } = typed.struct
    for (const slip of change(typed.struct, typed, subject)) {
      const struct = Signable.structType(slip.primaryType ?? primaryType, slip.fields ?? fields)
      const { members } = slip
      yield reshaped(
        subject.view,
        (signable) => ({ ...signable, struct, ...(members === undefined ? {} : { members }) }),
        { path: slip.path ?? [], found: slip.found, expected: slip.expected }
      )
    }
  }

const capitalized = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`

const primaryTypes = structSlips(({ primaryType }, _signable, { view }) => {
  const { typePrefix } = view.profile
  const own = capitalized(String(view.action["type"]))
  const bare = primaryType.replace(typePrefix, "")
  return [...new Set([bare, `${typePrefix}${own}`, own, `${typePrefix}${bare}`])]
    .filter((name) => name !== primaryType)
    .map((name) => ({ primaryType: name, found: name, expected: primaryType }))
})

const fieldNames = (fields: ReadonlyArray<Signable.NamedType>): string => fields.map(({ name }) => name).join(", ")

const byName = (fields: ReadonlyArray<Signable.NamedType>, members: ReadonlyArray<Signable.Member>) =>
  fields.flatMap(({ name }) => members.filter((member) => member.name === name))

const fieldSets = structSlips(function*({ fields }, { members }, { request, view }) {
  const all: Array<ReadonlyArray<Signable.NamedType>> = fields.map((left) => fields.filter((field) => field !== left))
  const sentKeys = Predicate.isObject(request.action) ? Object.keys(request.action) : []
  all.push(
    fields.toSorted((a, b) => sentKeys.indexOf(a.name) - sentKeys.indexOf(b.name)),
    fields.toSorted((a, b) => a.name < b.name ? -1 : 1)
  )
  for (let index = 1; index < fields.length; index++) {
    all.push(
      fields.map((field, place) =>
        place === index ? fields[index - 1] ?? field : place === index - 1 ? fields[index] ?? field : field
      )
    )
  }
  for (const changed of all) {
    yield {
      fields: changed,
      members: byName(changed, members),
      found: fieldNames(changed),
      expected: fieldNames(fields)
    }
  }
  for (const name of ["signatureChainId", "type"]) {
    const value = view.action[name]
    if (!Predicate.isString(value)) continue
    const extra = { name, type: "string" } as const
    for (
      const [changed, shown] of [
        [[extra, ...fields], [{ ...extra, value }, ...members]],
        [[...fields, extra], [...members, { ...extra, value }]]
      ] as const
    ) {
      yield { fields: changed, members: shown, found: fieldNames(changed), expected: fieldNames(fields) }
    }
  }
})

const otherTypes: { readonly [Type in Signable.Member["type"]]: ReadonlyArray<string> } = {
  string: ["address", "bytes32", "bytes"],
  bool: ["uint8", "string"],
  uint32: ["uint64", "uint256", "string"],
  uint64: ["uint256", "uint32", "int64", "uint128", "string"],
  address: ["string", "bytes32", "bytes"],
  bytes: ["string"],
  bytes32: ["string", "bytes"]
}

/** The member as a field of another type holds it; `undefined` where its value cannot be one. */
const asType = (member: Signable.Member, type: string): Signable.Member | undefined => {
  const { name, value } = member
  if (type === "string") return { name, type, value: String(value) }
  if (type === "address") return isAddress(value) ? { name, type, value } : undefined
  if (type === "bytes" || type === "bytes32") {
    return Predicate.isString(value) && /^0x(?:[0-9a-fA-F]{2})+$/.test(value) &&
        (type === "bytes" || value.length === 66)
      ? { name, type, value: `0x${value.slice(2)}` }
      : undefined
  }
  // a number of any width fills the same word, and so does a flag
  return member.type === "string" || member.type === "address" ? undefined : member
}

/** One field under another type, and all of its type. */
const fieldTypes = structSlips(function*({ fields }, { members }) {
  for (const [index, field] of fields.entries()) {
    const member = members[index]
    if (member === undefined) continue
    for (const type of otherTypes[member.type]) {
      const alike = fields.flatMap((other, at) => other.type === field.type ? [at] : [])
      for (const changed of alike.length > 1 && alike[0] === index ? [[index], alike] : [[index]]) {
        const others = members.map((each, at) => changed.includes(at) ? asType(each, type) : each)
        const whole = others.filter((each) => each !== undefined)
        if (whole.length < others.length) continue
        yield {
          fields: fields.map((each, at) => changed.includes(at) ? { name: each.name, type } : each),
          members: whole,
          found: changed.map((at) => `${type} ${fields[at]?.name ?? ""}`).join(", "),
          expected: changed.map((at) => `${field.type} ${fields[at]?.name ?? ""}`).join(", ")
        }
      }
    }
  }
})

/** Most likely first. */
const variations: ReadonlyArray<Variation> = [
  paired("otherNetwork", ({ view }) => [{
    view: SignedView.withProfile(view, otherThan(view.profile)),
    finding: { path: [], found: otherThan(view.profile).name, expected: view.profile.name }
  }]),
  paired("vaultNotSigned", ({ view }) =>
    isGiven(view.context.vaultAddress)
      ? [{
        view: withContext(view, { vaultAddress: null }),
        finding: { path: ["vaultAddress"], expected: view.context.vaultAddress }
      }]
      : []),
  paired("expiresAfterNotSigned", ({ view }) =>
    isGiven(view.context.expiresAfter)
      ? [{
        view: withContext(view, { expiresAfter: null }),
        finding: { path: ["expiresAfter"], expected: String(view.context.expiresAfter) }
      }]
      : []),
  paired("untrimmedSignature", rewriting(signaturesAsSent, signaturesPadded)),
  paired(
    "letterCase",
    rewriting(
      rewriter({ leaf: (value, sent) => sameHex(value, sent) && isAddress(value) ? sent : value }),
      rewriter({ leaf: (value) => isAddress(value) ? value.toLowerCase() : value })
    )
  ),
  paired(
    "chainIdText",
    // as whole bytes, in the second
    rewriting(chainIds((id) => id), chainIds((id) => id.length % 2 === 0 ? id : `0x0${id.slice(2)}`))
  ),
  paired("fieldOrder", rewriting(keysAsSent, sortedKeys)),
  paired("nullDropped", rewriting(nullsDropped)),
  paired("typeHashed", ({ part, view }) =>
    view.wrapper === undefined || part === "inner" ? [] : [{
      view: SignedView.withRewrite(view, (value) => Predicate.isObject(value) ? { type: "multiSig", ...value } : value)
    }]),
  paired("notWrapped", ({ view }) => [{ view: { ...view, wrapped: false }, finding: { path: [] } }]),
  paired("documentedChainField", ({ view }) => [{
    view: SignedView.withProfile(view, { ...view.profile, chainField: documentedChainField }),
    finding: {
      path: [...SignedView.actionPath(view), view.profile.chainField],
      found: documentedChainField,
      expected: view.profile.chainField
    }
  }]),
  alone("trailingZero", spelling(decimalsIn, ...trailingZeros)),
  alone("valueType", spelling(decimalsIn, numberOf)),
  alone("valueType", spelling((view) => leavesIn(view, "integer", "id"), textOf)),
  alone("integerAsFloat", integersAsFloats),
  alone("letterCase", spelling(addressesIn, ofText(checksummed), ofText(upperCase))),
  alone("nullHashed", addedNulls),
  alone("timeUnit", nonces((nonce) => [nonce / 1000n, nonce * 1000n, nonce * 1_000_000n])),
  alone("hashSigned", ({ view }) => [{
    view: { ...view, digest: (signable) => toHex(hashIn(signable)) },
    finding: { path: [] }
  }]),
  alone("personalSign", ({ view }) => [
    { view: { ...view, digest: (signable) => personal(Signable.digestBytes(signable)) }, finding: { path: [] } },
    { view: { ...view, digest: (signable) => personal(hashIn(signable)) }, finding: { path: [] } }
  ]),
  alone("documentedPreimage", ({ view }) => [{ view: { ...view, hash: documentedHash }, finding: { path: [] } }]),
  // without a vault, the byte that is missing before an expiry may be either marker
  alone("vaultMarker", ({ view }) =>
    isGiven(view.context.expiresAfter) && !isGiven(view.context.vaultAddress)
      ? []
      : [{ view: { ...view, hash: withoutVaultMarker }, finding: { path: ["vaultAddress"] } }]),
  alone("expiresAfterMarker", ({ view }) =>
    isGiven(view.context.expiresAfter)
      ? [{ view: { ...view, hash: withoutExpiryMarker }, finding: { path: ["expiresAfter"] } }]
      : []),
  alone("otherChainId", chainSlips),
  alone(
    "otherDomain",
    domainSlips(
      ({ chainId, name }) =>
        ["HyperliquidSignTransaction", "Exchange"].flatMap((other) =>
          [Number(chainId), 421_614, 1337].map((id) => ({ name: other, chainId: id }))
        ).filter((domain) => domain.name !== name),
      ({ chainId, name }) => `${name}, chainId ${chainId}`,
      () => []
    )
  ),
  alone("primaryType", primaryTypes),
  alone("typeFields", fieldSets),
  alone("fieldType", fieldTypes),
  alone("otherScheme", ({ part, view }) =>
    isUserSigned(view) && (view.wrapper === undefined || part === "inner")
      ? [{ view: { ...view, asL1: true }, finding: { path: [] } }, {
        view: { ...SignedView.withRewrite(view, keysAsSent), asL1: true },
        finding: { path: [] }
      }]
      : []),
  alone("fieldOrder", rewriting(typeLast)),
  alone("fieldOrder", swappedNeighbours),
  alone("memberNotSigned", droppedMembers),
  alone("decimalText", spelling(decimalsIn, exponent, longExponent, ofText((text) => text.replace(/^0\./, ".")))),
  alone("jsonText", spelling((view) => leavesIn(view, "json"), jsonIn, spacedJson)),
  alone("unicodeForm", rewriting(normalized("NFC"), normalized("NFD"))),
  alone("roundedInteger", spelling((view) => leavesIn(view, "integer"), rounded)),
  alone("vaultNotSent", ({ known, view }) =>
    isGiven(view.context.vaultAddress)
      ? []
      : [...known, zeroAddress].map((vaultAddress) => ({
        view: withContext(view, { vaultAddress }),
        finding: { path: ["vaultAddress"], found: vaultAddress }
      }))),
  alone("expiresAfterNotSent", ({ request: { nonce }, view }) =>
    isGiven(view.context.expiresAfter)
      ? []
      : lifetimes.map((seconds) => {
        const expiresAfter = BigInt(nonce) + BigInt(seconds) * 1000n
        return {
          view: withContext(view, { expiresAfter }),
          finding: { path: ["expiresAfter"], found: String(expiresAfter) }
        }
      })),
  alone("otherNonce", nonces((nonce) => [nonce, ...nonceSlips(nonce)])),
  alone("roundedInteger", unrounded)
]

interface Step {
  readonly mistakes: () => ReadonlyArray<Mistake>
  readonly view: View
}

function* stepsFrom(step: Step, tried: ReadonlyArray<Variation>, subject: Omit<Subject, "view">): Generator<Step> {
  const { part, request } = subject
  for (const { mistake, vary } of tried) {
    for (const { finding, view } of vary({ ...subject, view: step.view })) {
      const found = () =>
        finding === undefined
          ? SignedView.mistakesBetween(mistake, view, step.view, part, request.action)
          : [{ mistake, ...finding }]
      yield { mistakes: () => [...step.mistakes(), ...found()], view }
    }
  }
}

/** Bytes that may be hashed in all: every reading hashes the whole action, and a caller chooses how large it is. */
const maxHashed = 512 * 1024

/** The largest action that is searched, in bytes as it is hashed; one reading of it takes some milliseconds. */
const maxSearched = 16 * 1024

const readingsOf = ({ action }: CanonicalAction): number =>
  Result.match(MsgPack.encode(action), {
    onFailure: () => 0,
    onSuccess: ({ length }) => length > maxSearched ? 0 : Math.floor(maxHashed / length)
  })

/**
 * The readings of a request, most likely first: every mistake alone, then some in pairs. Each digest comes once, and never
 * the right one. The larger the action, the fewer readings. A step without a new digest gives `undefined`: whoever reads can
 * let others run after each.
 *
 * `canonical` is the action in the venue's form; the action of `request` is the one that was sent, with its order of keys.
 * `known` are addresses that may have been signed as the vault: that of an API wallet's owner.
 */
export function* readings(
  profile: VenueProfile,
  canonical: CanonicalAction,
  request: SignedRequest,
  part: Part,
  known: ReadonlyArray<string>
): Generator<SignedReading | undefined> {
  let left = readingsOf(canonical)
  if (left === 0) return
  const start: Step = { mistakes: () => [], view: SignedView.right(profile, canonical, request) }
  const subject = { request, part, known }
  const seen = new Set([Result.getOrUndefined(SignedView.digestOf(start.view, part, request.action))])
  const telling = variations.filter(({ pairs }) => pairs)
  const inPairs = function*() {
    for (const [index, first] of telling.entries()) {
      for (const step of stepsFrom(start, [first], subject)) {
        yield* stepsFrom(step, telling.slice(index + 1), subject)
      }
    }
  }
  for (const steps of [stepsFrom(start, variations, subject), inPairs()]) {
    for (const { mistakes, view } of steps) {
      if (left-- <= 0) return
      const digest = Result.getOrUndefined(SignedView.digestOf(view, part, request.action))
      if (digest !== undefined && !seen.has(digest)) {
        seen.add(digest)
        yield { mistakes, digest }
      } else {
        yield undefined
      }
    }
  }
}
