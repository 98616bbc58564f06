/**
 * `Quotas` that all processes with the same Redis and prefix count together: one script for each request.
 *
 * Redis holds one hash for each caller: its next time, and when each of its requests in flight is given up. A request that ends is
 * taken out in the background; one whose process has died leaves by itself. While Redis is away each process counts alone.
 */
import * as Quotas from "@trigate/callers/Quotas"
import type { Caller } from "@trigate/domain/Caller"
import * as SharedState from "@trigate/upstream/SharedState"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"

/** Where the counts are shared. */
export interface Options {
  /** What the keys begin with; `trigate:{quota}:` when not given. Processes with the same prefix count together. */
  readonly prefix?: string
  /** How long a request waits for Redis; 250 milliseconds when not given. */
  readonly deadline?: Duration.Input
}

/** Milliseconds after which a request in flight does not count any more: longer than any request takes. */
const givenUpAfter = 120_000

// the next time has a fraction of a millisecond, which a number of Redis would lose
const countScript = Redis.script((key: string, ...rest: ReadonlyArray<string | number>) => [key, ...rest], {
  numberOfKeys: 1,
  lua: `local now, interval, tolerance = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local most, request, givenUpAfter = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])
if most > 0 then
  local found, running = redis.call('HGETALL', KEYS[1]), 0
  for i = 1, #found, 2 do
    if found[i] ~= 'next' then
      if tonumber(found[i + 1]) <= now then redis.call('HDEL', KEYS[1], found[i]) else running = running + 1 end
    end
  end
  if running >= most then return { 'concurrent', '0' } end
end
local ahead = math.max(0, tonumber(redis.call('HGET', KEYS[1], 'next') or 0) - now)
if interval > 0 then
  if ahead > tolerance then return { 'requests', tostring(ahead - tolerance) } end
  ahead = ahead + interval
  redis.call('HSET', KEYS[1], 'next', string.format('%.3f', now + ahead))
end
if most > 0 then redis.call('HSET', KEYS[1], request, now + givenUpAfter) end
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

const away = (error: Redis.RedisError | Schema.SchemaError) =>
  new SharedState.SharedAway({ detail: error._tag === "RedisError" ? String(error.cause) : error.message })

const make = Effect.fnUntraced(function*({ deadline, prefix = "trigate:{quota}:" }: Options) {
  const redis = yield* Redis.Redis
  const state = yield* SharedState.make({ use: "quotas", ...(deadline === undefined ? {} : { deadline }) })
  const evaluateCount = redis.eval(countScript)
  const evaluateEnd = redis.eval(endScript)
  const process = (yield* Random.nextIntBetween(0, 36 ** 8)).toString(36)
  const count = Quotas.counting()
  // an end that finds no room here is lost: the request then counts until it is given up
  const ends = yield* Queue.dropping<Effect.Effect<void>>(4096)
  yield* Effect.forkScoped(Effect.forever(Effect.flatten(Queue.take(ends))))
  let last = 0

  const shared = (caller: Caller, rate: Quotas.Rate | undefined, now: number, here: Quotas.CountedHere) => {
    const key = `${prefix}${caller.id}`
    const request = `${process}-${(last++).toString(36)}`
    const most = caller.quota.concurrentCalls ?? 0
    return evaluateCount(key, now, rate?.interval ?? 0, rate?.tolerance ?? 0, most, request, givenUpAfter).pipe(
      Effect.flatMap(decodeAnswer),
      Effect.mapError(away),
      Effect.map(([word, millis]): Quotas.Counted | Quotas.Beyond => {
        if (word !== "counted") {
          here.undo()
          return { quota: word, wait: millis }
        }
        const end = () => {
          here.end()
          if (most === 0) return
          Queue.offerUnsafe(ends, state.orElse(Effect.mapError(evaluateEnd(key, request), away), Effect.void))
        }
        return { ...Quotas.standingOf(rate, millis), end }
      })
    )
  }

  return Quotas.make((caller, rate, now) => {
    // what this process alone has counted is never more than all have: a flood of refused requests costs Redis nothing
    const here = count(caller, rate, now)
    return "wait" in here
      ? Effect.succeed(here)
      : state.orElse<Quotas.Counted | Quotas.Beyond, never, never>(
        shared(caller, rate, now, here),
        Effect.succeed(here)
      )
  })
})

/** Quotas that processes share over Redis. */
export const layer = (options: Options = {}): Layer.Layer<Quotas.Quotas, never, Redis.Redis> =>
  Layer.effect(Quotas.Quotas, make(options))
