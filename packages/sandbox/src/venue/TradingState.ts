/**
 * The state of trading: accounts, markets with their books, vaults, and the money of the house.
 *
 * It is plain data that is changed in place, so that executing an order does not copy the state. A snapshot is a
 * structured clone.
 */
import { type Address, lowerCase } from "@trigate/domain/encoding/Hex"
import type { Trade } from "@trigate/domain/info/Market"
import type { BookSide } from "./PriceTimeBook.ts"
import * as PriceTimeBook from "./PriceTimeBook.ts"
import type { TradingAccount, Twap, VenueOrder } from "./TradingAccount.ts"
import { ensureClearing, make as newAccount } from "./TradingAccount.ts"

/** A vault. Depositors own shares of the vault's account. */
export interface Vault {
  readonly name: string
  readonly description: string
  readonly leader: Address
  readonly createdAt: number
  allowDeposits: boolean
  totalShares: bigint
  readonly shares: Map<Address, { shares: bigint; lockedUntil: number }>
}

/** A price level of the synthetic orders. */
export interface Quote {
  readonly px: bigint
  sz: bigint
  readonly n: number
}

/** A market's trades of accounts in one minute: the volume, the number of trades, and the highest and lowest price. */
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
  /** TWAP orders that wait for the mark price to reach their trigger or their stop. */
  readonly twaps: Map<number, Twap>
  /** The mark price, and the second for which it was computed. */
  mark: { readonly second: number; readonly px: bigint }
  /**
   * The synthetic orders with their unfilled sizes, best first, and the second for which they were made: infinity for
   * orders that a test has set.
   */
  quotes: { readonly second: number; readonly bids: Array<Quote>; readonly asks: Array<Quote> }
  /** Trades of accounts, newest last. */
  readonly trades: Array<Trade>
  /** The volume, number and price range of trades for each minute. The keys are minutes since 1970. */
  readonly minutes: Map<number, MinuteTrades>
  /** The accounts that have a position in this market. */
  readonly holders: Set<Address>
}

/** The balances of the house, which is the counterparty of synthetic orders, and the venue's fee income. */
export interface House {
  cash: bigint
  readonly positions: Map<string, bigint>
  readonly spot: Map<number, bigint>
  feesUsd: bigint
  readonly feesSpot: Map<number, bigint>
}

/** The complete state of trading. */
export interface TradingState {
  /** The time up to which the venue has been simulated. */
  now: number
  nextOid: number
  nextTid: number
  nextTwap: number
  nextTx: number
  readonly accounts: Map<Address, TradingAccount>
  readonly markets: Map<string, MarketState>
  readonly vaults: Map<Address, Vault>
  /** The account that registered each referral code, by code. */
  readonly codes: Map<string, Address>
  readonly house: House
  /** Net deposits into the perpetuals of each dex, in millionths of a dollar. */
  readonly netDeposits: Map<string, bigint>
  /** Net deposits of each spot token, in wei of the token. Dollars in perpetuals count as USDC. */
  readonly deposited: Map<number, bigint>
}

/** Makes the initial state of trading, which has no accounts, markets or trades. */
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
  netDeposits: new Map(),
  deposited: new Map()
})

/** Returns the account of an address. If the address has no account, returns an empty account, which is not stored. */
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

/** Returns empty prices, for a market whose prices are not computed yet. */
export const withoutPrices = (): Pick<MarketState, "mark" | "quotes"> => ({
  mark: { second: -1, px: 0n },
  quotes: { second: -1, bids: [], asks: [] }
})

/** Returns a market; creates it on first use. */
export const ensureMarket = (state: TradingState, coin: string): MarketState => {
  const known = state.markets.get(coin)
  if (known !== undefined) return known
  const made: MarketState = {
    coin,
    bids: PriceTimeBook.make(true),
    asks: PriceTimeBook.make(false),
    triggers: new Map(),
    twaps: new Map(),
    ...withoutPrices(),
    trades: [],
    minutes: new Map(),
    holders: new Set()
  }
  state.markets.set(coin, made)
  return made
}

/** Adds an amount to the value of a key in a map. A missing value counts as 0. */
export const addTo = <Key>(amounts: Map<Key, bigint>, key: Key, amount: bigint): void => {
  amounts.set(key, (amounts.get(key) ?? 0n) + amount)
}

/** Deposits dollars into an account's perpetuals in a dex. A negative amount is a withdrawal. */
export const moveCash = (
  { netDeposits }: TradingState,
  account: TradingAccount,
  dex: string,
  usd: bigint
): void => {
  ensureClearing(account, dex).cash += usd
  account.deposited += usd
  addTo(netDeposits, dex, usd)
}

/** Appends an entry to a list. When the list has twice `newest` entries, truncates it to the last `newest` ones. */
export const append = <A>(list: Array<A>, entry: A, newest: number): void => {
  list.push(entry)
  if (list.length >= 2 * newest) list.splice(0, list.length - newest)
}
