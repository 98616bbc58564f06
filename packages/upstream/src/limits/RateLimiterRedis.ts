/**
 * `RateLimiter` whose limits are shared by all processes with the same Redis and key prefix.
 *
 * Redis stores four hashes for each limited upstream: the units of each slot and class, the units of each caller, the
 * units available to refreshes of cached responses (`Pacer`), and the processes that use the limit. Each process
 * also counts in its own window.
 *
 * While Redis is unreachable, each process uses at most its part of the limit (one half with two processes). It also
 * uses at most the units that other processes had left when Redis last responded. The metric
 * `trigate_shared_state_degraded` and the log report the outage. When Redis is reachable again, the process writes the
 * calls that it started during the outage, or its complete use if Redis has lost it.
 */
import { monotonicMillis } from "@trigate/domain/encoding/Encoding"
import type * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as SharedState from "../SharedState.ts"
import * as RateLimiter from "./RateLimiter.ts"
import * as RateWindow from "./RateWindow.ts"

/** The limits, and their location in Redis. */
export interface Options extends RateLimiter.Limits {
  /** Prefix of the keys. Default: `trigate:{rate-limit}:`. Processes with the same prefix share their limits. */
  readonly prefix?: string
  /** Timeout of one operation in Redis. Default: 250 milliseconds. */
  readonly deadline?: Duration.Input
  /** The windows of this process, for a limiter that replaces an earlier one. Default: new windows. */
  readonly windows?: RateLimiter.Windows["Service"]
}

const params = (...values: ReadonlyArray<string | number>) => values

// an action for which there is no capacity is recorded for a second: until it has started or tries again, the reads of
// all processes leave room for it
// a slot in the future is from a process whose clock is ahead: it counts, unless it is too far ahead
const takeScript = Redis.script(params, {
  numberOfKeys: 4,
  lua: `if redis.call('HEXISTS', KEYS[4], ARGV[19]) == 0 then return { 'unknown', 0, 0, {}, 1, 0, 0, {}, '0', 1 } end
redis.call('HSET', KEYS[4], ARGV[19], ARGV[15])
redis.call('PEXPIRE', KEYS[4], ARGV[7])
local members, replicas = redis.call('HGETALL', KEYS[4]), 0
for i = 1, #members, 2 do
  local seen = tonumber(members[i + 1])
  if seen < tonumber(ARGV[15]) - tonumber(ARGV[7]) then redis.call('HDEL', KEYS[4], members[i]) end
  if seen >= tonumber(ARGV[15]) - tonumber(ARGV[20]) then replicas = replicas + 1 end
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
 * Registers a process, and writes its use of the limit. If Redis does not know the process, Redis has lost its data, or
 * the process has just started. The first process that reported before the loss then also writes the use of all
 * processes, as it was at its last report: processes that have ended since then cannot write theirs.
 *
 * A process that joins after that writes only its use since that last report, because the rest is part of the use of all.
 * If an earlier version wrote the use of all, the process writes its use since shortly before its own report.
 *
 * Returns 1 if Redis knew the process, otherwise 0. The arguments are the identifier, the time, the time to live, the
 * time for which no other process writes the use of all, the time of the last report, the width of a slot, and the
 * number of slots and classes of the process. Then, for each slot and class: the field, the total units of the process, the units of calls that started while Redis was
 * unreachable, the units since the last report, and the units since shortly before it, in which another process may
 * have reported. The remaining arguments are the fields and units of all processes.
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
  if from and (tonumber(string.match(ARGV[i], '^%d+')) + 1) * tonumber(ARGV[6]) <= from then units = 0 end
  if units > 0 then redis.call('HINCRBY', KEYS[1], ARGV[i], units) end
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return known`
}).withReturnType<number>()

/** Reports that a process is running. Returns the use of all processes; `nil` if Redis does not know the process. */
const reportScript = Redis.script(params, {
  numberOfKeys: 2,
  lua: `if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then return nil end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return redis.call('HGETALL', KEYS[1])`
}).withReturnType<unknown>()

const decodeReport = Schema.decodeUnknownEffect(Schema.NullOr(Schema.Array(Schema.String)))

/** Milliseconds after which a read that waits for an action of another process tries again. */
const recheckAfter = 250

/** Milliseconds between two reports of a process, also if it starts no calls. */
const reportEvery = 2000

/** Milliseconds by which the clocks of two processes may differ. */
const clockMargin = 1000

/** Milliseconds after its last report for which a process counts as running. */
const runningFor = 5 * reportEvery

/** Refunds units to the allowance for refreshes of cached responses. */
const paceRefundScript = Redis.script(params, {
  numberOfKeys: 1,
  lua: `if redis.call('HEXISTS', KEYS[1], 'level') == 1 then redis.call('HINCRBYFLOAT', KEYS[1], 'level', ARGV[1]) end`
})

// refunds at most the units that Redis has: the others have left the window, or Redis has lost them
const refundScript = Redis.script(params, {
  numberOfKeys: 1,
  lua: `local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
local units = math.min(held, tonumber(ARGV[2]))
if units > 0 then redis.call('HINCRBY', KEYS[1], ARGV[1], -units) end`
})

const FoundSlot = Schema.Tuple([Schema.Finite, Schema.Literals(["read", "once"]), Schema.Finite])
const Units = Schema.Union([Schema.Finite, Schema.FiniteFromString])

const decodeAnswer = Schema.decodeUnknownEffect(
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
  found
    .map(([index, methodClass, units]) => ({ index, read: 0, once: 0, [methodClass]: units }))
    .toSorted((one, other) => one.index - other.index)

const make = Effect.fnUntraced(function*({ deadline, prefix = "trigate:{rate-limit}:", windows, ...limits }: Options) {
  const redis = yield* Redis.Redis
  const state = yield* SharedState.make({ use: "rate-limits", ...(deadline === undefined ? {} : { deadline }) })
  const evaluateTake = redis.eval(takeScript)
  const evaluateJoin = redis.eval(joinScript)
  const evaluateReport = redis.eval(reportScript)
  const evaluateRefund = redis.eval(refundScript)
  const evaluatePaceRefund = redis.eval(paceRefundScript)
  const id = (yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)).toString(36)
  // if the queue is full, a refund is lost: the shared limit is then too low until the window has passed, but never too
  // high
  const refunds = yield* Queue.dropping<Effect.Effect<void>>(4096)
  yield* Effect.forkScoped(Effect.forever(Effect.flatten(Queue.take(refunds))))

  /** The reports of this process to the windows that it has used. */
  const reports = new Set<Effect.Effect<void>>()
  yield* Effect.forkScoped(Effect.forever(
    Effect.andThen(
      Effect.sleep(reportEvery),
      Effect.suspend(() => Effect.forEach(reports, (report) => report, { concurrency: 10 }))
    )
  ))

  const share = (upstream: string, bounds: RateWindow.Bounds, isPaced: boolean): RateLimiter.SharedWindow => {
    // windows with a different number or width of slots number their slots differently, so they have different keys
    const key = `${prefix}${upstream}:${bounds.slots}x${bounds.width}`
    const keyOfCallers = `${key}:callers`
    const keyOfPace = `${key}:pace`
    const { burst, rate } = isPaced ? RateWindow.refreshPace(bounds) : { burst: 0, rate: 0 }
    const ofCaller = RateWindow.callerSlots(bounds)
    const keyOfMembers = `${key}:members`
    const keyOfRestored = `${key}:restored`
    const timeToLive = 2 * (bounds.slots + 1) * bounds.width
    const timeToLiveOfCallers = 3 * (ofCaller.slots + 1) * ofCaller.width
    let replicas = 1
    let isKnown = false
    /**
     * The time until which Redis may lack units of other processes. Set when Redis has lost this process's entry,
     * because Redis may then have lost other entries too.
     */
    let incompleteUntil = 0
    /**
     * The units of calls that started while Redis was unreachable, and that are not yet written to Redis. They are
     * grouped by slot of this process's window.
     */
    let alone = new Map<number, RateWindow.Slot>()
    /** The use of all processes at the last report, and the use of this process shortly before. */
    let reported: {
      readonly at: number
      /** The same time by the system clock. */
      readonly wall: number
      readonly own: ReadonlyMap<number, RateWindow.Slot>
      readonly all: ReadonlyArray<string>
    } | undefined
    let latestOwn: (() => ReadonlyArray<RateWindow.Slot>) | undefined
    let usedAt = 0

    const started = (clock: Clock.Clock) => (call: RateWindow.WindowCall): void => {
      const index = RateWindow.slotAt(bounds, monotonicMillis(clock))
      const slot = alone.get(index) ?? { index, read: 0, once: 0 }
      slot[call.class] += call.cost
      alone.set(index, slot)
      for (const oldest of alone.keys()) if (oldest < index - bounds.slots) alone.delete(oldest)
    }

    const join = (own: () => ReadonlyArray<RateWindow.Slot>) =>
      Effect.clockWith((clock) => {
        const written = alone
        alone = new Map()
        const now = clock.currentTimeMillisUnsafe()
        // Redis numbers the slots by wall-clock time; a slot of this process that overlaps two of them counts in the
        // later one
        const shift = Math.ceil((now - monotonicMillis(clock)) / bounds.width)
        const { all = [], at = 0, own: before, wall = 0 } = reported ?? {}
        const slots = own().flatMap((slot) =>
          (["read", "once"] as const).map((methodClass) => [slot, methodClass] as const)
        )
        const values = slots.flatMap(([slot, methodClass]) => [
          `${slot.index + shift} ${methodClass}`,
          slot[methodClass],
          // refunded units are not written
          Math.min(slot[methodClass], written.get(slot.index)?.[methodClass] ?? 0),
          Math.max(0, slot[methodClass] - (before?.get(slot.index)?.[methodClass] ?? 0)),
          (slot.index + 1) * bounds.width > at - 2 * reportEvery ? slot[methodClass] : 0
        ])
        const lasts = (bounds.slots + 1) * bounds.width
        const keys = [key, keyOfMembers, keyOfRestored]
        const since = Math.max(0, Math.floor(wall - clockMargin))
        return evaluateJoin(...keys, id, now, timeToLive, lasts, since, bounds.width, slots.length, ...values, ...all)
          .pipe(
            Effect.tap((known) =>
              Effect.sync(() => {
                if (known === 0 && isKnown) incompleteUntil = now + lasts
                isKnown = true
              })
            ),
            Effect.tapError(() => Effect.sync(() => alone = new Map([...written, ...alone])))
          )
      })

    const report = Effect.clockWith((clock) => {
      const own = latestOwn
      const at = monotonicMillis(clock)
      if (own === undefined || !isKnown || at - usedAt > timeToLive) return Effect.void
      const before = new Map(own().map((slot) => [slot.index, slot]))
      const wall = clock.currentTimeMillisUnsafe()
      const reporting = evaluateReport(key, keyOfMembers, id, wall, timeToLive).pipe(
        Effect.flatMap(decodeReport),
        Effect.flatMap((all) => {
          if (all === null) return Effect.asVoid(join(own))
          reported = { at, wall, own: before, all }
          return Effect.void
        })
      )
      // only calls determine whether Redis counts as reachable
      return Effect.ignore(Effect.timeout(reporting, "1 second"))
    })
    reports.add(report)

    return (call, ahead, callers, own) =>
      Effect.clockWith((clock) => {
        latestOwn = own
        usedAt = monotonicMillis(clock)
        const now = clock.currentTimeMillisUnsafe()
        const slot = RateWindow.slotAt(bounds, now)
        const slotOfCaller = RateWindow.slotAt(ofCaller, now)
        const written = (field: string, key: string, units: number) =>
          state.orElse(evaluateRefund(key, field, units), Effect.void)
        const refund = (units: number) => {
          Queue.offerUnsafe(refunds, written(`${slot} ${call.class}`, key, units))
          if (isPaced) Queue.offerUnsafe(refunds, state.orElse(evaluatePaceRefund(keyOfPace, units), Effect.void))
          if (call.caller === undefined) return
          Queue.offerUnsafe(refunds, written(`${slotOfCaller} ${call.class} ${call.caller}`, keyOfCallers, units))
        }
        const taken = evaluateTake(
          key,
          keyOfCallers,
          keyOfPace,
          keyOfMembers,
          slot,
          bounds.slots,
          call.class,
          call.cost,
          RateWindow.maxReads(bounds, call, ahead),
          RateWindow.maxUnits(bounds, call, ahead),
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
          runningFor
        ).pipe(Effect.flatMap(decodeAnswer))
        const answered = Effect.andThen(alone.size === 0 ? Effect.void : join(own), taken).pipe(
          Effect.filterOrElse(([word]) => word !== "unknown", () => Effect.andThen(join(own), taken)),
          Effect.map(
            ([word, read, once, found, within, limit, readLimit, ofCall, level, members]): RateLimiter.SharedAnswer => {
              const isComplete = members >= replicas || now >= incompleteUntil
              if (isComplete) replicas = members
              const answer = {
                held: { read, once },
                level,
                refund,
                isWithinShare: true,
                ...(isComplete ? {} : { part: 1 / replicas })
              }
              if (word === "taken") return { ...answer, wait: 0 }
              if (word === "paced") return { ...answer, wait: 1 - level / rate }
              const wait = RateWindow.waitTime(bounds, toSlots(found), call, ahead, now)
              const cap = { ...ofCaller, limit, readLimit }
              const ownWait = call.caller === undefined
                ? 0
                : RateWindow.waitTime(cap, toSlots(ofCall), call, RateWindow.none, now)
              // a read for which there is capacity waits for an action of another process
              return { ...answer, wait: Math.max(wait, ownWait) || recheckAfter, isWithinShare: within === 1 }
            }
          )
        )
        return state.orElse<RateLimiter.SharedAnswer | RateLimiter.Alone, never, never>(
          answered,
          Effect.sync(() => ({ part: 1 / replicas, started: started(clock) }))
        )
      })
  }
  return yield* RateLimiter.make(limits, share, windows)
})

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
export const layer = (options: Options): Layer.Layer<RateLimiter.RateLimiter, never, Redis.Redis> =>
  Layer.effect(RateLimiter.RateLimiter, make(options))
