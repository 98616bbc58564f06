/**
 * The coins and dexes that the venue lists.
 *
 * If one subscription names an unknown coin or dex, the venue closes the connection and thereby ends all its
 * subscriptions. So names are checked before a subscription is sent.
 */
import type { Normalised } from "@trigate/domain/streams/Subscription"
import { Freshness } from "@trigate/upstream/cache/Freshness"
import * as SingleFlight from "@trigate/upstream/cache/SingleFlight"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { Info } from "../Info.ts"

/** The queries that streams send: for the venue's lists of coins and dexes, and for data missed while disconnected. */
export type Queries = Pick<Info["Service"], "allMids" | "meta" | "perpDexs" | "relay" | "spotMeta">

/** The result of a lookup: the venue lists the name, the venue does not list it, or its lists cannot be read. */
export type Found = "known" | "unknown" | "unavailable"

/** The coins and dexes that the venue lists. */
export interface CoinCatalog {
  /** Returns whether all names of a subscription are in the cached lists. */
  readonly knows: (subscription: Normalised) => boolean
  /**
   * Looks up the coins and dexes that a subscription names. If one of them is unknown, the venue's list is read again,
   * at most every 10 seconds.
   */
  readonly find: (subscription: Normalised) => Effect.Effect<Found>
}

/** Minimum age, in milliseconds, at which a cached list is read again because it lacks a requested name. */
const refreshAfter = 10_000

interface List {
  readonly names: () => ReadonlySet<string>
  readonly find: (name: string) => Effect.Effect<Found>
}

/** Makes a cached list of names. The list is read at the first lookup. */
const makeList = (load: Effect.Effect<Iterable<string>, { readonly _tag: string }>): List => {
  let names: ReadonlySet<string> = new Set()
  let readAt: number | undefined
  let failedAt: number | undefined
  // concurrent lookups share one read: after a restart of the gateway, thousands of clients subscribe at once
  const reads = SingleFlight.make<boolean, never>()
  const refresh = Effect.flatMap(
    Clock.currentTimeMillis,
    (now) =>
      Effect.matchEager(Effect.provideService(load, Freshness, readAt === undefined ? "declared" : "none"), {
        onFailure: () => {
          failedAt = now
          return false
        },
        onSuccess: (found) => {
          names = new Set(found)
          readAt = now
          return true
        }
      })
  )
  const find = (name: string): Effect.Effect<Found> =>
    Effect.suspend(() => names.has(name) ? Effect.succeed<Found>("known") : lookUp(name))
  const lookUp = Effect.fnUntraced(function*(name: string) {
    if (!reads.has("")) {
      const now = yield* Clock.currentTimeMillis
      if (readAt !== undefined && now - readAt < refreshAfter) return "unknown"
      // an unreachable venue is queried again after a second, not for each subscription
      if (failedAt !== undefined && now - failedAt < 1000) return "unavailable"
    }
    const isRead = yield* reads.run({ key: "", ask: refresh })
    return names.has(name) ? "known" : isRead ? "unknown" : "unavailable"
  })
  return { names: () => names, find }
}

/** Maximum number of dexes whose lists are cached; the venue has about ten. */
const maxDexes = 256

const together = (all: ReadonlyArray<Found>): Found =>
  all.includes("unknown") ? "unknown" : all.includes("unavailable") ? "unavailable" : "known"

/** A catalog that accepts every name, for a venue that does not close connections because of an unknown name. */
export const open: CoinCatalog = { knows: () => true, find: () => Effect.succeed("known") }

/** Makes a catalog that queries the venue's lists through `info`. */
export const make = (info: Queries): CoinCatalog => {
  const perpetuals = (dex: string) =>
    makeList(Effect.map(info.meta({ dex }), ({ universe }) => universe.map(({ name }) => name)))
  const own = perpetuals("")
  const spot = makeList(
    Effect.map(info.spotMeta(), ({ universe }) => universe.map(({ name }) => name))
  )
  const outcomes = makeList(Effect.map(info.allMids(), (mids) => Object.keys(mids)))
  const dexes = makeList(
    Effect.map(info.perpDexs(), (all) => ["", ...all.flatMap((dex) => dex === null ? [] : [dex.name])])
  )
  const ofDex = new Map<string, List>()

  const findList = (coin: string): List | undefined => {
    if (coin.startsWith("#")) return outcomes
    if (coin.startsWith("@") || coin.includes("/")) return spot
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
