/** Dexes of perpetuals that accounts deploy (HIP-3): their perpetuals, prices, fees and halts. */
import type { Address } from "@trigate/domain/encoding/Encoding"
import { lowerCase } from "@trigate/domain/encoding/Encoding"
import type { ActionOf } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as Predicate from "effect/Predicate"
import { actor, done, refuse } from "./AccountActions.ts"
import type { ActionContext, ActionDecision, Handler } from "./AccountActions.ts"
import { clearPosition } from "./Advance.ts"
import { type CandleMarket, parseDecimal, usdc, usdDecimals } from "./Assets.ts"
import { withdrawable } from "./Margin.ts"
import { endByVenue, takeSpot } from "./Matching.ts"
import { list as listOutcomes } from "./Outcomes.ts"
import { deployAuction } from "./Reserves.ts"
import { addTo, type DeployedDex, iterateOrders, moveCash, setSubDeployer } from "./TradingState.ts"
import { relist, type Venue } from "./Venue.ts"
import * as Words from "./VenueRefusal.ts"
import { accountOrNew } from "./VenueState.ts"

/** The stake that a deployer of a dex needs, in wei of HYPE, as in the venue's documentation. */
const requiredStake = 500_000n * 10n ** 8n

/** The number of perpetuals of a dex that need no auction. */
const freeAssets = 3

const dexName = /^[a-z]{2,4}$/u

/** The shortest time between two prices of a dex, in milliseconds. */
const oracleEvery = 2_500

/** The largest change of a mark price by one action, relative to the price. */
const largestMove = 0.01

const marginModes: ReadonlySet<string> = new Set(["strictIsolated", "noCross", "normal"])

type Deployment = ActionOf<"perpDeploy">
type Registration = Extract<Deployment, { readonly registerAsset2: unknown }>["registerAsset2"]
type OraclePrices = Extract<Deployment, { readonly setOracle: unknown }>["setOracle"]

const list = (venue: Venue): void => {
  relist(venue, venue.info, venue.state.now, true)
  listOutcomes(venue)
}

const setMarket = (venue: Venue, dex: DeployedDex, market: CandleMarket): void => {
  dex.markets.set(market.coin, market)
  list(venue)
}

/** Sets the margin mode of a perpetual. Returns the market without a mode if cross margin is allowed. */
const withMode = ({ marginMode: _before, ...market }: CandleMarket, mode: string): CandleMarket =>
  mode === "strictIsolated" || mode === "noCross" ? { ...market, marginMode: mode } : market

const makeMarket = (
  now: number,
  { coin, marginMode, marginTableId, oraclePx, szDecimals }: Registration["assetRequest"]
): CandleMarket => {
  const price = Number(oraclePx)
  return withMode({
    coin,
    asset: coin,
    price,
    volatility: 0,
    tradeRate: 2,
    tradeLots: Math.max(1, Math.round(2_000 / price * 10 ** szDecimals)),
    levelValue: 5_000,
    sizeDecimals: szDecimals,
    priceDecimals: usdDecimals - szDecimals,
    // a coin is listed after this time
    listedAt: now - 1,
    maxLeverage: marginTableId,
    oracle: { px: oraclePx, points: [{ time: now - 1, price }] },
    deployerFee: { scale: "1.0", recipient: null }
  }, marginMode)
}

/** Pays for a perpetual after the first three, at the current price of the auction. Returns whether the balance covers it. */
const payAuction = (context: ActionContext, maxGas: number | null | undefined): boolean => {
  const { venue } = context
  const { currentGas } = deployAuction({ ...venue.info, seed: venue.seed, now: venue.state.now })
  const price = parseDecimal(currentGas, 8) ?? 0n
  // zero uses a reserved deployment, at the same price
  if (maxGas !== null && maxGas !== undefined && maxGas > 0 && BigInt(maxGas) < price) return false
  if (takeSpot(venue, actor(context), venue.listing.hype, price) === undefined) return false
  addTo(venue.state.deposited, venue.listing.hype, -price)
  return true
}

const register = (
  context: ActionContext,
  { assetRequest, dex: name, maxGas, schema }: Registration
): ActionDecision => {
  const { identity, user, venue } = context
  const { state } = venue
  const { delegations } = accountOrNew(identity, user)
  if ([...delegations.values()].reduce((sum, { wei }) => sum + wei, 0n) < requiredStake) {
    return refuse(Words.insufficientStake)
  }
  const known = state.perpDexes.get(name)
  if (known === undefined ? schema === undefined || schema === null : known.deployer !== user) {
    return refuse(Words.notDeployer)
  }
  if (known === undefined) {
    const isTaken = venue.listing.dexes.includes(name) || state.outcomeDeployers.has(name) || name === "spot"
    if (!dexName.test(name) || isTaken) return refuse(Words.dexName)
    if ([...state.perpDexes.values()].some(({ deployer }) => deployer === user)) return refuse(Words.oneDex)
    if (schema?.collateralToken !== usdc) return refuse(Words.unplayedCollateral)
  }
  const { coin, marginMode, marginTableId, oraclePx, szDecimals } = assetRequest
  const isNew = coin.startsWith(`${name}:`) && coin.length > name.length + 1 && known?.markets.has(coin) !== true
  const isValid = szDecimals < usdDecimals && marginTableId >= 1 && marginTableId <= 50 && Number(oraclePx) > 0
  if (!isNew || !isValid || !marginModes.has(marginMode)) return refuse(Words.invalidPerpetual)
  if ((known?.markets.size ?? 0) >= freeAssets && !payAuction(context, maxGas)) return refuse(Words.insufficientGas)
  const dex = known ?? {
    name,
    fullName: schema?.fullName ?? name,
    deployer: user,
    oracleUpdater: schema?.oracleUpdater === null || schema?.oracleUpdater === undefined
      ? null
      : lowerCase(schema.oracleUpdater),
    feeRecipient: null,
    subDeployers: new Map<string, ReadonlyArray<Address>>(),
    markets: new Map<string, CandleMarket>(),
    fundingMultipliers: new Map<string, string>(),
    fundingInterestRates: new Map<string, string>(),
    pricedAt: 0,
    liquidator: 0n
  }
  state.perpDexes.set(name, dex)
  setMarket(venue, dex, makeMarket(state.now, assetRequest))
  return done
}

const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2
}

/** Sets the oracle and mark prices of a dex. A mark price is the median of those sent and the last one. */
const setOracle = (venue: Venue, dex: DeployedDex, { markPxs, oraclePxs }: OraclePrices): ActionDecision => {
  const { now } = venue.state
  if (now < dex.pricedAt + oracleEvery) return refuse(Words.oracleTooSoon)
  const coins = [...oraclePxs, ...markPxs.flat()].map(([coin]) => coin)
  if (markPxs.length > 2 || coins.some((coin) => !dex.markets.has(coin))) return refuse(Words.invalidOracle)
  dex.pricedAt = now
  for (const [coin, px] of oraclePxs) {
    const market = dex.markets.get(coin)
    const last = market?.oracle?.points.at(-1)?.price
    if (market?.oracle === undefined || last === undefined) continue
    const sent = markPxs.flatMap((each) => each.flatMap(([name, mark]) => name === coin ? [Number(mark)] : []))
    const price = Math.min(last * (1 + largestMove), Math.max(last * (1 - largestMove), median([...sent, last])))
    market.oracle.px = px
    market.oracle.points.push({ time: now, price })
  }
  return done
}

/** Halts trading in a perpetual, which cancels its orders and settles its positions at the mark price, or resumes it. */
const halt = (venue: Venue, dex: DeployedDex, market: CandleMarket, isHalted: boolean): ActionDecision => {
  const { delistedAt, ...listed } = market
  if (isHalted === (delistedAt !== undefined)) return done
  const state = venue.state.markets.get(market.coin)
  if (isHalted && state !== undefined) {
    const open = [...iterateOrders(state.bids), ...iterateOrders(state.asks), ...state.triggers.values()]
    for (const order of open) endByVenue(venue, order, "delistedCanceled")
    for (const holder of state.holders) clearPosition(venue, holder, market.coin)
  }
  setMarket(venue, dex, isHalted ? { ...market, delistedAt: venue.state.now } : listed)
  return done
}

const isScale = (scale: string, growthMode: boolean): boolean =>
  Number(scale) >= 0 && (growthMode ? Number(scale) < 10 : Number(scale) <= 3)

/** The name of an action's variant, and the dexes of the coins that it names. */
const findVariant = (action: Deployment): { readonly name: string; readonly dex: string } => {
  const [name = "", value] = Object.entries(action).find(([key]) => key !== "type") ?? []
  const first: unknown = Array.isArray(value) ? value[0] : value
  const named: unknown = Array.isArray(first) ? first[0] : first
  const dex: unknown = Predicate.isObject(named) ? named["dex"] ?? named["coin"] : named
  return { name, dex: Predicate.isString(dex) ? dex.split(":")[0] ?? "" : "" }
}

/** Changes the markets of the coins that an action lists, all of one dex. */
const changeAll = <A>(
  venue: Venue,
  dex: DeployedDex,
  rows: ReadonlyArray<readonly [coin: string, value: A]>,
  isValid: (value: A) => boolean,
  change: (market: CandleMarket, value: A) => CandleMarket
): ActionDecision => {
  if (!rows.every(([coin, value]) => dex.markets.has(coin) && isValid(value))) return refuse(Words.invalidPerpetual)
  for (const [coin, value] of rows) {
    const market = dex.markets.get(coin)
    if (market !== undefined) setMarket(venue, dex, change(market, value))
  }
  return done
}

const setFee = (market: CandleMarket, scale: string, growingSince: number | undefined): CandleMarket => {
  const { growingSince: _before, ...listed } = market
  return {
    ...listed,
    ...(growingSince === undefined ? {} : { growingSince }),
    deployerFee: { scale, recipient: market.deployerFee?.recipient ?? null }
  }
}

const change = (context: ActionContext, dex: DeployedDex, action: Deployment): ActionDecision => {
  const { venue } = context
  const { now } = venue.state
  const all = <A>(value: A) => [...dex.markets.keys()].map((coin) => [coin, value] as const)
  if ("setOracle" in action) return setOracle(venue, dex, action.setOracle)
  if ("haltTrading" in action) {
    const market = dex.markets.get(action.haltTrading.coin)
    return market === undefined ? refuse(Words.invalidPerpetual) : halt(venue, dex, market, action.haltTrading.isHalted)
  }
  if ("setDeployerFees" in action) {
    return changeAll(
      venue,
      dex,
      action.setDeployerFees,
      ({ growthMode, scale }) => isScale(scale, growthMode),
      (market, { growthMode, scale }) => setFee(market, scale, growthMode ? market.growingSince ?? now : undefined)
    )
  }
  if ("setFeeScale" in action) {
    const { scale } = action.setFeeScale
    return changeAll(
      venue,
      dex,
      all(scale),
      (each) => isScale(each, false),
      (market) => setFee(market, scale, market.growingSince)
    )
  }
  if ("setGrowthModes" in action) {
    return changeAll(
      venue,
      dex,
      action.setGrowthModes,
      () => true,
      (market, isGrowing) =>
        setFee(market, market.deployerFee?.scale ?? "1.0", isGrowing ? market.growingSince ?? now : undefined)
    )
  }
  if ("setFeeRecipient" in action) {
    const recipient = lowerCase(action.setFeeRecipient.feeRecipient)
    dex.feeRecipient = recipient
    return changeAll(venue, dex, all(recipient), () => true, (market) => ({
      ...market,
      deployerFee: { scale: market.deployerFee?.scale ?? "1.0", recipient }
    }))
  }
  if ("setOpenInterestCaps" in action) {
    return changeAll(
      venue,
      dex,
      action.setOpenInterestCaps,
      (cap) => cap === null || cap >= 1_000_000,
      ({ openInterestCap: _before, ...market }, cap) => cap === null ? market : { ...market, openInterestCap: cap }
    )
  }
  if ("setMarginModes" in action) {
    return changeAll(venue, dex, action.setMarginModes, (mode) => marginModes.has(mode), withMode)
  }
  if ("setMarginTableIds" in action) {
    return changeAll(venue, dex, action.setMarginTableIds, (id) => id >= 1 && id <= 50, (market, maxLeverage) => ({
      ...market,
      maxLeverage
    }))
  }
  if ("setSubDeployers" in action) {
    for (const { allowed, user, variant } of action.setSubDeployers.subDeployers) {
      setSubDeployer(dex.subDeployers, Predicate.isString(variant) ? variant : variant.hip3Star, user, allowed)
    }
    return done
  }
  if ("setFundingMultipliers" in action || "setFundingInterestRates" in action) {
    const isRate = "setFundingInterestRates" in action
    const rows = isRate ? action.setFundingInterestRates : action.setFundingMultipliers
    const [least, most] = isRate ? [-0.01, 0.01] : [0, 10]
    const isValid = (value: string) => Number(value) >= least && Number(value) <= most
    if (!rows.every(([coin, value]) => dex.markets.has(coin) && isValid(value))) return refuse(Words.invalidPerpetual)
    for (const [coin, value] of rows) (isRate ? dex.fundingInterestRates : dex.fundingMultipliers).set(coin, value)
    return done
  }
  if ("disableDex" in action) {
    if ([...dex.markets.values()].some(({ delistedAt }) => delistedAt === undefined)) return refuse(Words.dexIsTrading)
    return done
  }
  return refuse(Words.unplayedDexAction(findVariant(action).name))
}

/** Executes the action `perpDeploy`. */
export const deploy: Handler<"perpDeploy"> = (context, action) => {
  const { user, venue } = context
  if ("registerAsset2" in action) return register(context, action.registerAsset2)
  if ("registerAsset" in action) {
    const { assetRequest: { onlyIsolated, ...request }, ...registration } = action.registerAsset
    const marginMode = onlyIsolated ? "strictIsolated" : "normal"
    return register(context, { ...registration, assetRequest: { ...request, marginMode } })
  }
  const variant = findVariant(action)
  const dex = venue.state.perpDexes.get(variant.dex)
  const isAllowed = dex !== undefined && (
    dex.deployer === user || dex.subDeployers.get(variant.name)?.includes(user) === true ||
    variant.name === "setOracle" && dex.oracleUpdater === user
  )
  return isAllowed ? change(context, dex, action) : refuse(Words.notDeployer)
}

/** The unit of a transfer to or from a liquidator, in millionths of the collateral. */
const liquidatorUnit = 1_000_000_000n

/** Executes the action `hip3LiquidatorTransfer`: the deployer of a dex funds its liquidator. */
export const transferLiquidator: Handler<"hip3LiquidatorTransfer"> = (context, { dex: name, isDeposit, ntl }) => {
  const { user, venue } = context
  const amount = BigInt(ntl)
  const dex = venue.state.perpDexes.get(name)
  if (!venue.listing.dexes.includes(name)) return refuse(Words.unknownDex(name))
  if (amount === 0n || amount % liquidatorUnit !== 0n) return refuse(Words.invalidAmount)
  if (!isDeposit && (dex?.liquidator ?? 0n) < amount) return refuse(Words.insufficientWithdrawal)
  if (isDeposit && withdrawable(venue, actor(context), name) < amount) return refuse(Words.liquidatorDeposit)
  if (dex?.deployer !== user) return refuse(Words.notLiquidator)
  moveCash(venue.state, actor(context), name, isDeposit ? -amount : amount)
  dex.liquidator += isDeposit ? amount : -amount
  return done
}
