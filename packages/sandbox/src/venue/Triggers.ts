/** Take-profit and stop-loss orders, which are triggered by the mark price. */
import type { Asset } from "./Assets.ts"
import { max, min } from "./Decimals.ts"
import * as OrderLife from "./OrderLife.ts"
import { fundsRefusal, isReached } from "./OrderRules.ts"
import * as Orders from "./Orders.ts"
import { markPrice } from "./Quotes.ts"
import type { VenueOrder } from "./TradingAccount.ts"
import { ensureAccount, ensureMarket } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"

/** Maximum slippage of a triggered market order from the mark price, in percent. */
const slippage = 10n

const fire = (venue: Venue, asset: Asset, order: VenueOrder, mark: bigint): void => {
  const account = ensureAccount(venue.state, order.user)
  OrderLife.withdraw(venue, asset, order)
  OrderLife.report(venue, order, "triggered")
  const reducible = OrderLife.reducible(account, asset, order)
  if (order.isPositionTpsl) order.sz = reducible
  if ((order.reduceOnly || order.isPositionTpsl) && reducible === 0n) {
    OrderLife.report(venue, order, "reduceOnlyCanceled")
    return
  }
  if (order.trigger?.isMarket === true) {
    order.px = order.isBuy
      ? max(order.px, mark * (100n + slippage) / 100n)
      : min(order.px, mark * (100n - slippage) / 100n)
    order.tif = "Ioc"
  }
  const refusal = fundsRefusal(venue, account, asset, order)
  if (refusal?.status !== undefined) {
    OrderLife.report(venue, order, refusal.status)
    return
  }
  Orders.execute(venue, asset, order)
}

/**
 * Triggers a market's orders if the mark price has reached their trigger price, in the order in which the orders were
 * placed.
 */
export const fireReached = (venue: Venue, asset: Asset): void => {
  const { triggers } = ensureMarket(venue.state, asset.coin)
  if (triggers.size === 0) return
  const mark = markPrice(venue, asset)
  for (const order of triggers.values()) {
    // an order that was triggered earlier in this loop can have ended this order
    if (order.place !== "trigger" || order.trigger === undefined) continue
    if (isReached(order.isBuy, order.trigger, mark)) fire(venue, asset, order, mark)
  }
}
