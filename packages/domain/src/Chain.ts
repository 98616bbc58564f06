/** The chains of the gateway by their roles, and the kinds of upstreams that serve them. */

/** The three upstream chains, by role. */
export const chains = ["trading", "tokens", "layer2"] as const
export type Chain = (typeof chains)[number]

/** The labels that name the chains' upstreams in errors, metrics and the readiness response. */
export const upstreamLabels = ["trading-api", "trading-node", "token-chain", "layer2"] as const
export type UpstreamLabel = (typeof upstreamLabels)[number]

/** The label of the nodes that serve a chain's JSON-RPC. */
export const nodeLabels = {
  trading: "trading-node",
  tokens: "token-chain",
  layer2: "layer2"
} as const satisfies { readonly [Of in Chain]: UpstreamLabel }

/** Builds a record with one value for each upstream label. */
export const perUpstream = <A>(make: (upstream: UpstreamLabel) => A): { readonly [Label in UpstreamLabel]: A } => ({
  "trading-api": make("trading-api"),
  "trading-node": make("trading-node"),
  "token-chain": make("token-chain"),
  layer2: make("layer2")
})
