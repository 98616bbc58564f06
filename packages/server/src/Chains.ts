/** The chains behind the gateway: live where any address is configured, else the sandbox. Never a mixture. */
import type { Settings } from "@trigate/domain/Settings"
import * as Layer2Upstream from "@trigate/layer2/Layer2Upstream"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as MetadataFetchUndici from "@trigate/tokens/MetadataFetchUndici"
import * as TokenChainUpstream from "@trigate/tokens/TokenChainUpstream"
import * as ActionLog from "@trigate/trading/ActionLog"
import * as ActionLogRedis from "@trigate/trading/ActionLogRedis"
import * as ActionLogSql from "@trigate/trading/ActionLogSql"
import * as Admission from "@trigate/trading/Admission"
import * as ExchangeUpstream from "@trigate/trading/ExchangeUpstream"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as ActionLogSettings from "./ActionLogSettings.ts"
import * as Database from "./Database.ts"
import type { GatewayStatus } from "./GatewayStatus.ts"
import * as Outbound from "./Outbound.ts"
import * as SharedRedis from "./SharedRedis.ts"
import * as StoreReadiness from "./StoreReadiness.ts"

/** Whether no upstream address at all is configured. */
export const isSandbox = (settings: Settings): boolean =>
  settings.tradingApiUrl.length === 0 && settings.tradingNodeUrl.length === 0 &&
  settings.tokenChainUrl.length === 0 && settings.layer2Url.length === 0

/** The action log of the settings; a sandbox keeps its own in memory, apart from real actions. */
const actionLogOf = (settings: Settings, redis: Outbound.SharedBy): Layer.Layer<ActionLog.ActionLog> => {
  if (isSandbox(settings)) return ActionLog.layerMemory()
  return Option.match(ActionLogSettings.databaseOf(settings), {
    onSome: (place) =>
      ActionLogSql.layer(ActionLogSettings.optionsOf(settings)).pipe(Layer.provide(Database.layer(place))),
    onNone: () =>
      Option.match(redis, {
        onNone: () => ActionLog.layerMemory(),
        onSome: (shared) =>
          ActionLogRedis.layer({
            prefix: `trigate:{actions:${settings.network}}:`,
            lease: ActionLogSettings.leaseOf(settings)
          }).pipe(Layer.provide(shared))
      })
  })
}

const live = (settings: Settings, redis: Outbound.SharedBy) => {
  const trading = {
    api: settings.tradingApiUrl,
    node: settings.tradingNodeUrl
  }
  return Layer.mergeAll(
    ExchangeUpstream.layer(trading),
    TradingUpstream.layerInfo(trading),
    TradingUpstream.layerEvm(trading),
    TokenChainUpstream.layer({ addresses: settings.tokenChainUrl }).pipe(
      Layer.provide(MetadataFetchUndici.layer())
    ),
    Layer2Upstream.layer({ addresses: settings.layer2Url })
  ).pipe(
    Layer.provide(Outbound.layer(settings, redis))
  )
}

/** The five services, and whether the stores behind them answer. */
export const layer = (settings: Settings) => {
  const options = Admission.optionsOf(settings)
  const redis = Option.map(settings.redisUrl, SharedRedis.layer)
  const provided = Layer.merge(Admission.layer(options), actionLogOf(settings, redis))
  if (isSandbox(settings)) {
    return Layer.merge(Sandbox.layerNoDeps(options), StoreReadiness.layer).pipe(Layer.provide(provided))
  }
  const readiness = Option.match(redis, {
    onNone: () => StoreReadiness.layer,
    onSome: (shared) => Layer.provide(StoreReadiness.layer, shared)
  })
  return Layer.merge(live(settings, redis), readiness).pipe(Layer.provide(provided))
}

const chain = (sandbox: boolean, upstreams: { readonly [label: string]: number }) => ({
  mode: sandbox
    ? "sandbox" as const
    : Object.values(upstreams).some((count) => count > 0)
    ? "live" as const
    : "not-configured" as const,
  upstreams
})

/** What readiness tells of the settings: modes and counts, no address. */
export const statusOf = (settings: Settings): GatewayStatus["Service"] => {
  const sandbox = isSandbox(settings)
  return {
    sandbox,
    network: settings.network,
    chains: {
      trading: chain(sandbox, {
        "trading-api": settings.tradingApiUrl.length,
        "trading-node": settings.tradingNodeUrl.length
      }),
      tokens: chain(sandbox, { "token-chain": settings.tokenChainUrl.length }),
      layer2: chain(sandbox, { layer2: settings.layer2Url.length })
    }
  }
}
