/**
 * How much of an upstream's stream limits all replicas use together. The limits apply to an IP address, which the
 * replicas share, and each replica has its own connections.
 *
 * Each replica reports its use once a second and after each new subscription, and receives the use of the other
 * replicas. If two replicas use the last unit of a limit at the same moment, the upstream refuses one of them.
 *
 * While the store of the reports is unreachable, each replica may take, beyond its last report, an equal share of what
 * was free then: {@link left}.
 */
import { addMillis, longAgo, monotonicTime } from "@trigate/domain/encoding/Encoding"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as SharedState from "../SharedState.ts"

/** How much of an upstream's limits is used. */
export const Use = Schema.Struct({
  connections: Schema.Natural,
  subscriptions: Schema.Natural,
  users: Schema.Array(Schema.String)
})
export type Use = typeof Use.Type

/** No use. */
export const none: Use = { connections: 0, subscriptions: 0, users: [] }

/** The total use of an upstream's limits by the other replicas. */
export interface OtherUse extends Use {
  /** The number of other replicas. */
  readonly replicas: number
  /** Whether all other replicas can report their use. If not, the members are those of the last exchange. */
  readonly isCurrent: boolean
}

/** The use of the other replicas if there are none. */
export const alone: OtherUse = { ...none, replicas: 0, isCurrent: true }

/**
 * Returns how much of a limit this replica may still take. `known` is the use of all replicas at the last exchange,
 * `growth` the further use of this replica since then.
 */
export const left = (most: number, known: number, growth: number, { isCurrent, replicas }: OtherUse): number =>
  Math.floor((most - known) / (isCurrent ? 1 : replicas + 1)) - growth

/**
 * Exchanges the use of the stream limits with other replicas: reports the use of this replica, and returns the total
 * use of the others.
 *
 * Provided by `ReplicaUse.layerMemory`, `ReplicaUse.layerRedis` or `ReplicaUseSql.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { ReplicaUse } from "@trigate/upstream"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { exchange } = yield* ReplicaUse.ReplicaUse
 *   yield* Console.log(yield* exchange({ connections: 1, subscriptions: 2, users: [] }))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, ReplicaUse.layerMemory))
 * ```
 * ```text
 * {
 *   connections: 0,
 *   subscriptions: 0,
 *   users: [],
 *   replicas: 0,
 *   isCurrent: true
 * }
 * ```
 */
export class ReplicaUse extends Context.Service<ReplicaUse, {
  /**
   * Reports the use of this process, and returns the total use of all other replicas. While the store is unreachable,
   * and until the other replicas have had time to report again, returns the last known total.
   */
  readonly exchange: (own: Use) => Effect.Effect<OtherUse>
}>()("@trigate/upstream/streams/ReplicaUse") {}

/**
 * Provides `ReplicaUse` for a process that is the only replica: the use of other replicas is always zero.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<ReplicaUse> = Layer.succeed(
  ReplicaUse,
  ReplicaUse.of({ exchange: () => Effect.succeed(alone) })
)

/** Milliseconds after which the reported use of a replica expires, unless the replica reports its use again. */
export const expiresAfter = 5000

/** The store in which the replicas report their use of the stream limits. */
export interface Store {
  /** The name of the store in log lines. */
  readonly name: string
  /** Timeout of one exchange of reports. Default: 250 milliseconds. */
  readonly deadline?: Duration.Input
  /** Stores the report of a replica: its use, as JSON. Returns the unexpired reports of the other replicas. */
  readonly exchange: (
    replica: string,
    report: string
  ) => Effect.Effect<ReadonlyArray<string>, SharedState.StoreFault>
}

const Report = Schema.fromJsonString(Use)
const encodeReport = Schema.encodeSync(Report)
const decodeReports = Schema.decodeUnknownEffect(Schema.Array(Report))

/** Makes the service `ReplicaUse` over a store of reports. */
export const make = Effect.fnUntraced(function*({ deadline, exchange, name }: Store) {
  const replica = (yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)).toString(36)
  const state = yield* SharedState.make({
    use: "streams",
    store: name,
    meanwhile: "this process takes at most its share of what other replicas were last known to leave",
    ...(deadline === undefined ? {} : { deadline })
  })
  let others = alone
  /** The time at which a replica that has not reported again since an outage has ended. */
  let currentAt = longAgo
  return ReplicaUse.of({
    exchange: (own) =>
      state.orElse(
        exchange(replica, encodeReport(own)).pipe(
          Effect.flatMap(decodeReports),
          Effect.zipWith(Clock.Clock, (reports, clock) => {
            // a store that was restarted without its data lacks the reports of the others at first
            if (monotonicTime(clock) < currentAt && reports.length < others.replicas) return others
            others = {
              connections: reports.reduce((sum, { connections }) => sum + connections, 0),
              subscriptions: reports.reduce((sum, { subscriptions }) => sum + subscriptions, 0),
              users: [...new Set(reports.flatMap(({ users }) => users))],
              replicas: reports.length,
              isCurrent: true
            }
            return others
          })
        ),
        Effect.map(Clock.Clock, (clock) => {
          currentAt = addMillis(monotonicTime(clock), expiresAfter)
          others = { ...others, isCurrent: false }
          return others
        })
      )
  })
})

/** The Redis key under which the replicas store their use of the stream limits. */
export interface Options {
  /** The key of the Redis hash, which has one field for each replica. Default: `trigate:{streams}:use`. */
  readonly key?: string
}

// reports expire by the clock of Redis, because the clocks of the replicas differ
const exchangeScript = Redis.script(
  (key: string, replica: string, report: string) => [key, replica, report, expiresAfter],
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

const decodeRedis = Schema.decodeUnknownEffect(Schema.Array(Schema.String))

/**
 * Provides `ReplicaUse` through the Redis of the context. Replicas with the same `key` share their limits, so set a
 * different `key` for each network.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { NodeRedis } from "@effect/platform-node"
 * import { ReplicaUse } from "@trigate/upstream"
 * import { Layer } from "effect"
 *
 * export const shared = Layer.provide(ReplicaUse.layerRedis(), NodeRedis.layer({ url: "redis://localhost:6379" }))
 * ```
 */
export const layerRedis = (
  { key = "trigate:{streams}:use" }: Options = {}
): Layer.Layer<ReplicaUse, never, Redis.Redis> =>
  Layer.effect(
    ReplicaUse,
    Effect.flatMap(Redis.Redis, (redis) => {
      const evaluate = redis.eval(exchangeScript)
      return make({
        name: "Redis",
        exchange: (replica, report) => Effect.flatMap(evaluate(key, replica, report), decodeRedis)
      })
    })
  )
