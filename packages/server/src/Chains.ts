/** The chains behind the gateway: live where any address is configured, else the sandbox. Never a mixture. */
import type { Settings } from "@trigate/domain/Settings"
import * as Layer2Upstream from "@trigate/layer2/Layer2Upstream"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as MetadataFetchUndici from "@trigate/tokens/MetadataFetchUndici"
import * as TokenChainUpstream from "@trigate/tokens/TokenChainUpstream"
import * as Admission from "@trigate/trading/Admission"
import * as ExchangeUpstream from "@trigate/trading/ExchangeUpstream"
import * as InfoUpstream from "@trigate/trading/InfoUpstream"
import * as Journal from "@trigate/trading/Journal"
import * as JournalSql from "@trigate/trading/JournalSql"
import * as TradingEvmUpstream from "@trigate/trading/TradingEvmUpstream"
import * as UsedNonces from "@trigate/trading/UsedNonces"
import * as UsedNoncesRedis from "@trigate/trading/UsedNoncesRedis"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Database from "./Database.ts"
import type { GatewayStatus } from "./GatewayStatus.ts"
import * as JournalSettings from "./JournalSettings.ts"
import * as Outbound from "./Outbound.ts"
import * as RedisReadiness from "./RedisReadiness.ts"
import * as SharedRedis from "./SharedRedis.ts"

/** Whether no upstream address at all is configured. */
export const isSandbox = (settings: Settings): boolean =>
  settings.tradingApiUrl.length === 0 && settings.tradingNodeUrl.length === 0 &&
  settings.tokenChainUrl.length === 0 && settings.layer2Url.length === 0

/** Nonces of one network are not those of another, nor a sandbox's those of a venue. */
const usedNoncesOf = (settings: Settings, redis: Outbound.SharedBy) =>
  Option.match(redis, {
    onNone: () => UsedNonces.layerMemory(),
    onSome: (shared) =>
      RedisReadiness.layer.pipe(
        Layer.provideMerge(UsedNoncesRedis.layer({
          prefix: `trigate:{used-nonces:${isSandbox(settings) ? "sandbox" : settings.network}}:`,
          lease: JournalSettings.leaseOf(settings)
        })),
        Layer.provide(shared)
      )
  })

/** Where the actions of a live gateway are taken down. */
const journalOf = (settings: Settings) =>
  Option.match(JournalSettings.placeOf(settings), {
    onNone: () => Journal.layerMemory(),
    onSome: (place) => JournalSql.layer(JournalSettings.optionsOf(settings)).pipe(Layer.provide(Database.layer(place)))
  })

const live = (settings: Settings, admission: Layer.Layer<Admission.Admission>, redis: Outbound.SharedBy) => {
  const trading = {
    api: settings.tradingApiUrl,
    node: settings.tradingNodeUrl
  }
  return Layer.mergeAll(
    ExchangeUpstream.layer(trading).pipe(Layer.provide([admission, journalOf(settings)])),
    InfoUpstream.layer(trading),
    TradingEvmUpstream.layer(trading),
    TokenChainUpstream.layer({ addresses: settings.tokenChainUrl }).pipe(
      Layer.provide(MetadataFetchUndici.layer())
    ),
    Layer2Upstream.layer({ addresses: settings.layer2Url })
  ).pipe(
    Layer.provide(Outbound.layer(settings, redis))
  )
}

/** The five services, and whether the Redis that replicas share answers. */
export const layer = (settings: Settings) => {
  const options = Admission.optionsOf(settings)
  const admission = Admission.layer(options)
  const redis = Option.map(settings.redisUrl, SharedRedis.layer)
  const chains = isSandbox(settings)
    ? Sandbox.layerNoDeps(options).pipe(
      // made-up actions do not belong among real ones
      Layer.provide([admission, Journal.layerMemory()])
    )
    : live(settings, admission, redis)
  return Layer.provideMerge(chains, usedNoncesOf(settings, redis))
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
