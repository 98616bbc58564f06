/** Funding: every hour, each long position pays the hourly rate on its value, and each short position receives it. */
import type { Perpetual } from "./Assets.ts"
import { printSz, printUsd } from "./Assets.ts"
import * as Decimals from "./Decimals.ts"
import { accountValue } from "./Margin.ts"
import { markPrice } from "./Quotes.ts"
import type { FundingEntry, TradingAccount } from "./TradingAccount.ts"
import { append } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import { emit } from "./Venue.ts"

/** The venue's hourly base funding rate. */
export const fundingRate = "0.0000125"

const rateDecimals = 8
const rate = Decimals.parse(fundingRate, rateDecimals) ?? 0n
const one = 10n ** BigInt(rateDecimals)

/** Maximum number of funding payments, and of past account values, that are stored for an account. */
const remembered = 2_000

/**
 * Rounds by at most one unit to the account's disadvantage, so that only the house (the account behind the synthetic
 * orders) gains from rounding.
 */
const roundDown = (amount: bigint): bigint => {
  const quotient = amount / one
  return amount < 0n && quotient * one !== amount ? quotient - 1n : quotient
}

/**
 * Settles the funding of one hour for an account. The counterparty is the house, the account behind the synthetic
 * orders.
 */
export const pay = (venue: Venue, account: TradingAccount): void => {
  for (const clearing of account.clearings.values()) {
    for (const [coin, position] of clearing.positions) {
      const asset = venue.listing.byCoin.get(coin)
      if (asset?.kind !== "perpetual") continue
      const amount = roundDown(-position.size * markPrice(venue, asset) * rate)
      if (position.isCross) clearing.cash += amount
      else position.raw += amount
      venue.state.house.cash -= amount
      position.funding.allTime -= amount
      position.funding.sinceOpen -= amount
      position.funding.sinceChange -= amount
      const funding: FundingEntry = {
        time: venue.state.now,
        coin,
        usdc: printUsd(amount),
        szi: printSz(asset satisfies Perpetual, position.size),
        fundingRate
      }
      append(account.fundings, funding, remembered)
      emit(venue, { kind: "funding", user: account.address, funding })
      emit(venue, { kind: "account", user: account.address })
    }
  }
  append(account.values, accountValue(venue, account), remembered)
}
