/** Settles outcomes, and executes the actions of their holders and deployers. */
import type { ActionOf } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { actor, done, refuse } from "./AccountActions.ts"
import type { ActionContext, ActionDecision, Handler } from "./AccountActions.ts"
import { findMarket, min, parseDecimal, printDecimal, type SpotPair } from "./Assets.ts"
import { chargeOutcomeFee, countSettlement } from "./Fees.ts"
import { markPrice } from "./Margin.ts"
import * as Matching from "./Matching.ts"
import * as Outcomes from "./Outcomes.ts"
import {
  type DeployedOutcome,
  type DeployedQuestion,
  type ListedOutcome,
  one,
  type OutcomeTemplate
} from "./Outcomes.ts"
import { addTo, appendFill, ensureBalance, iterateOrders, setSubDeployer } from "./TradingState.ts"
import type { OutcomeDeployer, TradingAccount } from "./TradingState.ts"
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
  appendFill(account, fill, venue.limits.fills)
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
  const isTaken = name === "spot" || name === Outcomes.recurringVenue || listing.dexes.includes(name) ||
    state.outcomeDeployers.has(name)
  if (!venueName.test(name) || isTaken) return refuse(Words.venueName)
  state.outcomeDeployers.set(name, { user, since: state.now, isActive: true, subDeployers: new Map() })
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

type OperationBody<Name extends string, Each = ActionOf<"outcomeDeploy">["operation"]> = Each extends
  { readonly [_ in Name]: infer Body } ? Body : never
type Settlement = OperationBody<"settleOutcome">
type Instance = OperationBody<"registerAndAssociateNamedOutcomeFromTemplate">["namedOutcomeTemplateInstance"]

/** The context of a deployer's operation, the name of the venue, and its deployer. */
interface Deployment {
  readonly context: ActionContext
  readonly name: string
  readonly deployer: OutcomeDeployer
}

/** Returns the refusal of a template's instance; `undefined` for an instance that fits a template of the expected role. */
const instanceRefusal = (
  context: ActionContext,
  { id, keywordToValue }: Instance,
  isExpected: (role: OutcomeTemplate["role"]) => boolean
): string | undefined => {
  const template = Outcomes.findTemplate(id)
  if (template === undefined || !isExpected(template.role)) return Words.unknownTemplate(id)
  const values = new Map(keywordToValue)
  const isComplete = values.size === template.keywords.length && keywordToValue.length === values.size
  return isComplete && template.keywords.every(([keyword, hint]) => fits(context, hint, values.get(keyword) ?? ""))
    ? undefined
    : Words.templateValues
}

const parseScale = (text: string): string | undefined => {
  const scale = parseDecimal(text, decimals)
  return scale === undefined || scale < 0n || scale > 10n * one ? undefined : printDecimal(scale, decimals)
}

const hasRoom = ({ context: { venue }, name }: Deployment, outcomes: number): boolean => {
  const left = deployerLimits(venue, name)
  return left !== undefined && Math.min(left.nActiveOutcomesRemaining, left.nDailyOutcomesRemaining) >= outcomes
}

/** Stores a deployed outcome, which is not listed yet. Returns its number. */
const addOutcome = (
  { context: { venue: { state } }, deployer, name }: Deployment,
  terms: Pick<DeployedOutcome, "feeScale" | "keywords" | "question" | "template">
): number => {
  const outcome = Outcomes.nextOutcome(state)
  state.deployedOutcomes.set(outcome, { ...terms, outcome, venue: name, deployer: deployer.user, createdAt: state.now })
  return outcome
}

const registerStandalone = (
  deployment: Deployment,
  { deployerFeeScale, ...instance }: OperationBody<"registerStandaloneOutcomeFromTemplate">
): ActionDecision => {
  const feeScale = parseScale(deployerFeeScale)
  if (feeScale === undefined) return refuse(Words.deployerFeeScale)
  const refusal = instanceRefusal(
    deployment.context,
    instance,
    (role) => Predicate.hasProperty(role, "standaloneOutcome")
  )
  if (refusal !== undefined) return refuse(refusal)
  if (!hasRoom(deployment, 1)) return refuse(Words.tooManyOutcomes)
  addOutcome(deployment, { feeScale, template: instance.id, keywords: instance.keywordToValue })
  Outcomes.list(deployment.context.venue)
  return done
}

/** Maximum number of named outcomes of a question. */
const mostNamed = 100

/** Returns the refusal of new named outcomes of a question made from the template `parent`, which has the outcomes `known`. */
const namedRefusal = (
  context: ActionContext,
  parent: string,
  known: ReadonlyArray<DeployedOutcome>,
  instances: ReadonlyArray<Instance>
): string | undefined => {
  const all = [
    ...known.map(({ keywords, template }) => `${template} ${Outcomes.describe(keywords)}`),
    ...instances.map(({ id, keywordToValue }) => `${id} ${Outcomes.describe(keywordToValue)}`)
  ]
  if (instances.length === 0 || all.length > mostNamed) return Words.namedOutcomes
  for (const instance of instances) {
    const refusal = instanceRefusal(
      context,
      instance,
      (role) => Predicate.hasProperty(role, "questionOutcome") && role.questionOutcome.parent === parent
    )
    if (refusal !== undefined) return refusal
  }
  return new Set(all).size < all.length ? Words.sameOutcome : undefined
}

const registerQuestion = (
  deployment: Deployment,
  { namedOutcomeTemplateInstances: named, questionTemplateInstance }: OperationBody<"registerQuestionFromTemplate">
): ActionDecision => {
  const { context, name } = deployment
  const { state } = context.venue
  const { deployerFeeScale, ...instance } = questionTemplateInstance
  const feeScale = parseScale(deployerFeeScale)
  if (feeScale === undefined) return refuse(Words.deployerFeeScale)
  const refusal = instanceRefusal(context, instance, (role) => role === "question") ??
    namedRefusal(context, instance.id, [], named)
  if (refusal !== undefined) return refuse(refusal)
  if (!hasRoom(deployment, named.length + 1)) return refuse(Words.tooManyOutcomes)
  const question = Outcomes.nextQuestion(state)
  const fallbackOutcome = addOutcome(deployment, { feeScale, question, keywords: [] })
  state.deployedQuestions.set(question, {
    spec: {
      question,
      name: `template:${instance.id}`,
      description: Outcomes.describe(instance.keywordToValue),
      fallbackOutcome,
      namedOutcomes: named.map(({ id, keywordToValue }) =>
        addOutcome(deployment, { feeScale, question, template: id, keywords: keywordToValue })
      ),
      settledNamedOutcomes: []
    },
    template: instance.id,
    keywords: instance.keywordToValue,
    venue: name,
    feeScale,
    isSettled: false
  })
  Outcomes.list(context.venue)
  return done
}

/** Credits each holder of a token with an equal balance of other tokens. */
const creditHolders = (venue: Venue, { base: { index } }: SpotPair, others: ReadonlyArray<SpotPair>): void => {
  const { accounts, deposited, house } = venue.state
  for (const account of accounts.values()) {
    const total = account.spot.get(index)?.total ?? 0n
    if (total === 0n) continue
    for (const { base } of others) ensureBalance(account, base.index).total += total
    emit(venue, { kind: "account", user: account.address })
  }
  for (const { base } of others) {
    addTo(house.spot, base.index, house.spot.get(index) ?? 0n)
    addTo(deposited, base.index, deposited.get(index) ?? 0n)
  }
}

/**
 * Gives balances of a question's fallback the meaning that they had before an outcome was added. Its Yes also pays if
 * the new outcome occurs, so each holder receives the Yes of the new outcome. Its No pays only if one of the other
 * named outcomes occurs, so it becomes their Yes.
 */
const extendFallback = (
  venue: Venue,
  { sides: [yes, no] }: ListedOutcome,
  others: ReadonlyArray<ListedOutcome>,
  added: ListedOutcome
): void => {
  const { accounts, deposited, house, markets } = venue.state
  const sales = markets.get(no.coin)?.asks
  for (const order of sales === undefined ? [] : [...iterateOrders(sales)]) {
    Matching.endByVenue(venue, order, "outcomeSettledCanceled")
  }
  creditHolders(venue, no, others.map(({ sides }) => sides[0]))
  for (const { spot } of accounts.values()) spot.delete(no.base.index)
  house.spot.delete(no.base.index)
  deposited.delete(no.base.index)
  creditHolders(venue, yes, [added.sides[0]])
}

const associate = (
  deployment: Deployment,
  { namedOutcomeTemplateInstance: instance, question: number }: OperationBody<
    "registerAndAssociateNamedOutcomeFromTemplate"
  >
): ActionDecision => {
  const { context, name } = deployment
  const { venue } = context
  const question = venue.state.deployedQuestions.get(number)
  if (question?.venue !== name || question.isSettled) return refuse(Words.invalidQuestion)
  const { feeScale, spec: { fallbackOutcome, namedOutcomes }, template } = question
  const known = namedOutcomes.flatMap((each) => venue.state.deployedOutcomes.get(each) ?? [])
  const refusal = namedRefusal(context, template, known, [instance])
  if (refusal !== undefined) return refuse(refusal)
  if (!hasRoom(deployment, 1)) return refuse(Words.tooManyOutcomes)
  const others = (Outcomes.findQuestion(venue, number) ?? []).filter(({ spec }) => spec.outcome !== fallbackOutcome)
  const outcome = addOutcome(deployment, {
    feeScale,
    question: number,
    template: instance.id,
    keywords: instance.keywordToValue
  })
  namedOutcomes.push(outcome)
  Outcomes.list(venue)
  const [fallback, added] = [fallbackOutcome, outcome].map((each) => venue.outcomes.active.get(each))
  if (fallback !== undefined && added !== undefined) extendFallback(venue, fallback, others, added)
  return done
}

/** Returns the price of side 0 that a settlement names; `undefined` if its texts are not those of the outcome. */
const readFraction = (
  { spec: { description, name, sideSpecs } }: ListedOutcome,
  { details, nameAndDescription, settleFraction, sideNames }: Settlement
): bigint | undefined => {
  const fraction = parseDecimal(settleFraction, decimals)
  const isSame = nameAndDescription[0] === name && nameAndDescription[1] === description &&
    sideSpecs.every((side, at) => side.name === sideNames[at])
  return isSame && details === "" && fraction !== undefined && fraction >= 0n && fraction <= one ? fraction : undefined
}

type OutcomeResult = readonly [outcome: ListedOutcome, fraction: bigint]

const settleAll = (venue: Venue, results: ReadonlyArray<OutcomeResult>): ActionDecision => {
  for (const [outcome, fraction] of results) {
    if (outcome.deployed !== undefined) outcome.deployed.settleFraction = printDecimal(fraction, decimals)
    settle(venue, outcome, fraction)
  }
  Outcomes.unlist(venue, results.map(([outcome]) => outcome))
  return done
}

/**
 * Settles named outcomes of a question. With the last one it settles the question: then the fallback occurs if none of
 * its named outcomes does.
 */
const settleNamed = (
  venue: Venue,
  question: DeployedQuestion,
  results: ReadonlyArray<OutcomeResult>
): ActionDecision => {
  const { fallbackOutcome, namedOutcomes, settledNamedOutcomes } = question.spec
  settledNamedOutcomes.push(...results.map(([{ spec }]) => spec.outcome))
  question.isSettled = settledNamedOutcomes.length === namedOutcomes.length
  const fallback = question.isSettled ? venue.outcomes.active.get(fallbackOutcome) : undefined
  const isOther = results.every(([, fraction]) => fraction === 0n)
  return settleAll(venue, fallback === undefined ? results : [...results, [fallback, isOther ? one : 0n]])
}

const settleDeployed = (
  { context: { venue }, name }: Deployment,
  settlement: Settlement
): ActionDecision => {
  const outcome = venue.outcomes.active.get(settlement.outcome)
  if (outcome?.deployed?.venue !== name) return refuse(Words.invalidOutcome)
  const fraction = readFraction(outcome, settlement)
  if (fraction === undefined) return refuse(Words.invalidSettlement)
  const question = venue.state.deployedQuestions.get(outcome.deployed.question ?? 0)
  if (question === undefined) return settleAll(venue, [[outcome, fraction]])
  const { fallbackOutcome, namedOutcomes, settledNamedOutcomes } = question.spec
  // an outcome of a question can only occur when it is the last one
  const isAllowed = fraction === 0n || fraction === one && namedOutcomes.length === settledNamedOutcomes.length + 1
  return isAllowed && settlement.outcome !== fallbackOutcome
    ? settleNamed(venue, question, [[outcome, fraction]])
    : refuse(Words.invalidSettlement)
}

const settleQuestion = (
  { context: { venue }, name }: Deployment,
  { nameAndDescription, outcomeSettlements, question: number }: OperationBody<"settleQuestion2">
): ActionDecision => {
  const question = venue.state.deployedQuestions.get(number)
  if (question?.venue !== name || question.isSettled) return refuse(Words.invalidQuestion)
  const { description, name: known, namedOutcomes, settledNamedOutcomes } = question.spec
  const left = new Set(namedOutcomes).difference(new Set(settledNamedOutcomes))
  const results = outcomeSettlements.flatMap((settlement): ReadonlyArray<OutcomeResult> => {
    const outcome = left.delete(settlement.outcome) ? venue.outcomes.active.get(settlement.outcome) : undefined
    const fraction = outcome === undefined ? undefined : readFraction(outcome, settlement)
    return outcome === undefined || fraction === undefined ? [] : [[outcome, fraction]]
  })
  const isComplete = left.size === 0 && results.length === outcomeSettlements.length
  const isSame = nameAndDescription[0] === known && nameAndDescription[1] === description
  const isDecided = results.filter(([, fraction]) => fraction === one).length === 1 &&
    results.every(([, fraction]) => fraction === 0n || fraction === one)
  return isComplete && isSame && isDecided ? settleNamed(venue, question, results) : refuse(Words.invalidSettlement)
}

/** The operations that a deployer can grant to other accounts. With `settleQuestion` they can send `settleQuestion2`. */
const grantable: ReadonlySet<string> = new Set([
  "registerStandaloneOutcomeFromTemplate",
  "registerQuestionFromTemplate",
  "registerAndAssociateNamedOutcomeFromTemplate",
  "settleOutcome",
  "settleQuestion"
])

const setSubDeployers = (
  { context: { user }, deployer }: Deployment,
  grants: OperationBody<"setSubDeployers">
): ActionDecision => {
  if (user !== deployer.user) return refuse(Words.notOutcomeDeployer)
  const rows = grants.flatMap(({ allowed, user: granted, variant }) =>
    Predicate.isString(variant) && grantable.has(variant) ? [{ allowed, granted, variant }] : []
  )
  if (rows.length < grants.length) return refuse(Words.unknownGrant)
  for (const { allowed, granted, variant } of rows) setSubDeployer(deployer.subDeployers, variant, granted, allowed)
  return done
}

/** Executes the action `outcomeDeploy`. */
export const deploy: Handler<"outcomeDeploy"> = (context, { operation, venue: name }) => {
  const deployer = context.venue.state.outcomeDeployers.get(name)
  const [sent = ""] = Object.keys(operation)
  const granted = deployer?.subDeployers.get(sent === "settleQuestion2" ? "settleQuestion" : sent) ?? []
  if (deployer?.isActive !== true || deployer.user !== context.user && !granted.includes(context.user)) {
    return refuse(Words.notOutcomeDeployer)
  }
  const deployment = { context, name, deployer }
  if ("registerStandaloneOutcomeFromTemplate" in operation) {
    return registerStandalone(deployment, operation.registerStandaloneOutcomeFromTemplate)
  }
  if ("registerQuestionFromTemplate" in operation) {
    return registerQuestion(deployment, operation.registerQuestionFromTemplate)
  }
  if ("registerAndAssociateNamedOutcomeFromTemplate" in operation) {
    return associate(deployment, operation.registerAndAssociateNamedOutcomeFromTemplate)
  }
  if ("settleOutcome" in operation) return settleDeployed(deployment, operation.settleOutcome)
  if ("settleQuestion2" in operation) return settleQuestion(deployment, operation.settleQuestion2)
  return setSubDeployers(deployment, operation.setSubDeployers)
}
