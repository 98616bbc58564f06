/** The venue's fees: the schedule and its tiers, discounts and rewards, and the volumes that count. */
import type { Address } from "@trigate/domain/encoding/Encoding"
import * as Assets from "./Assets.ts"
import { feeScale, one as wholeToken } from "./Outcomes.ts"
import { addTo, ensure, ensureAccount, ensureBalance } from "./TradingState.ts"
import type { TradingAccount } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"

const day = 86_400_000
const countedDays = 14

/** Decimals of a rate. */
const rateDecimals = 8
const one = 10n ** BigInt(rateDecimals)

/** The venue's fee schedule, as in its documentation. */
export const schedule = {
  cross: "0.00045",
  add: "0.00015",
  spotCross: "0.0007",
  spotAdd: "0.0004",
  tiers: {
    vip: [
      { ntlCutoff: "5000000.0", cross: "0.0004", add: "0.00012", spotCross: "0.0006", spotAdd: "0.0003" },
      { ntlCutoff: "25000000.0", cross: "0.00035", add: "0.00008", spotCross: "0.0005", spotAdd: "0.0002" },
      { ntlCutoff: "100000000.0", cross: "0.0003", add: "0.00004", spotCross: "0.0004", spotAdd: "0.0001" },
      { ntlCutoff: "500000000.0", cross: "0.00028", add: "0.0", spotCross: "0.00035", spotAdd: "0.0" },
      { ntlCutoff: "2000000000.0", cross: "0.00026", add: "0.0", spotCross: "0.0003", spotAdd: "0.0" },
      { ntlCutoff: "7000000000.0", cross: "0.00024", add: "0.0", spotCross: "0.00025", spotAdd: "0.0" }
    ],
    mm: [
      { makerFractionCutoff: "0.005", add: "-0.00001" },
      { makerFractionCutoff: "0.015", add: "-0.00002" },
      { makerFractionCutoff: "0.03", add: "-0.00003" }
    ]
  },
  referralDiscount: "0.04",
  stakingDiscountTiers: [
    { bpsOfMaxSupply: "0.0", discount: "0.0" },
    { bpsOfMaxSupply: "0.0001", discount: "0.05" },
    { bpsOfMaxSupply: "0.001", discount: "0.1" },
    { bpsOfMaxSupply: "0.01", discount: "0.15" },
    { bpsOfMaxSupply: "0.1", discount: "0.2" },
    { bpsOfMaxSupply: "1.0", discount: "0.3" },
    { bpsOfMaxSupply: "5.0", discount: "0.4" }
  ]
}

const vipTiers = schedule.tiers.vip.map((tier) => ({ tier, cutoff: Assets.parseDecimal(tier.ntlCutoff, 6) ?? 0n }))

/** The number of days whose volumes are stored, for `portfolio`. */
const retainedDays = 31

/** Returns the first millisecond of the UTC day that contains a time. */
export const startOfDay = (time: number): number => Math.floor(time / day) * day

/**
 * Returns the fee tier of an account at the given time. The volume of a day counts toward the tier from the next day
 * on.
 */
export const feeTier = ({ tierVolumes }: TradingAccount, now: number) => {
  if (tierVolumes.size === 0) return schedule
  const today = startOfDay(now)
  let counted = 0n
  for (const [start, usd] of tierVolumes) {
    if (start < today && start >= today - countedDays * day) counted += usd
  }
  return vipTiers.findLast(({ cutoff }) => counted > cutoff)?.tier ?? schedule
}

const rates = new Map<string, bigint>()

const parseRate = (text: string): bigint => ensure(rates, text, () => Assets.parseDecimal(text, rateDecimals) ?? 0n)

/** The percentage by which the fee of a referred account is reduced, up to a volume in millionths of a dollar. */
const referralDiscount = 4n
const discountedVolume = 25_000_000_000_000n

/** The percentage of its fees that the referrer of an account earns, up to a volume in millionths of a dollar. */
const referrerShare = 10n
const rewardedVolume = 1_000_000_000_000_000n

/** Returns whether an account pays less because it was referred. */
export const hasReferralDiscount = ({ referrer, volume }: TradingAccount): boolean =>
  referrer !== undefined && volume < discountedVolume

/** Returns the part of a fee that the referrer of the account earns. */
export const referralReward = ({ referrer, volume }: TradingAccount, fee: bigint): bigint =>
  referrer === undefined || volume >= rewardedVolume ? 0n : fee * referrerShare / 100n

/** The number by which growth mode divides an asset's fee, and the volume that counts toward the fee tier. */
const growthShare = 10n

/** The kind of a traded asset, on which its fee and its weight in the fee tier depend. */
export interface FeeKind {
  readonly isSpot: boolean
  readonly isGrowing?: boolean
}

/** Returns the fee on an amount, rounded down. */
export const computeFee = (
  account: TradingAccount,
  now: number,
  amount: bigint,
  crossed: boolean,
  { isGrowing = false, isSpot }: FeeKind
): bigint => {
  const tier = feeTier(account, now)
  const rate = parseRate(isSpot ? (crossed ? tier.spotCross : tier.spotAdd) : (crossed ? tier.cross : tier.add))
  const fee = amount * rate / one / (isGrowing ? growthShare : 1n)
  return hasReferralDiscount(account) ? fee * (100n - referralDiscount) / 100n : fee
}

/** Returns the builder fee on an amount, rounded down. `tenthsOfBp` is the rate in tenths of a basis point. */
export const builderFeeAmount = (amount: bigint, tenthsOfBp: bigint): bigint => amount * tenthsOfBp / 100_000n

/** Adds a trade to an account's traded volume. `usd` is in millionths of a dollar. `crossed` is set for the taker. */
export const countVolume = (
  account: TradingAccount,
  now: number,
  usd: bigint,
  crossed: boolean,
  { isGrowing = false, isSpot }: FeeKind
): void => {
  account.volume += usd
  const today = startOfDay(now)
  const known = account.volumes.get(today)
  const of = known ?? { cross: 0n, add: 0n }
  if (known === undefined) {
    account.volumes.set(today, of)
    for (const volumes of [account.volumes, account.tierVolumes]) {
      for (const start of volumes.keys()) if (start <= today - retainedDays * day) volumes.delete(start)
    }
  }
  if (crossed) of.cross += usd
  else of.add += usd
  addTo(account.tierVolumes, today, isSpot ? 2n * usd : isGrowing ? usd / growthShare : usd)
}

/** The kind of spot pairs, and of the sides of outcomes. */
export const spotKind: FeeKind = { isSpot: true }

/**
 * Computes the fee of an amount that an account gets for the tokens of an outcome, and distributes it to the deployer
 * and the venue's income. Who buys tokens pays no fee.
 */
export const chargeOutcomeFee = (
  venue: Venue,
  account: TradingAccount,
  { quote, side }: Assets.SpotPair,
  amount: bigint,
  crossed: boolean
): bigint => {
  if (side === undefined) return 0n
  const { deployed } = side.outcome
  const { deployer, total } = feeScale(side.outcome)
  const fee = computeFee(account, venue.state.now, amount * total / wholeToken, crossed, spotKind)
  const share = deployed === undefined ? 0n : fee * deployer / total
  if (deployed !== undefined) ensureBalance(ensureAccount(venue.state, deployed.deployer), quote.index).total += share
  addTo(venue.state.house.feesSpot, quote.index, fee - share)
  return fee
}

/** The account of Hyperliquidity (HIP-2), which pays no fees. */
export const hyperliquidity: Address = `0x${"f".repeat(40)}`

/**
 * Collects a fee in the token that an account has bought. If an account has deployed the token, that account earns its
 * part, and the rest is burned.
 */
export const collectTokenFee = ({ state }: Venue, token: number, fee: bigint): void => {
  const deployed = state.spotTokens.get(token)
  if (deployed === undefined) return addTo(state.house.feesSpot, token, fee)
  const part = fee * deployed.feeShare / 10n ** BigInt(Assets.shareDecimals)
  ensureBalance(ensureAccount(state, deployed.deployer), token).total += part
  addTo(state.deposited, token, part - fee)
}

/** Counts the volume of a settled outcome: its value at the settlement price. */
export const countSettlement = (account: TradingAccount, now: number, wei: bigint): void =>
  countVolume(account, now, wei / Assets.weiPerUsd, true, spotKind)

/**
 * Pays the deployer of a perpetual its part of a trade's fee, for which the trader pays. Returns the part, in millionths
 * of the collateral: zero for a perpetual that no account has deployed.
 */
export const payDeployer = ({ state }: Venue, { dex, market }: Assets.Perpetual, fee: bigint): bigint => {
  const deployed = market.deployerFee === undefined ? undefined : state.perpDexes.get(dex)
  if (market.deployerFee === undefined || deployed === undefined) return 0n
  const { recipient, scale } = market.deployerFee
  const part = fee * (Assets.parseDecimal(scale, rateDecimals) ?? 0n) / one
  const account = ensureAccount(state, recipient ?? deployed.deployer)
  ensureBalance(account, Assets.findCollateral(dex)).total += part * Assets.weiPerUsd
  return part
}
