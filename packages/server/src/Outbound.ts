/**
 * How the calls of live chains go out: sharing, budgets, health of the addresses, wire.
 *
 * In process, or in the Redis that the settings name, whatever replicas of a gateway have to agree on.
 */
import * as AddressHealthMemory from "@trigate/upstream/AddressHealthMemory"
import * as AddressHealthRedis from "@trigate/upstream/AddressHealthRedis"
import * as Budgets from "@trigate/upstream/Budgets"
import * as Calls from "@trigate/upstream/Calls"
import * as ChainGuard from "@trigate/upstream/ChainGuard"
import * as SharedReads from "@trigate/upstream/SharedReads"
import * as Upstream from "@trigate/upstream/Upstream"
import * as WireUndici from "@trigate/upstream/WireUndici"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redis from "effect/persistence/Redis"
import type { Settings } from "./Settings.ts"

/** The Redis of the settings; all that share state over it take this one layer, and with it one connection. */
export type SharedBy = Option.Option<Layer.Layer<Redis.Redis>>

/** The weight of one network's address is not that of another's. */
const budgets = (settings: Settings, redis: SharedBy) => {
  const limits = {
    "trading-api": settings.TRIGATE_TRADING_API_WEIGHT,
    "trading-node": Option.getOrUndefined(settings.TRIGATE_TRADING_NODE_RPS),
    "token-chain": Option.getOrUndefined(settings.TRIGATE_TOKEN_CHAIN_RPS),
    layer2: Option.getOrUndefined(settings.TRIGATE_LAYER2_RPS)
  }
  return Option.match(redis, {
    onNone: () => Budgets.layerMemory(limits),
    onSome: (shared) =>
      Layer.provide(Budgets.layer({ ...limits, prefix: `trigate:{budgets:${settings.TRIGATE_NETWORK}}:` }), shared)
  })
}

const health = (settings: Settings, redis: SharedBy) =>
  ChainGuard.layer({
    guarded: [
      { upstream: Upstream.make("trading-node", settings.TRIGATE_TRADING_NODE_URL), path: "/evm" },
      { upstream: Upstream.make("layer2", settings.TRIGATE_LAYER2_URL), path: "" }
    ]
  }).pipe(Layer.provide(Option.match(redis, {
    onNone: () => AddressHealthMemory.layer(),
    onSome: (shared) => Layer.provide(AddressHealthRedis.layer(), shared)
  })))

const sharing = (redis: SharedBy) =>
  Option.match(redis, {
    onNone: () => SharedReads.layer(),
    onSome: (shared) => Layer.provide(SharedReads.layerRedis(), shared)
  })

/** The calls of live chains, and what they share with each other. */
export const layer = (settings: Settings, redis: SharedBy): Layer.Layer<Calls.Calls | SharedReads.SharedReads> =>
  Calls.layerNoDeps({
    readDeadline: settings.TRIGATE_READ_DEADLINE,
    onceDeadline: settings.TRIGATE_ONCE_DEADLINE
  }).pipe(
    Layer.provide(health(settings, redis)),
    Layer.provide(budgets(settings, redis)),
    Layer.provide(WireUndici.layer({ connections: 512 })),
    Layer.merge(sharing(redis))
  )
