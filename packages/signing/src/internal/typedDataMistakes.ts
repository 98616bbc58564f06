/** Mistakes in the typed data of a wallet: another domain, phantom agent, primary type or fields than the venue's. */
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { encodeQuantity } from "@trigate/domain/encoding/Encoding"
import * as Predicate from "effect/Predicate"
import * as ActionForm from "../actions/ActionForm.ts"
import * as Signable from "../actions/ActionHash.ts"
import { fromHex, isAddress, isBytes, keccak256, toHex } from "../actions/ActionHash.ts"
import * as UserSigned from "../actions/CanonicalAction.ts"
import * as SignedView from "../inspection/SignedView.ts"
import { chainName, walletChains } from "../inspection/SignedView.ts"
import { defaultChainId } from "../VenueProfile.ts"
import { actionOrder, isHashed, isUserSigned, reshaped, subjectTypedData } from "./memberMistakes.ts"
import type { MistakenView, Subject, Vary } from "./memberMistakes.ts"

interface OtherDomain {
  readonly found: string
  readonly expected: string
  readonly domain: Signable.Domain
}

interface DomainParts {
  readonly name: string
  readonly chainId: number | bigint
  readonly version?: string
  readonly contract?: `0x${string}`
  readonly without?: ReadonlyArray<string>
  readonly chainIdType?: string
  readonly salt?: `0x${string}`
}

const cachedDomains = 256

const domains = new Map<string, Signable.Domain>()

/**
 * Returns the domain with the given parts, from a cache if possible. The cache is limited, because callers choose the
 * chain ID.
 */
export const encodeDomain = (parts: DomainParts): Signable.Domain => {
  const { chainId, chainIdType = "", contract = "", name, salt = "", version = "1", without = [] } = parts
  const key = [name, chainId, version, contract, chainIdType, salt, ...without].join("\n")
  const known = domains.get(key)
  if (known !== undefined) return known
  const made = makeDomain(parts)
  if (domains.size < cachedDomains) domains.set(key, made)
  return made
}

const makeDomain = (
  { chainId, chainIdType = "uint256", contract = Signable.verifyingContract, name, salt, version = "1", without = [] }:
    DomainParts
) => {
  const members: ReadonlyArray<Signable.Member> = [
    { name: "name", type: "string", value: name },
    { name: "version", type: "string", value: version },
    { name: "chainId", type: "uint64", value: chainId },
    { name: "verifyingContract", type: "address", value: contract }
  ]
  const salts: ReadonlyArray<Signable.Member> = salt === undefined ? [] : [
    { name: "salt", type: "bytes32", value: salt }
  ]
  const isThere = ({ name }: { readonly name: string }) => !without.includes(name)
  const fields = [...Signable.domainFields, ...salts].map(({ name, type }) => ({
    name,
    type: name === "chainId" ? chainIdType : type
  }))
  return Signable.domainWith(fields.filter(isThere), [...members, ...salts].filter(isThere), { name, chainId })
}

const shownDomain = ({ chainId, name }: Pick<Signable.Domain, "name" | "chainId">): string =>
  `${name}, chainId ${chainId}`

const otherNames = [
  "Hyperliquid",
  "HyperLiquid",
  "hyperliquid",
  "exchange",
  "Agent",
  "HyperliquidTransaction",
  "HyperliquidSignTx",
  "hyperliquidSignTransaction",
  "Hyperliquid Exchange",
  "HyperliquidExchange",
  ""
]

/** Generates common wrong variants of one of the venue's two EIP-712 domains. */
function* otherDomains({ chainId, name }: Signable.Domain): Generator<OtherDomain> {
  const right = { name, chainId }
  const other = name === "Exchange" ? "HyperliquidSignTransaction" : "Exchange"
  const ids = [...(name === "Exchange" ? [] : [1337, Number(chainId)]), 42_161, 421_614, 1337, 1, 999, 421_613, 998]
  const made = (change: Partial<DomainParts>, found: string, expected: string): OtherDomain => ({
    found,
    expected,
    domain: encodeDomain({ ...right, ...change })
  })
  const named = (change: Partial<typeof right>) =>
    made(change, shownDomain({ ...right, ...change }), shownDomain(right))
  for (const id of new Set(ids)) yield named({ name: other, chainId: id })
  for (const version of ["2", "1.0", "1.0.0", "0", "", "v1", "0.1", "3"]) {
    yield made({ version }, `version "${version}"`, "version \"1\"")
  }
  for (const without of withoutFields) {
    yield made({ without }, `without ${without.join(" and ")}`, "name, version, chainId and verifyingContract")
  }
  for (const chainIdType of ["uint64", "uint32"]) {
    yield made({ chainIdType }, `${chainIdType} chainId`, "uint256 chainId")
  }
  yield made({ salt: noSalt }, "with a salt", "no salt")
  for (const each of otherNames) if (each !== name) yield named({ name: each })
  for (const contract of otherContracts) {
    yield made({ contract }, `verifyingContract ${contract}`, `verifyingContract ${Signable.verifyingContract}`)
  }
}

const noSalt = `0x${"0".repeat(64)}` as const

const withoutFields = [
  ["verifyingContract"],
  ["version"],
  ["chainId"],
  ["verifyingContract", "version"],
  ["verifyingContract", "chainId"]
]

const otherContracts = [
  "0x0000000000000000000000000000000000000001",
  "0xffffffffffffffffffffffffffffffffffffffff",
  "0xcccccccccccccccccccccccccccccccccccccccc",
  "0x2df1c51e09aecf9cacb7bc98cb1742757f163df7",
  "0x3333333333333333333333333333333333333333"
] as const

const inDomain = ({ view }: Subject, { domain, expected, found }: OtherDomain): MistakenView =>
  reshaped(view, (signable) => ({ ...signable, domain }), { path: [], found, expected })

/** Generates signing hypotheses whose domain has another name, chain ID, version or contract, or fewer fields. */
export const domainMistakes: Vary = function*(subject) {
  const typed = subjectTypedData(subject)
  if (typed === undefined) return
  for (const other of otherDomains(typed.domain)) yield inDomain(subject, other)
}

/**
 * Generates signing hypotheses whose EIP-712 domain has the chain ID of a chain to which wallets often connect. In a
 * multi-sig wrapper, the chain ID is also part of the hashed value.
 */
export const chainMistakes: Vary = function*(subject) {
  const { part, view } = subject
  const typed = subjectTypedData(subject)
  if (typed === undefined) return
  const { chainId, name } = typed.domain
  const isAgent = isHashed(subject)
  const path = isAgent
    ? []
    : part === "outer"
    ? ["action", "signatureChainId"]
    : [...SignedView.actionPath(view), "signatureChainId"]
  for (const { id } of walletChains) {
    if (BigInt(id) === BigInt(chainId)) continue
    const finding = isAgent
      ? { path, found: `chainId ${chainName(id)}`, expected: `chainId ${chainId}` }
      : { path, found: `${encodeQuantity(id)} (${chainName(id)})`, expected: encodeQuantity(Number(chainId)) }
    yield reshaped(view, (signable) => ({ ...signable, domain: encodeDomain({ name, chainId: id }) }), finding)
    if (part === "outer" && view.wrapper !== undefined) {
      yield { view: SignedView.withChainId(view, encodeQuantity(id)), finding }
    }
  }
}

const sources = ["A", "B", "Mainnet", "Testnet", "mainnet", "testnet", "", "c", "1", "0"]

/** Other names of the venue's networks. */
const networks = [
  "mainnet",
  "testnet",
  "MAINNET",
  "TESTNET",
  "a",
  "b",
  "",
  "Hyperliquid",
  "HyperliquidMainnet",
  "HyperliquidTestnet",
  "Arbitrum",
  "ArbitrumTestnet"
]

/**
 * Generates signing hypotheses whose typed data name the network wrongly: the `source` of the phantom agent, or the
 * network field of a user-signed action.
 */
export const networkNames: Vary = function*(subject) {
  const { view } = subject
  const [field, right, others] = isHashed(subject)
    ? ["source", view.profile.source, sources] as const
    : [view.profile.chainField, view.profile.chainName, networks] as const
  for (const other of others) {
    if (other === right) continue
    yield reshaped(view, (signable) => ({
      ...signable,
      members: signable.members.map((member) =>
        member.name === field && member.type === "string" ? { ...member, value: other } : member
      )
    }), { path: [], found: `${field} "${other}"`, expected: `${field} ${right}` })
  }
}

/** Returns the message type of the given members, in their order. */
const memberStruct = (primaryType: string, members: ReadonlyArray<Signable.Member>): Signable.StructType =>
  Signable.structType(primaryType, members.map(({ name, type }) => ({ name, type })))

const fieldTypesByKind: { readonly [kind: string]: Signable.Member["type"] } = {
  integer: "uint64",
  flag: "bool",
  address: "address"
}

/**
 * Generates signing hypotheses in which an L1 action was signed like a user-signed action: the typed data contain the
 * action's members, with guessed types.
 */
export const typedActions: Vary = function*(subject) {
  const { request, view } = subject
  if (!isHashed(subject)) return
  const order = actionOrder(view)
  const { chainField, chainName: chain, typePrefix, userSignedDomain } = view.profile
  const type = view.action["type"]
  if (order === undefined || !Predicate.isString(type)) return
  const leaves = ActionForm.listLeaves(order, view.action).filter(({ path }) => path[0] !== "type")
  if (leaves.some(({ path }) => path.length > 1)) return
  const own = leaves.flatMap(({ kind, path, value }) =>
    toMember(String(path[0]), fieldTypesByKind[kind] ?? "string", value) ?? []
  )
  const chainMember: Signable.Member = { name: chainField, type: "string", value: chain }
  const typeMember: Signable.Member = { name: "type", type: "string", value: type }
  const nonce = BigInt(request.nonce)
  for (const before of [[chainMember], [], [chainMember, typeMember], [typeMember]]) {
    for (const after of ["nonce", "time", undefined]) {
      if (after !== undefined && own.some(({ name }) => name === after)) continue
      const last = after === undefined ? [] : [{ name: after, type: "uint64" as const, value: nonce }]
      const members = [...before, ...own, ...last]
      const struct = memberStruct(`${typePrefix}${capitalized(type)}`, members)
      for (const id of [Number(defaultChainId), 42_161, 1, 999]) {
        yield {
          view: {
            ...view,
            asTyped: () => ({ domain: encodeDomain({ name: userSignedDomain, chainId: id }), struct, members })
          },
          finding: {
            path: [],
            found: "typed data of the action's members",
            expected: "an Agent that contains the hash of the L1 action"
          }
        }
      }
    }
  }
}

const structMistakes = (
  change: (struct: Signable.StructType, signable: Signable.Signable, subject: Subject) => Iterable<{
    readonly primaryType?: string
    readonly fields?: ReadonlyArray<Signable.NamedType>
    /** Changes the values of the typed data's fields in the same way as `fields` changes their declarations. */
    readonly members?: (members: ReadonlyArray<Signable.Member>) => ReadonlyArray<Signable.Member>
    readonly found: string
    readonly expected: string
    readonly path?: ActionForm.Path
  }>
): Vary =>
  function*(subject) {
    const typed = subjectTypedData(subject)
    if (typed === undefined) return
    const { fields, primaryType } = typed.struct
    for (const mistake of change(typed.struct, typed, subject)) {
      const struct = Signable.structType(mistake.primaryType ?? primaryType, mistake.fields ?? fields)
      const { members } = mistake
      yield reshaped(
        subject.view,
        (signable) => ({ ...signable, struct, members: members?.(signable.members) ?? signable.members }),
        { path: mistake.path ?? [], found: mistake.found, expected: mistake.expected }
      )
    }
  }

const capitalized = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`

export const primaryTypes = structMistakes(({ primaryType }, _signable, { view }) => {
  const { typePrefix } = view.profile
  const own = capitalized(String(view.action["type"]))
  const bare = primaryType.replace(typePrefix, "")
  const without = own.replace(/[0-9]+$/, "")
  return [
    ...new Set([
      bare,
      `${typePrefix}${own}`,
      own,
      `${typePrefix}${bare}`,
      `${typePrefix}${without}`,
      `${typePrefix}${String(view.action["type"])}`,
      String(view.action["type"]),
      `${typePrefix}${bare.toLowerCase()}`,
      primaryType.toLowerCase(),
      `${typePrefix.replace(":", "")}${bare}`,
      `${typePrefix.replace(":", "_")}${bare}`,
      `Hyperliquid:${bare}`,
      ...(bare === "Agent" ? ["PhantomAgent", "agent", "Exchange", "HyperliquidTransaction"] : [])
    ])
  ]
    .filter((name) => name !== primaryType)
    .map((name) => ({ primaryType: name, found: name, expected: primaryType }))
})

/** Returns the only element of a list that passes a test; `undefined` if none or several pass. */
const onlyOne = <A>(all: ReadonlyArray<A>, test: (each: A) => boolean): A | undefined => {
  const found = all.filter(test)
  return found.length === 1 ? found[0] : undefined
}

/** The values of unset fields of a struct. */
const zeros: { readonly [Type in Signable.Field["type"]]: Signable.Member["value"] } = {
  string: "",
  bool: false,
  uint32: 0,
  uint64: 0,
  address: Signable.verifyingContract,
  bytes: "0x",
  bytes32: noSalt
}

/**
 * Returns a field of another type of typed data with a value of the given members: the value of the same name, of the
 * same meaning, or the only value of the same type. Otherwise returns it with the value of a field that was not set.
 */
const filled = (
  members: ReadonlyArray<Signable.Member>,
  { name, type }: Signable.Field
): Signable.Member | undefined => {
  const isTime = name === "nonce" || name === "time"
  const value = members.find((member) => member.name === name)?.value ??
    (isTime ? members.find((member) => member.name === "nonce" || member.name === "time")?.value : undefined) ??
    onlyOne(members, (member) => member.type === type && type !== "string")?.value ??
    zeros[type]
  return toMember(name, type, value)
}

/**
 * Generates signing hypotheses in which a user-signed action was signed under the type of another one: with its own
 * fields, then with the fields of the other type.
 */
export const otherActionTypes = structMistakes(function*({ fields, primaryType }, { members }, { view }) {
  if (!primaryType.startsWith(view.profile.typePrefix)) return
  for (const type of Object.values(UserSigned.types)) {
    const other = UserSigned.struct(view.profile)(type)
    const found = `${other.primaryType}, the type of ${type.actionType}`
    if (other.primaryType === primaryType) continue
    yield { primaryType: other.primaryType, found, expected: primaryType }
    if (fieldNames(other.fields) === fieldNames(fields)) continue
    const own = type.fields.map((field) => filled(members, field))
    if (own.includes(undefined)) continue
    const [chain] = members
    const all = [...(chain === undefined ? [] : [chain]), ...own.flatMap((each) => each === undefined ? [] : [each])]
    yield {
      primaryType: other.primaryType,
      fields: other.fields,
      members: () => all,
      found: `${found}, with its fields ${fieldNames(other.fields)}`,
      expected: primaryType
    }
  }
})

/** The domains of user-signed actions in SDK versions of before May 2024. */
const olderChains = [42_161, 421_614, 421_613, 1337]

/** The `source` with which these versions signed an agent. */
const olderSource = "https://hyperliquid.xyz"

interface OlderType {
  readonly primaryType: string
  readonly members: ReadonlyArray<Signable.Member>
}

const text = (name: string, value: string): Signable.Member => ({ name, type: "string", value })

const word = (hex: string): string => hex.slice(2).toLowerCase().padStart(64, "0")

/** Encodes an address, or an address and a name, like the ABI of contracts. */
const agentWords = (address: string, name: string | undefined): ReadonlyArray<string> =>
  name === undefined
    ? [word(address)]
    : [
      word(address),
      word("0x40"),
      word(`0x${Utf8.encode(name).length.toString(16)}`),
      toHex(Utf8.encode(name)).slice(2).padEnd(Math.ceil(Utf8.encode(name).length / 32) * 64, "0")
    ]

/**
 * Returns the typed data of an action in SDK versions of before May 2024, which signed a transfer, a withdrawal and an
 * approval of an agent under types without a network.
 */
const olderTypes = (action: Readonly<Record<string, unknown>>): ReadonlyArray<OlderType> => {
  const { agentAddress, agentName, amount, destination } = action
  const made = (primaryType: string, members: ReadonlyArray<Signable.Member>): OlderType => ({ primaryType, members })
  if (isAddress(agentAddress)) {
    const names = [undefined, ...(Predicate.isString(agentName) ? [agentName] : [])]
    return names.map((name) =>
      made("Agent", [
        text("source", olderSource),
        {
          name: "connectionId",
          type: "bytes32",
          value: toHex(keccak256(fromHex(`0x${agentWords(agentAddress, name).join("")}`)))
        }
      ])
    )
  }
  const time = action["time"] ?? action["nonce"]
  if (!Predicate.isString(destination) || !Predicate.isString(amount)) return []
  if (!Predicate.isNumber(time) && !Predicate.isBigInt(time)) return []
  const last: Signable.Member = { name: "time", type: "uint64", value: time }
  return [
    made("UsdTransferSignPayload", [text("destination", destination), text("amount", amount), last]),
    made("WithdrawFromBridge2SignPayload", [text("destination", destination), text("usd", amount), last])
  ]
}

/** Generates signing hypotheses with the types and domains of SDK versions of before May 2024. */
export const olderTypedData: Vary = function*(subject) {
  const typed = isUserSigned(subject.view) ? subjectTypedData(subject) : undefined
  if (typed === undefined) return
  for (const { members, primaryType } of olderTypes(subject.view.action)) {
    const struct = memberStruct(primaryType, members)
    const domains = [
      ...olderChains.map((chainId) => encodeDomain({ name: "Exchange", chainId })),
      typed.domain,
      ...olderChains.map((chainId) => encodeDomain({ name: typed.domain.name, chainId }))
    ]
    for (const domain of domains) {
      yield reshaped(subject.view, () => ({ domain, struct, members }), {
        path: [],
        found: `${primaryType} in the domain ${domain.name}, chainId ${domain.chainId}`,
        expected: `${typed.struct.primaryType} in the domain ${typed.domain.name}, chainId ${typed.domain.chainId}`
      })
    }
  }
}

/** Texts that programs sign for a value that is absent. */
const absentTexts = ["", "null", "None", "undefined", "nil", "none", "<nil>", Signable.verifyingContract]

/** Generates signing hypotheses in which an absent or empty text was signed as a text such as "null". */
export const absentFields = structMistakes(function*(_struct, { members }, { view }) {
  const nullable = UserSigned.find(view.action["type"])?.respelled ?? {}
  for (const { name, type, value } of members) {
    const isNullable = nullable[name]?.has(null) === true
    if (type !== "string" || !(value === "" || isNullable)) continue
    for (const other of absentTexts) {
      if (other === value) continue
      yield {
        members: (all) => all.map((each) => each.name === name ? text(name, other) : each),
        path: [...SignedView.actionPath(view), name],
        found: JSON.stringify(other),
        expected: JSON.stringify(value)
      }
    }
  }
})

const fieldNames = (fields: ReadonlyArray<Signable.NamedType>): string => fields.map(({ name }) => name).join(", ")

const byName = (fields: ReadonlyArray<Signable.NamedType>, members: ReadonlyArray<Signable.Member>) =>
  fields.flatMap(({ name }) => members.filter((member) => member.name === name))

export const fieldSets = structMistakes(function*({ fields }, _signable, { request, view }) {
  const all: Array<ReadonlyArray<Signable.NamedType>> = fields.map((left) => fields.filter((field) => field !== left))
  const sentKeys = Predicate.isObject(request.action) ? Object.keys(request.action) : []
  all.push(
    fields.toSorted((a, b) => sentKeys.indexOf(a.name) - sentKeys.indexOf(b.name)),
    fields.toSorted((a, b) => a.name < b.name ? -1 : 1),
    fields.toReversed(),
    [...fields.slice(1), ...fields.slice(0, 1)],
    [...fields.slice(-1), ...fields.slice(0, -1)]
  )
  for (const [index, left] of fields.entries()) {
    for (const other of fields.slice(index + 1)) all.push(fields.filter((field) => field !== left && field !== other))
  }
  for (let index = 1; index < fields.length; index++) {
    all.push(
      fields.map((field, place) =>
        place === index ? fields[index - 1] ?? field : place === index - 1 ? fields[index] ?? field : field
      )
    )
  }
  const described = (changed: ReadonlyArray<Signable.NamedType>) => ({
    fields: changed,
    found: fieldNames(changed),
    expected: fieldNames(fields)
  })
  for (const changed of all) yield { ...described(changed), members: (members) => byName(changed, members) }
  const extras = ["type", "signatureChainId"].flatMap((name) => {
    const value = view.action[name]
    return Predicate.isString(value) ? [{ name, type: "string", value } as const] : []
  })
  const groups = [...extras.map((extra) => [extra]), ...(extras.length > 1 ? [extras, extras.toReversed()] : [])]
  for (const group of groups) {
    for (const isFirst of [true, false]) {
      const around = <A>(given: ReadonlyArray<A>, added: ReadonlyArray<A>): ReadonlyArray<A> =>
        isFirst ? [...added, ...given] : [...given, ...added]
      const changed = around(fields, group.map(({ name, type }) => ({ name, type })))
      yield { ...described(changed), members: (members) => around(members, group) }
    }
  }
})

/** Decimal places of the integers in which contracts count amounts; 0 also for a truncated amount. */
const amountPlaces = [0, 6, 8, 18]

const amountTypes = ["uint256", "uint64", "int256", "uint128"]

/** Returns a decimal number as an integer of units with the given number of decimal places, as 32 bytes. */
const inUnits = (decimal: string, places: number): Signable.Member["value"] | undefined => {
  const [whole = "", fraction = ""] = decimal.split(".")
  const isExact = places === 0 || !/[1-9]/.test(fraction.slice(places))
  if (!/^[0-9]{1,40}(?:\.[0-9]{1,40})?$/.test(decimal) || !isExact) return undefined
  const units = BigInt(`${whole}${fraction.slice(0, places).padEnd(places, "0")}`)
  return units >> 256n === 0n ? `0x${units.toString(16).padStart(64, "0")}` : undefined
}

/** Generates signing hypotheses in which an amount was signed as an integer instead of text. */
export const amountTypesSigned = structMistakes(function*({ fields }, { members }) {
  for (const [index, { name, type, value }] of members.entries()) {
    if (type !== "string" || fields[index]?.name !== name || !/^[0-9.]+$/.test(value)) continue
    for (const places of amountPlaces) {
      const units = inUnits(value, places)
      if (units === undefined) continue
      for (const other of amountTypes) {
        yield {
          fields: fields.map((field) => field.name === name ? { name, type: other } : field),
          members: (all) => all.map((each) => each.name === name ? toMember(name, "bytes32", units) ?? each : each),
          found: `${other} ${name} of ${BigInt(String(units))}`,
          expected: `string ${name} of ${JSON.stringify(value)}`
        }
      }
    }
  }
})

const otherTypes: { readonly [Type in Signable.Member["type"]]: ReadonlyArray<string> } = {
  string: ["address", "bytes32", "bytes"],
  bool: ["uint8", "string"],
  uint32: ["uint64", "uint256", "string"],
  uint64: ["uint256", "uint32", "int64", "uint128", "int256", "string"],
  address: ["string", "bytes32", "bytes"],
  bytes: ["string"],
  bytes32: ["string", "bytes"]
}

/** Makes a field of a message; `undefined` if its value is invalid for that type. */
const toMember = (name: string, type: string, value: unknown): Signable.Member | undefined => {
  if (type === "string") return { name, type, value: String(value) }
  if (type === "address") return isAddress(value) ? { name, type, value } : undefined
  if (type === "bool") return Predicate.isBoolean(value) ? { name, type, value } : undefined
  if (type === "uint32" || type === "uint64") {
    return Predicate.isNumber(value) || Predicate.isBigInt(value) ? { name, type, value } : undefined
  }
  if (!isBytes(value)) return undefined
  if (type === "bytes") return value.length > 2 ? { name, type, value } : undefined
  return type === "bytes32" && value.length === 66 ? { name, type, value } : undefined
}

/** Converts a member to a field of another type; `undefined` if its value is invalid for that type. */
const asType = (member: Signable.Member, type: string): Signable.Member | undefined => {
  if (type === "string" || type === "address" || type === "bytes" || type === "bytes32") {
    return toMember(member.name, type, member.value)
  }
  // booleans, and numbers of any width, are encoded in the same way
  return member.type === "string" || member.type === "address" ? undefined : member
}

/** Returns whether programs often confuse two types: two widths of a number, or text and an address. */
const isOften = (type: Signable.Member["type"], other: string): boolean =>
  (type === "uint64" && other === "uint256") || (type === "address" && other === "string")

/**
 * Generates signing hypotheses in which one field, or every field of the same type, has another type. Types that
 * programs often confuse come first.
 */
export const fieldTypes = structMistakes(function*({ fields }, { members }) {
  for (const often of [true, false]) {
    for (const [index, field] of fields.entries()) {
      const member = members[index]
      if (member === undefined) continue
      for (const type of otherTypes[member.type].filter((other) => isOften(member.type, other) === often)) {
        const alike = fields.flatMap((other, at) => other.type === field.type ? [at] : [])
        for (const changed of alike.length > 1 && alike[0] === index ? [alike, [index]] : [[index]]) {
          const others = members.map((each, at) => changed.includes(at) ? asType(each, type) : each)
          if (others.includes(undefined)) continue
          yield {
            fields: fields.map((each, at) => changed.includes(at) ? { name: each.name, type } : each),
            members: (members) => members.map((each, at) => changed.includes(at) ? asType(each, type) ?? each : each),
            found: changed.map((at) => `${type} ${fields[at]?.name ?? ""}`).join(", "),
            expected: changed.map((at) => `${field.type} ${fields[at]?.name ?? ""}`).join(", ")
          }
        }
      }
    }
  }
})
