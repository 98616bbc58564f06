/** Account settings: API wallets, builders, referrals, names, signers, and flags. */
import type { ActionOf } from "@trigate/domain/actions/ActionSchemas"
import { Address, lowerCase } from "@trigate/domain/encoding/Hex"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ActionContext, ActionDecision } from "./ActionContext.ts"
import { actor, done, refuse, toVenueTime } from "./ActionContext.ts"
import * as Decimals from "./Decimals.ts"
import { marginSums, withdrawable } from "./Margin.ts"
import { findSubAccount } from "./SubAccounts.ts"
import type { TradingAccount } from "./TradingAccount.ts"
import { ensureAccount, moveCash } from "./TradingState.ts"
import type { Account } from "./VenueState.ts"
import {
  accountOrNew as readIdentity,
  changeAccount,
  multiSigRefusal,
  withEntry,
  withoutEntry,
  withoutExpiredAgents
} from "./VenueState.ts"
import * as Words from "./Words.ts"

const day = 86_400_000

/** Default and maximum validity of an API wallet, in days. */
const agentDays = 90
const mostAgentDays = 180

/** Maximum number of named API wallets of an account. */
const mostAgents = 3

/** Matches the suffix of an API wallet's name. The suffix contains the time until which the wallet is valid. */
const untilShape = / valid_until ([0-9]{1,16})$/u

const zeroAddress = `0x${"0".repeat(40)}`

const without = (agents: Account["extraAgents"], name: string): Account["extraAgents"] =>
  agents.filter((agent) => agent.name !== name)

/**
 * Executes the action `approveAgent`. A named API wallet replaces the account's API wallet of the same name. An unnamed
 * API wallet replaces the previous unnamed one.
 */
export const approveAgent = (
  context: ActionContext,
  { agentAddress, agentName }: ActionOf<"approveAgent">
): ActionDecision => {
  const { user, venue: { state: { now } } } = context
  const agent = lowerCase(agentAddress)
  const previousUser = context.identity.agents.get(agent) ?? user
  const identity = withoutExpiredAgents(withoutExpiredAgents(context.identity, user, now), previousUser, now)
  const given = agentName ?? ""
  const until = untilShape.exec(given)?.[1]
  const name = given.replace(untilShape, "")
  const validUntil = Math.min(
    until === undefined ? now + agentDays * day : toVenueTime(context, Number(until)),
    now + mostAgentDays * day
  )
  const { extraAgents, mainAgent } = readIdentity(identity, user)
  const replaced = name === "" ? mainAgent?.address : extraAgents.find((known) => known.name === name)?.address
  if (agent === zeroAddress) {
    const agents = replaced === undefined ? identity.agents : withoutEntry(identity.agents, replaced)
    const fields = name === "" ? { mainAgent: undefined } : { extraAgents: without(extraAgents, name) }
    context.identity = changeAccount({ ...identity, agents }, user, fields)
    return done
  }
  if (validUntil < now) return refuse(Words.agentExpired)
  if (identity.accounts.has(agent)) return refuse(Words.agentIsUser)
  if (identity.agents.has(agent) && agent !== replaced) return refuse(Words.agentUsed)
  if (name !== "" && without(extraAgents, name).length >= mostAgents) return refuse(Words.tooManyAgents)
  const agents = withEntry(
    replaced === undefined ? identity.agents : withoutEntry(identity.agents, replaced),
    agent,
    user
  )
  context.identity = changeAccount(
    { ...identity, agents },
    user,
    name === ""
      ? { mainAgent: { address: agent, validUntil } }
      : { extraAgents: [...without(extraAgents, name), { name, address: agent, validUntil }] }
  )
  return done
}

/** The minimum balance that a builder must have in perpetuals, in millionths of a dollar. */
const builderFunds = 100_000_000n
/** The maximum builder fee, in tenths of a basis point: one percent, which is the venue's limit for spot. */
const highestBuilderFee = 1_000n

/** Executes the action `approveBuilderFee`. `maxFeeRate` is a percentage: `0.1%` is 100 tenths of a basis point. */
export const approveBuilderFee = (
  context: ActionContext,
  { builder, maxFeeRate }: ActionOf<"approveBuilderFee">
): ActionDecision => {
  const { venue } = context
  const address = lowerCase(builder)
  const fee = (Decimals.parse(maxFeeRate.slice(0, -1), 6) ?? 0n) / 1_000n
  if (fee > highestBuilderFee) return refuse(Words.builderFeeTooHigh)
  const clearing = venue.state.accounts.get(address)?.clearings.get("")
  if (fee > 0n && (clearing === undefined || marginSums(venue, clearing).value < builderFunds)) {
    return refuse(Words.poorBuilder)
  }
  const account = actor(context)
  if (fee === 0n) account.builders.delete(address)
  else account.builders.set(address, fee)
  return done
}

/** Executes the action `registerReferrer`. */
export const registerReferrer = (context: ActionContext, { code }: ActionOf<"registerReferrer">): ActionDecision => {
  const { codes } = context.venue.state
  const account = actor(context)
  if (codes.has(code) || account.code !== undefined) return refuse(Words.codeTaken)
  if (code.trim() === "") return refuse(Words.invalidName)
  codes.set(code, account.address)
  account.code = code
  return done
}

/** Executes the action `setReferrer`. */
export const setReferrer = (context: ActionContext, { code }: ActionOf<"setReferrer">): ActionDecision => {
  const account = actor(context)
  const address = context.venue.state.codes.get(code)
  if (account.referrer !== undefined) return refuse(Words.referrerSet)
  if (address === undefined) return refuse(Words.codeUnknown)
  if (address === account.address) return refuse(Words.selfReferral)
  account.referrer = { code, address }
  return done
}

/** Executes the action `claimRewards`, which pays out the account's rewards from referrals and builder fees. */
export const claimRewards = (context: ActionContext): ActionDecision => {
  const account = actor(context)
  const rewards = account.rewards + account.builderRewards
  if (rewards === 0n) return refuse(Words.nothingToClaim)
  moveCash(context.venue.state, account, "", rewards)
  account.claimed += rewards
  account.rewards = 0n
  account.builderRewards = 0n
  return done
}

/** The price of one request, in millionths of a dollar. */
const requestPrice = 500n

/** Executes the action `reserveRequestWeight`, which buys more requests at 0.0005 dollars each. */
export const reserveRequests = (
  context: ActionContext,
  { destination, weight }: ActionOf<"reserveRequestWeight">
): ActionDecision => {
  const { venue } = context
  const account = actor(context)
  const cost = BigInt(weight) * requestPrice
  if (withdrawable(venue, account, "") < cost) return refuse(Words.insufficientWithdrawal)
  moveCash(venue.state, account, "", -cost)
  venue.state.house.feesUsd += cost
  const receiver: TradingAccount = destination === undefined || destination === null
    ? account
    : ensureAccount(venue.state, destination)
  receiver.reserved += weight
  return done
}

/** Executes the action `setDisplayName`. */
export const setDisplayName = (context: ActionContext, { displayName }: ActionOf<"setDisplayName">): ActionDecision => {
  actor(context).displayName = displayName
  return done
}

const abstractions = {
  i: "disabled",
  u: "unifiedAccount",
  p: "portfolioMargin",
  disabled: "disabled",
  unifiedAccount: "unifiedAccount",
  portfolioMargin: "portfolioMargin"
} as const

/**
 * Returns the account whose mode an action changes: the acting account, or one of its sub-accounts. Returns `undefined`
 * if `user` is neither.
 */
const target = (context: ActionContext, user: string): TradingAccount | undefined =>
  lowerCase(user) === context.user ? actor(context) : findSubAccount(context, user)

/**
 * Executes the actions `userSetAbstraction` and `agentSetAbstraction`. The sandbox stores the account's abstraction
 * mode, but always computes margin in the default mode.
 */
export const setAbstraction = (
  context: ActionContext,
  abstraction: keyof typeof abstractions,
  user: string = context.user
): ActionDecision => {
  const account = target(context, user)
  if (account === undefined) return refuse(Words.unknownSubAccount)
  account.abstraction = abstractions[abstraction]
  return done
}

/** Executes the actions `userDexAbstraction`, `agentEnableDexAbstraction` and `userPortfolioMargin`. */
export const switchAbstraction = (
  context: ActionContext,
  abstraction: "dexAbstraction" | "portfolioMargin",
  enabled = true,
  user: string = context.user
): ActionDecision => {
  const account = target(context, user)
  if (account === undefined) return refuse(Words.unknownSubAccount)
  account.abstraction = enabled ? abstraction : "default"
  return done
}

/** Executes the action `spotUser` with `toggleSpotDusting`: sets whether the account opts out of spot dusting. */
export const toggleDusting = (context: ActionContext, optOut: boolean): ActionDecision => {
  actor(context).optedOutOfDusting = optOut
  return done
}

/** Executes the action `linkStakingUser`: the trading account requests the link, and the staking account accepts it. */
export const linkStaking = (
  context: ActionContext,
  { isFinalize, user: other }: ActionOf<"linkStakingUser">
): ActionDecision => {
  const account = actor(context)
  const address = lowerCase(other)
  if (address === account.address) return refuse(Words.stakingLink)
  if (!isFinalize) {
    account.stakingLink = { user: address, isFinal: false }
    return done
  }
  const asking = context.venue.state.accounts.get(address)
  if (asking?.stakingLink?.user !== account.address) return refuse(Words.stakingLink)
  asking.stakingLink = { user: account.address, isFinal: true }
  return done
}

/** Executes the action `stakingLinkDisableTradingUser`. */
export const unlinkStaking = (
  context: ActionContext,
  { tradingUser }: ActionOf<"stakingLinkDisableTradingUser">
): ActionDecision => {
  const trading = context.venue.state.accounts.get(lowerCase(tradingUser))
  if (trading?.stakingLink?.user !== context.user) return refuse(Words.stakingLink)
  trading.stakingLink = undefined
  return done
}

const Signers = Schema.fromJsonString(Schema.NullOr(Schema.Struct({
  authorizedUsers: Schema.Array(Address),
  threshold: Schema.Natural
})))

const decodeSigners = Schema.decodeUnknownOption(Signers)

/**
 * Executes the action `convertToMultiSigUser`. If `signers` is the text `null`, the account becomes a normal account
 * again.
 */
export const convertToMultiSig = (
  context: ActionContext,
  { signers }: ActionOf<"convertToMultiSigUser">
): ActionDecision => {
  const rule = decodeSigners(signers)
  if (Option.isNone(rule)) return refuse(Words.invalidSigners)
  if (rule.value === null) {
    context.identity = changeAccount(context.identity, context.user, { multiSig: undefined })
    return done
  }
  const multiSig = {
    authorizedUsers: rule.value.authorizedUsers.map(lowerCase),
    threshold: rule.value.threshold
  }
  const refusal = multiSigRefusal(context.identity, context.user, multiSig)
  if (refusal !== undefined) return refuse(refusal)
  context.identity = changeAccount(context.identity, context.user, { multiSig })
  return done
}

/** Executes the action `evmUserModify`: selects the size of the blocks for the account's EVM transactions. */
export const selectBlocks = (
  context: ActionContext,
  { usingBigBlocks }: ActionOf<"evmUserModify">
): ActionDecision => {
  context.identity = changeAccount(context.identity, context.user, { usingBigBlocks })
  return done
}
