/**
 * Advances the venue's time: each second, orders match, triggers fire, funding is paid, and accounts below their margin
 * are liquidated.
 *
 * A minute in which no event is possible is skipped. The result for a period does not depend on the number of steps in
 * which time is advanced.
 */
import type { Address } from "@trigate/domain/encoding/Encoding"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { note } from "./AccountActions.ts"
import { remember } from "./AccountReads.ts"
import * as Decimals from "./Assets.ts"
import {
  abs,
  type Asset,
  findCollateral,
  findUsdPair,
  type Perpetual,
  printPx,
  printSz,
  printUsd,
  readGivenPx,
  usdc,
  weiPerUsd
} from "./Assets.ts"
import * as Margin from "./Margin.ts"
import { markAt, markPrice, perpetualByCoin } from "./Margin.ts"
import * as Matching from "./Matching.ts"
import * as Orders from "./Orders.ts"
import { settleDue } from "./OutcomeActions.ts"
import * as Outcomes from "./Outcomes.ts"
import * as SpotDeployers from "./SpotDeployers.ts"
import * as TradingState from "./TradingState.ts"
import { ensureAccount, ensureBalance } from "./TradingState.ts"
import type { Clearing, MarketState, Position, TradingAccount, VenueOrder } from "./TradingState.ts"
import { emit, nextHash, nextTid, relist, type Venue, zeroHash } from "./Venue.ts"
import type { InfoState } from "./VenueState.ts"

/** A balance or a position that an account cannot have; `member` is the invalid value. Nothing was changed. */
export class InvalidHolding extends Schema.TaggedError<InvalidHolding>()("InvalidHolding", {
  member: Schema.Literals(["amount", "token", "coin", "size", "entryPx"]),
  message: Schema.String
}) {}

/** Fails with {@link InvalidHolding}. */
export const invalid = (member: InvalidHolding["member"], message: string) =>
  Result.fail(new InvalidHolding({ member, message }))

const trade = (venue: Venue, user: Address, asset: Perpetual, size: bigint, px: bigint): void => {
  if (size === 0n) return
  Matching.movePosition(venue, ensureAccount(venue.state, user), asset, size > 0n, px, abs(size))
  Matching.settleHouse(venue, asset, size < 0n, px, abs(size))
  emit(venue, { kind: "account", user })
}

const close = (venue: Venue, user: Address, asset: Perpetual, px: bigint): void => {
  const size = ensureAccount(venue.state, user).clearings.get(asset.dex)?.positions.get(asset.coin)?.size ?? 0n
  trade(venue, user, asset, -size, px)
}

/** Closes a position at the mark price. */
export const clearPosition = (venue: Venue, user: Address, coin: string): void => {
  const asset = perpetualByCoin(venue, coin)
  if (asset !== undefined) close(venue, user, asset, markPrice(venue, asset))
}

/**
 * Sets a position: closes the account's position in the perpetual at a price, and opens the new one. Default price: the
 * mark price.
 */
export const givePosition = (
  venue: Venue,
  user: Address,
  { coin, entryPx, size }: { readonly coin: string; readonly size: string; readonly entryPx: string | undefined }
): Result.Result<void, InvalidHolding> => {
  const asset = perpetualByCoin(venue, coin)
  if (asset === undefined) return invalid("coin", `The sandbox lists no perpetual ${coin}`)
  const lots = Decimals.parseDecimal(size, asset.szDecimals)
  if (lots === undefined) return invalid("size", `Expected a size with at most ${asset.szDecimals} decimals`)
  const px = entryPx === undefined ? Result.succeed(markPrice(venue, asset)) : readGivenPx(asset, entryPx)
  if (Result.isFailure(px)) return invalid("entryPx", px.failure)
  close(venue, user, asset, px.success)
  trade(venue, user, asset, lots, px.success)
  return Result.succeed(undefined)
}

/** The positions that are liquidated together: all cross positions of a dex, or one isolated position. */
interface Book {
  readonly isCross: boolean
  readonly positions: ReadonlyArray<readonly [Perpetual, Position]>
  readonly worth: bigint
  readonly maintenance: bigint
}

const liquidationBooks = (
  venue: Venue,
  account: TradingAccount,
  clearing: Clearing,
  dex: string
): ReadonlyArray<Book> => {
  const known = [...clearing.positions].flatMap(([coin, position]): ReadonlyArray<readonly [Perpetual, Position]> => {
    const asset = Margin.perpetualByCoin(venue, coin)
    return asset === undefined ? [] : [[asset, position]]
  })
  const isolated = known.filter(([, { isCross }]) => !isCross).map(([asset, position]): Book => {
    const mark = markPrice(venue, asset)
    return {
      isCross: false,
      positions: [[asset, position]],
      worth: position.raw + Margin.signedValue(position, mark),
      maintenance: Margin.maintenanceMargin(asset, position, mark)
    }
  })
  const cross = known.filter(([, { isCross }]) => isCross)
  if (cross.length === 0) return isolated
  const sums = Margin.marginSums(venue, clearing)
  const portfolio = findCollateral(dex) === usdc ? Margin.portfolio(venue, account) : undefined
  const worth = portfolio === undefined
    ? sums.crossValue + Margin.collateral(venue, account, dex)
    : portfolio.value * 95n / 100n
  const maintenance = portfolio?.required ?? sums.crossMaintenance
  return [...isolated, { isCross: true, positions: cross, worth, maintenance }]
}

const closingOrder = (venue: Venue, user: VenueOrder["user"], asset: Asset, size: bigint): VenueOrder => {
  const isBuy = size < 0n
  // at any price: the house takes over the part that the book does not fill
  const px = isBuy ? markPrice(venue, asset) * 2n : 1n
  return TradingState.makeOrder(venue.state, {
    user,
    coin: asset.coin,
    isBuy,
    px,
    sz: abs(size),
    reduceOnly: true,
    tif: "Ioc"
  })
}

/** Transfers a position of an account to the house, at the mark price. */
const takeOver = (venue: Venue, account: TradingAccount, asset: Perpetual, size: bigint): void => {
  const order = closingOrder(venue, account.address, asset, size)
  const px = markPrice(venue, asset)
  remember(venue, account, order)
  const terms = {
    px,
    sz: order.sz,
    tid: nextTid(venue),
    hash: venue.hash,
    liquidation: { liquidatedUser: account.address, markPx: printPx(asset, px), method: "backstop" }
  }
  const { sz } = order
  order.sz = 0n
  Matching.settle(venue, asset, order, terms, true)
  Matching.settleHouse(venue, asset, !order.isBuy, px, sz)
  Matching.report(venue, order, "filled")
}

/** Returns the cash of an account in a dex: with the spot balance, if it is the collateral. */
const sumFunds = (account: TradingAccount, clearing: Clearing, dex: string): bigint =>
  clearing.cash +
  (TradingState.isUnified(account) ? ensureBalance(account, findCollateral(dex)).total / weiPerUsd : 0n)

/** Transfers dollars of an account to the house. */
const yieldFunds = (venue: Venue, account: TradingAccount, clearing: Clearing, dex: string, usd: bigint): void => {
  TradingState.payHouse(venue.state, dex, usd)
  if (TradingState.isUnified(account)) ensureBalance(account, findCollateral(dex)).total -= usd * weiPerUsd
  else clearing.cash -= usd
}

const liquidate = (venue: Venue, account: TradingAccount, clearing: Clearing, dex: string, book: Book): void => {
  venue.hash = nextHash(venue)
  const coins = new Set(book.positions.map(([{ coin }]) => coin))
  for (const order of account.open.values()) {
    const asset = venue.listing.byCoin.get(order.coin)
    if (asset?.kind !== "perpetual" || asset.dex !== dex) continue
    if (book.isCross || coins.has(order.coin)) Matching.endByVenue(venue, order, "liquidatedCanceled")
  }
  const notional = book.positions.reduce((total, [asset, { size }]) => total + abs(size * markPrice(venue, asset)), 0n)
  const isBackstop = book.worth * 3n < book.maintenance * 2n
  const liquidatedPositions = book.positions.map(([asset, { size }]) => ({
    coin: asset.coin,
    szi: printSz(asset, size)
  }))
  let hasClosed = isBackstop
  for (const [asset, { size }] of book.positions) {
    if (isBackstop) {
      const before = sumFunds(account, clearing, dex)
      takeOver(venue, account, asset, size)
      // the remaining value of an isolated position is transferred to the house, even if it is negative
      if (!book.isCross) yieldFunds(venue, account, clearing, dex, sumFunds(account, clearing, dex) - before)
      continue
    }
    const order = closingOrder(venue, account.address, asset, size)
    remember(venue, account, order)
    const met = Matching.take(venue, asset, order, {
      hash: venue.hash,
      liquidation: {
        liquidatedUser: account.address,
        markPx: printPx(asset, markPrice(venue, asset)),
        method: "market"
      }
    })
    Matching.report(venue, order, order.sz === 0n ? "filled" : met.sz === 0n ? "iocCancelRejected" : "canceled")
    hasClosed ||= met.sz > 0n
    // checks again, because the account can now be above its maintenance margin
    const { crossMaintenance, crossValue } = Margin.marginSums(venue, clearing)
    const portfolio = findCollateral(dex) === usdc ? Margin.portfolio(venue, account) : undefined
    const isSafe = portfolio === undefined
      ? crossValue + Margin.collateral(venue, account, dex) >= crossMaintenance
      : !portfolio.isLiquidated
    if (book.isCross && isSafe) break
  }
  const rest = TradingState.isUnified(account) ? Margin.collateral(venue, account, dex) : clearing.cash
  if (book.isCross && (isBackstop || clearing.positions.size === 0 && rest < 0n)) {
    // the remaining balance of the account is transferred to the house, even if it is negative
    if (account.abstraction === "portfolioMargin") takeOverLoan(venue, account, 1n)
    yieldFunds(venue, account, clearing, dex, rest)
  }
  // no one traded with the account: the next check tries again, and only a closed part is reported
  if (!hasClosed) return
  for (const [asset] of book.positions) Matching.endReducers(venue, asset, account.address)
  note({ venue }, [account], {
    type: "liquidation",
    liquidatedNtlPos: printUsd(notional),
    accountValue: printUsd(book.worth),
    leverageType: book.isCross ? "Cross" : "Isolated",
    liquidatedPositions
  })
  emit(venue, {
    kind: "liquidation",
    user: account.address,
    liquidation: {
      lid: venue.state.nextTx,
      liquidator: venue.house,
      liquidated_user: account.address,
      liquidated_ntl_pos: printUsd(notional),
      liquidated_account_value: printUsd(book.worth)
    }
  })
}

/** Transfers a part of an account's HYPE, one `parts`-th, to the house, which pays the price of a backstop liquidation. */
const takeOverLoan = (venue: Venue, account: TradingAccount, parts: bigint): void => {
  const { hype } = venue.listing
  const pair = findUsdPair(venue.listing, hype)
  const balance = account.spot.get(hype)
  if (pair === undefined || balance === undefined) return
  const wei = (balance.total - balance.hold) / parts
  // the mean of the loan to value, 0.65, and twice 1
  const paid = wei * markPrice(venue, pair) / pair.weiPerLot * 265n / 300n
  balance.entry -= balance.total === 0n ? 0n : balance.entry * wei / balance.total
  balance.total -= wei
  ensureBalance(account, usdc).total += paid
  TradingState.addTo(venue.state.house.spot, hype, wei)
  TradingState.addTo(venue.state.house.spot, usdc, -paid)
  emit(venue, { kind: "account", user: account.address })
}

/** Liquidates the loan of an account without positions, a fifth of its HYPE at a time. */
const checkLoan = (venue: Venue, account: TradingAccount): void => {
  const hasPositions = [...account.clearings.values()].some(({ positions }) => positions.size > 0)
  for (let parts = hasPositions ? 0n : 5n; parts > 0n; parts--) {
    if (Margin.portfolio(venue, account)?.isLiquidated !== true) return
    takeOverLoan(venue, account, parts)
  }
}

/**
 * Liquidates each part of an account (the cross positions of a dex, or one isolated position) that is below its
 * maintenance margin.
 */
export const check = (venue: Venue, account: TradingAccount): void => {
  for (const [dex, clearing] of account.clearings) {
    if (clearing.positions.size === 0) continue
    for (const book of liquidationBooks(venue, account, clearing, dex)) {
      if (book.worth < book.maintenance) liquidate(venue, account, clearing, dex, book)
    }
  }
}

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** Maximum simulated period, in milliseconds. If a period is longer, only its last part is simulated. */
const longest = 31 * 24 * hour

const isWatched = ({ asks, bids, holders, triggers, twaps }: MarketState): boolean =>
  bids.prices.length > 0 || asks.prices.length > 0 || triggers.size > 0 || twaps.size > 0 || holders.size > 0

interface Watched {
  readonly asset: Asset
  readonly market: MarketState
}

const watchedMarkets = (venue: Venue): ReadonlyArray<Watched> => {
  const watched: Array<Watched> = []
  for (const market of venue.state.markets.values()) {
    const asset = venue.listing.byCoin.get(market.coin)
    if (asset !== undefined && isWatched(market)) watched.push({ asset, market })
  }
  return watched
}

/** Returns the time of the next event that is independent of prices, such as a funding payment. */
const nextDue = (venue: Venue, watched: ReadonlyArray<Watched>): number => {
  const { accounts, now } = venue.state
  let next = watched.some(({ market }) => market.holders.size > 0)
    ? (Math.floor(now / hour) + 1) * hour
    : Number.POSITIVE_INFINITY
  next = Math.min(next, Outcomes.nextExpiry(venue), SpotDeployers.nextUpdate(venue))
  for (const account of accounts.values()) {
    if (account.abstraction === "portfolioMargin") next = Math.min(next, (Math.floor(now / hour) + 1) * hour)
    next = Math.min(next, account.cancelAt ?? next, Orders.nextSliceAt(venue, account))
    for (const { at } of account.unstaking) next = Math.min(next, at)
  }
  return next
}

/** The maximum distance between the price path and the price of a fill, relative to the price: `margin` / `whole`. */
const margin = 1n
const whole = 2_000n

/** Returns whether a price movement between two prices cannot fill or trigger any order of a market. */
const isQuiet = ({ asset, market }: Watched, venue: Venue, from: number, to: number): boolean => {
  // only a trade moves the price
  if (asset.market.isUnquoted === true && Margin.isRenewed(market)) {
    return market.triggers.size === 0 && market.twaps.size === 0
  }
  if (!venue.path.isMonotone(asset.market, from, to)) return false
  const a = markAt(venue, asset, from)
  const b = markAt(venue, asset, to)
  const low = (a < b ? a : b) * (whole - margin) / whole
  const high = (a < b ? b : a) * (whole + margin) / whole
  const bid = TradingState.best(market.bids)
  const ask = TradingState.best(market.asks)
  if (bid !== undefined && bid.px >= low || ask !== undefined && ask.px <= high) return false
  const isNear = (px: bigint | undefined) => px !== undefined && px >= low && px <= high
  for (const { trigger } of market.triggers.values()) if (isNear(trigger?.px)) return false
  for (const { stopPx, trigger } of market.twaps.values()) if (isNear(trigger?.px) || isNear(stopPx)) return false
  return true
}

/**
 * Returns whether all accounts with positions certainly stay above their maintenance margin from `from` to `to`. Both
 * times are in the same minute.
 */
const areSafe = (venue: Venue, watched: ReadonlyArray<Watched>, from: number, to: number): boolean => {
  const holders = new Set(watched.flatMap(({ market }) => [...market.holders]))
  for (const holder of holders) {
    const account = ensureAccount(venue.state, holder)
    for (const [dex, clearing] of account.clearings) {
      // values each position at the lower price if it is long, at the higher price if it is short
      const worst: Margin.Mark = (asset) => {
        const a = markAt(venue, asset, from)
        const b = markAt(venue, asset, to)
        const isLong = (clearing.positions.get(asset.coin)?.size ?? 0n) > 0n
        return isLong === a < b ? a : b
      }
      const { crossMaintenance, crossValue } = Margin.marginSums(venue, clearing, worst)
      if ((crossValue + Margin.collateral(venue, account, dex)) * 10n < crossMaintenance * 11n) return false
      for (const [coin, position] of clearing.positions) {
        const asset = position.isCross ? undefined : Margin.perpetualByCoin(venue, coin)
        if (asset === undefined) continue
        const mark = worst(asset)
        const worth = position.raw + Margin.signedValue(position, mark)
        if (worth * 10n < Margin.maintenanceMargin(asset, position, mark) * 11n) return false
      }
    }
  }
  return true
}

const arrivals = (venue: Venue, account: TradingAccount): void => {
  const { now } = venue.state
  if (!account.unstaking.some(({ at }) => at <= now)) return
  for (const { at, wei } of account.unstaking) if (at <= now) ensureBalance(account, venue.listing.hype).total += wei
  account.unstaking = account.unstaking.filter(({ at }) => at > now)
}

/** Executes those due events that do not depend on prices, such as funding payments. */
const playDue = (venue: Venue, previous: number): void => {
  const { accounts, now } = venue.state
  const isHour = Math.floor(now / hour) > Math.floor(previous / hour)
  for (const account of accounts.values()) {
    if (account.cancelAt !== undefined && account.cancelAt <= now) {
      account.cancelAt = undefined
      for (const order of account.open.values()) Matching.endByVenue(venue, order, "scheduledCancel")
    }
    if (account.twaps.size > 0) Orders.executeDue(venue, account)
    if (account.unstaking.length > 0) arrivals(venue, account)
    if (isHour && account.clearings.size > 0) Margin.pay(venue, account)
    if (isHour && account.abstraction === "portfolioMargin") {
      Margin.chargeInterest(venue, account)
      checkLoan(venue, account)
    }
  }
  settleDue(venue)
  SpotDeployers.updateDue(venue)
}

const playPrices = (venue: Venue, watched: ReadonlyArray<Watched>): void => {
  for (const { asset } of watched) {
    // an outcome that is settled
    if (!venue.listing.byCoin.has(asset.coin)) continue
    Matching.sweep(venue, asset)
    Orders.fireReached(venue, asset)
    Orders.fireSlices(venue, asset)
  }
  const holders = new Set(watched.flatMap(({ market }) => [...market.holders]))
  for (const holder of holders) check(venue, ensureAccount(venue.state, holder))
}

/** Executes what the current prices of coins cause, such as fills. Does nothing for coins without orders and positions. */
export const playCoins = (venue: Venue, coins: ReadonlySet<string>): void =>
  playPrices(venue, watchedMarkets(venue).filter(({ asset }) => coins.has(asset.coin)))

/** Does the same for one coin. */
export const playPrice = (venue: Venue, coin: string): void => playCoins(venue, new Set([coin]))

/** Returns the coins with orders or positions. */
export const tradedCoins = (venue: Venue): ReadonlyArray<string> => watchedMarkets(venue).map(({ asset }) => asset.coin)

const nextSecond = (time: number): number => (Math.floor(time / second) + 1) * second

/** Returns the end of the next step: the next second, or a later time before which no event is possible. */
const nextStop = (venue: Venue, watched: ReadonlyArray<Watched>, now: number): number => {
  const from = venue.state.now
  const due = Math.ceil(nextDue(venue, watched) / second) * second
  const soonest = nextSecond(from)
  const ofMinute = Math.min((Math.floor(from / minute) + 1) * minute, now)
  if (watched.length === 0) return Math.max(soonest, Math.min(due, now))
  if (due <= soonest || ofMinute <= soonest) return soonest
  const to = Math.min(ofMinute, due)
  const isSkipped = watched.every((each) => isQuiet(each, venue, from, to)) && areSafe(venue, watched, from, to)
  return isSkipped ? Math.floor(to / second) * second : soonest
}

/** Ends the open orders in delisted coins, and closes the positions in delisted coins at the mark price. */
const settleDelisted = (venue: Venue, info: InfoState): void => {
  for (const market of venue.state.markets.values()) {
    const { asks, bids, coin, holders, triggers } = market
    if (info.markets.get(coin)?.delistedAt === undefined || !isWatched(market)) continue
    const open = [...TradingState.iterateOrders(bids), ...TradingState.iterateOrders(asks), ...triggers.values()]
    for (const order of open) Matching.endByVenue(venue, order, "delistedCanceled")
    for (const holder of holders) clearPosition(venue, holder, coin)
  }
}

/**
 * Advances the venue's time to `now`, and simulates at most the last 31 days before `now`. If the clock was set back,
 * the venue's time does not change.
 */
export const to = (venue: Venue, info: InfoState, now: number): void => {
  if (venue.info !== info) settleDelisted(venue, info)
  relist(venue, info, now)
  Outcomes.relist(venue)
  if (now - venue.state.now > longest) venue.state.now = now - longest
  venue.hash = zeroHash
  while (venue.state.now < now) {
    // nothing happens between two whole seconds
    if (now < nextSecond(venue.state.now)) {
      venue.state.now = now
      return
    }
    const previous = venue.state.now
    const watched = watchedMarkets(venue)
    const stop = nextStop(venue, watched, now)
    if (stop > now) {
      venue.state.now = now
      return
    }
    venue.state.now = Math.max(stop, previous + 1)
    playDue(venue, previous)
    playPrices(venue, watched)
  }
}
