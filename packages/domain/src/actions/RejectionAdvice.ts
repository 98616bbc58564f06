/** Advice for refused orders, by rejection reason. */
import type { RejectionReason } from "./ActionOutcome.ts"

const advice: { readonly [Reason in RejectionReason]?: string } = {
  AddressRateLimited: "The account has sent more actions than its traded volume allows: trade more volume, or wait.",
  InsufficientBalance: "The available spot balance does not cover the order: lower the size, or cancel open orders.",
  InsufficientMargin:
    "The account's free margin does not cover the order: lower the size, raise the leverage, or cancel open orders.",
  LotSize: "The size has more decimal places than the asset allows: round it to the asset's szDecimals.",
  MinimumNotional: "The order value (size x price) must be at least 10 USDC: raise the size.",
  NoImmediateMatch:
    "No resting order matched the limit price: change the price, or let the order rest on the book (gtc).",
  OpenInterestCap: "The asset is at its open-interest cap: only orders that reduce a position are accepted.",
  PositionLimit: "The position would exceed the asset's limit: lower the size.",
  PostOnlyWouldCross:
    "A post-only order (alo) must not match immediately: move the price away from the other side of the book.",
  PriceBand: "The price is too far from the oracle price: move it closer.",
  ReduceOnly:
    "The account has no position that this reduce-only order would reduce: check the side, or remove the reduce-only flag.",
  TickSize:
    "A price has at most 5 significant digits, and at most 6 - szDecimals (perpetuals) or 8 - szDecimals (spot) decimal places.",
  TriggerPrice:
    "The trigger price is on the wrong side of the market for this kind of order: move it to the other side.",
  UnknownOrder: "The order was already filled or canceled, or was never placed: check its ID, or query the open orders."
}

/** Returns one sentence of advice; `undefined` if there is no advice for the reason. */
export const adviceFor = (reason: RejectionReason): string | undefined => advice[reason]
