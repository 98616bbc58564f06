/** Settles outcomes, and executes the actions of their holders and deployers. */
import type { ActionOf } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as Result from "effect/Result"
import { actor, done, refuse } from "./AccountActions.ts"
import type { ActionContext, ActionDecision, Handler } from "./AccountActions.ts"
import { findMarket, min, parseDecimal, printDecimal, type SpotPair } from "./Assets.ts"
import { chargeOutcomeFee, countSettlement } from "./Fees.ts"
import { markPrice } from "./Margin.ts"
import * as Matching from "./Matching.ts"
import * as Outcomes from "./Outcomes.ts"
import { type ListedOutcome, one } from "./Outcomes.ts"
import { addTo, append, ensureBalance, iterateOrders } from "./TradingState.ts"
import type { TradingAccount } from "./TradingState.ts"
import { emit, nextHash, nextTid, type Venue } from "./Venue.ts"
import * as Words from "./VenueRefusal.ts"
import { accountOrNew } from "./VenueState.ts"

/** Decimals of amounts of quote tokens and of outcome tokens. */
const decimals = 8

/** Maximum number of settled outcomes that an account lists. */
const listedSettlements = 20

const endOrders = (venue: Venue, coin: string): void => {
  const market = venue.state.markets.get(coin)
  if (market === undefined) return
  const open = [...iterateOrders(market.bids), ...iterateOrders(market.asks), ...market.triggers.values()]
  for (const order of open) Matching.endByVenue(venue, order, "outcomeSettledCanceled")
}

/** Pays an account for its tokens of a side, and records the payment as a fill. Returns the payment in wei. */
const payHolder = (venue: Venue, account: TradingAccount, asset: SpotPair, price: bigint): bigint => {
  const balance = account.spot.get(asset.base.index)
  if (balance === undefined) return 0n
  account.spot.delete(asset.base.index)
  if (balance.total === 0n) return 0n
  const paid = balance.total * price / one
  const fee = chargeOutcomeFee(venue, account, asset, paid, true)
  ensureBalance(account, asset.quote.index).total += paid - fee
  countSettlement(account, venue.state.now, paid)
  const number = asset.side?.outcome.spec.outcome ?? 0
  account.settledOutcomes = [...account.settledOutcomes.filter((each) => each !== number), number]
    .slice(-listedSettlements)
  const size = printDecimal(balance.total, decimals)
  const fill = {
    coin: asset.coin,
    px: printDecimal(price, decimals),
    sz: size,
    side: "A" as const,
    time: venue.state.now,
    startPosition: size,
    dir: "Settlement",
    closedPnl: printDecimal(paid - balance.entry, decimals),
    hash: venue.hash,
    oid: venue.state.nextOid++,
    crossed: true,
    fee: printDecimal(fee, decimals),
    tid: nextTid(venue),
    feeToken: asset.quote.name,
    twapId: null
  }
  append(account.fills, fill, venue.limits.fills)
  emit(venue, { kind: "fill", user: account.address, fill })
  emit(venue, { kind: "account", user: account.address })
  return paid
}

/** Settles an outcome: ends its orders, and pays the holders. `fraction` is the price of side 0, in units of 10^-8. */
const settle = (venue: Venue, outcome: ListedOutcome, fraction: bigint): void => {
  const { accounts, deposited, house, markets } = venue.state
  venue.hash = nextHash(venue)
  for (const asset of outcome.sides) {
    endOrders(venue, asset.coin)
    const { index } = asset.base
    const supply = deposited.get(index) ?? 0n
    // what rounding leaves of a pair of tokens belongs to side 1
    const first = supply * fraction / one
    const due = asset.side?.side === 0 ? first : supply - first
    let paid = 0n
    for (const account of accounts.values()) {
      paid += payHolder(venue, account, asset, asset.side?.side === 0 ? fraction : one - fraction)
    }
    addTo(house.spot, asset.quote.index, due - paid)
    house.spot.delete(index)
    addTo(deposited, asset.quote.index, due)
    deposited.delete(index)
    markets.delete(asset.coin)
  }
}

/** Settles the outcomes whose time has come. */
export const settleDue = (venue: Venue): void => {
  if (Outcomes.nextExpiry(venue) > venue.state.now) return
  const due = [...venue.outcomes.active.values()].filter(({ expiresAt }) => expiresAt <= venue.state.now)
  for (const outcome of due) settle(venue, outcome, Outcomes.findResult(venue, outcome)?.fraction ?? 0n)
  Outcomes.unlist(venue, due)
}

const availableIn = (venue: Venue, account: TradingAccount, outcome: ListedOutcome, side: 0 | 1): bigint =>
  Matching.available(venue, account, outcome.sides[side].base.index)

/** Adds new tokens of a side to an account's balance. */
const give = (venue: Venue, account: TradingAccount, asset: SpotPair, wei: bigint, entry: bigint): void => {
  const balance = ensureBalance(account, asset.base.index)
  balance.total += wei
  balance.entry += entry
  addTo(venue.state.deposited, asset.base.index, wei)
}

/** Removes tokens of a side from an account's balance, which is sufficient. */
const take = (venue: Venue, account: TradingAccount, asset: SpotPair, wei: bigint): void => {
  Matching.takeSpot(venue, account, asset.base.index, wei)
  addTo(venue.state.deposited, asset.base.index, -wei)
}

/** Pays quote tokens for outcome tokens, or gets them back. */
const moveQuote = (venue: Venue, account: TradingAccount, { quote }: SpotPair, wei: bigint): void => {
  if (wei < 0n) Matching.takeSpot(venue, account, quote.index, -wei)
  else ensureBalance(account, quote.index).total += wei
  addTo(venue.state.deposited, quote.index, wei)
}

/** Executes the action `userOutcome`. */
export const userOutcome: Handler<"userOutcome"> = (context, action) => {
  const { venue } = context
  const account = actor(context)
  const finish = (): ActionDecision => {
    emit(venue, { kind: "account", user: account.address })
    return done
  }
  /** Returns the amount that an action names, or all that is available. */
  const readWei = (text: string | null, most: bigint): Result.Result<bigint, string> => {
    const wei = text === null ? most : Matching.readAmount(text, decimals)
    if (wei === undefined || wei === 0n) return Result.fail(Words.invalidAmount)
    return wei > most ? Result.fail(Words.insufficientTransfer) : Result.succeed(wei)
  }
  if ("splitOutcome" in action || "mergeOutcome" in action) {
    const { amount, outcome: number } = "splitOutcome" in action ? action.splitOutcome : action.mergeOutcome
    const outcome = venue.outcomes.active.get(number)
    if (outcome === undefined) return refuse(Words.invalidOutcome)
    const [yes, no] = outcome.sides
    const isSplit = "splitOutcome" in action
    const most = isSplit
      ? Matching.available(venue, account, yes.quote.index)
      : min(availableIn(venue, account, outcome, 0), availableIn(venue, account, outcome, 1))
    const read = readWei(amount, most)
    if (Result.isFailure(read)) return refuse(read.failure)
    const wei = read.success
    if (isSplit) {
      // each side costs its mark price
      const entry = wei * markPrice(venue, yes) / one
      give(venue, account, yes, wei, entry)
      give(venue, account, no, wei, wei - entry)
    } else for (const asset of outcome.sides) take(venue, account, asset, wei)
    moveQuote(venue, account, yes, isSplit ? -wei : wei)
    return finish()
  }
  const named = "mergeQuestion" in action ? action.mergeQuestion : action.negateOutcome
  const all = Outcomes.findQuestion(venue, named.question)
  const [first] = all ?? []
  if (all === undefined || first === undefined) return refuse(Words.invalidQuestion)
  if ("mergeQuestion" in action) {
    const read = readWei(
      action.mergeQuestion.amount,
      all.map((each) => availableIn(venue, account, each, 0)).reduce(min)
    )
    if (Result.isFailure(read)) return refuse(read.failure)
    for (const { sides: [yes] } of all) take(venue, account, yes, read.success)
    moveQuote(venue, account, first.sides[0], read.success)
    return finish()
  }
  const negated = all.find(({ spec }) => spec.outcome === action.negateOutcome.outcome)
  if (negated === undefined) return refuse(Words.invalidOutcome)
  const read = readWei(action.negateOutcome.amount, availableIn(venue, account, negated, 1))
  if (Result.isFailure(read)) return refuse(read.failure)
  take(venue, account, negated.sides[1], read.success)
  for (const each of all) {
    if (each !== negated) give(venue, account, each.sides[0], read.success, 0n)
  }
  return finish()
}

/** The stake that a deployer of outcomes needs, in wei of HYPE. */
const requiredStake = 500_000n * 10n ** 8n

/** The number of outcomes of a deployer that are active at a time, and that it deploys in a day. */
const limits = { active: 100, daily: 500 }

const day = 86_400_000

/** The number of days after which a deployer can deactivate itself. */
const shortestDeployment = 183 * day

const venueName = /^[a-z]{2,4}$/u

const deployedBy = ({ state }: Venue, name: string) =>
  [...state.deployedOutcomes.values()].filter(({ venue }) => venue === name)

/** Returns the response to the query `outcomeDeployerLimits`; `undefined` for a venue that no deployer has. */
export const deployerLimits = (venue: Venue, name: string) => {
  if (venue.state.outcomeDeployers.get(name)?.isActive !== true) return undefined
  const all = deployedBy(venue, name)
  const today = all.filter(({ createdAt }) => Math.floor(createdAt / day) === Math.floor(venue.state.now / day))
  return {
    nDailyOutcomesRemaining: limits.daily - today.length,
    nActiveOutcomesRemaining: limits.active - all.filter(({ settleFraction }) => settleFraction === undefined).length
  }
}

/** Executes the action `activateOutcomeDeployer`. */
export const activate: Handler<"activateOutcomeDeployer"> = (context, action) => {
  const { identity, user, venue } = context
  const { listing, state } = venue
  const own = [...state.outcomeDeployers].find(([, deployer]) => deployer.user === user)
  if (!("activate" in action)) {
    if (own === undefined || !own[1].isActive) return refuse(Words.notOutcomeDeployer)
    if (state.now < own[1].since + shortestDeployment) return refuse(Words.deployedTooBriefly)
    if (deployedBy(venue, own[0]).some((each) => each.settleFraction === undefined)) return refuse(Words.hasOutcomes)
    own[1].isActive = false
    return done
  }
  const { venueName: name } = action.activate
  const { delegations } = accountOrNew(identity, user)
  const staked = [...delegations.values()].reduce((sum, { wei }) => sum + wei, 0n)
  if (staked < requiredStake) return refuse(Words.insufficientStake)
  if (own !== undefined) return refuse(Words.deployerExists)
  const { abstraction } = actor(context)
  if (abstraction !== "default" && abstraction !== "disabled") return refuse(Words.deployerAbstraction)
  const isTaken = name === "spot" || listing.dexes.includes(name) || state.outcomeDeployers.has(name)
  if (!venueName.test(name) || isTaken) return refuse(Words.venueName)
  state.outcomeDeployers.set(name, { user, since: state.now, isActive: true })
  return done
}

/** Returns whether a value has the form that a template's hint requires. */
const fits = ({ venue }: ActionContext, hint: string, value: string): boolean => {
  if (value.length > 100 || /[{}|]/u.test(value)) return false
  const { now } = venue.state
  switch (hint) {
    case "hlPerp":
      return venue.listing.byCoin.get(value)?.kind === "perpetual" &&
        findMarket(venue.info.markets, value) !== undefined
    case "uInt":
      return /^(?:0|[1-9]\d{0,18})$/u.test(value)
    case "uDecimal":
      return /^(?:0|[1-9]\d*)(?:\.\d*[1-9])?$/u.test(value)
    case "dateTime": {
      const time = Outcomes.parseStamp(value)
      return time > now && time <= now + 365 * day
    }
    default:
      return value !== ""
  }
}

type Deployment = ActionOf<"outcomeDeploy">["operation"]
type Standalone = Extract<
  Deployment,
  { readonly registerStandaloneOutcomeFromTemplate: unknown }
>["registerStandaloneOutcomeFromTemplate"]
type Settlement = Extract<Deployment, { readonly settleOutcome: unknown }>["settleOutcome"]

const register = (
  context: ActionContext,
  name: string,
  { deployerFeeScale, id, keywordToValue }: Standalone
): ActionDecision => {
  const { user, venue } = context
  const { state } = venue
  const template = Outcomes.findTemplate(id)
  if (template === undefined) return refuse(Words.unknownTemplate(id))
  const scale = parseDecimal(deployerFeeScale, decimals)
  if (scale === undefined || scale < 0n || scale > 10n * one) return refuse(Words.deployerFeeScale)
  const values = new Map(keywordToValue)
  const isComplete = values.size === template.keywords.length && keywordToValue.length === values.size
  if (!isComplete || !template.keywords.every(([keyword, hint]) => fits(context, hint, values.get(keyword) ?? ""))) {
    return refuse(Words.templateValues)
  }
  const left = deployerLimits(venue, name)
  if (left === undefined || left.nActiveOutcomesRemaining <= 0 || left.nDailyOutcomesRemaining <= 0) {
    return refuse(Words.tooManyOutcomes)
  }
  const outcome = state.deployedOutcomes.size + 1
  state.deployedOutcomes.set(outcome, {
    outcome,
    template: id,
    keywords: keywordToValue,
    venue: name,
    deployer: user,
    feeScale: printDecimal(scale, decimals),
    createdAt: state.now
  })
  Outcomes.list(venue)
  return done
}

const settleDeployed = (
  { venue }: ActionContext,
  name: string,
  { details, nameAndDescription, outcome: number, settleFraction, sideNames }: Settlement
): ActionDecision => {
  const outcome = venue.outcomes.active.get(number)
  const fraction = parseDecimal(settleFraction, decimals)
  if (outcome?.deployed?.venue !== name) return refuse(Words.invalidOutcome)
  const { description, name: known, sideSpecs } = outcome.spec
  const isSame = nameAndDescription[0] === known && nameAndDescription[1] === description &&
    sideSpecs.every((side, at) => side.name === sideNames[at])
  if (!isSame || details !== "" || fraction === undefined || fraction < 0n || fraction > one) {
    return refuse(Words.invalidSettlement)
  }
  outcome.deployed.settleFraction = printDecimal(fraction, decimals)
  settle(venue, outcome, fraction)
  Outcomes.unlist(venue, [outcome])
  return done
}

/** Executes the action `outcomeDeploy`, as far as it is about a standalone outcome. */
export const deploy: Handler<"outcomeDeploy"> = (context, { operation, venue: name }) => {
  const deployer = context.venue.state.outcomeDeployers.get(name)
  if (deployer?.user !== context.user || !deployer.isActive) return refuse(Words.notOutcomeDeployer)
  if ("registerStandaloneOutcomeFromTemplate" in operation) {
    return register(context, name, operation.registerStandaloneOutcomeFromTemplate)
  }
  if ("settleOutcome" in operation) return settleDeployed(context, name, operation.settleOutcome)
  return refuse(Words.unplayedDeployment(Object.keys(operation).join("")))
}
