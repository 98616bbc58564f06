/**
 * The markets in which guarded orders trade: the coin and the quote token of an asset number, and its prices with their
 * age. Names and prices are read when an order needs them.
 */
import type { CallFailure } from "@trigate/domain/errors/GatewayError"
import * as Market from "@trigate/domain/info/Market"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Info } from "../Info.ts"

/** The queries by which markets are read. */
export type Queries = Pick<
  Info["Service"],
  "allMids" | "meta" | "metaAndAssetCtxs" | "outcomeMeta" | "perpDexs" | "spotMeta"
>

/** A market of the venue. */
export interface GuardedMarket {
  /** The venue's name of the asset: `BTC`, `PURR/USDC`, `@107`, `xyz:NAME`, `#50`. */
  readonly coin: string
  /** The builder dex; empty for the venue's own perpetuals, spot pairs and outcomes. */
  readonly dex: string
  /** The token in which the market's prices and notionals are. */
  readonly quote: string
  /** The name of the base token's balance; absent for a perpetual, whose account has a position instead. */
  readonly base?: string
}

interface Prices {
  readonly mids: ReadonlyMap<string, number>
  readonly oracles: ReadonlyMap<string, number>
  /** The time at which the read began, in milliseconds of a clock that only moves forward. */
  readonly readAt: number
}

const firstSpot = 10_000
const firstBuilderDex = 100_000
const firstOutcome = 100_000_000
const idsPerDex = 10_000

const usdc = "USDC"

/** Prices that are older are read again while orders need them. */
const refreshAfter = 1000

/** Names that are older are read again before an asset number is reported as unknown. */
const namesFor = 10_000

/** Logs why a read failed. The actions that need it are then refused. */
export const logFailure = Effect.ignore({ log: "Warn", message: "The guard cannot read the venue" })

/** Makes the markets. Nothing is read before an order needs it. */
export const make = (info: Queries) => {
  let dexes: ReadonlyArray<string> = [""]
  const markets = new Map<number, GuardedMarket>()
  const byCoin = new Map<string, GuardedMarket>()
  const prices = new Map<string, Prices>()
  const namedAt = new Map<string, number>()

  /** The list that contains an asset: the name of a builder dex, or `spot` or `outcome` after a space. */
  const listFor = (asset: number): string | undefined => {
    if (asset >= firstOutcome) return " outcome"
    if (asset < firstSpot) return ""
    return asset < firstBuilderDex ? " spot" : dexes[Math.floor((asset - firstBuilderDex) / idsPerDex)]
  }

  const add = (asset: number, market: GuardedMarket): void => {
    markets.set(asset, market)
    byCoin.set(market.coin, market)
  }

  const tokenNames = Effect.map(
    info.spotMeta(),
    ({ tokens }) => new Map(tokens.map(({ index, name }) => [index, name]))
  )

  const loadPerpetuals = Effect.fnUntraced(function*(dex: string) {
    const { collateralToken, universe } = yield* info.meta({ dex })
    const quote = collateralToken === undefined || collateralToken === null || collateralToken === 0
      ? usdc
      : (yield* tokenNames).get(collateralToken) ?? usdc
    const first = dex === "" ? 0 : firstBuilderDex + dexes.indexOf(dex) * idsPerDex
    for (const [index, { name }] of universe.entries()) add(first + index, { coin: name, dex, quote })
  })

  const loadSpot = Effect.gen(function*() {
    const meta = yield* info.spotMeta()
    const { tokensOf } = Market.make(meta)
    for (const pair of meta.universe) {
      const { base, quote } = tokensOf(pair)
      if (Option.isNone(base) || Option.isNone(quote)) continue
      const market = { coin: pair.name, dex: "", quote: quote.value.name, base: base.value.name }
      add(firstSpot + pair.index, market)
    }
  })

  const loadOutcomes = Effect.gen(function*() {
    const { outcomes } = yield* info.outcomeMeta()
    for (const outcome of outcomes) {
      for (const coin of Market.outcomeCoins(outcome)) {
        const market = { coin, dex: "", quote: outcome.quoteToken ?? usdc, base: coin.replace("#", "+") }
        add(firstOutcome + Number(coin.slice(1)), market)
      }
    }
  })

  const loadDexes = Effect.map(info.perpDexs(), (found) => {
    dexes = found.map((dex) => dex?.name ?? "")
  })

  const loadNames = (list: string): Effect.Effect<void, CallFailure> => {
    if (list === " dexes") return loadDexes
    return list === " spot" ? loadSpot : list === " outcome" ? loadOutcomes : loadPerpetuals(list)
  }

  /** Reads the names of assets that are not known yet, each list at most once in {@link namesFor}. */
  const ensureNames = Effect.fnUntraced(function*(assets: ReadonlyArray<number>, now: number) {
    const missing = assets.filter((asset) => !markets.has(asset))
    if (missing.length === 0) return
    if (missing.some((asset) => listFor(asset) === undefined)) yield* ensureList(" dexes", now, now)
    for (const list of new Set(missing.map(listFor))) if (list !== undefined) yield* ensureList(list, now, now)
  })

  /** Reads a list that was not read since a time. */
  const ensureList = Effect.fnUntraced(function*(list: string, since: number, now: number) {
    const readAt = namedAt.get(list)
    if (readAt !== undefined && readAt > since - namesFor) return
    yield* loadNames(list)
    namedAt.set(list, now)
  })

  const readOracles = (dex: string) =>
    Effect.map(
      info.metaAndAssetCtxs({ dex }),
      ([{ universe }, contexts]) =>
        new Map(universe.flatMap(({ name }, index) => {
          const price = Number(contexts[index]?.oraclePx)
          return price > 0 ? [[name, price] as const] : []
        }))
    )

  const readPrices = Effect.fnUntraced(function*(dex: string, needsOracle: boolean, readAt: number) {
    const mids = Object.entries(yield* info.allMids({ dex }))
    const oracles = needsOracle ? yield* readOracles(dex) : new Map<string, number>()
    prices.set(dex, { mids: new Map(mids.map(([coin, price]) => [coin, Number(price)])), oracles, readAt })
  }, Effect.provideService(ResponseCache.MaxAge, refreshAfter / 1000))

  const isDue = (dex: string, needsOracle: boolean, now: number): boolean => {
    const known = prices.get(dex)
    return known === undefined || now - known.readAt > refreshAfter || (needsOracle && known.oracles.size === 0)
  }

  return {
    /** Returns the market of an asset; `undefined` if the venue does not list it, or if it was not read yet. */
    find: (asset: number): GuardedMarket | undefined => markets.get(asset),
    /** Returns the market of a coin in an account's state. */
    ofCoin: (coin: string): GuardedMarket =>
      byCoin.get(coin) ??
        { coin, dex: Market.parseDex(coin), quote: usdc, ...(Market.isSpot(coin) ? { base: coin } : {}) },
    /** Returns the markets in which a token of an account's balances is the base token. */
    ofBase: (token: string): ReadonlyArray<GuardedMarket> => [...byCoin.values()].filter(({ base }) => base === token),
    /** Returns the mid price; `undefined` if the book is empty, or if the prices were not read yet. */
    mid: ({ coin, dex }: GuardedMarket): number | undefined => prices.get(dex)?.mids.get(coin),
    /** Returns the price of a token in USDC: `undefined` if no market trades it, NaN if its market has no price. */
    tokenPrice: (token: string): number | undefined => {
      if (token === usdc) return 1
      for (const { base, coin, dex, quote } of byCoin.values()) {
        if (base === token && quote === usdc) return prices.get(dex)?.mids.get(coin) ?? Number.NaN
      }
      return undefined
    },
    oracle: ({ coin, dex }: GuardedMarket): number | undefined => prices.get(dex)?.oracles.get(coin),
    /** Returns the age of the prices of a dex in milliseconds. */
    age: (dex: string, now: number): number => now - (prices.get(dex)?.readAt ?? Number.NEGATIVE_INFINITY),
    /** Reads the names of the assets that are not known yet. Names that cannot be read stay absent. */
    ensureNames: (assets: ReadonlyArray<number>, now: number) => logFailure(ensureNames(assets, now)),
    /** Reads the names of the perpetuals of dexes, and of the spot pairs, once. */
    ensureLists: (names: Iterable<string>, now: number) =>
      Effect.forEach([...names, " spot"], (list) => ensureList(list, Number.NEGATIVE_INFINITY, now), { discard: true }),
    /** Returns whether the prices of a dex are older than a second. */
    isDue: (names: Iterable<string>, needsOracle: boolean, now: number): boolean => {
      for (const dex of names) if (isDue(dex, needsOracle, now)) return true
      return false
    },
    /** Reads the prices of dexes that are older than a second. Prices that cannot be read keep their age. */
    ensurePrices: (names: Iterable<string>, needsOracle: boolean, now: number) =>
      Effect.forEach(
        names,
        (dex) => isDue(dex, needsOracle, now) ? logFailure(readPrices(dex, needsOracle, now)) : Effect.void,
        { discard: true }
      )
  }
}

/** The markets, as {@link make} returns them. */
export type Markets = ReturnType<typeof make>
