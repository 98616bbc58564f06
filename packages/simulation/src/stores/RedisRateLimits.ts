/**
 * The rate limits that replicas share, in a simulated Redis: what the scripts of `RateLimiterRedis` do, in TypeScript.
 *
 * A hash of Redis is a map here, with the time at which it expires.
 */
import { RateLimiter } from "@trigate/upstream/limits/RateLimiter"
import * as RateLimiterShared from "@trigate/upstream/unstable/limits/RateLimiterShared"
import * as RateWindow from "@trigate/upstream/unstable/limits/RateWindow"
import * as Layer from "effect/Layer"
import * as Access from "./Access.ts"

interface CallerUnits extends RateLimiterShared.SlotUnits {
  readonly caller: string
}

interface Expiring<A> {
  readonly of: Map<string, A>
  expiresAt: number
}

/** The four hashes of one limit. */
export interface Counted {
  /** The units by slot and class. */
  readonly window: Expiring<RateLimiterShared.SlotUnits>
  /** The units by slot, class and caller. */
  readonly callers: Expiring<CallerUnits>
  /** The time of the last report of each process. */
  readonly members: Expiring<number>
  readonly pace: {
    level: number | undefined
    at: number
    /** The units of an action for which there was no capacity, and the time at which it was refused. */
    waits: number | undefined
    waitsAt: number
    expiresAt: number
  }
  /** Until this time, one process has written the use of all, up to its last report at the time `restoredFrom`. */
  restoredUntil: number
  restoredFrom: number
}

const hash = <A>(): Expiring<A> => ({ of: new Map(), expiresAt: Infinity })

const empty = (): Counted => ({
  window: hash(),
  callers: hash(),
  members: hash(),
  pace: { level: undefined, at: 0, waits: undefined, waitsAt: 0, expiresAt: Infinity },
  restoredUntil: -Infinity,
  restoredFrom: 0
})

const expire = ({ callers, members, pace, window }: Counted, now: number): void => {
  for (const each of [window, callers, members]) if (now > each.expiresAt) each.of.clear()
  if (now > pace.expiresAt) pace.level = pace.waits = undefined
}

const formatField = ({ class: methodClass, slot }: Pick<RateLimiterShared.SlotUnits, "class" | "slot">): string =>
  `${slot} ${methodClass}`

const addUnits = <A extends RateLimiterShared.SlotUnits>({ of }: Expiring<A>, field: string, entry: A): void => {
  of.set(field, { ...entry, units: (of.get(field)?.units ?? 0) + entry.units })
}

const sortSlots = (found: ReadonlyArray<RateLimiterShared.SlotUnits>): ReadonlyArray<RateWindow.Slot> =>
  found
    .map(({ class: methodClass, slot, units }) => ({ index: slot, read: 0, once: 0, [methodClass]: units }))
    .toSorted((one, other) => one.index - other.index)

/** The use by one caller, in this window and in the previous one. */
interface CallerUse {
  units: number
  reads: number
  earlierUnits: number
  earlierReads: number
}

/** Returns the use of each caller, and drops the slots that have left both windows. */
const findCallerUse = (
  { of }: Counted["callers"],
  own: string,
  slotNow: number,
  slots: number
): {
  readonly all: ReadonlyMap<string, CallerUse>
  readonly own: ReadonlyArray<CallerUnits>
  readonly held: CallerUse
} => {
  const held: CallerUse = { units: 0, reads: 0, earlierUnits: 0, earlierReads: 0 }
  const all = new Map([[own, held]])
  const ofOwn: Array<CallerUnits> = []
  for (const [field, entry] of of) {
    const { caller, slot, units } = entry
    if (slot < slotNow - 2 * slots - 1 || slot > slotNow + slots) {
      of.delete(field)
      continue
    }
    const reads = entry.class === "read" ? units : 0
    const use = all.get(caller) ?? { units: 0, reads: 0, earlierUnits: 0, earlierReads: 0 }
    all.set(caller, use)
    if (slot < slotNow - slots) {
      use.earlierUnits += units
      use.earlierReads += reads
    } else {
      use.units += units
      use.reads += reads
      if (caller === own) ofOwn.push(entry)
    }
  }
  return { all, own: ofOwn, held }
}

/** Returns the maximum use by a caller: its share, or what the others leave of the units that callers can use. */
const findCaps = (
  limit: RateWindow.Limit,
  callers: number,
  caller: string,
  all: ReadonlyMap<string, CallerUse>,
  total: RateWindow.Units
): { readonly share: RateWindow.Limit; readonly cap: RateWindow.Limit } => {
  const active = [...all].filter(([name, { earlierUnits, units }]) => units + earlierUnits > 0 || name === caller)
  const share = RateWindow.callerShare(limit, Math.max(callers, active.length))
  let usedUnits = 0
  let usedReads = 0
  // units that no caller has are those of the program itself
  let restUnits = total.read + total.once
  let restReads = total.read
  for (const [name, { earlierReads, earlierUnits, reads, units }] of all) {
    restUnits -= units
    restReads -= reads
    if (name === caller) continue
    usedUnits += Math.max(units, Math.min(share.limit, earlierUnits))
    usedReads += Math.max(reads, Math.min(share.readLimit, earlierReads))
  }
  usedUnits += Math.max(0, restUnits)
  usedReads += Math.max(0, restReads)
  return {
    share,
    cap: {
      limit: Math.max(share.limit, RateWindow.lendable(limit.limit) - usedUnits),
      readLimit: Math.max(share.readLimit, RateWindow.lendable(limit.readLimit) - usedReads)
    }
  }
}

const take = (
  counted: Counted,
  limit: RateLimiterShared.SharedLimit,
  { call, callers, id, maxReads, maxUnits, now, since, slot, slotOfCaller }: RateLimiterShared.Taking,
  storeNow: number
): RateLimiterShared.Taken => {
  const { bounds, burst, isPaced, ofCaller, rate, timeToLive, timeToLiveOfCallers } = limit
  const { members, pace, window } = counted
  const nothing = { slots: [], isWithinShare: true, cap: { limit: 0, readLimit: 0 }, ofCaller: [] }
  if (!members.of.has(id)) {
    return { outcome: "unknown", held: { read: 0, once: 0 }, level: 0, replicas: 1, ...nothing }
  }
  members.of.set(id, now)
  members.expiresAt = storeNow + timeToLive
  let replicas = 0
  for (const [member, seen] of members.of) {
    if (seen < now - timeToLive) members.of.delete(member)
    if (seen >= since) replicas += 1
  }
  const level = pace.level === undefined
    ? burst
    : Math.max(-burst, Math.min(burst, pace.level + Math.max(0, now - pace.at) * rate))

  const held = { read: 0, once: 0 }
  const slots: Array<RateLimiterShared.SlotUnits> = []
  for (const [field, entry] of window.of) {
    if (entry.slot < slot - bounds.slots || entry.slot > slot + bounds.slots) window.of.delete(field)
    else {
      held[entry.class] += entry.units
      slots.push(entry)
    }
  }
  const { caller, class: methodClass, cost } = call
  const reserved = methodClass === "read" && pace.waits !== undefined && Math.abs(now - pace.waitsAt) < 1000
    ? pace.waits
    : 0
  const isFull = held.read > maxReads || held.read + held.once > maxUnits - reserved
  if (methodClass === "once" && isFull) {
    pace.waits = cost
    pace.waitsAt = now
    pace.expiresAt = storeNow + timeToLive
  } else if (methodClass === "once") {
    pace.waits = undefined
  }
  const response = { ...nothing, held, level: Access.asText(level), replicas }
  if (isPaced && call.isRefresh === true && level <= 0) return { ...response, outcome: "paced" }
  if (caller === undefined) {
    if (isFull) return { ...response, outcome: "full", slots: sortSlots(slots) }
  } else {
    const use = findCallerUse(counted.callers, caller, slotOfCaller, ofCaller.slots)
    const { cap, share } = findCaps(bounds, callers, caller, use.all, held)
    const fits = (within: RateWindow.Limit) =>
      use.held.units <= within.limit - Math.min(cost, within.limit) &&
      (methodClass === "once" || use.held.reads <= within.readLimit - Math.min(cost, within.readLimit))
    const isWithinShare = fits(share)
    if (isFull || (!isWithinShare && !fits(cap))) {
      return {
        ...response,
        outcome: "full",
        slots: sortSlots(slots),
        isWithinShare,
        cap: { limit: Access.asText(cap.limit), readLimit: Access.asText(cap.readLimit) },
        ofCaller: sortSlots(use.own)
      }
    }
    const entry = { slot: slotOfCaller, class: methodClass, units: cost, caller }
    addUnits(counted.callers, `${formatField(entry)} ${caller}`, entry)
    counted.callers.expiresAt = storeNow + timeToLiveOfCallers
  }
  const entry = { slot, class: methodClass, units: cost }
  addUnits(window, formatField(entry), entry)
  window.expiresAt = storeNow + timeToLive
  held[methodClass] += cost
  if (burst === 0) return { ...response, outcome: "taken" }
  pace.level = Access.asText(level - cost)
  pace.at = now
  pace.expiresAt = storeNow + timeToLive
  return { ...response, outcome: "taken", level: pace.level }
}

const join = (
  counted: Counted,
  { bounds, timeToLive }: RateLimiterShared.SharedLimit,
  { all, id, lasts, now, own, since }: RateLimiterShared.Joining,
  storeNow: number
): boolean => {
  const { members, window } = counted
  const isKnown = members.of.has(id)
  let written: "alone" | "sinceReport" | "units" = isKnown ? "alone" : "units"
  let from = -Infinity
  if (!isKnown && all.length > 0) {
    if (storeNow > counted.restoredUntil) {
      counted.restoredUntil = storeNow + lasts
      counted.restoredFrom = since
      written = "sinceReport"
      for (const entry of all) addUnits(window, formatField(entry), entry)
    } else from = counted.restoredFrom
  }
  for (const use of own) {
    const units = (use.slot + 1) * bounds.width <= from ? use.alone : use[written]
    if (units > 0) addUnits(window, formatField(use), { slot: use.slot, class: use.class, units })
  }
  window.expiresAt = storeNow + timeToLive
  members.of.set(id, now)
  members.expiresAt = storeNow + timeToLive
  return isKnown
}

const report = (
  { members, window }: Counted,
  { timeToLive }: RateLimiterShared.SharedLimit,
  id: string,
  now: number,
  storeNow: number
): ReadonlyArray<RateLimiterShared.SlotUnits> | undefined => {
  if (!members.of.has(id)) return undefined
  members.of.set(id, now)
  members.expiresAt = storeNow + timeToLive
  return [...window.of.values()]
}

const refund = ({ callers, window }: Counted, { caller, units, ...counted }: RateLimiterShared.Refund): void => {
  const field = formatField(counted)
  const subtract = <A extends RateLimiterShared.SlotUnits>({ of }: Expiring<A>, name: string): void => {
    const found = of.get(name)
    if (found !== undefined) of.set(name, { ...found, units: found.units - Math.max(0, Math.min(found.units, units)) })
  }
  if (caller === undefined) subtract(window, field)
  else subtract(callers, `${field} ${caller}`)
}

/** The counters of each limit, by its name and its slots. */
export type State = Map<string, Counted>

/** The rate limits in one simulated Redis. */
export type Store = Access.Disk<State>

/** Makes the store. Replicas that use it share their limits. */
export const make = (): Store => Access.makeDisk((): State => new Map())

/** Returns the driver of one replica. */
export const makeDriver = ({ current }: Store, access: Access.Access): RateLimiterShared.Driver => ({
  time: Access.redis(access, (now) => now),
  counters: makeCounters(current, access)
})

const makeCounters =
  (current: Store["current"], access: Access.Access): RateLimiterShared.Driver["counters"] => (limit) => {
    const key = `${limit.name}:${limit.bounds.slots}x${limit.bounds.width}`
    const run = <A>(operation: (counted: Counted, now: number) => A) =>
      Access.redis(access, (now) => {
        const counted = current().get(key) ?? empty()
        current().set(key, counted)
        expire(counted, now)
        return operation(counted, now)
      })
    return {
      take: (taking) => run((counted, now) => take(counted, limit, taking, now)),
      join: (joining) => run((counted, now) => join(counted, limit, joining, now)),
      report: (id, at) => run((counted, now) => report(counted, limit, id, at, now)),
      refund: (refunded) => run((counted) => refund(counted, refunded)),
      refundPace: (units) =>
        run(({ pace }) => {
          if (pace.level !== undefined) pace.level += units
        })
    }
  }

/**
 * Provides the rate limiter of one replica.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import * as Encoding from "@trigate/domain/encoding/Encoding"
 * import * as Access from "@trigate/simulation/unstable/stores/Access"
 * import * as RedisRateLimits from "@trigate/simulation/unstable/stores/RedisRateLimits"
 * import { RateLimiter } from "@trigate/upstream"
 * import { Console, Effect } from "effect"
 *
 * const replica = RedisRateLimits.layer(RedisRateLimits.make(), Access.direct, { "trading-api": 1200 })
 *
 * const program = RateLimiter.RateLimiter.use(({ pacerOf }) => Console.log(pacerOf("trading-api")?.isSpent(Encoding.longAgo)))
 *
 * await Effect.runPromise(Effect.provide(program, replica))
 * ```
 * ```text
 * false
 * ```
 */
export const layer = (
  store: Store,
  access: Access.Access,
  limits: RateLimiterShared.Options
): Layer.Layer<RateLimiter> => Layer.effect(RateLimiter, RateLimiterShared.make(limits, makeDriver(store, access)))
