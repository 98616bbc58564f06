/** Moves amounts between the balances of accounts, and parses the amounts and tokens in actions. */
import type { SpotToken } from "@trigate/domain/info/SpotMeta"
import * as Decimals from "../../venue/Decimals.ts"
import { withdrawable } from "../../venue/Margin.ts"
import { available } from "../../venue/OrderLife.ts"
import type { TradingAccount } from "../../venue/TradingAccount.ts"
import { ensureBalance } from "../../venue/TradingAccount.ts"
import { moveCash } from "../../venue/TradingState.ts"
import type { Venue } from "../../venue/Venue.ts"

/** The venue's own dex of perpetuals. */
export const ownDex = ""

/** Parses a positive amount. */
export const readAmount = (text: string, decimals: number): bigint | undefined => {
  const amount = Decimals.parse(text, decimals)
  return amount === undefined || amount <= 0n ? undefined : amount
}

/** Returns the token that an action names. The text is `PURR:0x…`, or only the token's name or ID. */
export const parseToken = ({ listing }: Venue, text: string): SpotToken | undefined => {
  const [name, id] = text.split(":")
  return [...listing.tokens.values()].find((token) =>
    id === undefined ? token.name === name || token.tokenId === name : token.tokenId === id
  )
}

/**
 * Moves dollars from the perpetuals of `from` to the perpetuals of `to`. Returns whether the withdrawable amount was
 * sufficient.
 */
export const moveUsd = (
  venue: Venue,
  from: TradingAccount,
  to: TradingAccount,
  usd: bigint,
  dexes: { readonly from: string; readonly to: string } = { from: ownDex, to: ownDex }
): boolean => {
  if (withdrawable(venue, from, dexes.from) < usd) return false
  moveCash(venue.state, from, dexes.from, -usd)
  moveCash(venue.state, to, dexes.to, usd)
  return true
}

/**
 * Withdraws an amount of a spot token, in wei, from an account. Returns the part of the acquisition cost that belongs
 * to the amount, or `undefined` if the available balance is too low.
 */
export const takeSpot = (from: TradingAccount, token: number, wei: bigint): bigint | undefined => {
  if (available(from, token) < wei) return undefined
  const balance = ensureBalance(from, token)
  const entry = balance.total === 0n ? 0n : balance.entry * wei / balance.total
  balance.total -= wei
  balance.entry -= entry
  return entry
}

/** Moves an amount of a spot token, in wei. Returns whether the sender's balance was sufficient. */
export const moveSpot = (from: TradingAccount, to: TradingAccount, token: number, wei: bigint): boolean => {
  const entry = takeSpot(from, token, wei)
  if (entry === undefined) return false
  const target = ensureBalance(to, token)
  target.total += wei
  target.entry += entry
  return true
}
