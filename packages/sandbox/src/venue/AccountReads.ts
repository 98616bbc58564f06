/** Margin, balances, limits and fees of an account, as queries and streams list them. */
import type {
  ClearinghouseState,
  Position as PrintedPosition,
  SpotClearinghouseState
} from "@trigate/domain/info/Account"
import * as DateTime from "effect/DateTime"
import type { Perpetual } from "./Assets.ts"
import { printPx, printSz, printUsd, spotUsdDecimals, usdDecimals } from "./Assets.ts"
import * as Decimals from "./Decimals.ts"
import { abs, max } from "./Decimals.ts"
import * as Fees from "./Fees.ts"
import * as Margin from "./Margin.ts"
import { available } from "./OrderLife.ts"
import { markPrice } from "./Quotes.ts"
import type { Clearing, Position, TradingAccount } from "./TradingAccount.ts"
import type { Venue } from "./Venue.ts"

const day = 86_400_000
const noMoney: Clearing = { cash: 0n, positions: new Map() }

/** Number of decimals in a formatted ratio. */
const ratioDecimals = 10

const printPosition = (venue: Venue, clearing: Clearing, asset: Perpetual, position: Position): PrintedPosition => {
  const mark = markPrice(venue, asset)
  const pnl = Margin.unrealizedPnl(position, mark)
  const liquidation = Margin.liquidationPx(venue, clearing, asset, position)
  const { allTime, sinceChange, sinceOpen } = position.funding
  return {
    coin: asset.coin,
    szi: printSz(asset, position.size),
    leverage: {
      type: position.isCross ? "cross" : "isolated",
      value: position.leverage,
      ...(position.isCross ? {} : { rawUsd: printUsd(position.raw) })
    },
    entryPx: printPx(asset, position.entry / abs(position.size)),
    positionValue: printUsd(abs(Margin.signedValue(position, mark))),
    unrealizedPnl: printUsd(pnl),
    returnOnEquity: Decimals.print(
      position.entry === 0n ? 0n : pnl * BigInt(position.leverage) * 10n ** BigInt(ratioDecimals) / position.entry,
      ratioDecimals
    ),
    liquidationPx: liquidation === undefined ? null : printPx(asset, liquidation),
    marginUsed: printUsd(Margin.marginUsedBy(position, mark)),
    maxLeverage: asset.maxLeverage,
    cumFunding: { allTime: printUsd(allTime), sinceOpen: printUsd(sinceOpen), sinceChange: printUsd(sinceChange) }
  }
}

/** Returns the response to the query `clearinghouseState`. */
export const clearinghouseState = (venue: Venue, account: TradingAccount, dex: string): ClearinghouseState => {
  const clearing = account.clearings.get(dex) ?? noMoney
  const sums = Margin.marginSums(venue, clearing)
  return {
    marginSummary: {
      accountValue: printUsd(sums.value),
      totalNtlPos: printUsd(sums.notional),
      totalRawUsd: printUsd(sums.raw),
      totalMarginUsed: printUsd(sums.marginUsed)
    },
    crossMarginSummary: {
      accountValue: printUsd(sums.crossValue),
      totalNtlPos: printUsd(sums.crossNotional),
      totalRawUsd: printUsd(clearing.cash),
      totalMarginUsed: printUsd(sums.crossMarginUsed)
    },
    crossMaintenanceMarginUsed: printUsd(sums.crossMaintenance),
    withdrawable: printUsd(Margin.withdrawable(venue, account, dex)),
    assetPositions: [...clearing.positions].flatMap(([coin, position]) => {
      const asset = Margin.perpetualByCoin(venue, coin)
      return asset === undefined ? [] : [{ type: "oneWay", position: printPosition(venue, clearing, asset, position) }]
    }),
    time: venue.state.now
  }
}

/** Returns the response to the query `spotClearinghouseState`. */
export const spotState = ({ listing }: Venue, account: TradingAccount): SpotClearinghouseState => ({
  balances: [...account.spot].toSorted(([a], [b]) => a - b).flatMap(([index, { entry, hold, total }]) => {
    const token = listing.tokens.get(index)
    return token === undefined || total === 0n ? [] : [{
      coin: token.name,
      token: index,
      total: Decimals.print(total, token.weiDecimals),
      hold: Decimals.print(hold, token.weiDecimals),
      entryNtl: Decimals.print(entry, spotUsdDecimals)
    }]
  })
})

/**
 * Returns the response to the query `activeAssetData`: how much of an asset an account can trade. Returns `undefined`
 * for an unknown asset.
 */
export const activeAssetData = (venue: Venue, account: TradingAccount, coin: string) => {
  const asset = venue.listing.byCoin.get(coin)
  if (asset === undefined) return undefined
  const mark = markPrice(venue, asset)
  if (asset.kind === "spot") {
    const quote = available(account, asset.quote.index)
    const base = available(account, asset.base.index)
    return {
      user: account.address,
      coin,
      leverage: { type: "cross", value: 1 },
      maxTradeSzs: [printSz(asset, quote / max(1n, mark)), printSz(asset, base / asset.weiPerLot)],
      availableToTrade: [
        Decimals.print(quote, asset.quote.weiDecimals),
        Decimals.print(base, asset.base.weiDecimals)
      ],
      markPx: printPx(asset, mark)
    }
  }
  const { isCross, value } = Margin.leverageSetting(account, asset)
  const free = Margin.freeMargin(venue, account, asset.dex)
  const size = account.clearings.get(asset.dex)?.positions.get(coin)?.size ?? 0n
  const lots = mark === 0n ? 0n : free * BigInt(value) / mark
  // an order that closes the position needs no margin, and releases the position's margin. Orders on that side can
  // therefore have an additional size of twice the position
  const extra = 2n * abs(size)
  const buys = lots + (size < 0n ? extra : 0n)
  const sells = lots + (size > 0n ? extra : 0n)
  return {
    user: account.address,
    coin,
    leverage: { type: isCross ? "cross" : "isolated", value },
    maxTradeSzs: [printSz(asset, buys), printSz(asset, sells)],
    availableToTrade: [size < 0n ? extra : 0n, size > 0n ? extra : 0n].map((closing) =>
      printUsd(free + closing * mark / BigInt(value))
    ),
    markPx: printPx(asset, mark)
  }
}

/** Formats dollars with two decimals, without a trailing zero. */
const printVolume = (usd: bigint): string => Decimals.print(usd / 10_000n, 2)

/** Returns the response to the query `userFees`. */
export const userFees = (account: TradingAccount, now: number) => {
  const tier = Fees.feeTier(account, now)
  const today = Fees.startOfDay(now)
  const days = Array.from({ length: 15 }, (_, index) => today - index * day)
  return {
    dailyUserVlm: days.flatMap((start) => {
      const volume = account.volumes.get(start)
      return volume === undefined ? [] : [{
        date: DateTime.formatIsoDateUtc(DateTime.makeUnsafe(start)),
        userCross: printVolume(volume.cross),
        userAdd: printVolume(volume.add),
        exchange: printVolume(volume.cross + volume.add)
      }]
    }),
    feeSchedule: Fees.schedule,
    userCrossRate: tier.cross,
    userAddRate: tier.add,
    userSpotCrossRate: tier.spotCross,
    userSpotAddRate: tier.spotAdd,
    activeReferralDiscount: Fees.hasReferralDiscount(account) ? "0.04" : "0.0",
    trial: null,
    feeTrialEscrow: "0.0",
    nextTrialAvailableTimestamp: null,
    stakingLink: account.stakingLink === undefined
      ? null
      : {
        type: account.stakingLink.isFinal ? "tradingUser" : "requested",
        stakingUser: account.stakingLink.user
      },
    activeStakingDiscount: { bpsOfMaxSupply: "0.0", discount: "0.0" }
  }
}

/** Formats an account's volume in dollars, as queries do. */
export const formatVolume = ({ volume }: TradingAccount): string => printVolume(volume)

const periods = [["day", 1], ["week", 7], ["month", 30], ["allTime", undefined]] as const

/** Formats the volume of the last days, the current UTC day included. */
const formatRecentVolume = ({ volumes }: TradingAccount, now: number, days: number): string => {
  const since = Fees.startOfDay(now) - (days - 1) * day
  return printVolume([...volumes].reduce((sum, [start, { add, cross }]) => start < since ? sum : sum + add + cross, 0n))
}

/**
 * Returns the response to the query `portfolio`: the account's value at each full hour, and its current value. The
 * profit is the profit from trading perpetuals: deposits, withdrawals and transfers do not change it.
 */
export const portfolio = (venue: Venue, account: TradingAccount) => {
  const { now } = venue.state
  const current = Margin.accountValue(venue, account)
  const list = (name: string, days: number | undefined, member: "perps" | "all") => {
    const values = account.values.filter(({ time }) => days === undefined || time >= now - days * day)
    const history = current.all === 0n && values.length === 0 ? [] : [...values, current]
    const first = history[0]?.profit ?? 0n
    return [name, {
      accountValueHistory: history.map((value) => [value.time, printUsd(value[member])]),
      pnlHistory: history.map(({ profit, time }) => [time, printUsd(profit - first)]),
      vlm: days === undefined ? formatVolume(account) : formatRecentVolume(account, now, days)
    }]
  }
  return [
    ...periods.map(([name, days]) => list(name, days, "all")),
    ...periods.map(([name, days]) => list(`perp${name.charAt(0).toUpperCase()}${name.slice(1)}`, days, "perps"))
  ]
}

/** Returns the response to the query `referral`. */
export const referral = (venue: Venue, account: TradingAccount) => {
  const referred = [...venue.state.accounts.values()].filter(({ referrer }) => referrer?.address === account.address)
  return {
    referredBy: account.referrer === undefined
      ? null
      : { referrer: account.referrer.address, code: account.referrer.code },
    cumVlm: formatVolume(account),
    unclaimedRewards: printUsd(account.rewards),
    claimedRewards: printUsd(account.claimed),
    builderRewards: printUsd(account.builderRewards),
    referrerState: account.code === undefined
      ? { stage: "needToCreateCode" }
      : {
        stage: "ready",
        data: {
          code: account.code,
          nReferrals: referred.length,
          referralStates: referred.map((each) => ({
            cumVlm: formatVolume(each),
            cumRewardedFeesSinceReferred: "0.0",
            cumFeesRewardedToReferrer: "0.0",
            timeJoined: venue.state.now,
            user: each.address
          }))
        }
      },
    rewardHistory: [],
    tokenToState: []
  }
}

/** Returns an account's traded volume in whole dollars, for the query `userRateLimit`. */
export const wholeDollars = (account: TradingAccount): number => Number(account.volume / 10n ** BigInt(usdDecimals))
