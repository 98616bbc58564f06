/** Derives the result of one order of a batch from the state of that order at the venue. */
import type { Fill, OrderRecord } from "../info/Order.ts"
import type { ActionEntry, RejectionReason } from "./ActionOutcome.ts"

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
