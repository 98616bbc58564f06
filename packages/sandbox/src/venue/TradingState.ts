/**
 * The state of trading: accounts, markets with their books, vaults, and the money of the house. It is plain data.
 *
 * A side is plain data, which a snapshot can clone. Adding an order takes logarithmic time in the number of prices;
 * finding the best order takes constant time.
 *
 * It is plain data that is changed in place, so that executing an order does not copy the state. A snapshot is a
 * structured clone.
 */
import type { SentAction } from "@trigate/domain/actions/Action"
import { type Address, type Hash, lowerCase, stringify } from "@trigate/domain/encoding/Encoding"
import * as Account from "@trigate/domain/info/Account"
import type { SpotToken, Trade } from "@trigate/domain/info/Market"
import type { TimeInForce } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as Schema from "effect/Schema"
import { type CandleMarket, findCollateral, usdc, weiPerUsd } from "./Assets.ts"
import type { DeployedOutcome, DeployedQuestion } from "./Outcomes.ts"

/** The members of an order that a book uses. */
export interface Resting {
  readonly oid: number
  /** Price in ticks. */
  readonly px: bigint
  /** The time of arrival, in milliseconds. */
  readonly timestamp: number
  /** The rate of the order's priority fee, if it pays one. */
  readonly priority?: number
}

/** One side of a book. */
export interface BookSide<Order extends Resting> {
  readonly isBid: boolean
  /** The prices, ascending for bids and descending for asks: the best price is the last one. */
  readonly prices: Array<bigint>
  readonly levels: Map<bigint, Map<number, Order>>
}

/** Makes an empty side. */
export const makeBook = <Order extends Resting>(isBid: boolean): BookSide<Order> => ({
  isBid,
  prices: [],
  levels: new Map()
})

/**
 * Returns the index of a price among the prices of a side. If the side does not have the price, returns the index at
 * which to insert it.
 */
const levelIndex = ({ isBid, prices }: BookSide<Resting>, px: bigint): number => {
  let low = 0
  let high = prices.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const at = prices[middle] ?? 0n
    if (isBid ? at < px : at > px) low = middle + 1
    else high = middle
  }
  return low
}

/** The period, in milliseconds, in which an order can be overtaken by an order with a higher priority fee. */
const contested = 400

/** Moves the newest orders of a level, as far as they are contested and pay less than the last order, behind it. */
const overtake = <Order extends Resting>(level: Map<number, Order>, { priority = 0, timestamp }: Order): void => {
  const earlier = [...level.values()].slice(0, -1)
  const from = 1 +
    earlier.findLastIndex((each) => timestamp - each.timestamp >= contested || (each.priority ?? 0) >= priority)
  for (const order of earlier.slice(from)) {
    level.delete(order.oid)
    level.set(order.oid, order)
  }
}

/**
 * Adds an order behind the orders that are already in the book at its price. An order with a priority fee is added
 * before the orders of the last 400 ms that pay less.
 */
export const add = <Order extends Resting>(side: BookSide<Order>, order: Order): void => {
  const level = side.levels.get(order.px)
  if (level !== undefined) {
    level.set(order.oid, order)
    if (order.priority !== undefined) overtake(level, order)
    return
  }
  side.levels.set(order.px, new Map([[order.oid, order]]))
  side.prices.splice(levelIndex(side, order.px), 0, order.px)
}

/** Removes an order. Returns whether it was in the book. */
export const remove = <Order extends Resting>(
  side: BookSide<Order>,
  { oid, px }: Pick<Resting, "oid" | "px">
): boolean => {
  const level = side.levels.get(px)
  if (level === undefined || !level.delete(oid)) return false
  if (level.size === 0) {
    side.levels.delete(px)
    side.prices.splice(levelIndex(side, px), 1)
  }
  return true
}

/** Returns the order that is matched first: the oldest order at the best price. */
export const best = <Order extends Resting>({ levels, prices }: BookSide<Order>): Order | undefined => {
  const px = prices[prices.length - 1]
  return px === undefined ? undefined : levels.get(px)?.values().next().value
}

/** Iterates over all orders in matching order. */
export function* iterateOrders<Order extends Resting>({ levels, prices }: BookSide<Order>): Generator<Order> {
  for (let index = prices.length - 1; index >= 0; index--) {
    const level = levels.get(prices[index] ?? 0n)
    if (level !== undefined) yield* level.values()
  }
}

/** The distance of a trailing stop's trigger from the best mark price since the order became active. */
export interface Trailing {
  /** A price in ticks, or a part of the best price in millionths. */
  readonly retracement: { readonly px: bigint } | { readonly millionths: bigint }
  /** The mark price at which the order becomes active; absent for an order that is active at once. */
  readonly activationPx?: bigint
  /** The best mark price since the order became active; `undefined` before that. */
  best: bigint | undefined
}

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
  trigger?: { readonly px: bigint; readonly isMarket: boolean; readonly tpsl: "tp" | "sl" }
  /** For a trailing stop: what moves its trigger. */
  readonly trailing?: Trailing
  /**
   * Whether the order applies to the whole position. If so, the order's size is set when the order is triggered, and
   * the order ends when the position is closed.
   */
  readonly isPositionTpsl: boolean
  readonly builder?: { readonly address: Address; readonly tenthsOfBp: bigint }
  /** The rate of the order's priority fee, in units of 10^-8. */
  readonly priority?: number
  /** Orders that wait until this order is filled. */
  children: ReadonlyArray<VenueOrder>
  /** For a child order: the ID of the order whose fill it waits or waited for. */
  parent?: number
  /**
   * The IDs of the order's siblings: a group of orders, such as take-profit and stop-loss, of which only one can be
   * filled.
   */
  siblings: ReadonlyArray<number>
  /**
   * The queue that contains the order: the order book, the triggers, or the child orders of a parent order. `gone`: the
   * order is in no queue.
   */
  place: "book" | "trigger" | "parent" | "gone"
  /** The venue's status: `open`, `filled`, `canceled`, … */
  status: string
  statusTimestamp: number
  /**
   * The statuses that the order has had before it ended, oldest first; without `open` for an order that cannot rest. The
   * last one can be the order's status.
   */
  log: ReadonlyArray<LoggedStatus>
  readonly twapId?: number
}

/** A status of an order, with the unfilled size and the time at which the order got the status. */
export interface LoggedStatus {
  readonly status: string
  readonly statusTimestamp: number
  readonly sz: bigint
}

/** An empty list for orders without children or siblings. It is shared, so that an order does not allocate an array. */
export const none: ReadonlyArray<never> = []

/** The members of an order that differ from those of a new order without any option. */
type OrderTerms =
  & Pick<VenueOrder, "user" | "coin" | "isBuy" | "px" | "sz" | "reduceOnly" | "tif">
  & Partial<VenueOrder>

/** Makes a new order, which is in no queue yet. */
export const makeOrder = (
  state: TradingState,
  { coin, isBuy, px, reduceOnly, sz, tif, user, ...others }: OrderTerms
): VenueOrder => ({
  oid: state.nextOid++,
  // the account's own string: that of a request would be retained with each order
  user: state.accounts.get(user)?.address ?? user,
  coin,
  isBuy,
  px,
  sz,
  origSz: sz,
  reduceOnly,
  tif,
  cloid: null,
  timestamp: state.now,
  isPositionTpsl: false,
  children: none,
  siblings: none,
  place: "gone",
  status: "open",
  statusTimestamp: state.now,
  log: none,
  ...others
})

/** A position in a perpetual. */
export interface Position {
  /** Size in lots; negative for a short position. */
  size: bigint
  /** The cost of the position, in millionths of a dollar. It is positive also for a short position. */
  entry: bigint
  readonly isCross: boolean
  leverage: number
  /** For an isolated position: the assigned margin minus the position's cost, in millionths of a dollar. */
  raw: bigint
  /** Funding paid by the position, in millionths of a dollar. */
  readonly funding: { allTime: bigint; sinceOpen: bigint; sinceChange: bigint }
}

/** The money and positions of an account in the perpetuals of a dex. */
export interface Clearing {
  /** Cash in millionths of a dollar. The cost of all cross positions is deducted. */
  cash: bigint
  readonly positions: Map<string, Position>
}

/** A balance in a spot token, in the token's wei. */
export interface SpotBalance {
  total: bigint
  /** The part of the balance that is reserved for open orders. */
  hold: bigint
  /** The acquisition cost of the balance, in wei of USDC. */
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
  /** The price above (or below) which the order starts; absent for an order that starts when it is placed. */
  readonly trigger?: { readonly px: bigint; readonly isAbove: boolean }
  /** The price at which the order ends: above it if the order buys, below it if the order sells. */
  readonly stopPx?: bigint
  /** The time at which the order was placed or, if it has a trigger, was triggered. */
  startedAt: number
  executedSz: bigint
  /** Executed value, in ticks times lots. */
  executedNtl: bigint
  slices: number
  status: { readonly status: "waitingForTrigger" | "activated" | "stopped" | "terminated" | "finished" } | {
    readonly status: "error"
    readonly description: string
  }
  endedAt: number | undefined
}

/** A fill of a TWAP order. */
export interface TwapFill {
  readonly fill: Account.Fill
  readonly twapId: number
}

/** An entry of an account's ledger, such as a deposit or a transfer. Funding payments are stored separately. */
export interface LedgerEntry {
  readonly time: number
  readonly hash: Hash
  readonly delta: { readonly type: string; readonly [member: string]: unknown }
}

/** A funding payment of an account. */
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

/** The value of an account at a time, in millionths of a dollar. */
export interface AccountValue {
  readonly time: number
  /** The value in perpetuals on all dexes. */
  readonly perps: bigint
  /** `perps` and the spot USDC. */
  readonly all: bigint
  /** The profit in perpetuals since the account exists. */
  readonly profit: bigint
}

/**
 * An order that has ended, which only queries read. Its rows are JSON text: one string instead of a dozen objects, which
 * a garbage collection would visit each.
 */
export interface EndedOrder {
  readonly cloid: string | null
  /** The rows of the order in `historicalOrders`: one for each status that it has had, oldest first. */
  readonly rows: string
}

/** The trading state of an account, such as its money, positions, orders and fills. */
export class TradingAccount {
  readonly address: Address
  /** The account's money and positions in perpetuals, by dex; the key `""` is the venue's own dex. */
  readonly clearings = new Map<string, Clearing>()
  readonly spot = new Map<number, SpotBalance>()
  readonly leverage = new Map<string, { readonly isCross: boolean; readonly value: number }>()
  /** The open orders, in a book or waiting for their trigger, oldest first. */
  readonly open = new Map<number, VenueOrder>()
  /** The total lots of the account's open bids and asks, by coin. Reduce-only orders are not counted. */
  readonly exposure = new Map<string, { bids: bigint; asks: bigint }>()
  /** The open orders of the account and the newest ended ones, in order of placement. */
  readonly orders = new Map<number, VenueOrder>()
  /** Ended orders that were placed before those, in order of placement. */
  readonly ended = new Map<number, EndedOrder>()
  readonly byCloid = new Map<string, number>()
  /** The newest fills, newest last. */
  readonly fills: Array<Account.Fill> = []
  /** The fills before those, newest last, as JSON text. */
  readonly olderFills: Array<string> = []
  readonly twapFills: Array<TwapFill> = []
  readonly fundings: Array<FundingEntry> = []
  readonly ledger: Array<LedgerEntry> = []
  /** The account's value at each full hour, newest last. */
  readonly values: Array<AccountValue> = []
  /** Deposits into the account's perpetuals minus withdrawals, in millionths of a dollar, transfers included. */
  deposited = 0n
  readonly twaps = new Map<number, Twap>()
  /** Traded volumes, by the first millisecond of the day. */
  readonly volumes = new Map<number, DayVolume>()
  /**
   * The volume of each day that counts toward the fee tier: spot counts twice, and an asset in growth mode a tenth. A
   * sub-account has the map of its master account, because they have one tier.
   */
  tierVolumes = new Map<number, bigint>()
  /** The total traded volume, in millionths of a dollar. */
  volume = 0n
  /**
   * Volume that the account traded before the sandbox started, in millionths of a dollar. It counts only toward the
   * volumes that some actions require.
   */
  earlierVolume = 0n
  cancelAt: number | undefined = undefined
  /** The maximum fee that the account has approved for each builder, in tenths of a basis point. */
  readonly builders = new Map<Address, bigint>()
  referrer: { readonly code: string; readonly address: Address } | undefined = undefined
  code: string | undefined = undefined
  displayName: string | undefined = undefined
  /** Claimable rewards from referrals, in millionths of a dollar. Rewards already paid out are in `claimed`. */
  rewards = 0n
  /** Claimable builder fees, in millionths of a dollar. */
  builderRewards = 0n
  claimed = 0n
  /** The number of requests bought with `reserveRequestWeight`. */
  reserved = 0
  abstraction: "default" | "disabled" | "unifiedAccount" | "portfolioMargin" | "dexAbstraction" = "default"
  optedOutOfDusting = false
  subAccount: { readonly master: Address; readonly name: string } | undefined = undefined
  /** Pending withdrawals from staking to spot: the amount in wei of HYPE, and the time of arrival. */
  unstaking: ReadonlyArray<{ readonly wei: bigint; readonly at: number }> = []
  /** The newest outcomes whose tokens the account had when they were settled. */
  settledOutcomes: ReadonlyArray<number> = []
  /** Supplied amounts for lending, in wei of each token. */
  readonly supplied = new Map<number, bigint>()
  /** The account that is linked to this one for staking, and whether both accounts have accepted the link. */
  stakingLink: { readonly user: Address; readonly isFinal: boolean } | undefined = undefined

  constructor(address: Address) {
    this.address = address
  }
}

/** Returns the value of a key in a map; makes the value on first use. */
export const ensure = <Key, Value>(values: Map<Key, Value>, key: Key, make: (key: Key) => Value): Value => {
  const known = values.get(key)
  if (known !== undefined) return known
  const made = make(key)
  values.set(key, made)
  return made
}

/** Returns an account's cash and positions in a dex; creates an empty entry on first use. */
export const ensureClearing = ({ clearings }: TradingAccount, dex: string): Clearing =>
  ensure(clearings, dex, () => ({ cash: 0n, positions: new Map() }))

/** Returns an account's balance in a spot token; creates an empty balance on first use. */
export const ensureBalance = ({ spot }: TradingAccount, token: number): SpotBalance =>
  ensure(spot, token, () => ({ total: 0n, hold: 0n, entry: 0n }))

/**
 * Moves the cash of an account in a dex to its spot balance, as far as it is not the cost of a position. Does nothing
 * unless the spot balance is the collateral. A negative amount is covered from the spot balance.
 */
export const sweep = (state: TradingState, account: TradingAccount, dex: string): void => {
  const clearing = account.clearings.get(dex)
  if (!isUnified(account) || clearing === undefined) return
  let spare = clearing.cash
  for (const { entry, isCross, size } of clearing.positions.values()) {
    if (isCross) spare += size < 0n ? -entry : entry
  }
  clearing.cash -= spare
  account.deposited -= spare
  addTo(state.netDeposits, dex, -spare)
  ensureBalance(account, findCollateral(dex)).total += spare * weiPerUsd
}

/** A depositor's part of a vault. Amounts are in millionths of a dollar. */
export interface VaultShare {
  readonly shares: bigint
  readonly lockedUntil: number
  readonly enteredAt: number
  /** The price that the depositor has paid for the shares. */
  readonly basis: bigint
  /** The profit of the shares that the depositor has given back. */
  readonly realized: bigint
}

/** A vault. Depositors own shares of the vault's account. */
export interface Vault {
  readonly name: string
  readonly description: string
  readonly leader: Address
  readonly createdAt: number
  allowDeposits: boolean
  /** Whether a withdrawal closes the same part of each position. */
  alwaysCloseOnWithdraw: boolean
  totalShares: bigint
  readonly shares: Map<Address, VaultShare>
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
export class MarketState {
  readonly coin: string
  readonly bids: BookSide<VenueOrder> = makeBook(true)
  readonly asks: BookSide<VenueOrder> = makeBook(false)
  readonly triggers = new Map<number, VenueOrder>()
  /** TWAP orders that wait for the mark price to reach their trigger or their stop. */
  readonly twaps = new Map<number, Twap>()
  /** The mark price, and the second for which it was computed. */
  mark: { readonly second: number; readonly px: bigint } = withoutPrices().mark
  /**
   * The synthetic orders with their unfilled sizes, best first, and the second for which they were made: infinity for
   * orders that a test has set.
   */
  quotes: { readonly second: number; readonly bids: Array<Quote>; readonly asks: Array<Quote> } = withoutPrices().quotes
  /** Trades of accounts, newest last. */
  readonly trades: Array<Trade> = []
  /** The volume, number and price range of trades for each minute. The keys are minutes since 1970. */
  readonly minutes = new Map<number, MinuteTrades>()
  /** The accounts that have a position in this market. */
  readonly holders = new Set<Address>()

  constructor(coin: string) {
    this.coin = coin
  }
}

/** The balances of the house, which is the counterparty of synthetic orders, and the venue's fee income. */
export interface House {
  cash: bigint
  readonly positions: Map<string, bigint>
  readonly spot: Map<number, bigint>
  feesUsd: bigint
  readonly feesSpot: Map<number, bigint>
}

/** An action or a deposit of HYPE that comes from the EVM, and that the venue executes later. */
export interface Scheduled {
  /** The hash of the transaction. */
  readonly hash: Hash
  /** The venue's time of the execution, in milliseconds. */
  readonly at: number
  readonly user: Address
  readonly action?: SentAction
  /** The deposit, in units of 10^-8 HYPE. */
  readonly wei?: bigint
}

/** A dex of perpetuals that an account has deployed. */
export interface DeployedDex {
  readonly name: string
  readonly fullName: string
  readonly deployer: Address
  readonly oracleUpdater: Address | null
  feeRecipient: Address | null
  /** The accounts that can send a variant of the deployer's action. */
  readonly subDeployers: Map<string, ReadonlyArray<Address>>
  readonly markets: Map<string, CandleMarket>
  readonly fundingMultipliers: Map<string, string>
  readonly fundingInterestRates: Map<string, string>
  /** The time of the latest prices. */
  pricedAt: number
  /** The collateral of the dex's liquidator, in millionths. */
  liquidator: bigint
}

/** An account that can or could deploy outcomes. */
export interface OutcomeDeployer {
  readonly user: Address
  readonly since: number
  isActive: boolean
  /** The accounts that can send an operation for the deployer, by operation. */
  readonly subDeployers: Map<string, ReadonlyArray<Address>>
}

/** Grants an operation of a deployer to an account, or revokes it. */
export const setSubDeployer = (
  granted: OutcomeDeployer["subDeployers"],
  operation: string,
  user: Address,
  isAllowed: boolean
): void => {
  const others = (granted.get(operation) ?? []).filter((each) => each !== lowerCase(user))
  granted.set(operation, isAllowed ? [...others, lowerCase(user)] : others)
}

/** A spot token that an account deploys (HIP-1). */
export interface DeployedToken {
  readonly token: SpotToken
  readonly deployer: Address
  readonly deployedAt: number
  /** The price of the auction, in HYPE. */
  readonly gas: string
  /** The amounts of the genesis in wei: of accounts, and of the holders of other tokens together. */
  readonly userGenesis: Map<Address, bigint>
  readonly holderGenesis: Map<number, bigint>
  /** The accounts that get nothing as holders of another token. */
  readonly blacklist: Set<Address>
  /** The supply in wei; absent before the genesis. */
  maxSupply?: bigint
  /** Whether the genesis has excluded Hyperliquidity. */
  noHyperliquidity: boolean
  /** The part of the fees in this token that the deployer earns, in thousandths of a percent. The rest is burned. */
  feeShare: bigint
  /** The dollars that the deployer has paid for bids of Hyperliquidity, in wei of USDC. */
  seeded: bigint
  /** Whether the deployer can freeze accounts; absent before the privilege is enabled. */
  canFreeze?: boolean
  readonly frozen: Set<Address>
  quote?: "quote" | "aligned"
  /** The EVM contract that the deployer wants to link, and the one that is linked. */
  pendingContract?: NonNullable<SpotToken["evmContract"]>
  evmContract?: NonNullable<SpotToken["evmContract"]>
  /** The description that the deployer has set. */
  annotation?: object
}

/** The orders of Hyperliquidity (HIP-2) for a pair: one of a size at each price. */
export interface Hyperliquidity {
  /** The prices in ticks, ascending. */
  readonly prices: ReadonlyArray<bigint>
  /** The size of a full order, in lots. */
  readonly sz: bigint
  updatedAt: number
  /** The trade after which the orders were updated. */
  tid: number | undefined
  /** Whether all orders could be placed. */
  isComplete: boolean
}

/** A spot pair that an account has deployed. It trades after it has a market. */
export interface DeployedPair {
  readonly index: number
  readonly base: number
  readonly quote: number
  market?: CandleMarket
  hyperliquidity?: Hyperliquidity
}

/** The complete state of trading. */
export class TradingState {
  /** The time up to which the venue has been simulated. */
  now: number
  nextOid = 77_738_308
  nextTid = 1
  nextTwap = 1_530_771
  nextTx = 1
  readonly accounts = new Map<Address, TradingAccount>()
  readonly markets = new Map<string, MarketState>()
  readonly vaults = new Map<Address, Vault>()
  /** The account that registered each referral code, by code. */
  readonly codes = new Map<string, Address>()
  readonly house: House = { cash: 0n, positions: new Map(), spot: new Map(), feesUsd: 0n, feesSpot: new Map() }
  /** The successful bids of the auctions for gossip priority, by slot and number of the auction. */
  readonly bids = new Map<string, { readonly ip: string; readonly gas: string }>()
  /** Net deposits into the perpetuals of each dex, in millionths of a dollar. */
  readonly netDeposits = new Map<string, bigint>()
  /** The actions and deposits from the EVM, in the order of execution. */
  scheduled: ReadonlyArray<Scheduled> = none
  /** Tokens sent to the EVM that are not credited there yet, in wei of the venue. */
  bridged: ReadonlyArray<{ readonly user: Address; readonly token: number; readonly wei: bigint }> = none
  /** Net deposits of each spot token, in wei of the token. Dollars in perpetuals count as USDC. */
  readonly deposited = new Map<number, bigint>()
  /** The dexes that accounts have deployed, by name. */
  readonly perpDexes = new Map<string, DeployedDex>()
  /** The tokens and the pairs that accounts have deployed, by index. */
  readonly spotTokens = new Map<number, DeployedToken>()
  readonly spotPairs = new Map<number, DeployedPair>()
  /** The accounts with a role for a quote token, by token and role, and the labels of deployers. */
  readonly quoteRoles = new Map<string, Address>()
  readonly deployerLabels = new Map<Address, string>()
  /** The latest auction for the right to deploy a token or a pair that an account has won. */
  spotAuction: { readonly startTimeSeconds: number; readonly gas: string } | undefined = undefined
  /** The outcomes that accounts have deployed, by number. */
  readonly deployedOutcomes = new Map<number, DeployedOutcome>()
  /** The questions that accounts have deployed, by number. */
  readonly deployedQuestions = new Map<number, DeployedQuestion>()
  /** The accounts that can or could deploy outcomes, by the name of their venue. */
  readonly outcomeDeployers = new Map<string, OutcomeDeployer>()

  constructor(now: number) {
    this.now = now
  }
}

/** Returns the account of an address. If the address has no account, returns an empty account, which is not stored. */
export const findAccount = (state: TradingState, address: Address): TradingAccount =>
  state.accounts.get(lowerCase(address)) ?? new TradingAccount(lowerCase(address))

/** Returns the account of an address; creates it on first use. */
export const ensureAccount = ({ accounts }: TradingState, address: Address): TradingAccount =>
  ensure(accounts, lowerCase(address), (key) => new TradingAccount(key))

/** Returns empty prices, for a market whose prices are not computed yet. */
export const withoutPrices = (): Pick<MarketState, "mark" | "quotes"> => ({
  mark: { second: -1, px: 0n },
  quotes: { second: -1, bids: [], asks: [] }
})

/** Returns a market; creates it on first use. */
export const ensureMarket = ({ markets }: TradingState, coin: string): MarketState =>
  ensure(markets, coin, () => new MarketState(coin))

/** Adds an amount to the value of a key in a map. A missing value counts as 0. */
export const addTo = <Key>(amounts: Map<Key, bigint>, key: Key, amount: bigint): void => {
  amounts.set(key, (amounts.get(key) ?? 0n) + amount)
}

/** Returns whether the deployer of a token has frozen an account, which cannot trade, send or receive the token. */
export const isFrozen = ({ spotTokens }: TradingState, token: number, address: Address): boolean =>
  spotTokens.get(token)?.frozen.has(address) === true

/** Returns whether the spot balance of an account is the collateral of its perpetuals. */
export const isUnified = ({ abstraction }: TradingAccount): boolean =>
  abstraction === "unifiedAccount" || abstraction === "portfolioMargin"

/**
 * Deposits dollars into an account's perpetuals in a dex: into the spot balance, if it is the collateral. A negative
 * amount is a withdrawal.
 */
export const moveCash = (
  { netDeposits }: TradingState,
  account: TradingAccount,
  dex: string,
  usd: bigint
): void => {
  if (isUnified(account)) {
    ensureBalance(account, findCollateral(dex)).total += usd * weiPerUsd
    return
  }
  ensureClearing(account, dex).cash += usd
  account.deposited += usd
  addTo(netDeposits, dex, usd)
}

/** Pays the house an amount of the collateral of a dex, in millionths. */
export const payHouse = ({ house }: TradingState, dex: string, amount: bigint): void => {
  const token = findCollateral(dex)
  if (token === usdc) house.cash += amount
  else addTo(house.spot, token, amount * weiPerUsd)
}

const decodeFill = Schema.decodeUnknownSync(Schema.fromJsonString(Account.Fill))

/** Returns the number of an account's fills. */
export const countFills = ({ fills, olderFills }: TradingAccount): number => olderFills.length + fills.length

/** Returns the fill at an index, from 0 for the oldest one. */
export const fillAt = ({ fills, olderFills }: TradingAccount, index: number): Account.Fill | undefined => {
  const text = olderFills[index]
  return text === undefined ? fills[index - olderFills.length] : decodeFill(text)
}

/** When an account has twice this number of fills as values, the older half becomes text. */
const recentFills = 200

/** Adds a fill to an account. When the account has twice `most` fills, drops all but the last `most` ones. */
export const appendFill = (account: TradingAccount, fill: Account.Fill, most: number): void => {
  const { fills, olderFills } = account
  fills.push(fill)
  if (fills.length >= 2 * recentFills) olderFills.push(...fills.splice(0, recentFills).map(stringify))
  const excess = countFills(account) - most
  if (excess >= most) fills.splice(0, excess - olderFills.splice(0, excess).length)
}

/** Appends an entry to a list. When the list has twice `newest` entries, truncates it to the last `newest` ones. */
export const append = <A>(list: Array<A>, entry: A, newest: number): void => {
  list.push(entry)
  if (list.length >= 2 * newest) list.splice(0, list.length - newest)
}
