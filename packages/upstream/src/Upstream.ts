/** Where a kind of upstream is: its label, and its addresses in order of preference. */
import type { Conceal } from "@trigate/domain/protocol/Protocol"
import * as Utf8 from "@trigate/domain/Utf8"
import * as Digest from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

/** The closed set of upstream labels: what errors, metrics and readiness call an upstream. */
export const upstreamLabels = ["trading-api", "trading-node", "token-chain", "layer2"] as const
export type UpstreamLabel = (typeof upstreamLabels)[number]

/** The addresses of one kind of upstream; each holds the endpoint key in its path and is a secret. */
export interface Upstream {
  readonly label: UpstreamLabel
  /** Base URLs without a trailing slash, in order of preference. */
  readonly addresses: ReadonlyArray<Redacted.Redacted>
}

/** The path below the base URL that providers and documents show with it. */
const routes: { readonly [L in UpstreamLabel]: RegExp } = {
  "trading-api": /\/(?:exchange|info)\/*$/u,
  "trading-node": /\/(?:evm|info)\/*$/u,
  "token-chain": /\/api\/v2(?:\/jsonRPC)?\/*$/u,
  layer2: /\/+$/u
}

const baseOf = (label: UpstreamLabel, address: string): string =>
  address.replace(routes[label], "").replace(/\/+$/u, "")

/** An upstream from plain or redacted base URLs; trailing slashes are dropped, and the path of a route at the end. */
export const make = (
  label: UpstreamLabel,
  addresses: ReadonlyArray<string | Redacted.Redacted>
): Upstream => ({
  label,
  addresses: addresses.map((address) =>
    Redacted.make(baseOf(label, typeof address === "string" ? address : Redacted.value(address)), { label })
  )
})

/** A place to send a call to: one address of an upstream, with the path of the call. */
export interface Target {
  readonly label: UpstreamLabel
  /** Which of its upstream's addresses it leads to, from 0: what log lines and metrics call the address. */
  readonly address: number
  /** The address without the path: outliers are detected by it, whatever the path. */
  readonly base: Redacted.Redacted
  readonly url: Redacted.Redacted
  /**
   * Takes the parts of the address that may be an endpoint key out of a text: a node quotes the path that it does not know.
   *
   * For refusals only: a result is data and may hold what only looks like a part of an address.
   */
  readonly conceal: Conceal
}

/** What log lines call the address of a target: its label and its place, never its URL. */
export const nameOf = (target: Target): string => `${target.label}#${target.address}`

/** From this length on, a key is no part of another word by chance. */
const LONG_KEY = 8

/** A shorter one than this may be a word of any sentence: it is looked for in quoted paths only. */
const SHORT_KEY = 4

/** Parts of a path that name routes, networks and versions: a refusal that speaks of them stays readable. */
const routeName = /^(?:api|bsc|eth|evm|exchange|info|jsonrpc|l2|mainnet|polygon|rpc|sepolia|testnet|ton|v[0-9]+)$/iu

const decodedPart = Schema.decodeOption(Schema.StringFromUriComponent)

const escaped = (text: string): string => text.replace(/[/.*+?^$(){}|[\]\\]/gu, "\\$&")

/** How servers quote a part of a path: as it was sent, decoded, or encoded anew, also inside a JSON text. */
const spellingsOf = (part: string, plain: string): ReadonlyArray<string> => {
  const inJson = JSON.stringify(plain).slice(1, -1)
  const encoded = [part, encodeURIComponent(plain)]
  const lower = encoded.map((text) => text.replace(/%[0-9A-F]{2}/gu, (code) => code.toLowerCase()))
  const all = new Set([plain, inJson, inJson.replaceAll("/", "\\/"), ...encoded, ...lower])
  // a longer one may hold a shorter one
  return [...all].toSorted((one, other) => other.length - one.length)
}

const concealPart = (part: string): ReadonlyArray<Conceal> => {
  const plain = Option.getOrElse(decodedPart(part), () => part)
  if (part === "" || routeName.test(plain)) return []
  return spellingsOf(part, plain).map((spelling): Conceal => {
    if (plain.length >= LONG_KEY) return (text) => text.replaceAll(spelling, "…")
    const before = plain.length < SHORT_KEY ? "(?<=/)" : "(?<![\\p{L}\\p{N}_])"
    const word = new RegExp(`${before}${escaped(spelling)}(?![\\p{L}\\p{N}_])`, "gu")
    return (text) => text.replace(word, "…")
  })
}

const unchanged: Conceal = (text) => text

const concealOf = (address: string): Conceal => {
  const steps = URL.canParse(address) ? new URL(address).pathname.split("/").flatMap(concealPart) : []
  return steps.length === 0 ? unchanged : (text) => steps.reduce((left, step) => step(left), text)
}

// reading a URL costs more than all else that is done for a target
const conceals = new WeakMap<Redacted.Redacted, Conceal>()

/** One target for each address of an upstream, in order. */
export const targets = (upstream: Upstream, path: string): ReadonlyArray<Target> =>
  upstream.addresses.map((base, address) => {
    const conceal = conceals.get(base) ?? concealOf(Redacted.value(base))
    conceals.set(base, conceal)
    return {
      label: upstream.label,
      address,
      base,
      url: Redacted.make(`${Redacted.value(base)}${path}`, { label: upstream.label }),
      conceal
    }
  })

const DIGITS = 16

/**
 * The name under which an upstream's responses are cached: its label, and a digest that hides its addresses.
 *
 * Replicas with the same addresses share responses; two chains, or two networks of one, share none.
 */
export const spaceOf = ({ addresses, label }: Upstream): Effect.Effect<string, never, Digest.Digest> =>
  Digest.Digest.use((digest) =>
    Effect.map(
      digest.digestHex(Digest.sha256, Utf8.encode(addresses.map(Redacted.value).join("\n"))),
      (hex) => `${label}/${hex.slice(0, DIGITS)}`
    )
  )
