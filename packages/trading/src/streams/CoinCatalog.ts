/**
 * The coins and dexes that the venue lists.
 *
 * If one subscription names an unknown coin or dex, the venue closes the connection and thereby ends all its
 * subscriptions. So names are checked before a subscription is sent.
 *
 * The venue lists new names at any time: outcomes every 15 minutes. So before a name is refused, the venue's list is
 * read again, on behalf of the caller, whose share of the rate limit the read counts against. Two budgets bound these
 * reads: one for each caller, so that a caller's unknown names do not delay the names of others, and one for all.
 */
import { CurrentCaller } from "@trigate/domain/Caller"
import { type CallFailure, unwrapReason } from "@trigate/domain/errors/GatewayError"
import type { UnwrapReason } from "@trigate/domain/errors/GatewayError"
import { isOutcome, isSpot } from "@trigate/domain/info/AssetLookup"
import { outcomeCoins } from "@trigate/domain/info/Market"
import type { Normalised } from "@trigate/domain/streams/Subscription"
import { Freshness } from "@trigate/upstream/cache/Freshness"
import * as SingleFlight from "@trigate/upstream/cache/SingleFlight"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { Info } from "../Info.ts"

/** The queries that streams send: for the venue's lists of coins and dexes, and for data missed while disconnected. */
export type Queries = Pick<Info["Service"], "allMids" | "meta" | "outcomeMeta" | "perpDexs" | "relay" | "spotMeta">

/**
 * The result of a lookup: the venue lists the name, the venue does not list it, its lists cannot be read, or the budget
 * for reading them again is used up.
 */
export type Found = "known" | "unknown" | "unavailable" | "limited"

/** The coins and dexes that the venue lists. */
export interface CoinCatalog {
  /** Returns whether all names of a subscription are in the cached lists. */
  readonly knows: (subscription: Normalised) => boolean
  /**
   * Looks up the coins and dexes that a subscription names. If one of them is unknown, reads the venue's list again,
   * within the budget of the current caller.
   */
  readonly find: (subscription: Normalised) => Effect.Effect<Found>
}

/** A number of reads in a burst, and the milliseconds after which one more is allowed. */
interface BudgetSize {
  readonly most: number
  readonly every: number
}

/** The reads that one caller can cause. One read finds all names that the venue has listed since the last one. */
const readsPerCaller: BudgetSize = { most: 5, every: 10_000 }

/** The reads that all callers together can cause: at most a weight of 264 per minute. */
const readsOfAll: BudgetSize = { most: 6, every: 5000 }

/** Maximum milliseconds that a lookup waits for the budget of all callers. */
const longestWait = 10_000

/** Maximum number of callers whose use is counted at a time. */
const maxCallers = 10_000

/**
 * Makes a budget. The returned function counts a use, and returns 0; or it returns the milliseconds after which the
 * caller can try again.
 */
const makeBudget = ({ every, most }: BudgetSize) => {
  /** For each caller: the time at which all of its uses are available again. */
  const restoredAt = new Map<string, number>()
  return (caller: string, now: number): number => {
    if (restoredAt.size >= maxCallers) {
      for (const [each, time] of restoredAt) if (time <= now) restoredAt.delete(each)
      if (restoredAt.size >= maxCallers && !restoredAt.has(caller)) return every
    }
    const restored = Math.max(restoredAt.get(caller) ?? 0, now)
    const wait = restored + every - now - most * every
    if (wait <= 0) restoredAt.set(caller, restored + every)
    return Math.max(0, wait)
  }
}

type Budget = ReturnType<typeof makeBudget>

interface Budgets {
  readonly ofCaller: Budget
  readonly ofAll: Budget
}

interface List {
  readonly names: () => ReadonlySet<string>
  readonly find: (name: string) => Effect.Effect<Found>
}

/**
 * Makes a cached list of names. The list is read at the first lookup, and again if it lacks a name. `load` passes names
 * to `learn` that are known even if `load` fails later.
 */
const makeList = (
  { ofAll, ofCaller }: Budgets,
  load: (learn: (names: Iterable<string>) => void) => Effect.Effect<Iterable<string>, CallFailure>
): List => {
  let names: ReadonlySet<string> = new Set()
  let failedAt: number | undefined
  /** The number of reads that have begun, and the number of the newest that has succeeded. */
  let begun = 0
  let ended = 0
  const learn = (more: Iterable<string>): void => {
    names = new Set([...names, ...more])
  }
  // concurrent lookups share one read: after a restart of the gateway, thousands of clients subscribe at once
  const reads = SingleFlight.make<void, UnwrapReason<CallFailure>>()

  const read = Effect.suspend(() => {
    const number = ++begun
    return Effect.mapBothEager(Effect.provideService(load(learn), Freshness, "none"), {
      onFailure: unwrapReason,
      onSuccess: (found) => {
        names = new Set(found)
        ended = number
      }
    })
  })

  /** Reads the list, or waits for the read in progress. Returns whether it succeeded. */
  const attempt = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    // an unreachable venue is queried again after a second, not for each subscription
    if (!reads.has("") && failedAt !== undefined && now - failedAt < 1000) return false
    return yield* Effect.matchEager(reads.run({ key: "", ask: read }), {
      onFailure: (error) => {
        // a caller that has used up its own quota does not prevent the reads of others
        if (error._tag !== "QuotaExceeded") failedAt = now
        return false
      },
      onSuccess: () => true
    })
  })

  const lookUp = Effect.fnUntraced(function*(name: string) {
    const before = begun
    // a read that began before this lookup may lack a name that was listed in between
    const isNew = () => ended > before
    if (ended === 0 && !(yield* attempt)) return names.has(name) ? "known" : "unavailable"
    if (names.has(name)) return "known"
    const since = yield* Clock.currentTimeMillis
    if (!isNew() && ofCaller((yield* CurrentCaller).id, since) > 0) return "limited"
    while (!isNew()) {
      const now = yield* Clock.currentTimeMillis
      const wait = reads.has("") ? 0 : ofAll("", now)
      if (now + wait - since > longestWait) return "limited"
      if (wait > 0) yield* Effect.sleep(wait)
      else if (!(yield* attempt)) return names.has(name) ? "known" : "unavailable"
    }
    return names.has(name) ? "known" : "unknown"
  })

  return {
    names: () => names,
    find: (name) => Effect.suspend(() => names.has(name) ? Effect.succeed<Found>("known") : lookUp(name))
  }
}

/** Maximum number of dexes whose lists are cached; the venue has about ten. */
const maxDexes = 256

const together = (all: ReadonlyArray<Found>): Found =>
  (["unknown", "limited", "unavailable"] as const).find((found) => all.includes(found)) ?? "known"

/** A catalog that accepts every name, for a venue that does not close connections because of an unknown name. */
export const open: CoinCatalog = { knows: () => true, find: () => Effect.succeed("known") }

/** Makes a catalog that queries the venue's lists through `info`. */
export const make = (info: Queries): CoinCatalog => {
  const budgets = { ofCaller: makeBudget(readsPerCaller), ofAll: makeBudget(readsOfAll) }
  const perpetuals = (dex: string) =>
    makeList(budgets, () => Effect.map(info.meta({ dex }), ({ universe }) => universe.map(({ name }) => name)))
  const own = perpetuals("")
  const spot = makeList(
    budgets,
    () => Effect.map(info.spotMeta(), ({ universe }) => universe.map(({ name }) => name))
  )
  // `outcomeMeta` lists an outcome before `allMids` has its price
  const outcomes = makeList(budgets, (learn) =>
    Effect.flatMap(info.allMids(), (mids) => {
      const priced = Object.keys(mids).filter(isOutcome)
      learn(priced)
      return info.outcomeMeta().pipe(
        Effect.map((meta) => [...priced, ...meta.outcomes.flatMap(outcomeCoins)]),
        // a venue without outcomes refuses the query
        Effect.catchIf((error) => unwrapReason(error)._tag === "InvalidRequest", () => Effect.succeed(priced))
      )
    }))
  const dexes = makeList(
    budgets,
    () => Effect.map(info.perpDexs(), (all) => ["", ...all.flatMap((dex) => dex === null ? [] : [dex.name])])
  )
  const ofDex = new Map<string, List>()

  const findList = (coin: string): List | undefined => {
    if (isOutcome(coin)) return outcomes
    if (isSpot(coin)) return spot
    const end = coin.indexOf(":")
    return end < 0 ? own : ofDex.get(coin.slice(0, end))
  }

  const findCoin = (coin: string): Effect.Effect<Found> => {
    const list = findList(coin)
    if (list !== undefined) return list.find(coin)
    const dex = coin.slice(0, coin.indexOf(":"))
    return Effect.flatMap(dexes.find(dex), (found) => {
      if (found !== "known") return Effect.succeed(found)
      if (ofDex.size >= maxDexes) ofDex.clear()
      const made = ofDex.get(dex) ?? perpetuals(dex)
      ofDex.set(dex, made)
      return made.find(coin)
    })
  }

  return {
    knows: ({ request: { coin, dex } }) =>
      (!Predicate.isString(coin) || findList(coin)?.names().has(coin) === true) &&
      (!Predicate.isString(dex) || dex === "" || dexes.names().has(dex)),
    find: ({ request: { coin, dex } }) =>
      Effect.map(
        Effect.all([
          Predicate.isString(coin) ? findCoin(coin) : Effect.succeed<Found>("known"),
          Predicate.isString(dex) && dex !== "" ? dexes.find(dex) : Effect.succeed<Found>("known")
        ]),
        together
      )
  }
}
