/**
 * Sets positions for tests. The result is as if the positions had been traded against the sandbox's synthetic orders,
 * but without fees and without fills.
 */
import type { Address } from "@trigate/domain/encoding/Hex"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Perpetual } from "./Assets.ts"
import { readGivenPx } from "./Assets.ts"
import * as Decimals from "./Decimals.ts"
import { abs } from "./Decimals.ts"
import { perpetualByCoin } from "./Margin.ts"
import { markPrice } from "./Quotes.ts"
import { movePosition, settleHouse } from "./Settlement.ts"
import { ensureAccount } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import { emit } from "./Venue.ts"

/** A balance or a position that an account cannot have; `member` is the invalid value. Nothing was changed. */
export class InvalidHolding extends Schema.TaggedError<InvalidHolding>()("InvalidHolding", {
  member: Schema.Literals(["amount", "token", "coin", "size", "entryPx"]),
  message: Schema.String
}) {}

const trade = (venue: Venue, user: Address, asset: Perpetual, size: bigint, px: bigint): void => {
  if (size === 0n) return
  movePosition(venue, ensureAccount(venue.state, user), asset, size > 0n, px, abs(size))
  settleHouse(venue, asset, size < 0n, px, abs(size))
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
  const invalid = (member: InvalidHolding["member"], message: string) =>
    Result.fail(new InvalidHolding({ member, message }))
  const asset = perpetualByCoin(venue, coin)
  if (asset === undefined) return invalid("coin", `The sandbox lists no perpetual ${coin}`)
  const lots = Decimals.parse(size, asset.szDecimals)
  if (lots === undefined) return invalid("size", `Expected a size with at most ${asset.szDecimals} decimals`)
  const px = entryPx === undefined ? Result.succeed(markPrice(venue, asset)) : readGivenPx(asset, entryPx)
  if (Result.isFailure(px)) return invalid("entryPx", px.failure)
  close(venue, user, asset, px.success)
  trade(venue, user, asset, lots, px.success)
  return Result.succeed(undefined)
}
