/** Where a kind of upstream is: its label, and its addresses in order of preference. */
import * as Redacted from "effect/Redacted"

/** The closed set of upstream labels: what errors, metrics and readiness call an upstream. */
export type UpstreamLabel = "trading-api" | "trading-node" | "token-chain" | "layer2"

/** The addresses of one kind of upstream; each holds the endpoint key in its path and is a secret. */
export interface Upstream {
  readonly label: UpstreamLabel
  /** Base URLs without a trailing slash, in order of preference. */
  readonly addresses: ReadonlyArray<Redacted.Redacted>
}

const trimmed = (address: string): string => address.replace(/\/+$/u, "")

/** An upstream from plain or redacted base URLs; trailing slashes are dropped. */
export const make = (
  label: UpstreamLabel,
  addresses: ReadonlyArray<string | Redacted.Redacted>
): Upstream => ({
  label,
  addresses: addresses.map((address) =>
    Redacted.make(trimmed(typeof address === "string" ? address : Redacted.value(address)), { label })
  )
})

/** A place to send a call to: one address of an upstream, with the path of the call. */
export interface Target {
  readonly label: UpstreamLabel
  /** Which of its upstream's addresses it leads to, from 0: what log lines and metrics call the address. */
  readonly address: number
  /** The address without the path: health is kept by it, whatever the path. */
  readonly base: Redacted.Redacted
  readonly url: Redacted.Redacted
  /** The parts of the address that may be an endpoint key, for taking them out of what an upstream quotes. */
  readonly secrets: Redacted.Redacted<ReadonlyArray<string>>
}

/** What log lines call the address of a target: its label and its place, never its URL. */
export const nameOf = (target: Target): string => `${target.label}#${target.address}`

const SHORTEST_KEY = 8

const secretsOf = (address: string): ReadonlyArray<string> =>
  URL.canParse(address) ? new URL(address).pathname.split("/").filter((part) => part.length >= SHORTEST_KEY) : []

/** One target for each address of an upstream, in order. */
export const targets = (upstream: Upstream, path: string): ReadonlyArray<Target> =>
  upstream.addresses.map((address, index) => ({
    label: upstream.label,
    address: index,
    base: address,
    url: Redacted.make(`${Redacted.value(address)}${path}`, { label: upstream.label }),
    secrets: Redacted.make(secretsOf(Redacted.value(address)), { label: upstream.label })
  }))
