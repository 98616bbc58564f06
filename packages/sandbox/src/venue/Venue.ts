/** The running venue: its state, its listings, its price path, and undelivered events. */
import type { Address, Hash } from "@trigate/domain/encoding/Hex"
import type { Trade } from "@trigate/domain/info/Market"
import type { Fill } from "@trigate/domain/info/Order"
import type { Seed } from "../Seed.ts"
import * as Random from "../Seed.ts"
import * as Assets from "./Assets.ts"
import type { CandleMarket } from "./CandleMarket.ts"
import * as CandleMarket_ from "./CandleMarket.ts"
import type { FundingEntry, LedgerEntry, TradingState, TwapFill, VenueOrder } from "./TradingState.ts"
import * as TradingState_ from "./TradingState.ts"
import type { InfoState } from "./VenueAnswer.ts"

/** How an order was when something happened to it. */
export type OrderSnapshot = Readonly<VenueOrder>

/** Something that happened, for those who follow it. */
export type VenueEvent =
  | { readonly kind: "order"; readonly user: Address; readonly order: OrderSnapshot }
  | { readonly kind: "fill"; readonly user: Address; readonly fill: Fill }
  | { readonly kind: "twapFill"; readonly user: Address; readonly fill: TwapFill }
  | { readonly kind: "trade"; readonly coin: string; readonly trade: Trade }
  | { readonly kind: "funding"; readonly user: Address; readonly funding: FundingEntry }
  | { readonly kind: "ledger"; readonly user: Address; readonly entry: LedgerEntry }
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
  readonly priceAt: (market: CandleMarket, now: number) => number
  /** Whether the price only rises or only falls between whole minutes, so that quiet minutes can be skipped. */
  readonly isMonotone: boolean
  /** From when on a coin's prices are not those of the seed; none if they always are. */
  readonly playedSince: (coin: string) => number | undefined
}

/** The price path of a seed. */
export const seededPath = (seed: Seed): PricePath => ({
  priceAt: (market, now) => CandleMarket_.priceAt(seed, market, now),
  isMonotone: true,
  playedSince: () => undefined
})

/** How much the venue remembers. */
export interface VenueLimits {
  /** Accounts that exist at the same time. */
  readonly accounts: number
  /** The newest fills of an account, of which it remembers up to twice as many. */
  readonly fills: number
}

/** What the venue remembers unless it is set otherwise: the 10 000 fills that the real one lists. */
export const defaultLimits: VenueLimits = { accounts: 10_000, fills: 10_000 }

/** The running venue. */
export interface Venue {
  readonly limits: VenueLimits
  readonly seed: Seed
  state: TradingState
  path: PricePath
  info: InfoState
  listing: Assets.Listing
  /** Undelivered events; `undefined` while the venue has no follower. */
  events: Array<VenueEvent> | undefined
  /** The hash of the action that is executed. */
  hash: Hash
  /** Whether the venue rejects the next order on purpose. */
  rejectsOrder: () => boolean
}

/** A venue in which time has passed up to an instant. */
export const make = (seed: Seed, info: InfoState, now: number, limits: VenueLimits = defaultLimits): Venue => ({
  limits,
  seed,
  state: TradingState_.make(now),
  path: seededPath(seed),
  info,
  listing: Assets.listingAt(info, now),
  events: undefined,
  hash: zeroHash,
  rejectsOrder: () => false
})

/** The hash of what no action caused: TWAP slices, funding, liquidations. */
export const zeroHash: Hash = `0x${"0".repeat(64)}`

/** Adopts the current listings. */
export const relist = (venue: Venue, info: InfoState, now: number): void => {
  if (venue.info === info && now <= venue.listing.until) return
  venue.info = info
  venue.listing = Assets.listingAt(info, now)
}

/** Notes an event for those who follow the venue. */
export const emit = (venue: Venue, event: VenueEvent): void => {
  venue.events?.push(event)
}

/** The hash of a new transaction. */
export const nextHash = (venue: Venue): Hash => Random.hex(venue.seed, `tx/${venue.state.nextTx++}`, 64)

/** The id of a new trade: 50 bits that look random, as the venue's do. */
export const nextTid = (venue: Venue): number => {
  const family = Random.series(venue.seed, "tid")
  const at = venue.state.nextTid++
  // the low bits count, so that no two are the same
  return (Random.uint32(family, at) % 0x40_0000) * 0x1000_0000 + at
}

/** The account on the other side of synthetic orders. */
export const houseAddress = (venue: Venue): Address => Random.hex(venue.seed, "house", 40)
