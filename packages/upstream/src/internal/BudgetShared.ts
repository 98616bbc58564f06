/** The window that replicas share: one hash in Redis for each budget, with the units of each slot and class. */
import type { MethodClass } from "@trigate/domain/Operation"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import * as SharedState from "../SharedState.ts"
import * as BudgetPlan from "./BudgetPlan.ts"

/** The call is counted; `held` is what the window holds now. */
export interface Counted {
  readonly _tag: "Counted"
  readonly held: BudgetPlan.Units
  readonly refund: (units: number) => Effect.Effect<void>
}

/** The call is not counted; milliseconds until there is room if nobody else comes. */
export interface Full {
  readonly _tag: "Full"
  readonly held: BudgetPlan.Units
  readonly wait: number
}

/** The window is away and has said nothing. */
export interface Away {
  readonly _tag: "Away"
}

/** Counts a call in the shared window if it has room beside those who were before. */
export type SharedWindow = (
  methodClass: MethodClass,
  cost: number,
  ahead: BudgetPlan.Units
) => Effect.Effect<Counted | Full | Away>

interface TakeArguments {
  readonly key: string
  readonly slot: number
  /** Slots further away than this in either direction are of no window that counts. */
  readonly reach: number
  readonly room: BudgetPlan.Room
  readonly methodClass: MethodClass
  readonly cost: number
  readonly keep: number
}

// Slots that seem to lie ahead are those of a replica whose clock is: they count.
const takeScript = Redis.script(
  ({ cost, keep, key, methodClass, reach, room, slot }: TakeArguments) => [
    key,
    slot,
    reach,
    room.reads,
    room.all,
    methodClass,
    cost,
    keep
  ],
  {
    numberOfKeys: 1,
    lua: `local key, current, reach = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
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
if sum.read > tonumber(ARGV[3]) or sum.read + sum.once > tonumber(ARGV[4]) then
  return { 'full', sum.read, sum.once, slots }
end
redis.call('HINCRBY', key, ARGV[1] .. ' ' .. ARGV[5], ARGV[6])
redis.call('PEXPIRE', key, ARGV[7])
sum[ARGV[5]] = sum[ARGV[5]] + tonumber(ARGV[6])
return { 'counted', sum.read, sum.once, {} }`
  }
).withReturnType<unknown>()

// what is gone left the window, or was lost with Redis
const giveBackScript = Redis.script((key: string, field: string, units: number) => [key, field, units], {
  numberOfKeys: 1,
  lua: `local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
local units = math.min(held, tonumber(ARGV[2]))
if units > 0 then redis.call('HINCRBY', KEYS[1], ARGV[1], -units) end`
})

const Answer = Schema.Tuple([
  Schema.Literals(["counted", "full"]),
  Schema.Finite,
  Schema.Finite,
  Schema.Array(Schema.Tuple([Schema.Finite, Schema.Literals(["read", "once"]), Schema.Finite]))
])
const decodeAnswer = Schema.decodeUnknownEffect(Answer)

const away = (error: Redis.RedisError | Schema.SchemaError) =>
  new SharedState.SharedAway({ detail: error._tag === "RedisError" ? String(error.cause) : error.message })

const slotsOf = (
  found: ReadonlyArray<readonly [index: number, methodClass: MethodClass, units: number]>
): ReadonlyArray<BudgetPlan.Slot> =>
  found
    .map(([index, methodClass, units]) => ({ index, read: 0, once: 0, [methodClass]: units }))
    .toSorted((one, other) => one.index - other.index)

/** The shared windows of a Redis that may be away. */
export const make = (redis: Redis.Redis["Service"], state: SharedState.SharedState, prefix: string) => {
  const evaluateTake = redis.eval(takeScript)
  const evaluateGiveBack = redis.eval(giveBackScript)

  return (name: string, plan: BudgetPlan.Plan): SharedWindow => {
    // who counts in other slots must not read these
    const key = `${prefix}${name}:${plan.slots}x${plan.width}`
    const reach = plan.slots

    const refund = (field: string) => (units: number) =>
      state.orElse(Effect.mapError(evaluateGiveBack(key, field, units), away), Effect.void)

    return (methodClass, cost, ahead) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const slot = BudgetPlan.slotAt(plan, now)
        const room = BudgetPlan.room(plan, methodClass, cost, ahead)
        const keep = 2 * (plan.slots + 1) * plan.width
        const taken = evaluateTake({ key, slot, reach, room, methodClass, cost, keep }).pipe(
          Effect.flatMap(decodeAnswer),
          Effect.mapError(away),
          Effect.map(([word, read, once, found]): Counted | Full => {
            const held = { read, once }
            return word === "counted"
              ? { _tag: "Counted", held, refund: refund(`${slot} ${methodClass}`) }
              : { _tag: "Full", held, wait: BudgetPlan.wait(plan, slotsOf(found), room, now) }
          })
        )
        return state.orElse<Counted | Full | Away, never, never>(taken, Effect.succeed({ _tag: "Away" }))
      })
  }
}
