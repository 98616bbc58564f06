/** Mistakes in the typed data of a wallet: a phantom agent, primary type or fields that differ from the venue's. */
import * as Predicate from "effect/Predicate"
import * as ActionForm from "../actions/ActionForm.ts"
import * as Signable from "../actions/Signable.ts"
import { defaultChainId } from "../VenueProfile.ts"
import { isAddress } from "./bytes.ts"
import { encodeDomain } from "./domainMistakes.ts"
import type { Subject, Vary } from "./mistake.ts"
import { actionOrder, isUserSigned, reshaped, subjectTypedData } from "./mistake.ts"

const sources = ["A", "B", "Mainnet", "Testnet", "mainnet", "testnet", "", "c", "1", "0"]

/**
 * Generates signing hypotheses whose phantom agent has a wrong `source`. The correct source is the network's letter.
 */
export const agentMistakes: Vary = function*({ part, view }) {
  if (isUserSigned(view) || (view.wrapper !== undefined && part === "outer")) return
  const expected = `source ${view.profile.source}`
  for (const source of sources) {
    yield reshaped(view, (signable) => ({
      ...signable,
      members: signable.members.map((member) =>
        member.name === "source" && member.type === "string" ? { ...member, value: source } : member
      )
    }), { path: [], found: `source "${source}"`, expected })
  }
}

const fieldTypesByKind: { readonly [kind: string]: Signable.Member["type"] } = {
  integer: "uint64",
  flag: "bool",
  address: "address"
}

/**
 * Generates signing hypotheses in which an L1 action was signed like a user-signed action: the typed data contain the
 * action's members, with guessed types.
 */
export const typedActions: Vary = function*({ part, request, view }) {
  if (isUserSigned(view) || (view.wrapper !== undefined && part === "outer")) return
  const order = actionOrder(view)
  const { chainField, chainName: chain, typePrefix, userSignedDomain } = view.profile
  const type = view.action["type"]
  if (order === undefined || !Predicate.isString(type)) return
  const leaves = ActionForm.listLeaves(order, view.action).filter(({ path }) => path[0] !== "type")
  if (leaves.some(({ path }) => path.length > 1)) return
  const own = leaves.flatMap(({ kind, path, value }): ReadonlyArray<Signable.Member> => {
    const name = String(path[0])
    const given = fieldTypesByKind[kind] ?? "string"
    if (given === "uint64") {
      return Predicate.isNumber(value) || Predicate.isBigInt(value) ? [{ name, type: given, value }] : []
    }
    if (given === "bool") return Predicate.isBoolean(value) ? [{ name, type: given, value }] : []
    if (given === "address") return isAddress(value) ? [{ name, type: given, value }] : []
    return [{ name, type: "string", value: String(value) }]
  })
  const chainMember: Signable.Member = { name: chainField, type: "string", value: chain }
  const typeMember: Signable.Member = { name: "type", type: "string", value: type }
  const nonce = BigInt(request.nonce)
  for (const before of [[chainMember], [], [chainMember, typeMember], [typeMember]]) {
    for (const after of ["nonce", "time", undefined]) {
      if (after !== undefined && own.some(({ name }) => name === after)) continue
      const members: ReadonlyArray<Signable.Member> = [
        ...before,
        ...own,
        ...(after === undefined ? [] : [{ name: after, type: "uint64" as const, value: nonce }])
      ]
      const struct = Signable.structType(
        `${typePrefix}${capitalized(type)}`,
        members.map(({ name, type }) => ({ name, type }))
      )
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
  for (const changed of all) {
    yield {
      fields: changed,
      members: (members) => byName(changed, members),
      found: fieldNames(changed),
      expected: fieldNames(fields)
    }
  }
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
      yield {
        fields: changed,
        members: (members) => around(members, group),
        found: fieldNames(changed),
        expected: fieldNames(fields)
      }
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

/** Converts a member to a field of another type; `undefined` if its value is invalid for that type. */
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
