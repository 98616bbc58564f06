/**
 * Derives the result of one order of a batch from the state of that order at the venue, and gives advice for refused
 * orders.
 */
import type { Fill, OrderRecord } from "../info/Account.ts"
import type { ActionEntry, RejectionReason } from "./ActionOutcome.ts"

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

/**
 * Maps the order states in the venue's documentation of `orderStatus` to rejection reasons; any other state is
 * `Unclassified`.
 */
const reasons: ReadonlyMap<string, RejectionReason> = new Map([
  ["tickRejected", "TickSize"],
  ["minTradeNtlRejected", "MinimumNotional"],
  ["perpMarginRejected", "InsufficientMargin"],
  ["insufficientSpotBalanceRejected", "InsufficientBalance"],
  ["reduceOnlyRejected", "ReduceOnly"],
  ["badAloPxRejected", "PostOnlyWouldCross"],
  ["iocCancelRejected", "NoImmediateMatch"],
  ["marketOrderNoLiquidityRejected", "NoImmediateMatch"],
  ["badTriggerPxRejected", "TriggerPrice"],
  ["oracleRejected", "PriceBand"],
  ["positionIncreaseAtOpenInterestCapRejected", "OpenInterestCap"],
  ["positionFlipAtOpenInterestCapRejected", "OpenInterestCap"],
  ["tooAggressiveAtOpenInterestCapRejected", "OpenInterestCap"],
  ["openInterestIncreaseRejected", "OpenInterestCap"],
  ["perpMaxPositionRejected", "PositionLimit"]
])

/** Returns whether the venue refused the order on arrival: `rejected`, `badAloPxRejected`, … */
export const isRejected = ({ status }: Pick<OrderRecord, "status">): boolean => /rejected$/iu.test(status)

/** Returns whether the order can still be filled. */
export const isOpen = ({ status }: Pick<OrderRecord, "status">): boolean => status === "open" || status === "triggered"

const places = (text: string): number => text.split(".")[1]?.length ?? 0

const scaled = (text: string, scale: number): bigint => {
  const [whole = "0", fraction = ""] = text.split(".")
  return BigInt(whole + fraction.padEnd(scale, "0"))
}

const print = (value: bigint, scale: number): string => {
  const digits = value.toString().padStart(scale + 1, "0")
  const text = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`
  return text.includes(".") ? text.replace(/\.?0+$/u, "") : text
}

/** Decimal places of an average price. */
const averagePlaces = 8

/** Returns the total size and the average price of fills, as decimal text; `undefined` if there are no fills. */
const sumFills = (fills: ReadonlyArray<Pick<Fill, "px" | "sz">>) => {
  const pxScale = Math.max(0, ...fills.map(({ px }) => places(px)))
  const szScale = Math.max(0, ...fills.map(({ sz }) => places(sz)))
  let size = 0n
  let value = 0n
  for (const { px, sz } of fills) {
    size += scaled(sz, szScale)
    value += scaled(sz, szScale) * scaled(px, pxScale)
  }
  if (size === 0n) return undefined
  const scale = Math.max(pxScale, averagePlaces)
  const average = value * 10n ** BigInt(scale - pxScale) / size
  return { totalSz: print(size, szScale), avgPx: print(average, scale) }
}

const isCloid = (cloid: string | null | undefined): cloid is `0x${string}` => cloid?.startsWith("0x") === true

/**
 * Returns the result of the leg that placed an order: `Rejected` if the venue refused it, `Filled` if the order is no
 * longer open and has fills, otherwise `Resting`. A canceled order without fills is `Resting`, because it was on the
 * book before it was canceled.
 */
export const entryFrom = (
  { order: { cloid, oid }, status }: OrderRecord,
  fills: ReadonlyArray<Pick<Fill, "px" | "sz">>
): ActionEntry => {
  if (isRejected({ status })) {
    return { _tag: "Rejected", reason: reasons.get(status) ?? "Unclassified", message: status }
  }
  const identity = { oid, ...(isCloid(cloid) ? { cloid } : {}) }
  const sum = isOpen({ status }) ? undefined : sumFills(fills)
  return sum === undefined ? { _tag: "Resting", ...identity } : { _tag: "Filled", ...identity, ...sum }
}
