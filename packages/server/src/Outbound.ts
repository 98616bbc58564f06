/**
 * How the calls of live chains go out: response cache, rate limiter, outlier detection, transport.
 *
 * In process, or in the Redis that the settings name, whatever replicas of a gateway have to agree on.
 */
import type { Settings } from "@trigate/domain/Settings"
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

/** The Redis of the settings; all that share state over it take this one layer, and with it one connection. */
export type SharedBy = Option.Option<Layer.Layer<Redis.Redis>>

/** The weight of one network's address is not that of another's. */
const rateLimiter = (settings: Settings, redis: SharedBy) => {
  const limits = RateLimiter.limitsOf(settings)
  return Option.match(redis, {
    onNone: () => RateLimiter.layerMemory(limits),
    onSome: (shared) =>
      Layer.provide(
        RateLimiterRedis.layer({ ...limits, prefix: `trigate:{rate-limit:${settings.network}}:` }),
        shared
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

const sharing = (redis: SharedBy) =>
  Option.match(redis, {
    onNone: () => ResponseCache.layer(),
    onSome: (shared) => Layer.provide(ResponseCache.layerRedis(), shared)
  })

/** The pipeline of live chains. */
export const layer = (settings: Settings, redis: SharedBy): Layer.Layer<Pipeline.Pipeline> =>
  Pipeline.layerNoDeps({
    readDeadline: settings.readDeadline,
    onceDeadline: settings.onceDeadline
  }).pipe(
    Layer.provide(outliers(settings)),
    Layer.provide(rateLimiter(settings, redis)),
    Layer.provide(HttpTransportUndici.layer({ connections: 512 })),
    Layer.provide(sharing(redis))
  )
