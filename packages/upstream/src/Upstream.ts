/** Where a kind of upstream is: its label, and its addresses in order of preference. */
import type { UpstreamLabel } from "@trigate/domain/Chain"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as Digest from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Concealment from "./transport/Concealment.ts"

export type { UpstreamLabel }

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

const baseUrl = (label: UpstreamLabel, address: string): string =>
  address.replace(routes[label], "").replace(/\/+$/u, "")

/** An upstream from plain or redacted base URLs; trailing slashes are dropped, and the path of a route at the end. */
export const make = (
  label: UpstreamLabel,
  addresses: ReadonlyArray<string | Redacted.Redacted>
): Upstream => ({
  label,
  addresses: addresses.map((address) =>
    Redacted.make(baseUrl(label, typeof address === "string" ? address : Redacted.value(address)), { label })
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
  /** Removes the endpoint key from the address's responses; absent if the address contains none. */
  readonly conceal: Concealment.Conceal | undefined
}

/** What log lines call the address of a target: its label and its place, never its URL. */
export const targetName = (target: Target): string => `${target.label}#${target.address}`

// reading a URL costs more than all else that is done for a target
const conceals = new WeakMap<Redacted.Redacted, { readonly conceal: Concealment.Conceal | undefined }>()

/** One target for each address of an upstream, in order. */
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
 * The name under which an upstream's responses are cached: its label, and a digest that hides its addresses.
 *
 * Replicas with the same addresses share responses; two chains, or two networks of one, share none.
 */
export const cacheSpace = ({ addresses, label }: Upstream): Effect.Effect<string, never, Digest.Digest> =>
  Digest.Digest.use((digest) =>
    Effect.map(
      digest.digestHex(Digest.sha256, Utf8.encode(addresses.map(Redacted.value).join("\n"))),
      (hex) => `${label}/${hex.slice(0, DIGITS)}`
    )
  )
