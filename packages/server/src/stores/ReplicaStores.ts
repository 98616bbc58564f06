/**
 * Selects the stores that replicas share from the settings: Redis if it is configured, otherwise Postgres, otherwise
 * the memory of the process.
 */
import * as Quotas from "@trigate/callers/Quotas"
import * as EventStore from "@trigate/trading/accounts/EventStore"
import * as EventStoreRedis from "@trigate/trading/accounts/EventStoreRedis"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as FilterStore from "@trigate/upstream/evm/FilterStore"
import * as ReplicaUse from "@trigate/upstream/streams/ReplicaUse"
import * as ReplicaUseRedis from "@trigate/upstream/streams/ReplicaUseRedis"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redis from "effect/persistence/Redis"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Settings } from "../settings/Settings.ts"
import { toEventLog } from "../streams/StreamOptions.ts"
import * as ActionLogStore from "./ActionLogStore.ts"
import * as QuotasRedis from "./QuotasRedis.ts"

/**
 * The layer of the Redis server, if one is configured. All services that use Redis share it, and therefore one
 * connection.
 */
export type SharedBy = Option.Option<Layer.Layer<Redis.Redis>>

/**
 * Returns the layer of a service that all replicas share: through Redis if it is configured, otherwise through
 * Postgres. If neither is configured, each process has its own service.
 */
const acrossReplicas = <S>(
  settings: Settings,
  redis: SharedBy,
  layers: {
    readonly memory: () => Layer.Layer<S>
    readonly redis: () => Layer.Layer<S, never, Redis.Redis>
    /**
     * Loads the Postgres implementation, if there is one. Called only if Postgres is configured and Redis is not.
     */
    readonly postgres?: () => Promise<Layer.Layer<S, never, SqlClient>>
  }
): Layer.Layer<S> => {
  const { memory, postgres } = layers
  const database = Option.filter(ActionLogStore.findDatabase(settings), ({ kind }) => kind === "Postgres")
  const inPostgres = () =>
    postgres === undefined || Option.isNone(database) ? memory() : Layer.provide(
      Layer.unwrap(Effect.promise(postgres)),
      ActionLogStore.layerDatabase(database.value, "existing")
    )
  return Option.match(redis, {
    onNone: inPostgres,
    onSome: (client) => Layer.provide(layers.redis(), client)
  })
}

/** Returns the service that counts callers' requests against their quotas. */
export const quotas = (settings: Settings, redis: SharedBy): Layer.Layer<Quotas.Quotas> =>
  acrossReplicas(settings, redis, {
    memory: () => Quotas.layerMemory,
    redis: () => QuotasRedis.layer({ prefix: `trigate:{quota:${settings.network}}:` }),
    postgres: () => import("./QuotasSql.ts").then(({ layer }) => layer({ prefix: `${settings.network}:` }))
  })

/** Returns the store of account events. Clients that reconnect receive missed events from this store. */
const eventStore = (settings: Settings, redis: SharedBy): Layer.Layer<EventStore.EventStore> => {
  const { bounds } = toEventLog(settings)
  return acrossReplicas(settings, redis, {
    memory: EventStore.layerMemory,
    redis: () => EventStoreRedis.layer({ prefix: `trigate:{events:${settings.network}}:`, bounds }),
    postgres: () =>
      import("@trigate/trading/accounts/EventStoreSql").then(({ layer }) =>
        layer({ network: settings.network, bounds })
      )
  })
}

/** Returns the service through which replicas exchange how much of the venue's stream limits they use. */
const replicaUse = (settings: Settings, redis: SharedBy): Layer.Layer<ReplicaUse.ReplicaUse> =>
  acrossReplicas(settings, redis, {
    memory: () => ReplicaUse.layerMemory,
    redis: () => ReplicaUseRedis.layer({ key: `trigate:{streams:${settings.network}}:use` }),
    postgres: () =>
      import("@trigate/upstream/streams/ReplicaUseSql").then(({ layer }) => layer({ network: settings.network }))
  })

/**
 * Provides cached responses, account events, the use of the venue's stream limits, and callers' EVM filters.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (settings: Settings, redis: SharedBy) =>
  Layer.mergeAll(
    acrossReplicas(settings, redis, { memory: () => ResponseCache.layer(), redis: () => ResponseCache.layerRedis() }),
    acrossReplicas(settings, redis, {
      memory: () => FilterStore.layerMemory(),
      redis: () => FilterStore.layerRedis({ prefix: `trigate:{evm-filters:${settings.network}}:` })
    }),
    eventStore(settings, redis),
    replicaUse(settings, redis)
  )
