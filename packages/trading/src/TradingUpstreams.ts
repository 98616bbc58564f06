/** Where the trading chain is: the official API and the node, and which of their addresses a call goes to. */
import type { Operation, Source, Surface } from "@trigate/domain/Operation"
import { sourcesOn, unavailableOnNode } from "@trigate/domain/Operation"
import type { UnavailableOnNode } from "@trigate/domain/RequestError"
import { ChainNotConfigured } from "@trigate/domain/RequestError"
import { settings } from "@trigate/domain/Settings"
import type { Target, Upstream } from "@trigate/upstream/Upstream"
import { make as upstream, targets } from "@trigate/upstream/Upstream"
import * as Arr from "effect/Array"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"

/** Base URLs in order of preference, without `/exchange`, `/info` and `/evm`; a node's hold the endpoint key. */
export interface Addresses {
  /** The venue's official API. */
  readonly api?: ReadonlyArray<string | Redacted.Redacted>
  /** Node providers. */
  readonly node?: ReadonlyArray<string | Redacted.Redacted>
}

/** The two kinds of upstream of the trading chain, by the source that an operation names. */
export type TradingUpstreams = { readonly [Kind in Source]: Upstream }

/** The upstreams of some addresses. */
export const make = ({ api = [], node = [] }: Addresses): TradingUpstreams => ({
  "official-api": upstream("trading-api", api),
  node: upstream("trading-node", node)
})

/** `TRIGATE_TRADING_API_URL` and `TRIGATE_TRADING_NODE_URL`; what is not set has no addresses. */
export const config: Config.Config<Addresses> = Config.all({
  api: settings.tradingApiUrl,
  node: settings.tradingNodeUrl
})

const settingNames: { readonly [Kind in Source]: string } = {
  "official-api": settings.tradingApiUrl.env,
  node: settings.tradingNodeUrl.env
}

const notConfigured = (operation: Operation, sources: ReadonlyArray<Source>): ChainNotConfigured =>
  new ChainNotConfigured({
    chain: "trading",
    detail: `No address is configured that serves ${operation.name} (${
      sources.map((source) => settingNames[source]).join(" or ")
    })`
  })

/** The targets of a call to a path, the sources in the operation's order of preference. */
export type Route = (
  operation: Operation,
  surface: Surface
) => Effect.Effect<Arr.NonEmptyReadonlyArray<Target>, ChainNotConfigured | UnavailableOnNode>

/**
 * The routes of a path.
 *
 * They fail with `UnavailableOnNode` for an operation that only the official API serves where only a node is asked or
 * configured, and with `ChainNotConfigured` where no address at all serves it.
 */
export const routes = (upstreams: TradingUpstreams, path: string): Route => {
  const known = new Map<string, ReturnType<Route>>()
  const lists = new Map<string, ReadonlyArray<Target>>()
  // operations of the same sources share one list: by it calls are told that can go out together
  const targetsOf = (sources: ReadonlyArray<Source>): ReadonlyArray<Target> => {
    const key = sources.join()
    const list = lists.get(key) ?? sources.flatMap((source) => targets(upstreams[source], path))
    lists.set(key, list)
    return list
  }
  const find: Route = (operation, surface) => {
    const sources = sourcesOn(operation, surface)
    const found = targetsOf(sources)
    if (Arr.isReadonlyArrayNonEmpty(found)) return Effect.succeed(found)
    const onlyNode = sources.length === 0 ||
      (!sources.includes("node") && upstreams.node.addresses.length > 0)
    return Effect.fail(onlyNode ? unavailableOnNode(operation) : notConfigured(operation, sources))
  }
  return (operation, surface) => {
    const key = `${surface} ${operation.name}`
    const route = known.get(key) ?? find(operation, surface)
    known.set(key, route)
    return route
  }
}
