/**
 * `RateLimiter` whose limits are shared by all processes with the same Redis and key prefix.
 *
 * This module is the driver; `RateLimiterShared` contains the policy.
 *
 * Redis stores four hashes for each limited upstream: the units of each slot and class, the units of each caller, the
 * units available to refreshes of cached responses (`Pacer`), and the processes that use the limit.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import * as RateLimiter from "./RateLimiter.ts"
import * as RateLimiterShared from "./RateLimiterShared.ts"
import * as RateWindow from "./RateWindow.ts"

/** The limits, and their location in Redis. */
export interface Options extends RateLimiterShared.Options {
  /** Prefix of the keys. Default: `trigate:{rate-limit}:`. Processes with the same prefix share their limits. */
  readonly prefix?: string
}

const params = (...values: ReadonlyArray<string | number>) => values

const takeScript = Redis.script(params, {
  numberOfKeys: 4,
  lua: `if redis.call('HEXISTS', KEYS[4], ARGV[19]) == 0 then return { 'unknown', 0, 0, {}, 1, 0, 0, {}, '0', 1 } end
redis.call('HSET', KEYS[4], ARGV[19], ARGV[15])
redis.call('PEXPIRE', KEYS[4], ARGV[7])
local members, replicas = redis.call('HGETALL', KEYS[4]), 0
for i = 1, #members, 2 do
  local seen = tonumber(members[i + 1])
  if seen < tonumber(ARGV[15]) - tonumber(ARGV[7]) then redis.call('HDEL', KEYS[4], members[i]) end
  if seen >= tonumber(ARGV[20]) then replicas = replicas + 1 end
end
local pace = redis.call('HMGET', KEYS[3], 'level', 'at', 'waits', 'waitsAt')
local time, rate, burst = tonumber(ARGV[15]), tonumber(ARGV[16]), tonumber(ARGV[17])
local level = burst
if pace[1] then
  level = math.max(-burst, math.min(burst, tonumber(pace[1]) + math.max(0, time - tonumber(pace[2])) * rate))
end
local current, reach, class, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local maxReads, maxUnits, timeToLive = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local found = redis.call('HGETALL', KEYS[1])
local sum, slots = { read = 0, once = 0 }, {}
for i = 1, #found, 2 do
  local slot, class = string.match(found[i], '^(%d+) (%a+)$')
  slot = tonumber(slot)
  if slot < current - reach or slot > current + reach then
    redis.call('HDEL', KEYS[1], found[i])
  else
    local units = tonumber(found[i + 1])
    sum[class] = sum[class] + units
    slots[#slots + 1] = { slot, class, units }
  end
end
if class == 'read' and pace[3] and math.abs(time - tonumber(pace[4])) < 1000 then
  maxUnits = maxUnits - tonumber(pace[3])
end
local full = sum.read > maxReads or sum.read + sum.once > maxUnits
if class == 'once' and full then
  redis.call('HSET', KEYS[3], 'waits', tostring(cost), 'waitsAt', ARGV[15])
  redis.call('PEXPIRE', KEYS[3], timeToLive)
elseif class == 'once' and pace[3] then
  redis.call('HDEL', KEYS[3], 'waits', 'waitsAt')
end
local caller = ARGV[8]
if ARGV[18] == '1' and level <= 0 then return { 'paced', sum.read, sum.once, {}, 1, 0, 0, {}, tostring(level), replicas } end
if caller == '' then
  if full then return { 'full', sum.read, sum.once, slots, 1, 0, 0, {}, tostring(level), replicas } end
else
  local currentOf, reachOf = tonumber(ARGV[9]), tonumber(ARGV[10])
  local lendUnits, lendReads, callers = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
  local all, own, count = { [caller] = { 0, 0, 0, 0 } }, {}, 0
  found = redis.call('HGETALL', KEYS[2])
  for i = 1, #found, 2 do
    local slot, class, name = string.match(found[i], '^(%d+) (%a+) (.+)$')
    slot = tonumber(slot)
    if slot < currentOf - 2 * reachOf - 1 or slot > currentOf + reachOf then
      redis.call('HDEL', KEYS[2], found[i])
    else
      local units = tonumber(found[i + 1])
      local held = all[name] or { 0, 0, 0, 0 }
      all[name] = held
      local at = slot < currentOf - reachOf and 3 or 1
      held[at] = held[at] + units
      if class == 'read' then held[at + 1] = held[at + 1] + units end
      if at == 1 and name == caller then own[#own + 1] = { slot, class, units } end
    end
  end
  for name, held in pairs(all) do
    if held[1] + held[3] > 0 or name == caller then count = count + 1 end
  end
  callers = math.max(callers, count)
  local shareUnits, shareReads = lendUnits / callers, lendReads / callers
  local usedUnits, usedReads, restUnits, restReads = 0, 0, sum.read + sum.once, sum.read
  for name, held in pairs(all) do
    restUnits, restReads = restUnits - held[1], restReads - held[2]
    if name ~= caller then
      usedUnits = usedUnits + math.max(held[1], math.min(shareUnits, held[3]))
      usedReads = usedReads + math.max(held[2], math.min(shareReads, held[4]))
    end
  end
  usedUnits, usedReads = usedUnits + math.max(0, restUnits), usedReads + math.max(0, restReads)
  local capUnits = math.max(shareUnits, lendUnits - usedUnits)
  local capReads = math.max(shareReads, lendReads - usedReads)
  local function fits(units, reads)
    local held = all[caller]
    return held[1] <= units - math.min(cost, units) and (class == 'once' or held[2] <= reads - math.min(cost, reads))
  end
  local within = fits(shareUnits, shareReads) and 1 or 0
  if full or within == 0 and not fits(capUnits, capReads) then
    return { 'full', sum.read, sum.once, slots, within, tostring(capUnits), tostring(capReads), own, tostring(level), replicas }
  end
  redis.call('HINCRBY', KEYS[2], ARGV[9] .. ' ' .. class .. ' ' .. caller, cost)
  redis.call('PEXPIRE', KEYS[2], ARGV[14])
end
redis.call('HINCRBY', KEYS[1], ARGV[1] .. ' ' .. class, cost)
redis.call('PEXPIRE', KEYS[1], timeToLive)
sum[class] = sum[class] + cost
if burst > 0 then
  level = level - cost
  redis.call('HSET', KEYS[3], 'level', tostring(level), 'at', ARGV[15])
  redis.call('PEXPIRE', KEYS[3], timeToLive)
end
return { 'taken', sum.read, sum.once, {}, 1, 0, 0, {}, tostring(level), replicas }`
}).withReturnType<unknown>()

/**
 * Returns 1 if Redis knew the process, otherwise 0. The arguments are the identifier, the time, the time to live, the
 * time for which no other process writes the use of all, the time of the last report, the width of a slot, and the
 * number of slots and classes of the process. Then, for each slot and class: the field and the four numbers of
 * {@link RateLimiterShared.OwnUse}. The remaining arguments are the fields and units of all processes.
 */
const joinScript = Redis.script(params, {
  numberOfKeys: 3,
  lua: `local known = redis.call('HEXISTS', KEYS[2], ARGV[1])
local last = 7 + 5 * tonumber(ARGV[7])
local which, from = known == 1 and 2 or 1, nil
if known == 0 and #ARGV > last then
  which = 4
  if redis.call('SET', KEYS[3], 'at ' .. ARGV[5], 'NX', 'PX', ARGV[4]) then
    which = 3
    for i = last + 1, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
  else
    from = tonumber(string.match(redis.call('GET', KEYS[3]) or '', '^at (%d+)$'))
    if from then which = 1 end
  end
end
for i = 8, last, 5 do
  local units = tonumber(ARGV[i + which])
  if from and (tonumber(string.match(ARGV[i], '^%d+')) + 1) * tonumber(ARGV[6]) <= from then units = tonumber(ARGV[i + 2]) end
  if units > 0 then redis.call('HINCRBY', KEYS[1], ARGV[i], units) end
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return known`
}).withReturnType<number>()

const reportScript = Redis.script(params, {
  numberOfKeys: 2,
  lua: `if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then return nil end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return redis.call('HGETALL', KEYS[1])`
}).withReturnType<unknown>()

const decodeTime = Schema.decodeUnknownEffect(Schema.Tuple([Schema.String, Schema.String]))
const decodeReport = Schema.decodeUnknownEffect(Schema.NullOr(Schema.Array(Schema.String)))

const formatField = ({ class: methodClass, slot }: Pick<RateLimiterShared.SlotUnits, "class" | "slot">): string =>
  `${slot} ${methodClass}`

/** Converts the fields and values of a hash. */
const toUse = (found: ReadonlyArray<string>): ReadonlyArray<RateLimiterShared.SlotUnits> =>
  found.flatMap((field, index) => {
    if (index % 2 === 1) return []
    const [slot, methodClass] = field.split(" ")
    return [{ slot: Number(slot), class: methodClass === "once" ? "once" : "read", units: Number(found[index + 1]) }]
  })

const paceRefundScript = Redis.script(params, {
  numberOfKeys: 1,
  lua: `if redis.call('HEXISTS', KEYS[1], 'level') == 1 then redis.call('HINCRBYFLOAT', KEYS[1], 'level', ARGV[1]) end`
})

const refundScript = Redis.script(params, {
  numberOfKeys: 1,
  lua: `local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
local units = math.min(held, tonumber(ARGV[2]))
if units > 0 then redis.call('HINCRBY', KEYS[1], ARGV[1], -units) end`
})

const FoundSlot = Schema.Tuple([Schema.Finite, Schema.Literals(["read", "once"]), Schema.Finite])
const Units = Schema.Union([Schema.Finite, Schema.FiniteFromString])

const decodeReply = Schema.decodeUnknownEffect(
  Schema.Tuple([
    Schema.Literals(["taken", "full", "paced", "unknown"]),
    Schema.Finite,
    Schema.Finite,
    Schema.Array(FoundSlot),
    Schema.Finite,
    Units,
    Units,
    Schema.Array(FoundSlot),
    Units,
    Schema.Finite
  ])
)

const toSlots = (found: ReadonlyArray<typeof FoundSlot.Type>): ReadonlyArray<RateWindow.Slot> =>
  // a call that starts needs no slots
  found.length === 0 ? [] : found
    .map(([index, methodClass, units]) => ({ index, read: 0, once: 0, [methodClass]: units }))
    .toSorted((one, other) => one.index - other.index)

/** Makes the driver of the limits in a Redis. */
export const makeDriver = (redis: Redis.Redis["Service"], prefix: string): RateLimiterShared.Driver => {
  const evaluateTake = redis.eval(takeScript)
  const evaluateJoin = redis.eval(joinScript)
  const evaluateReport = redis.eval(reportScript)
  const evaluateRefund = redis.eval(refundScript)
  const evaluatePaceRefund = redis.eval(paceRefundScript)
  const counters: RateLimiterShared.Driver["counters"] = (
    { bounds, burst, isPaced, name, ofCaller, rate, timeToLive, timeToLiveOfCallers }
  ) => {
    // windows with a different number or width of slots number their slots differently, so they have different keys
    const key = `${prefix}${name}:${bounds.slots}x${bounds.width}`
    const keyOfCallers = `${key}:callers`
    const keyOfPace = `${key}:pace`
    const keyOfMembers = `${key}:members`
    const keyOfRestored = `${key}:restored`
    return {
      take: ({ call, callers, id, maxReads, maxUnits, now, since, slot, slotOfCaller }) =>
        evaluateTake(
          key,
          keyOfCallers,
          keyOfPace,
          keyOfMembers,
          slot,
          bounds.slots,
          call.class,
          call.cost,
          maxReads,
          maxUnits,
          timeToLive,
          call.caller ?? "",
          slotOfCaller,
          ofCaller.slots,
          RateWindow.lendable(bounds.limit),
          RateWindow.lendable(bounds.readLimit),
          callers,
          timeToLiveOfCallers,
          now,
          rate,
          burst,
          isPaced && call.isRefresh === true ? 1 : 0,
          id,
          since
        ).pipe(
          Effect.flatMap(decodeReply),
          Effect.map(
            ([outcome, read, once, found, within, limit, readLimit, ofCall, level, replicas]) => ({
              outcome,
              held: { read, once },
              slots: toSlots(found),
              isWithinShare: within === 1,
              cap: { limit, readLimit },
              ofCaller: toSlots(ofCall),
              level,
              replicas
            })
          )
        ),
      join: ({ all, id, lasts, now, own, since }) => {
        const keys = [key, keyOfMembers, keyOfRestored]
        const values = own.flatMap((use) => [formatField(use), use.units, use.alone, use.sinceReport, use.lately])
        const ofAll = all.flatMap((use) => [formatField(use), use.units])
        return Effect.map(
          evaluateJoin(...keys, id, now, timeToLive, lasts, since, bounds.width, own.length, ...values, ...ofAll),
          (known) => known !== 0
        )
      },
      report: (id, now) =>
        Effect.map(
          Effect.flatMap(evaluateReport(key, keyOfMembers, id, now, timeToLive), decodeReport),
          (found) => found === null ? undefined : toUse(found)
        ),
      refund: ({ caller, units, ...counted }) =>
        Effect.asVoid(
          caller === undefined
            ? evaluateRefund(key, formatField(counted), units)
            : evaluateRefund(keyOfCallers, `${formatField(counted)} ${caller}`, units)
        ),
      refundPace: (units) => Effect.asVoid(evaluatePaceRefund(keyOfPace, units))
    }
  }
  const time = Effect.map(
    Effect.flatMap(redis.send("TIME"), decodeTime),
    ([seconds, micros]) => Number(seconds) * 1000 + Number(micros) / 1000
  )
  return { counters, time }
}

/**
 * Provides a rate limiter whose limits are shared through Redis.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { NodeRedis } from "@effect/platform-node"
 * import { RateLimiterRedis } from "@trigate/upstream"
 * import { Layer } from "effect"
 *
 * export const shared = Layer.provide(RateLimiterRedis.layer({ "trading-api": 1200 }), NodeRedis.layer({ url: "redis://localhost:6379" }))
 * ```
 */
export const layer = (
  { prefix = "trigate:{rate-limit}:", ...limits }: Options
): Layer.Layer<RateLimiter.RateLimiter, never, Redis.Redis> =>
  Layer.effect(
    RateLimiter.RateLimiter,
    Effect.flatMap(Redis.Redis, (redis) => RateLimiterShared.make(limits, makeDriver(redis, prefix)))
  )
