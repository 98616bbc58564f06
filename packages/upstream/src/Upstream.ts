/** Upstreams and the addresses to which their calls are sent. */
import type { UpstreamLabel } from "@trigate/domain/Chain"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as Digest from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Concealment from "./transport/Concealment.ts"

export type { UpstreamLabel }

/**
 * An upstream: its label, and its addresses in order of preference. Each address is a secret, because its path contains the
 * endpoint key.
 */
export interface Upstream {
  readonly label: UpstreamLabel
  /** Base URLs without a trailing slash, in order of preference. */
  readonly addresses: ReadonlyArray<Redacted.Redacted>
}

/** The patterns, by upstream, of the route path that providers and documentation append to the base URL. */
const routes: { readonly [L in UpstreamLabel]: RegExp } = {
  "trading-api": /\/(?:exchange|info)\/*$/u,
  "trading-node": /\/(?:evm|info)\/*$/u,
  "token-chain": /\/api\/v2(?:\/jsonRPC)?\/*$/u,
  layer2: /\/+$/u
}

const baseUrl = (label: UpstreamLabel, address: string): string =>
  address.replace(routes[label], "").replace(/\/+$/u, "")

/** Makes an upstream from plain or redacted base URLs; removes trailing slashes, and a trailing route path. */
export const make = (
  label: UpstreamLabel,
  addresses: ReadonlyArray<string | Redacted.Redacted>
): Upstream => ({
  label,
  addresses: addresses.map((address) =>
    Redacted.make(baseUrl(label, typeof address === "string" ? address : Redacted.value(address)), { label })
  )
})

/** The target of a call: one address of an upstream, with the path of the call. */
export interface Target {
  readonly label: UpstreamLabel
  /** The index of the address in its upstream, from 0, for log lines and metrics. */
  readonly address: number
  /** The address without the path of the call. Outlier detection identifies the address by this base URL. */
  readonly base: Redacted.Redacted
  readonly url: Redacted.Redacted
  /** Removes the endpoint key from responses of the address; absent if the address does not contain a key. */
  readonly conceal: Concealment.Conceal | undefined
}

/**
 * Returns the name of a target's address for log lines: the upstream's label and the index of the address, never its
 * URL.
 */
export const targetName = (target: Target): string => `${target.label}#${target.address}`

// caches the result, because parsing a URL is the most expensive part of making a target
const conceals = new WeakMap<Redacted.Redacted, { readonly conceal: Concealment.Conceal | undefined }>()

/** Returns one target for each address of an upstream, in order. */
export const targets = (upstream: Upstream, path: string): ReadonlyArray<Target> =>
  upstream.addresses.map((base, address) => {
    const { conceal } = conceals.get(base) ?? { conceal: Concealment.make(Redacted.value(base)) }
    conceals.set(base, { conceal })
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
 * Returns the cache namespace of an upstream: its label, and a digest that does not reveal its addresses.
 *
 * Replicas with equal addresses share responses. Different chains do not share responses, and neither do different
 * networks of one chain.
 */
export const cacheSpace = ({ addresses, label }: Upstream): Effect.Effect<string, never, Digest.Digest> =>
  Digest.Digest.use((digest) =>
    Effect.map(
      digest.digestHex(Digest.sha256, Utf8.encode(addresses.map(Redacted.value).join("\n"))),
      (hex) => `${label}/${hex.slice(0, DIGITS)}`
    )
  )
