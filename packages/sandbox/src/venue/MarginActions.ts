/** Leverage, and the margin of isolated positions. */
import type { ActionOf } from "@trigate/domain/actions/ActionSchemas"
import type { ActionContext, ActionDecision } from "./ActionContext.ts"
import { actor, done, refuse } from "./ActionContext.ts"
import type { Perpetual } from "./Assets.ts"
import { abs, divideUp, max, parse as parseDecimal } from "./Decimals.ts"
import * as Margin from "./Margin.ts"
import { markPrice } from "./Quotes.ts"
import { ensureClearing } from "./TradingAccount.ts"
import type { Venue } from "./Venue.ts"
import { emit } from "./Venue.ts"
import * as Words from "./Words.ts"

/** Decimals of the leverage in `topUpIsolatedOnlyMargin`. */
const leverageDecimals = 4

const findPerpetual = ({ listing }: Venue, id: number): Perpetual | undefined => {
  const asset = listing.byId.get(id)
  return asset?.kind === "perpetual" ? asset : undefined
}

/** Executes the action `updateLeverage`. */
export const updateLeverage = (
  context: ActionContext,
  { asset: id, isCross, leverage }: ActionOf<"updateLeverage">
): ActionDecision => {
  const { venue } = context
  const asset = findPerpetual(venue, id)
  if (asset === undefined) return refuse(Words.unknownAsset(id))
  if (leverage < 1 || leverage > asset.maxLeverage) return refuse(Words.invalidLeverage)
  if (isCross && asset.market.marginMode !== undefined) return refuse(Words.crossNotAllowed)
  const account = actor(context)
  const clearing = ensureClearing(account, asset.dex)
  const position = clearing.positions.get(asset.coin)
  if (position !== undefined && position.isCross !== isCross) return refuse(Words.leverageType)
  const before = account.leverage.get(asset.coin)
  const held = position?.leverage
  account.leverage.set(asset.coin, { isCross, value: leverage })
  if (position !== undefined) position.leverage = leverage
  const isLower = leverage < (held ?? before?.value ?? asset.maxLeverage)
  const restore = () => {
    if (before === undefined) account.leverage.delete(asset.coin)
    else account.leverage.set(asset.coin, before)
    if (position !== undefined && held !== undefined) position.leverage = held
  }
  if (isLower && position?.isCross === false) {
    const mark = markPrice(venue, asset)
    if (position.raw + position.size * mark < divideUp(abs(position.size) * mark, BigInt(leverage))) {
      restore()
      return refuse(Words.isolatedLeverage)
    }
  } else if (isLower) {
    const needed = Margin.needed(venue, account, clearing, asset.dex)
    if (needed > 0n && Margin.marginSums(venue, clearing).crossValue < needed) {
      restore()
      return refuse(Words.crossLeverage)
    }
  }
  emit(venue, { kind: "account", user: account.address })
  return done
}

/**
 * Executes the action `updateIsolatedMargin`, which adds margin to an isolated position or removes margin from it. The
 * amount is in millionths of a dollar.
 */
export const updateIsolatedMargin = (
  context: ActionContext,
  { asset: id, ntli }: ActionOf<"updateIsolatedMargin">
): ActionDecision => {
  const { venue } = context
  const asset = findPerpetual(venue, id)
  if (asset === undefined) return refuse(Words.unknownAsset(id))
  const account = actor(context)
  const clearing = ensureClearing(account, asset.dex)
  const position = clearing.positions.get(asset.coin)
  const change = BigInt(ntli)
  if (change === 0n) return refuse(Words.zeroMargin)
  if (position === undefined) return refuse(Words.emptyPosition)
  if (position.isCross) return refuse(Words.notIsolated)
  if (change > 0n && Margin.freeMargin(venue, account, asset.dex) < change) return refuse(Words.marginIncrease)
  const mark = markPrice(venue, asset)
  const notional = abs(position.size) * mark
  // the remaining margin must cover both the initial margin and a tenth of the notional value, as the venue requires
  // for transfers
  const kept = max(divideUp(notional, BigInt(position.leverage)), notional / 10n)
  if (change < 0n && asset.market.marginMode === "strictIsolated") return refuse(Words.strictReduction)
  if (change < 0n && position.raw + position.size * mark + change < kept) return refuse(Words.marginReduction)
  clearing.cash -= change
  position.raw += change
  emit(venue, { kind: "account", user: account.address })
  return done
}

/**
 * Executes the action `topUpIsolatedOnlyMargin`, which adds enough margin to a strictly isolated position to reduce its
 * leverage to the requested leverage.
 */
export const topUp = (
  context: ActionContext,
  { asset: id, leverage }: ActionOf<"topUpIsolatedOnlyMargin">
): ActionDecision => {
  const { venue } = context
  const asset = findPerpetual(venue, id)
  if (asset === undefined) return refuse(Words.unknownAsset(id))
  if (asset.market.marginMode !== "strictIsolated") return refuse(Words.notStrictIsolated)
  const position = ensureClearing(actor(context), asset.dex).positions.get(asset.coin)
  if (position === undefined) return refuse(Words.emptyPosition)
  const target = parseDecimal(leverage, leverageDecimals) ?? 0n
  if (target <= 0n) return refuse(Words.invalidLeverage)
  const mark = markPrice(venue, asset)
  const wanted = divideUp(abs(position.size) * mark * 10n ** BigInt(leverageDecimals), target)
  const change = wanted - position.raw - position.size * mark
  return change <= 0n
    ? refuse(Words.zeroMargin)
    : updateIsolatedMargin(context, { type: "updateIsolatedMargin", asset: id, isBuy: true, ntli: Number(change) })
}
