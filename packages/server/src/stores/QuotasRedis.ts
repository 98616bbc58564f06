/**
 * `Quotas` that all processes with the same Redis and prefix share. Each request runs one script.
 *
 * Redis stores one hash for each caller: the time at which the caller's next request is allowed, and the expiry of each
 * of the caller's requests in flight.
 */
import * as Quotas from "@trigate/callers/Quotas"
import * as SharedState from "@trigate/upstream/SharedState"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import * as QuotasShared from "./QuotasShared.ts"

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

const decodeAnswer = Schema.decodeUnknownEffect(
  Schema.Tuple([Schema.Literals(["counted", "requests", "concurrent"]), Schema.FiniteFromString])
)

const make = Effect.fnUntraced(function*({ prefix = "trigate:{quota}:", ...options }: Options) {
  const redis = yield* Redis.Redis
  const evaluateCount = redis.eval(countScript)
  const evaluateEnd = redis.eval(endScript)
  return yield* QuotasShared.make({
    ...options,
    name: "Redis",
    count: ({ caller, interval, most, request, tolerance }) =>
      evaluateCount(`${prefix}${caller}`, interval, tolerance, most, request, QuotasShared.givenUpAfter).pipe(
        Effect.flatMap(decodeAnswer),
        Effect.mapError(SharedState.unreachable)
      ),
    end: (caller, request) => Effect.mapError(evaluateEnd(`${prefix}${caller}`, request), SharedState.unreachable)
  })
})

/**
 * Quotas shared through Redis.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<Quotas.Quotas, never, Redis.Redis> =>
  Layer.effect(Quotas.Quotas, make(options))
