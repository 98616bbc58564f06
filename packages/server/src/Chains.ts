/** The chains behind the gateway: live if any upstream address is configured, else the sandbox. They are never mixed. */
import type { Settings } from "@trigate/domain/Settings"
import * as Layer2Upstream from "@trigate/layer2/Layer2Upstream"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import type { SandboxState } from "@trigate/sandbox/SandboxState"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Tokens from "@trigate/tokens/Tokens"
import * as ActionLog from "@trigate/trading/ActionLog"
import * as Admission from "@trigate/trading/Admission"
import * as Trading from "@trigate/trading/Trading"
import * as HttpTransportUndici from "@trigate/upstream/HttpTransportUndici"
import * as OutlierDetection from "@trigate/upstream/OutlierDetection"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as RateLimiter from "@trigate/upstream/RateLimiter"
import * as RateLimiterRedis from "@trigate/upstream/RateLimiterRedis"
import * as ResponseCache from "@trigate/upstream/ResponseCache"
import * as Upstream from "@trigate/upstream/Upstream"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redis from "effect/persistence/Redis"
import * as ActionLogStore from "./ActionLogStore.ts"
import * as GatewayStatus from "./GatewayStatus.ts"
import * as SharedRedis from "./SharedRedis.ts"

/** The Redis of the settings. Everything that uses it gets this one layer, and so shares one connection. */
type SharedBy = Option.Option<Layer.Layer<Redis.Redis>>

const rateLimiter = (settings: Settings, redis: SharedBy) => {
  const limits = RateLimiter.limitsOf(settings)
  return Option.match(redis, {
    onNone: () => RateLimiter.layerMemory(limits),
    onSome: (shared) =>
      // an IP address has another weight on each network
      RateLimiterRedis.layer({ ...limits, prefix: `trigate:{rate-limit:${settings.network}}:` }).pipe(
        Layer.provide(shared)
      )
  })
}

const outliers = (settings: Settings) =>
  OutlierDetection.layer({
    oneChain: [
      { upstream: Upstream.make("trading-node", settings.tradingNodeUrl) },
      { upstream: Upstream.make("layer2", settings.layer2Url) }
    ]
  })

const cache = (redis: SharedBy) =>
  Option.match(redis, {
    onNone: () => ResponseCache.layer(),
    onSome: (shared) => Layer.provide(ResponseCache.layerRedis(), shared)
  })

/** How calls reach the upstreams; replicas share rate limits and cached responses through Redis. */
const pipeline = (settings: Settings, redis: SharedBy) =>
  Pipeline.layerNoDeps({
    readDeadline: settings.readDeadline,
    onceDeadline: settings.onceDeadline,
    traceUpstream: settings.traceUpstream
  }).pipe(
    Layer.provide(outliers(settings)),
    Layer.provide(rateLimiter(settings, redis)),
    Layer.provide(HttpTransportUndici.layer({ connections: 512 })),
    Layer.provide(cache(redis))
  )

const live = (settings: Settings, redis: SharedBy) =>
  Layer.mergeAll(
    Trading.layerNoDeps({
      ...Admission.optionsOf(settings),
      network: settings.network,
      addresses: { api: settings.tradingApiUrl, node: settings.tradingNodeUrl }
    }),
    Tokens.layerNoDeps({ addresses: settings.tokenChainUrl }),
    Layer2Upstream.layer({ addresses: settings.layer2Url })
  ).pipe(Layer.provide(pipeline(settings, redis)))

/** Made-up actions stay in memory, apart from real ones. */
const sandbox = (settings: Settings) =>
  Layer.merge(Sandbox.layerNoDeps(), GatewayStatus.layerStoreReadiness).pipe(
    Layer.provide([Admission.layer(Admission.optionsOf(settings)), ActionLog.layerMemory()]),
    Layer.provide(VenueProfile.layer(settings.network))
  )

/** The five services, and whether the stores behind them can be reached. */
export const layer = (settings: Settings): Layer.Layer<Exclude<Sandbox.Services, SandboxState>> => {
  if (GatewayStatus.isSandbox(settings)) return sandbox(settings)
  const redis = Option.map(settings.redisUrl, SharedRedis.layer)
  const readiness = Option.match(redis, {
    onNone: () => GatewayStatus.layerStoreReadiness,
    onSome: (shared) => Layer.provide(GatewayStatus.layerStoreReadiness, shared)
  })
  return Layer.merge(live(settings, redis), readiness).pipe(Layer.provide(ActionLogStore.layer(settings, redis)))
}
