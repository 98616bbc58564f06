/**
 * Sets positions for tests. The result is as if the positions had been traded against the sandbox's synthetic orders,
 * but without fees and without fills.
 */
import type { Address } from "@trigate/domain/encoding/Hex"
import type { Perpetual } from "./Assets.ts"
import { readPx } from "./Assets.ts"
import * as Decimals from "./Decimals.ts"
import { abs } from "./Decimals.ts"
import { perpetualByCoin } from "./Margin.ts"
import { markPrice } from "./Quotes.ts"
import { movePosition, settleHouse } from "./Settlement.ts"
import { ensureAccount } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import { emit } from "./Venue.ts"

const entryPrice = (venue: Venue, asset: Perpetual, text: string | undefined): bigint => {
  const px = text === undefined ? undefined : readPx(asset, text)
  return typeof px === "bigint" ? px : markPrice(venue, asset)
}

const trade = (venue: Venue, user: Address, asset: Perpetual, size: bigint, px: bigint): void => {
  if (size === 0n) return
  movePosition(venue, ensureAccount(venue.state, user), asset, size > 0n, px, abs(size))
  settleHouse(venue, asset, size < 0n, px, abs(size))
  emit(venue, { kind: "account", user })
}

/** Closes a position at a price. Default: the mark price. */
export const clearPosition = (venue: Venue, user: Address, coin: string, px: string | undefined): void => {
  const asset = perpetualByCoin(venue, coin)
  if (asset === undefined) return
  const size = ensureAccount(venue.state, user).clearings.get(asset.dex)?.positions.get(coin)?.size ?? 0n
  trade(venue, user, asset, -size, entryPrice(venue, asset, px))
}

/** Opens a position at a price. Default: the mark price. */
export const givePosition = (
  venue: Venue,
  user: Address,
  coin: string,
  size: string,
  px: string | undefined
): void => {
  const asset = perpetualByCoin(venue, coin)
  if (asset === undefined) return
  trade(venue, user, asset, Decimals.parse(size, asset.szDecimals) ?? 0n, entryPrice(venue, asset, px))
}
