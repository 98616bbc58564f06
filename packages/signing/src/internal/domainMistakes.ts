/** Mistakes in the EIP-712 domain of a wallet's typed data: another name, chain ID, version or contract, or fewer fields. */
import { encodeQuantity } from "@trigate/domain/encoding/Hex"
import * as Signable from "../actions/Signable.ts"
import * as SignedView from "../inspection/SignedView.ts"
import { chainName, walletChains } from "../inspection/WalletChains.ts"
import type { MistakenView, Subject, Vary } from "./mistake.ts"
import { isUserSigned, reshaped, subjectTypedData } from "./mistake.ts"

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
  const expected = shownDomain(right)
  const other = name === "Exchange" ? "HyperliquidSignTransaction" : "Exchange"
  const ids = [...(name === "Exchange" ? [] : [1337, Number(chainId)]), 42_161, 421_614, 1337, 1, 999, 421_613, 998]
  const named = (parts: DomainParts): OtherDomain => ({
    found: shownDomain(parts),
    expected,
    domain: encodeDomain(parts)
  })
  for (const id of new Set(ids)) yield named({ name: other, chainId: id })
  for (const version of ["2", "1.0", "1.0.0", "0", "", "v1", "0.1", "3"]) {
    yield {
      found: `version "${version}"`,
      expected: "version \"1\"",
      domain: encodeDomain({ ...right, version })
    }
  }
  for (const without of withoutFields) {
    yield {
      found: `without ${without.join(" and ")}`,
      expected: "name, version, chainId and verifyingContract",
      domain: encodeDomain({ ...right, without })
    }
  }
  for (const chainIdType of ["uint64", "uint32"]) {
    yield {
      found: `${chainIdType} chainId`,
      expected: "uint256 chainId",
      domain: encodeDomain({ ...right, chainIdType })
    }
  }
  yield { found: "with a salt", expected: "no salt", domain: encodeDomain({ ...right, salt: noSalt }) }
  for (const each of otherNames) if (each !== name) yield named({ ...right, name: each })
  for (const contract of otherContracts) {
    yield {
      found: `verifyingContract ${contract}`,
      expected: `verifyingContract ${Signable.verifyingContract}`,
      domain: encodeDomain({ ...right, contract })
    }
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
  const isAgent = !isUserSigned(view) && (view.wrapper === undefined || part === "inner")
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
