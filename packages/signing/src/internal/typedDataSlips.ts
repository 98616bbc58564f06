/** Typed data that a wallet was given otherwise than the venue declares it: domain, primary type, fields. */
import type { Mistake } from "@trigate/domain/Inspection"
import * as Predicate from "effect/Predicate"
import type * as ActionForm from "../actions/ActionForm.ts"
import * as Signable from "../actions/Signable.ts"
import * as SignedView from "../inspection/SignedView.ts"
import type { View } from "../inspection/SignedView.ts"
import { isAddress } from "./bytes.ts"
import type { Slip, Subject, Vary } from "./slip.ts"
import { isUserSigned } from "./slip.ts"

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

export const domainSlips = (
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

export const chainSlips: Vary = (subject) =>
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

export const primaryTypes = structSlips(({ primaryType }, _signable, { view }) => {
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

export const fieldSets = structSlips(function*({ fields }, { members }, { request, view }) {
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
export const fieldTypes = structSlips(function*({ fields }, { members }) {
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
