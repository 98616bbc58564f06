/** The quotas of callers that replicas share, in a simulated Redis: what the scripts of `QuotasShared` do, in TypeScript. */
import * as Quotas from "@trigate/callers/Quotas"
import type { RedisError } from "effect/persistence/Redis"
import * as Access from "./Access.ts"

interface Counted {
  /** The time at which the caller's next request is allowed. */
  next: number
  /** The time at which each request in flight expires. */
  readonly running: Map<string, number>
}

/** The counters, by caller. */
export type State = Access.Keys<Counted>

/** The counters in one simulated Redis. */
export type Store = Access.Disk<State>

/** Makes the store. Replicas that use it share their counters. */
export const make = (): Store => Access.makeDisk((): State => new Map())

/** Returns the number of calls in a request. */
const callsIn = (request: string): number => Number(/\*(?<calls>\d+)$/u.exec(request)?.groups?.["calls"] ?? 1)

const count = (
  state: State,
  { caller, interval, most, request, tolerance }: Quotas.CountRequest,
  now: number
): Quotas.CountResult => {
  const calls = callsIn(request)
  const counted = Access.getKey(state, caller, now) ?? { next: 0, running: new Map<string, number>() }
  if (most > 0) {
    let running = 0
    for (const [name, until] of counted.running) {
      if (until <= now) counted.running.delete(name)
      else running += callsIn(name)
    }
    if (running + calls > most) return ["concurrent", 0]
  }
  let ahead = Math.max(0, counted.next - now)
  if (interval > 0) {
    const wait = ahead + (calls - 1) * interval - tolerance
    if (wait > Quotas.rounding) return ["requests", Access.asText(wait)]
    ahead += calls * interval
    counted.next = Number((now + ahead).toFixed(3))
  }
  if (most > 0) counted.running.set(request, Math.round(now + Quotas.givenUpAfter))
  Access.setKey(state, caller, counted, now + Math.ceil(ahead) + (most > 0 ? Quotas.givenUpAfter : 1000))
  return ["counted", Access.asText(ahead)]
}

/** Returns the counters, as one replica reaches them. */
export const makeCounters = ({ current }: Store, access: Access.Access): Quotas.Counters<RedisError> => ({
  count: (request) => Access.redis(access, (now) => count(current(), request, now)),
  end: (caller, request) =>
    Access.redis(access, (now) => Access.getKey(current(), caller, now)?.running.delete(request) === true)
})
