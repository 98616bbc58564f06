/**
 * Liquidation: if an account is below its maintenance margin, its positions are closed at the market. If the account is
 * below two thirds of that margin, the house (the account behind the synthetic orders) takes over the positions.
 */
import type { Asset, Perpetual } from "./Assets.ts"
import { printPx, printSz, printUsd } from "./Assets.ts"
import { abs } from "./Decimals.ts"
import * as Margin from "./Margin.ts"
import { endReducers, take } from "./Matching.ts"
import * as OrderLife from "./OrderLife.ts"
import { markPrice } from "./Quotes.ts"
import * as Settlement from "./Settlement.ts"
import type { Clearing, LedgerEntry, Position, TradingAccount, VenueOrder } from "./TradingAccount.ts"
import { none } from "./TradingAccount.ts"
import * as TradingState from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import { emit, nextHash, nextTid } from "./Venue.ts"

const remembered = 2_000

/** The positions that are liquidated together: all cross positions of a dex, or one isolated position. */
interface Book {
  readonly isCross: boolean
  readonly positions: ReadonlyArray<readonly [Perpetual, Position]>
  readonly worth: bigint
  readonly maintenance: bigint
}

const liquidationBooks = (venue: Venue, clearing: Clearing): ReadonlyArray<Book> => {
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
  return [...isolated, { isCross: true, positions: cross, worth: sums.crossValue, maintenance: sums.crossMaintenance }]
}

const closingOrder = (venue: Venue, user: VenueOrder["user"], asset: Asset, size: bigint): VenueOrder => {
  const mark = markPrice(venue, asset)
  const isBuy = size < 0n
  return {
    oid: venue.state.nextOid++,
    user,
    coin: asset.coin,
    isBuy,
    // at any price: the house takes over the part that the book does not fill
    px: isBuy ? mark * 2n : 1n,
    origSz: abs(size),
    sz: abs(size),
    reduceOnly: true,
    tif: "Ioc",
    cloid: null,
    timestamp: venue.state.now,
    isPositionTpsl: false,
    children: none,
    siblings: none,
    place: "gone",
    status: "open",
    statusTimestamp: venue.state.now
  }
}

/** Transfers a position of an account to the house, at the mark price. */
const takeOver = (venue: Venue, account: TradingAccount, asset: Perpetual, size: bigint): void => {
  const order = closingOrder(venue, account.address, asset, size)
  const px = markPrice(venue, asset)
  OrderLife.remember(account, order)
  const terms = {
    px,
    sz: order.sz,
    tid: nextTid(venue),
    hash: venue.hash,
    liquidation: { liquidatedUser: account.address, markPx: printPx(asset, px), method: "backstop" }
  }
  const { sz } = order
  order.sz = 0n
  Settlement.settle(venue, asset, order, terms, true)
  Settlement.settleHouse(venue, asset, !order.isBuy, px, sz)
  OrderLife.report(venue, order, "filled")
}

const liquidate = (venue: Venue, account: TradingAccount, clearing: Clearing, dex: string, book: Book): void => {
  venue.hash = nextHash(venue)
  const coins = new Set(book.positions.map(([{ coin }]) => coin))
  for (const order of account.open.values()) {
    const asset = venue.listing.byCoin.get(order.coin)
    if (asset?.kind !== "perpetual" || asset.dex !== dex) continue
    if (book.isCross || coins.has(order.coin)) OrderLife.endByVenue(venue, order, "liquidatedCanceled")
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
      const before = clearing.cash
      takeOver(venue, account, asset, size)
      if (!book.isCross) {
        // the remaining value of an isolated position is transferred to the house, even if it is negative
        venue.state.house.cash += clearing.cash - before
        clearing.cash = before
      }
      continue
    }
    const order = closingOrder(venue, account.address, asset, size)
    OrderLife.remember(account, order)
    const met = take(venue, asset, order, {
      hash: venue.hash,
      liquidation: {
        liquidatedUser: account.address,
        markPx: printPx(asset, markPrice(venue, asset)),
        method: "market"
      }
    })
    OrderLife.report(venue, order, order.sz === 0n ? "filled" : met.sz === 0n ? "iocCancelRejected" : "canceled")
    hasClosed ||= met.sz > 0n
    // checks again, because the account can now be above its maintenance margin
    const { crossMaintenance, crossValue } = Margin.marginSums(venue, clearing)
    if (book.isCross && crossValue >= crossMaintenance) break
  }
  if (book.isCross && (isBackstop || clearing.positions.size === 0 && clearing.cash < 0n)) {
    // the remaining balance of the account is transferred to the house, even if it is negative
    venue.state.house.cash += clearing.cash
    clearing.cash = 0n
  }
  // no one traded with the account: the next check tries again, and only a closed part is reported
  if (!hasClosed) return
  for (const [asset] of book.positions) endReducers(venue, asset, account.address)
  const entry: LedgerEntry = {
    time: venue.state.now,
    hash: venue.hash,
    delta: {
      type: "liquidation",
      liquidatedNtlPos: printUsd(notional),
      accountValue: printUsd(book.worth),
      leverageType: book.isCross ? "Cross" : "Isolated",
      liquidatedPositions
    }
  }
  TradingState.append(account.ledger, entry, remembered)
  emit(venue, { kind: "ledger", user: account.address, entry })
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
  emit(venue, { kind: "account", user: account.address })
}

/**
 * Liquidates each part of an account (the cross positions of a dex, or one isolated position) that is below its
 * maintenance margin.
 */
export const check = (venue: Venue, account: TradingAccount): void => {
  for (const [dex, clearing] of account.clearings) {
    if (clearing.positions.size === 0) continue
    for (const book of liquidationBooks(venue, clearing)) {
      if (book.worth < book.maintenance) liquidate(venue, account, clearing, dex, book)
    }
  }
}
