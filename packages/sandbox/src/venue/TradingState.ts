/**
 * What the venue remembers of trading: markets with their books, and accounts with money, positions, orders and fills.
 *
 * It is plain data that changes in place, so that an order costs no copy of it. A snapshot is a structured clone.
 */
import type { TimeInForce } from "@trigate/domain/actions/ActionSchemas"
import type { Hash } from "@trigate/domain/encoding/Hex"
import { type Address, lowerCase } from "@trigate/domain/encoding/Hex"
import type { Trade } from "@trigate/domain/info/Market"
import type { Fill } from "@trigate/domain/info/Order"
import type { BookSide } from "./PriceTimeBook.ts"
import * as PriceTimeBook from "./PriceTimeBook.ts"

/** An order. `px` is in ticks, sizes are in lots. */
export interface VenueOrder {
  readonly oid: number
  readonly user: Address
  readonly coin: string
  readonly isBuy: boolean
  px: bigint
  readonly origSz: bigint
  /** The unfilled size. */
  sz: bigint
  readonly reduceOnly: boolean
  tif: TimeInForce | null
  readonly cloid: string | null
  readonly timestamp: number
  readonly trigger?: { readonly px: bigint; readonly isMarket: boolean; readonly tpsl: "tp" | "sl" }
  /** Takes the size of the position when it is triggered, and ends with it. */
  readonly isPositionTpsl: boolean
  readonly builder?: { readonly address: Address; readonly tenthsOfBp: bigint }
  /** Orders that wait until this one is filled. */
  children: ReadonlyArray<VenueOrder>
  /** Orders of which only one can be filled. */
  siblings: ReadonlyArray<number>
  /** Where it is now: in a book, waiting for its trigger, waiting for its parent, or nowhere any more. */
  place: "book" | "trigger" | "parent" | "gone"
  /** As the venue names it: `open`, `filled`, `canceled`, … */
  status: string
  statusTimestamp: number
  readonly twapId?: number
}

/** A position in a perpetual. */
export interface Position {
  /** Lots, negative when short. */
  size: bigint
  /** The cost of the position, in millionths of a dollar; positive. */
  entry: bigint
  readonly isCross: boolean
  leverage: number
  /** Money set aside for an isolated position, minus its cost. */
  raw: bigint
  /** Funding paid, in millionths of a dollar. */
  readonly funding: { allTime: bigint; sinceOpen: bigint; sinceChange: bigint }
}

/** The money and positions of an account in the perpetuals of a dex. */
export interface Clearing {
  /** Millionths of a dollar, after what all cross positions cost. */
  cash: bigint
  readonly positions: Map<string, Position>
}

/** A balance in a spot token, in its wei. */
export interface SpotBalance {
  total: bigint
  /** Reserved for open orders. */
  hold: bigint
  /** The cost of the balance, in wei of USDC. */
  entry: bigint
}

/** A TWAP order. */
export interface Twap {
  readonly id: number
  readonly user: Address
  readonly coin: string
  readonly isBuy: boolean
  readonly sz: bigint
  readonly reduceOnly: boolean
  readonly minutes: number
  readonly randomize: boolean
  readonly startedAt: number
  executedSz: bigint
  /** In the unit of ticks times lots. */
  executedNtl: bigint
  slices: number
  status: { readonly status: "activated" | "terminated" | "finished" } | {
    readonly status: "error"
    readonly description: string
  }
  endedAt: number | undefined
}

/** A fill of a TWAP order. */
export interface TwapFill {
  readonly fill: Fill
  readonly twapId: number
}

/** One entry of the ledger that is not funding. */
export interface LedgerEntry {
  readonly time: number
  readonly hash: Hash
  readonly delta: { readonly type: string; readonly [member: string]: unknown }
}

/** One payment of funding. */
export interface FundingEntry {
  readonly time: number
  readonly coin: string
  readonly usdc: string
  readonly szi: string
  readonly fundingRate: string
}

/** The traded volume of a day, in millionths of a dollar. */
export interface DayVolume {
  cross: bigint
  add: bigint
}

/** An account that trades. */
export interface TradingAccount {
  readonly address: Address
  /** By dex; `""` is the venue's own. */
  readonly clearings: Map<string, Clearing>
  readonly spot: Map<number, SpotBalance>
  readonly leverage: Map<string, { readonly isCross: boolean; readonly value: number }>
  /** Orders in a book or waiting for a trigger, oldest first. */
  readonly open: Map<number, VenueOrder>
  /** Lots of open orders that could increase a position, by coin. */
  readonly exposure: Map<string, { bids: bigint; asks: bigint }>
  /** The newest orders, oldest first. */
  readonly orders: Map<number, VenueOrder>
  readonly byCloid: Map<string, number>
  /** Newest last. */
  readonly fills: Array<Fill>
  readonly twapFills: Array<TwapFill>
  readonly fundings: Array<FundingEntry>
  readonly ledger: Array<LedgerEntry>
  readonly values: Array<readonly [time: number, value: bigint]>
  readonly twaps: Map<number, Twap>
  /** By the day's first millisecond. */
  readonly volumes: Map<number, DayVolume>
  /** Volume since the start, in millionths of a dollar. */
  volume: bigint
  cancelAt: number | undefined
  /** The highest fee by builder, in tenths of a basis point. */
  readonly builders: Map<Address, bigint>
  referrer: { readonly code: string; readonly address: Address } | undefined
  code: string | undefined
  displayName: string | undefined
  /** Millionths of a dollar that it can claim, and has claimed. */
  rewards: bigint
  claimed: bigint
  /** Requests bought with `reserveRequestWeight`. */
  reserved: number
  abstraction: "default" | "disabled" | "unifiedAccount" | "portfolioMargin" | "dexAbstraction"
  optedOutOfDusting: boolean
  subAccount: { readonly master: Address; readonly name: string } | undefined
  /** HYPE that leaves staking, in wei, by the time at which it arrives. */
  unstaking: ReadonlyArray<{ readonly wei: bigint; readonly at: number }>
  /** The account that its stake counts for, and whether both have agreed. */
  stakingLink: { readonly user: Address; readonly isFinal: boolean } | undefined
}

/** A vault. Depositors own shares of its account. */
export interface Vault {
  readonly name: string
  readonly description: string
  readonly leader: Address
  readonly createdAt: number
  allowDeposits: boolean
  alwaysCloseOnWithdraw: boolean
  totalShares: bigint
  readonly shares: Map<Address, { shares: bigint; lockedUntil: number }>
}

/** One price of the synthetic book. */
export interface Quote {
  readonly px: bigint
  sz: bigint
  readonly n: number
}

/** What accounts traded in a minute. */
export interface MinuteTrades {
  lots: bigint
  count: number
  high: bigint
  low: bigint
}

/** A market: the orders of accounts, and the synthetic orders around the price. */
export interface MarketState {
  readonly coin: string
  readonly bids: BookSide<VenueOrder>
  readonly asks: BookSide<VenueOrder>
  readonly triggers: Map<number, VenueOrder>
  /** The second of the synthetic orders, and their unfilled part, best first. */
  quotes: { second: number; bids: Array<Quote>; asks: Array<Quote>; mark: bigint }
  /** Trades of accounts, newest last. */
  readonly trades: Array<Trade>
  /** By minute since the epoch. */
  readonly minutes: Map<number, MinuteTrades>
  /** Accounts with a position. */
  readonly holders: Set<Address>
}

/** Money of the other side of trades with synthetic orders, and of the venue's fees. */
export interface House {
  cash: bigint
  readonly positions: Map<string, bigint>
  readonly spot: Map<number, bigint>
  feesUsd: bigint
  readonly feesSpot: Map<number, bigint>
}

/** Everything about trading. */
export interface TradingState {
  /** Up to when time has passed for the venue. */
  now: number
  nextOid: number
  nextTid: number
  nextTwap: number
  nextTx: number
  readonly accounts: Map<Address, TradingAccount>
  readonly markets: Map<string, MarketState>
  readonly vaults: Map<Address, Vault>
  /** Referral codes. */
  readonly codes: Map<string, Address>
  readonly house: House
  /** Net deposits, by spot token, in its wei; perpetuals' dollars count as USDC. */
  readonly deposited: Map<number, bigint>
}

/** Trading before anybody has traded. */
export const make = (now: number): TradingState => ({
  now,
  nextOid: 77_738_308,
  nextTid: 1,
  nextTwap: 1_530_771,
  nextTx: 1,
  accounts: new Map(),
  markets: new Map(),
  vaults: new Map(),
  codes: new Map(),
  house: { cash: 0n, positions: new Map(), spot: new Map(), feesUsd: 0n, feesSpot: new Map() },
  deposited: new Map()
})

/** An account without money. */
const newAccount = (address: Address): TradingAccount => ({
  address,
  clearings: new Map(),
  spot: new Map(),
  leverage: new Map(),
  open: new Map(),
  exposure: new Map(),
  orders: new Map(),
  byCloid: new Map(),
  fills: [],
  twapFills: [],
  fundings: [],
  ledger: [],
  values: [],
  twaps: new Map(),
  volumes: new Map(),
  volume: 0n,
  cancelAt: undefined,
  builders: new Map(),
  referrer: undefined,
  code: undefined,
  displayName: undefined,
  rewards: 0n,
  claimed: 0n,
  reserved: 0,
  abstraction: "default",
  optedOutOfDusting: false,
  subAccount: undefined,
  unstaking: [],
  stakingLink: undefined
})

/** Returns the account of an address, or an empty one that is not stored. */
export const findAccount = (state: TradingState, address: Address): TradingAccount =>
  state.accounts.get(lowerCase(address)) ?? newAccount(lowerCase(address))

/** Returns the account of an address; creates it on first use. */
export const ensureAccount = (state: TradingState, address: Address): TradingAccount => {
  const key = lowerCase(address)
  const known = state.accounts.get(key)
  if (known !== undefined) return known
  const made = newAccount(key)
  state.accounts.set(key, made)
  return made
}

/** Returns an account's money in a dex; creates it on first use. */
export const ensureClearing = ({ clearings }: TradingAccount, dex: string): Clearing => {
  const known = clearings.get(dex)
  if (known !== undefined) return known
  const made: Clearing = { cash: 0n, positions: new Map() }
  clearings.set(dex, made)
  return made
}

/** Returns an account's balance in a spot token; creates it on first use. */
export const ensureBalance = ({ spot }: TradingAccount, token: number): SpotBalance => {
  const known = spot.get(token)
  if (known !== undefined) return known
  const made: SpotBalance = { total: 0n, hold: 0n, entry: 0n }
  spot.set(token, made)
  return made
}

/** Returns a market; creates it on first use. */
export const ensureMarket = (state: TradingState, coin: string): MarketState => {
  const known = state.markets.get(coin)
  if (known !== undefined) return known
  const made: MarketState = {
    coin,
    bids: PriceTimeBook.make(true),
    asks: PriceTimeBook.make(false),
    triggers: new Map(),
    quotes: { second: -1, bids: [], asks: [], mark: 0n },
    trades: [],
    minutes: new Map(),
    holders: new Set()
  }
  state.markets.set(coin, made)
  return made
}

/** Adds to an amount by key. */
export const addTo = <Key>(amounts: Map<Key, bigint>, key: Key, amount: bigint): void => {
  amounts.set(key, (amounts.get(key) ?? 0n) + amount)
}

/** Appends to a list of the newest entries. It is cut when it is twice as long as it has to be. */
export const append = <A>(list: Array<A>, entry: A, newest: number): void => {
  list.push(entry)
  if (list.length >= 2 * newest) list.splice(0, list.length - newest)
}
