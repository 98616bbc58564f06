/**
 * `ReplicaUse` through a Redis that the replicas share. Each replica stores its use of the stream limits in one Redis
 * hash. A single script stores the use of one replica and returns the use of the others.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import * as ReplicaUse from "./ReplicaUse.ts"

/** The Redis key under which the replicas store their use of the stream limits. */
export interface Options {
  /** The key of the Redis hash, which has one field for each replica. Default: `trigate:{streams}:use`. */
  readonly key?: string
}

// reports expire by the clock of Redis, because the clocks of the replicas differ
const exchangeScript = Redis.script(
  (key: string, replica: string, report: string) => [key, replica, report, ReplicaUse.expiresAfter],
  {
    numberOfKeys: 1,
    lua: `local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local found, others = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #found, 2 do
  local expiry, report = string.match(found[i + 1], '^(%d+) (.*)$')
  if tonumber(expiry) <= now then
    redis.call('HDEL', KEYS[1], found[i])
  elseif found[i] ~= ARGV[1] then
    others[#others + 1] = report
  end
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now + tonumber(ARGV[3])) .. ' ' .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return others`
  }
).withReturnType<unknown>()

const decodeReports = Schema.decodeUnknownEffect(Schema.Array(Schema.String))

/**
 * Provides `ReplicaUse` through the Redis of the context. Replicas with the same `key` share their limits, so set a
 * different `key` for each network.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { NodeRedis } from "@effect/platform-node"
 * import { ReplicaUseRedis } from "@trigate/upstream"
 * import { Layer } from "effect"
 *
 * export const shared = Layer.provide(ReplicaUseRedis.layer(), NodeRedis.layer({ url: "redis://localhost:6379" }))
 * ```
 */
export const layer = (
  { key = "trigate:{streams}:use" }: Options = {}
): Layer.Layer<ReplicaUse.ReplicaUse, never, Redis.Redis> =>
  Layer.effect(
    ReplicaUse.ReplicaUse,
    Effect.flatMap(Redis.Redis, (redis) => {
      const evaluate = redis.eval(exchangeScript)
      return ReplicaUse.make({
        name: "Redis",
        exchange: (replica, report) => Effect.flatMap(evaluate(key, replica, report), decodeReports)
      })
    })
  )
