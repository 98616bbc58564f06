/**
 * Advances the venue's time. Each second, the synthetic orders (the sandbox's own liquidity) are renewed, orders that
 * the price has reached are filled or triggered, and accounts below their maintenance margin are liquidated. TWAP
 * slices, funding and scheduled cancellations are executed when they are due.
 *
 * A minute in which no event is possible is skipped. The result for a period does not depend on the number of steps in
 * which time is advanced.
 */
import type { Asset } from "./Assets.ts"
import { hype } from "./Assets.ts"
import * as Funding from "./Funding.ts"
import { clearPosition } from "./GivenPositions.ts"
import * as Liquidation from "./Liquidation.ts"
import * as Margin from "./Margin.ts"
import { sweep } from "./Matching.ts"
import * as OrderLife from "./OrderLife.ts"
import * as PriceTimeBook from "./PriceTimeBook.ts"
import { markAt } from "./Quotes.ts"
import type { TradingAccount } from "./TradingAccount.ts"
import { ensureBalance } from "./TradingAccount.ts"
import type { MarketState } from "./TradingState.ts"
import { ensureAccount } from "./TradingState.ts"
import * as Triggers from "./Triggers.ts"
import * as Twaps from "./Twaps.ts"
import type { Venue } from "./Venue.ts"
import { relist, zeroHash } from "./Venue.ts"
import type { InfoState } from "./VenueAnswer.ts"

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
  for (const account of accounts.values()) {
    next = Math.min(next, account.cancelAt ?? next, Twaps.nextSliceAt(venue, account))
    for (const { at } of account.unstaking) next = Math.min(next, at)
  }
  return next
}

/** The maximum distance between the price path and the price of a fill, relative to the price: `margin` / `whole`. */
const margin = 1n
const whole = 2_000n

/** Returns whether a price movement between two prices cannot fill or trigger any order of a market. */
const isQuiet = ({ asset, market }: Watched, venue: Venue, from: number, to: number): boolean => {
  if (!venue.path.isMonotone(asset.market, from, to)) return false
  const a = markAt(venue, asset, from)
  const b = markAt(venue, asset, to)
  const low = (a < b ? a : b) * (whole - margin) / whole
  const high = (a < b ? b : a) * (whole + margin) / whole
  const bid = PriceTimeBook.best(market.bids)
  const ask = PriceTimeBook.best(market.asks)
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
    for (const clearing of ensureAccount(venue.state, holder).clearings.values()) {
      // values each position at the lower price if it is long, at the higher price if it is short
      const worst: Margin.Mark = (asset) => {
        const a = markAt(venue, asset, from)
        const b = markAt(venue, asset, to)
        const isLong = (clearing.positions.get(asset.coin)?.size ?? 0n) > 0n
        return isLong === a < b ? a : b
      }
      const { crossMaintenance, crossValue } = Margin.marginSums(venue, clearing, worst)
      if (crossValue * 10n < crossMaintenance * 11n) return false
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
  for (const { at, wei } of account.unstaking) if (at <= now) ensureBalance(account, hype).total += wei
  account.unstaking = account.unstaking.filter(({ at }) => at > now)
}

/** Executes those due events that do not depend on prices, such as funding payments. */
const playDue = (venue: Venue, previous: number): void => {
  const { accounts, now } = venue.state
  const isHour = Math.floor(now / hour) > Math.floor(previous / hour)
  for (const account of accounts.values()) {
    if (account.cancelAt !== undefined && account.cancelAt <= now) {
      account.cancelAt = undefined
      for (const order of account.open.values()) OrderLife.endByVenue(venue, order, "scheduledCancel")
    }
    if (account.twaps.size > 0) Twaps.executeDue(venue, account)
    if (account.unstaking.length > 0) arrivals(venue, account)
    if (isHour && account.clearings.size > 0) Funding.pay(venue, account)
  }
}

const playPrices = (venue: Venue, watched: ReadonlyArray<Watched>): void => {
  for (const { asset } of watched) {
    sweep(venue, asset)
    Triggers.fireReached(venue, asset)
    Twaps.fireReached(venue, asset)
  }
  const holders = new Set(watched.flatMap(({ market }) => [...market.holders]))
  for (const holder of holders) Liquidation.check(venue, ensureAccount(venue.state, holder))
}

/** Executes what the current price of a coin causes, such as fills. Does nothing for a coin without orders and positions. */
export const playPrice = (venue: Venue, coin: string): void =>
  playPrices(venue, watchedMarkets(venue).filter(({ asset }) => asset.coin === coin))

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
    const open = [...PriceTimeBook.iterateOrders(bids), ...PriceTimeBook.iterateOrders(asks), ...triggers.values()]
    for (const order of open) OrderLife.endByVenue(venue, order, "delistedCanceled")
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
