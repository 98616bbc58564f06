/** The tradable assets: their IDs in orders, their tick and lot sizes, and the units of their balances. */
import type { SpotToken } from "@trigate/domain/info/SpotMeta"
import * as Result from "effect/Result"
import type { CandleMarket } from "./CandleMarket.ts"
import { coinDex, findMarket } from "./CandleMarket.ts"
import * as Decimals from "./Decimals.ts"
import type { InfoState } from "./VenueAnswer.ts"

interface AssetSteps {
  readonly id: number
  readonly coin: string
  readonly market: CandleMarket
  /** Decimals of a size; a lot is `10^-szDecimals`. */
  readonly szDecimals: number
  /** Decimals of a price; a tick is `10^-pxDecimals`. */
  readonly pxDecimals: number
}

/** A perpetual. A price in ticks, multiplied by a size in lots, is an amount in millionths of a dollar. */
export interface Perpetual extends AssetSteps {
  readonly kind: "perpetual"
  readonly dex: string
  readonly maxLeverage: number
}

/** A spot pair. A price in ticks, multiplied by a size in lots, is an amount in units of 10^-8 of the quote token. */
export interface SpotPair extends AssetSteps {
  readonly kind: "spot"
  readonly base: SpotToken
  readonly quote: SpotToken
  /** Number of wei of the base token in one lot. */
  readonly weiPerLot: bigint
}

/** A tradable asset. */
export type Asset = Perpetual | SpotPair

/** All assets at a point in time. */
export interface Listing {
  readonly byId: ReadonlyMap<number, Asset>
  readonly byCoin: ReadonlyMap<string, Asset>
  readonly tokens: ReadonlyMap<number, SpotToken>
  /** Builder-deployed dexes, in the order of `perpDexs`. */
  readonly dexes: ReadonlyArray<string>
  /** The time at which the next coin is listed, in milliseconds. Until that time, this list of assets is complete. */
  readonly until: number
}

/** The maximum leverage of every perpetual in the sandbox. */
export const maxLeverage = 20

/** Decimals of dollar amounts in perpetuals. */
export const usdDecimals = 6

/** Decimals of USDC amounts in spot. */
export const spotUsdDecimals = 8

/** Number of wei of spot USDC in one millionth of a dollar. */
export const weiPerUsd = 100n

/** The index of USDC among spot tokens. */
export const usdc = 0

/** The index of HYPE among spot tokens. */
export const hype = 150

const firstSpot = 10_000
const firstBuilderDex = 100_000
const idsPerDex = 10_000

const spotPairs = ({ markets, spotMeta }: InfoState, now: number): ReadonlyArray<SpotPair> => {
  const tokens = new Map(spotMeta.tokens.map((token) => [token.index, token]))
  return spotMeta.universe.flatMap(({ index, name, tokens: [baseIndex, quoteIndex] }): ReadonlyArray<SpotPair> => {
    const market = findMarket(markets, name)
    const base = tokens.get(baseIndex)
    const quote = tokens.get(quoteIndex)
    if (market === undefined || market.listedAt >= now || base === undefined || quote === undefined) return []
    const { priceDecimals, sizeDecimals } = market
    // with other decimals, a price in ticks times a size in lots would not be a whole number of wei
    if (quote.weiDecimals !== priceDecimals + sizeDecimals || base.weiDecimals < sizeDecimals) return []
    return [{
      kind: "spot",
      id: firstSpot + index,
      coin: name,
      market,
      szDecimals: sizeDecimals,
      pxDecimals: priceDecimals,
      base,
      quote,
      weiPerLot: 10n ** BigInt(base.weiDecimals - sizeDecimals)
    }]
  })
}

/** Returns the assets of the venue at the given time. */
export const listingAt = (info: InfoState, now: number): Listing => {
  const traded = [...info.markets.values()].filter(({ listedAt }) => listedAt < now)
  const dexes = [...new Set(traded.flatMap(({ coin }) => coinDex(coin) ?? []))].filter((dex) => dex !== "")
  const perpetuals = ["", ...dexes].flatMap((dex, at) =>
    traded.filter(({ coin }) => coinDex(coin) === dex).map((market, index): Perpetual => ({
      kind: "perpetual",
      id: (at === 0 ? 0 : firstBuilderDex + at * idsPerDex) + index,
      coin: market.coin,
      market,
      szDecimals: market.sizeDecimals,
      pxDecimals: market.priceDecimals,
      dex,
      maxLeverage
    }))
  )
  const assets: ReadonlyArray<Asset> = [
    ...perpetuals.filter(({ market, pxDecimals, szDecimals }) =>
      market.delistedAt === undefined && pxDecimals + szDecimals === usdDecimals
    ),
    ...spotPairs(info, now)
  ]
  return {
    byId: new Map(assets.map((asset) => [asset.id, asset])),
    byCoin: new Map(assets.map((asset) => [asset.coin, asset])),
    tokens: new Map(info.spotMeta.tokens.map((token) => [token.index, token])),
    dexes,
    until: [...info.markets.values()].reduce(
      (next, { listedAt }) => listedAt >= now ? Math.min(next, listedAt) : next,
      Number.POSITIVE_INFINITY
    )
  }
}

/** Returns the spot pair of a token with USDC; `undefined` if it is not listed. */
export const findUsdPair = ({ byId }: Listing, token: number): SpotPair | undefined => {
  for (const asset of byId.values()) {
    if (asset.kind === "spot" && asset.base.index === token && asset.quote.index === usdc) return asset
  }
  return undefined
}

/** Formats a price in ticks. */
export const printPx = ({ pxDecimals }: Asset, px: bigint): string => Decimals.print(px, pxDecimals)

/** Formats a size in lots. */
export const printSz = ({ szDecimals }: Asset, sz: bigint): string => Decimals.print(sz, szDecimals)

/** Formats an amount in millionths of a dollar. */
export const printUsd = (usd: bigint): string => Decimals.print(usd, usdDecimals)

/** Maximum number of significant digits of a price that is not an integer. */
const mostDigits = 5

/**
 * Parses a price.
 *
 * Returns `invalid` for text that is not a price. Returns `tick` for a price that is not a multiple of the tick: it has
 * more decimals than the asset allows, or it has more than five significant digits and is not an integer.
 */
export const readPx = ({ pxDecimals }: Asset, text: string): bigint | "invalid" | "tick" => {
  const fine = Decimals.parse(text, 8)
  if (fine === undefined || fine <= 0n) return "invalid"
  const px = Decimals.parse(text, pxDecimals)
  return px === undefined || Decimals.significantDigits(text) > mostDigits ? "tick" : px
}

/** Parses a price that a test sets, which has the form of an order's price. Fails with the text of the mistake. */
export const readGivenPx = (asset: Asset, text: string): Result.Result<bigint, string> => {
  const px = readPx(asset, text)
  if (px === "invalid") return Result.fail("Expected a price above 0")
  return px === "tick"
    ? Result.fail(`Expected at most ${mostDigits} significant digits and ${asset.pxDecimals} decimals, as in an order`)
    : Result.succeed(px)
}
