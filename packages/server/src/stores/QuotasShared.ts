/**
 * `Quotas` that several processes share through a store, and through Redis. Each request costs one query.
 *
 * A completed request is removed from the store in the background; a request of a crashed process expires there. While
 * the store is unreachable, each process counts only its own requests.
 *
 * Redis stores one hash for each caller: the time at which the caller's next request is allowed, and the expiry of each
 * of the caller's requests in flight.
 */
import * as Quotas from "@trigate/callers/Quotas"
import type { Caller } from "@trigate/domain/Caller"
import * as SharedState from "@trigate/upstream/unstable/SharedState"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"

/** The store of the counters. */
export interface Store extends Quotas.Counters<SharedState.StoreFault> {
  /** The name of the store in log lines. */
  readonly name: string
  /** Timeout of one operation on the store. Default: 250 milliseconds. */
  readonly deadline?: Duration.Input
}

/** Makes `Quotas` whose counters are in a store. */
export const make = Effect.fnUntraced(function*({ deadline, name, ...store }: Store) {
  const state = yield* SharedState.make({ use: "quotas", store: name, ...(deadline === undefined ? {} : { deadline }) })
  const process = (yield* Random.nextIntBetween(0, 36 ** 8)).toString(36)
  const count = Quotas.counting()
  // if the queue is full, the end of a request is lost, and the request counts until it expires
  const ends = yield* Queue.dropping<Effect.Effect<void>>(4096)
  yield* Effect.forkScoped(Effect.forever(Effect.flatten(Queue.take(ends))))
  let last = 0

  const shared = ({ id, quota }: Caller, rate: Quotas.Rate | undefined, calls: number, here: Quotas.CountedHere) => {
    const request = `${process}-${(last++).toString(36)}*${calls}`
    const most = quota.concurrentCalls ?? 0
    const { interval, tolerance } = rate ?? { interval: 0, tolerance: 0 }
    return Effect.map(
      store.count({ caller: id, request, calls, interval, tolerance, most }),
      ([word, millis]): Quotas.Counted | Quotas.Beyond => {
        if (word !== "counted") {
          here.undo()
          return { quota: word, wait: millis }
        }
        const end = () => {
          here.end()
          if (most === 0) return
          Queue.offerUnsafe(ends, state.orElse(Effect.asVoid(store.end(id, request)), Effect.void))
        }
        return { ...Quotas.rateStanding(rate, millis), end }
      }
    )
  }

  return Quotas.make((caller, rate, now, calls) => {
    // the shared count is never below this process's own count, so a request that exceeds the limit here needs no query
    const here = count(caller, rate, now, calls)
    return "wait" in here
      ? Effect.succeed(here)
      : state.orElse<Quotas.Counted | Quotas.Beyond, never, never>(
        shared(caller, rate, calls, here),
        Effect.succeed(here)
      )
  })
})

/** The prefix of the counters' Redis keys, and the timeout. */
export interface Options {
  /** Prefix of the Redis keys. Default: `trigate:{quota}:`. Processes with the same prefix share counters. */
  readonly prefix?: string
  /** Timeout of one script. Default: 250 milliseconds. */
  readonly deadline?: Duration.Input
}

// the script returns times as text, because Redis converts a Lua number to an integer and would drop the fraction of a
// millisecond
const countScript = Redis.script((key: string, ...rest: ReadonlyArray<string | number>) => [key, ...rest], {
  numberOfKeys: 1,
  lua: `local interval, tolerance = tonumber(ARGV[1]), tonumber(ARGV[2])
local most, request, givenUpAfter = tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local function callsOf(name) return tonumber(string.match(name, '%*(%d+)$') or 1) end
local calls = callsOf(request)
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
if most > 0 then
  local found, running = redis.call('HGETALL', KEYS[1]), 0
  for i = 1, #found, 2 do
    if found[i] ~= 'next' then
      if tonumber(found[i + 1]) <= now then redis.call('HDEL', KEYS[1], found[i]) else running = running + callsOf(found[i]) end
    end
  end
  if running + calls > most then return { 'concurrent', '0' } end
end
local ahead = math.max(0, tonumber(redis.call('HGET', KEYS[1], 'next') or 0) - now)
if interval > 0 then
  local wait = ahead + (calls - 1) * interval - tolerance
  if wait > ${Quotas.rounding} then return { 'requests', tostring(wait) } end
  ahead = ahead + calls * interval
  redis.call('HSET', KEYS[1], 'next', string.format('%.3f', now + ahead))
end
if most > 0 then redis.call('HSET', KEYS[1], request, string.format('%.0f', now + givenUpAfter)) end
redis.call('PEXPIRE', KEYS[1], math.ceil(ahead) + (most > 0 and givenUpAfter or 1000))
return { 'counted', tostring(ahead) }`
}).withReturnType<unknown>()

const endScript = Redis.script((key: string, request: string) => [key, request], {
  numberOfKeys: 1,
  lua: `redis.call('HDEL', KEYS[1], ARGV[1])`
})

const decodeReply = Schema.decodeUnknownEffect(
  Schema.Tuple([Schema.Literals(["counted", "requests", "concurrent"]), Schema.FiniteFromString])
)

/** Returns the counters in a Redis. */
export const countersIn = (redis: Redis.Redis["Service"], prefix: string): Quotas.Counters<SharedState.StoreFault> => {
  const evaluateCount = redis.eval(countScript)
  const evaluateEnd = redis.eval(endScript)
  return {
    count: ({ caller, interval, most, request, tolerance }) =>
      Effect.flatMap(
        evaluateCount(`${prefix}${caller}`, interval, tolerance, most, request, Quotas.givenUpAfter),
        decodeReply
      ),
    end: (caller, request) => evaluateEnd(`${prefix}${caller}`, request)
  }
}

/**
 * Quotas shared through Redis.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  { prefix = "trigate:{quota}:", ...options }: Options = {}
): Layer.Layer<Quotas.Quotas, never, Redis.Redis> =>
  Layer.effect(
    Quotas.Quotas,
    Effect.flatMap(Redis.Redis, (redis) => make({ ...options, name: "Redis", ...countersIn(redis, prefix) }))
  )
