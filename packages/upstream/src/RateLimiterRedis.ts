/**
 * `RateLimiter` whose limits are shared by all processes with the same Redis and prefix.
 *
 * Redis holds a hash for each limited upstream, with the units of each slot and class. Each process counts in its own window
 * as well. While Redis is away each process keeps the limit for itself, and together they may exceed it; the metric
 * `trigate_shared_state_degraded` and the log tell so.
 */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import * as RateLimiter from "./RateLimiter.ts"
import * as SharedState from "./SharedState.ts"

/** The limits, and where they are shared. */
export interface Options extends RateLimiter.Limits {
  /** What the keys begin with; `trigate:{rate-limit}:` when not given. Processes with the same prefix share their limits. */
  readonly prefix?: string
  /** How long a call waits for Redis; 250 milliseconds when not given. */
  readonly deadline?: Duration.Input
}

// a slot ahead of the current one is from a process whose clock is ahead: it counts, unless it is out of reach
const takeScript = Redis.script((key: string, ...rest: ReadonlyArray<string | number>) => [key, ...rest], {
  numberOfKeys: 1,
  lua:
    `local key, current, reach, class, cost = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local mostReads, mostUnits, timeToLive = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local found = redis.call('HGETALL', key)
local sum, slots = { read = 0, once = 0 }, {}
for i = 1, #found, 2 do
  local slot, class = string.match(found[i], '^(%d+) (%a+)$')
  slot = tonumber(slot)
  if slot < current - reach or slot > current + reach then
    redis.call('HDEL', key, found[i])
  else
    local units = tonumber(found[i + 1])
    sum[class] = sum[class] + units
    slots[#slots + 1] = { slot, class, units }
  end
end
if sum.read > mostReads or sum.read + sum.once > mostUnits then return { 'full', sum.read, sum.once, slots } end
redis.call('HINCRBY', key, ARGV[1] .. ' ' .. class, cost)
redis.call('PEXPIRE', key, timeToLive)
sum[class] = sum[class] + cost
return { 'taken', sum.read, sum.once, {} }`
}).withReturnType<unknown>()

// units that are gone have left the window, or Redis has lost them
const refundScript = Redis.script((key: string, field: string, units: number) => [key, field, units], {
  numberOfKeys: 1,
  lua: `local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
local units = math.min(held, tonumber(ARGV[2]))
if units > 0 then redis.call('HINCRBY', KEYS[1], ARGV[1], -units) end`
})

const FoundSlot = Schema.Tuple([Schema.Finite, Schema.Literals(["read", "once"]), Schema.Finite])

const decodeAnswer = Schema.decodeUnknownEffect(
  Schema.Tuple([Schema.Literals(["taken", "full"]), Schema.Finite, Schema.Finite, Schema.Array(FoundSlot)])
)

const slotsOf = (found: ReadonlyArray<typeof FoundSlot.Type>): ReadonlyArray<RateLimiter.Slot> =>
  found
    .map(([index, methodClass, units]) => ({ index, read: 0, once: 0, [methodClass]: units }))
    .toSorted((one, other) => one.index - other.index)

const away = (error: Redis.RedisError | Schema.SchemaError) =>
  new SharedState.SharedAway({ detail: error._tag === "RedisError" ? String(error.cause) : error.message })

const make = Effect.fnUntraced(function*({ deadline, prefix = "trigate:{rate-limit}:", ...limits }: Options) {
  const redis = yield* Redis.Redis
  const state = yield* SharedState.make({ use: "rate-limits", ...(deadline === undefined ? {} : { deadline }) })
  const evaluateTake = redis.eval(takeScript)
  const evaluateRefund = redis.eval(refundScript)
  // a refund that finds no room here is lost: the shared window is then smaller until it has passed, never larger
  const refunds = yield* Queue.dropping<Effect.Effect<void>>(4096)
  yield* Effect.forkScoped(Effect.forever(Effect.flatten(Queue.take(refunds))))

  const share = (upstream: string, bounds: RateLimiter.Bounds): RateLimiter.SharedWindow => {
    // slots of other bounds have other numbers
    const key = `${prefix}${upstream}:${bounds.slots}x${bounds.width}`
    const timeToLive = 2 * (bounds.slots + 1) * bounds.width
    return (call, ahead) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const slot = RateLimiter.slotAt(bounds, now)
        const mostReads = RateLimiter.mostReads(bounds, call.class, call.cost, ahead)
        const mostUnits = RateLimiter.mostUnits(bounds, call.class, call.cost, ahead)
        const refund = (units: number) => {
          const written = Effect.mapError(evaluateRefund(key, `${slot} ${call.class}`, units), away)
          Queue.offerUnsafe(refunds, state.orElse(written, Effect.void))
        }
        const taken = evaluateTake(key, slot, bounds.slots, call.class, call.cost, mostReads, mostUnits, timeToLive)
          .pipe(
            Effect.flatMap(decodeAnswer),
            Effect.mapError(away),
            Effect.map(([word, read, once, found]): RateLimiter.SharedAnswer => {
              const wait = word === "taken" ? 0 : RateLimiter.waitOf(bounds, slotsOf(found), call, ahead, now)
              return { held: { read, once }, wait, refund }
            })
          )
        return state.orElse<RateLimiter.SharedAnswer | undefined, never, never>(taken, Effect.undefined)
      })
  }
  return yield* RateLimiter.make(limits, share)
})

/** Rate limits that processes share over Redis. */
export const layer = (options: Options): Layer.Layer<RateLimiter.RateLimiter, never, Redis.Redis> =>
  Layer.effect(RateLimiter.RateLimiter, make(options))
