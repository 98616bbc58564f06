/** The running venue: its state, its listings, its price path, and events that are not delivered yet. */
import type { Address, Hash } from "@trigate/domain/encoding/Encoding"
import type { Fill } from "@trigate/domain/info/Account"
import type { AssetContext, Trade } from "@trigate/domain/info/Market"
import * as Random from "../Seed.ts"
import * as Assets from "./Assets.ts"
import { priceAt } from "./CandleBars.ts"
import * as Outcomes from "./Outcomes.ts"
import * as TradingState_ from "./TradingState.ts"
import type { InfoState } from "./VenueState.ts"

/** The state of an order at the time of an event. */
export type OrderSnapshot = Readonly<TradingState_.VenueOrder>

/** An event of the venue, which is delivered to the venue's followers (readers of its events). */
export type VenueEvent =
  // `isLogged`: the order has got a status that its history names
  | { readonly kind: "order"; readonly user: Address; readonly order: OrderSnapshot; readonly isLogged: boolean }
  | { readonly kind: "fill"; readonly user: Address; readonly fill: Fill }
  | { readonly kind: "twapFill"; readonly user: Address; readonly fill: TradingState_.TwapFill }
  | { readonly kind: "twap"; readonly user: Address; readonly row: { readonly [member: string]: unknown } }
  | { readonly kind: "trade"; readonly coin: string; readonly trade: Trade }
  | { readonly kind: "funding"; readonly user: Address; readonly funding: TradingState_.FundingEntry }
  | { readonly kind: "ledger"; readonly user: Address; readonly entry: TradingState_.LedgerEntry }
  | { readonly kind: "nonUserCancel"; readonly user: Address; readonly coin: string; readonly oid: number }
  | {
    readonly kind: "liquidation"
    readonly user: Address
    readonly liquidation: { readonly [member: string]: unknown }
  }
  | { readonly kind: "book"; readonly coin: string }
  | { readonly kind: "account"; readonly user: Address }

/** The price of a market as a function of time. */
export interface PricePath {
  readonly priceAt: (market: Assets.CandleMarket, now: number) => number
  /**
   * Returns whether the price only rises, or only falls, between two times within one minute. If so, a minute without
   * events can be skipped.
   */
  readonly isMonotone: (market: Assets.CandleMarket, from: number, to: number) => boolean
  /**
   * Returns the time at which the replay of a coin's prices started; `undefined` if no prices are replayed for the
   * coin.
   */
  readonly playedSince: (coin: string) => number | undefined
}

/** Makes the price path of a seed. */
export const seededPath = (seed: Random.Seed): PricePath => ({
  priceAt: (market, now) =>
    market.oracle === undefined
      ? priceAt(seed, market, now)
      : market.oracle.points.findLast(({ time }) => time <= now)?.price ?? market.price,
  isMonotone: () => true,
  playedSince: () => undefined
})

/** The limits of the venue's stored data: accounts, and fills for each account. */
export interface VenueLimits {
  /** Maximum number of accounts. */
  readonly accounts: number
  /**
   * The number of latest fills to store for each account. When an account has twice this number, the older half is
   * removed.
   */
  readonly fills: number
}

/** The default limits. The real venue also lists up to 10 000 fills of an account. */
export const defaultLimits: VenueLimits = { accounts: 10_000, fills: 10_000 }

/** The market data of a coin of a followed venue: prices and volume, and for a perpetual funding and open interest. */
export type FollowedContext =
  & Pick<AssetContext, "dayBaseVlm" | "dayNtlVlm" | "markPx" | "midPx" | "prevDayPx">
  & Partial<Pick<AssetContext, "funding" | "impactPxs" | "openInterest" | "oraclePx" | "premium">>

/** The running venue. The functions of the sandbox change this object in place. */
export interface Venue {
  readonly limits: VenueLimits
  readonly seed: Random.Seed
  /** The account that is the counterparty of synthetic orders. */
  readonly house: Address
  state: TradingState_.TradingState
  path: PricePath
  info: InfoState
  listing: Assets.Listing
  /** The coins whose prices another venue determines; empty without a feed, and while it is lost. */
  readonly followed: Map<string, FollowedContext>
  /** How often the book of each coin changed other than with the time. */
  readonly bookChanges: Map<string, number>
  outcomes: Outcomes.ListedOutcomes
  /** Whether outcomes about the generated prices are listed. A venue that follows another one lists none. */
  hasRecurringOutcomes: boolean
  /** Events that are not delivered yet; `undefined` while the venue has no follower. */
  events: Array<VenueEvent> | undefined
  /** The hash of the action that is being executed. */
  hash: Hash
  /** Returns whether to reject the next order, as an injected fault. */
  rejectsOrder: () => boolean
  /** Returns a storage word of a contract on HyperEVM, after the newest transaction. */
  readStorage: (address: Address, slot: bigint) => Hash
}

/** Makes a venue whose time is `now`. */
export const make = (seed: Random.Seed, info: InfoState, now: number, limits: VenueLimits = defaultLimits): Venue => ({
  limits,
  seed,
  house: Random.hex(seed, "house", 40),
  state: new TradingState_.TradingState(now),
  path: Outcomes.withOutcomes(seededPath(seed)),
  info,
  listing: Assets.listingAt(info, now),
  followed: new Map(),
  bookChanges: new Map(),
  outcomes: Outcomes.unlisted,
  hasRecurringOutcomes: true,
  events: undefined,
  hash: zeroHash,
  rejectsOrder: () => false,
  readStorage: () => zeroHash
})

/** The hash for events that are not caused by an action: TWAP slices, funding, liquidations. */
export const zeroHash: Hash = `0x${"0".repeat(64)}`

/** Returns the data for queries with the perpetuals, tokens and spot pairs that accounts have deployed. */
export const withDeployed = <Info extends InfoState>(
  info: Info,
  { perpDexes, spotPairs, spotTokens }: TradingState_.TradingState
): Info => {
  if (perpDexes.size === 0 && spotTokens.size === 0 && spotPairs.size === 0) return info
  const markets = new Map(info.markets)
  for (const dex of perpDexes.values()) for (const [coin, market] of dex.markets) markets.set(coin, market)
  for (const { market } of spotPairs.values()) if (market !== undefined) markets.set(market.coin, market)
  const { tokens, universe } = info.spotMeta
  const pairs = [...spotPairs.values()].map(({ base, index, quote }) => ({
    tokens: [base, quote] as const,
    name: `@${index}`,
    index,
    isCanonical: false
  }))
  const deployed = [...spotTokens.values()].map(({ evmContract = null, feeShare, token }) =>
    Object.assign({}, token, {
      evmContract,
      deployerTradingFeeShare: Assets.printDecimal(feeShare, Assets.shareDecimals)
    })
  )
  return {
    ...info,
    markets,
    spotMeta: { ...info.spotMeta, universe: [...universe, ...pairs], tokens: [...tokens, ...deployed] }
  }
}

/**
 * Updates the list of assets if `info` has changed, a new coin is listed, or the state was replaced; always if
 * `isChanged` is true.
 */
export const relist = (venue: Venue, info: InfoState, now: number, isChanged = false): void => {
  const isSame = venue.outcomes.state === undefined || venue.outcomes.state === venue.state
  if (!isChanged && isSame && venue.info === info && now <= venue.listing.until) return
  venue.info = info
  venue.listing = Assets.listingAt(withDeployed(info, venue.state), now)
}

/** Records an event, which is delivered to followers later. */
export const emit = (venue: Venue, event: VenueEvent): void => {
  if (event.kind === "book") venue.bookChanges.set(event.coin, (venue.bookChanges.get(event.coin) ?? 0) + 1)
  venue.events?.push(event)
}

/** Generates the hash of a new transaction. */
export const nextHash = (venue: Venue): Hash => Random.hex(venue.seed, `tx/${venue.state.nextTx++}`, 64)

/** Generates the ID of a new trade: a 50-bit number that looks random, as the venue's trade IDs do. */
export const nextTid = (venue: Venue): number => {
  const family = Random.series(venue.seed, "tid")
  const at = venue.state.nextTid++
  // the low bits are a counter, which makes IDs unique
  return (Random.uint32(family, at) % 0x40_0000) * 0x1000_0000 + at
}
