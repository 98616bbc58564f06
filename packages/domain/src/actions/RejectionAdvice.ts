/** Advice for refused orders, by rejection reason. */
import type { RejectionReason } from "./ActionOutcome.ts"

const advice: { readonly [Reason in RejectionReason]?: string } = {
  AddressRateLimited: "The account has sent more actions than its traded volume allows: trade, or wait.",
  InsufficientBalance:
    "The spot balance that is not in orders does not cover the order: lower the size, or cancel orders.",
  InsufficientMargin:
    "The account's free margin does not cover the order: lower the size, raise the leverage, or cancel orders.",
  LotSize: "The size has more decimal places than the asset allows: cut it to szDecimals of the asset.",
  MinimumNotional: "Size times price has to be at least 10 USDC: raise the size.",
  NoImmediateMatch: "No resting order was within the limit price: move the price, or let the order rest (gtc).",
  OpenInterestCap: "The asset is at its cap on open interest: only orders that reduce a position are taken.",
  PositionLimit: "The position would exceed the asset's limit: lower the size.",
  PostOnlyWouldCross: "A post-only order (alo) may not match at once: move the price away from the other side.",
  PriceBand: "The price is too far from the oracle price: move it closer.",
  ReduceOnly: "The account has no position that the order would reduce: check the side, or leave reduce only out.",
  TickSize:
    "A price has at most 5 significant digits, and at most 6 (perpetuals) or 8 (spot) less szDecimals decimal places.",
  TriggerPrice: "The trigger price is on the wrong side of the market for this kind of order.",
  UnknownOrder: "The order was filled or cancelled before, or never placed."
}

/** Returns one sentence of advice; `undefined` if the rejection text is sufficient. */
export const adviceFor = (reason: RejectionReason): string | undefined => advice[reason]
