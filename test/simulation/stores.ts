/** The stores that the simulated replicas share: those of a Redis, and optionally a Postgres for the action log. */
import type { Stores } from "@trigate/simulation/Gateway"
import * as Gateway from "@trigate/simulation/Gateway"
import type { StoreServer } from "@trigate/simulation/StoreServer"
import * as EventLogs from "@trigate/simulation/unstable/stores/EventLogs"
import * as PostgresActionLog from "@trigate/simulation/unstable/stores/PostgresActionLog"
import * as RedisActionLog from "@trigate/simulation/unstable/stores/RedisActionLog"
import * as RedisCache from "@trigate/simulation/unstable/stores/RedisCache"
import * as RedisRateLimits from "@trigate/simulation/unstable/stores/RedisRateLimits"
import * as StreamUse from "@trigate/simulation/unstable/stores/StreamUse"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"

/** Makes the stores, and what a replica uses of them. With `postgres`, the action log is in Postgres. */
export const makeStores = (redis: StoreServer, postgres: StoreServer | undefined) => {
  const rateLimits = RedisRateLimits.make()
  const inRedis = RedisActionLog.make()
  const events = EventLogs.makeRedis()
  const cache = RedisCache.make()
  const use = StreamUse.make()
  const inPostgres = PostgresActionLog.make()
  return {
    /** Empties Redis, as a restart without data does. */
    emptyRedis: () => {
      rateLimits.clear()
      inRedis.clear()
      for (const store of [events, cache, use]) store.clear()
    },
    /** Makes the stores of one replica. */
    forReplica: (): Stores => ({
      ...Gateway.memoryStores(),
      actionLog: postgres === undefined
        ? RedisActionLog.layer(inRedis, redis.access, { lease: "25 seconds" })
        : PostgresActionLog.layer(inPostgres, postgres.access, { lease: "25 seconds" }),
      cache: RedisCache.layer(cache, redis.access),
      replicaUse: StreamUse.layer(use, redis.access),
      events: EventLogs.layerRedis(events, redis.access),
      rateLimits: (settings, windows) =>
        RedisRateLimits.layer(rateLimits, redis.access, { ...RateLimiter.toLimits(settings), windows })
    })
  }
}
