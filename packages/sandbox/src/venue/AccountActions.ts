/**
 * Actions that change an account: its settings, its signers, its leverage and margin, its stake and its sub-accounts.
 */
import type { ActionType } from "@trigate/domain/actions/Action"
import { Address, lowerCase } from "@trigate/domain/encoding/Encoding"
import type { ActionOf } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Random from "../Seed.ts"
import { abs, divideUp, max, parseDecimal, type Perpetual, printDecimal, printUsd, usdc } from "./Assets.ts"
import { weiPerUsd } from "./Assets.ts"
import * as Margin from "./Margin.ts"
import { moveSpot, moveUsd, parseToken, readAmount, spotRefusal, takeSpot } from "./Matching.ts"
import { addTo, append, ensureAccount, ensureClearing, isUnified, moveCash, sweep } from "./TradingState.ts"
import type { LedgerEntry, TradingAccount } from "./TradingState.ts"
import { emit, type Venue } from "./Venue.ts"
import * as Words from "./VenueRefusal.ts"
import * as VenueState from "./VenueState.ts"

/** The context of an action: the venue, the acting account, and the action's nonce. */
export interface ActionContext {
  readonly venue: Venue
  /**
   * The accounts, API wallets and stake: all state except trading. To change this state, an action assigns a new value
   * to `identity`.
   */
  identity: VenueState.VenueState
  /** The acting account. */
  readonly user: Address
  readonly nonce: number
  /**
   * The time at which the action was sent, by the sender's clock. The times in an action are times of that clock, which
   * differs from the venue's if the venue's clock is stopped or was advanced.
   */
  readonly sentAt: number
}

/** Converts a time of the sender's clock to the venue's time. */
export const toVenueTime = ({ sentAt, venue }: ActionContext, time: number): number => venue.state.now + time - sentAt

/** The venue's response to an accepted action. */
export interface ActionResponse {
  readonly type: string
  readonly data?: unknown
}

/** The venue's response to an accepted action, or the text with which the venue rejects the action. */
export type ActionDecision = Result.Result<ActionResponse, string>

/** Executes an action of one type. */
export type Handler<Type extends ActionType> = (context: ActionContext, action: ActionOf<Type>) => ActionDecision

/** The response of most actions. */
export const done: ActionDecision = Result.succeed({ type: "default" })

/** Rejects an action with a text. */
export const refuse = (text: string): ActionDecision => Result.fail(text)

/** Returns the trading account of the acting user. */
export const actor = ({ user, venue }: ActionContext): TradingAccount => ensureAccount(venue.state, user)

/**
 * Returns the account of an address; creates the account if the address has none. Returns `undefined` if it cannot be
 * created because the venue already has the maximum number of accounts.
 */
export const receiver = ({ venue }: ActionContext, address: Address): TradingAccount | undefined =>
  venue.state.accounts.has(lowerCase(address)) || venue.state.accounts.size < venue.limits.accounts
    ? ensureAccount(venue.state, address)
    : undefined

/** Returns the account of an address that receives money. Registers the account if the address has none. */
export const open = (context: ActionContext, address: Address): TradingAccount => {
  context.identity = VenueState.changeAccount(context.identity, address, {})
  return ensureAccount(context.venue.state, address)
}

/** Maximum number of ledger entries (deposits, withdrawals and transfers) stored for an account. */
const remembered = 2_000

/** Adds an entry to the ledger (deposits, withdrawals and transfers) of each of the accounts. */
export const note = (
  { venue }: Pick<ActionContext, "venue">,
  accounts: ReadonlyArray<TradingAccount>,
  delta: LedgerEntry["delta"]
): void => {
  const entry = { time: venue.state.now, hash: venue.hash, delta }
  for (const account of new Set(accounts)) {
    append(account.ledger, entry, remembered)
    emit(venue, { kind: "ledger", user: account.address, entry })
    emit(venue, { kind: "account", user: account.address })
  }
}

/** Returns the refusal of an action for which an account has not traded enough. `required` is in whole dollars. */
export const volumeRefusal = (
  { earlierVolume, volume }: TradingAccount,
  action: string,
  required: number
): string | undefined => {
  const traded = volume + earlierVolume
  return traded < BigInt(required) * 1_000_000n ? Words.volumeTooLow(action, required, printUsd(traded)) : undefined
}

/** Returns a sub-account of the acting account; `undefined` if the address is not a sub-account of that account. */
export const findSubAccount = ({ user, venue }: ActionContext, address: string): TradingAccount | undefined => {
  const account = venue.state.accounts.get(lowerCase(address))
  return account?.subAccount?.master === user ? account : undefined
}

/** The volume in whole dollars that an account needs for sub-accounts, and for each one after the tenth. */
const subAccountVolume = 100_000
const moreSubAccountsVolume = 100_000_000

/** Returns the maximum number of sub-accounts: 10, plus one for each 100 million dollars of volume, at most 50. */
const mostSubAccounts = ({ earlierVolume, volume }: TradingAccount): number =>
  Math.min(50, 10 + Number((volume + earlierVolume) / BigInt(moreSubAccountsVolume) / 1_000_000n))

const listSubAccounts = ({ user, venue }: ActionContext): ReadonlyArray<TradingAccount> =>
  [...venue.state.accounts.values()].filter(({ subAccount }) => subAccount?.master === user)

const isName = (name: string): boolean => name.trim() !== "" && name.length <= 16

/** Executes the action `createSubAccount`. */
export const create: Handler<"createSubAccount"> = (context, { name }) => {
  const { user, venue } = context
  if (!isName(name)) return refuse(Words.invalidName)
  const untraded = volumeRefusal(actor(context), "create sub-accounts", subAccountVolume)
  if (untraded !== undefined) return refuse(untraded)
  const own = listSubAccounts(context)
  if (own.length >= mostSubAccounts(actor(context))) return refuse(Words.tooManySubAccounts)
  const address = Random.hex(venue.seed, `subAccount/${user}/${own.length}`, 40)
  const account = receiver(context, address)
  if (account === undefined) return refuse(Words.tooManyAccounts)
  account.subAccount = { master: user, name }
  account.tierVolumes = actor(context).tierVolumes
  context.identity = VenueState.changeAccount(context.identity, address, { leader: user })
  return Result.succeed({ type: "createSubAccount", data: address })
}

/** Executes the action `subAccountModify`, which renames a sub-account. */
export const rename: Handler<"subAccountModify"> = (context, { name, subAccountUser }) => {
  const account = findSubAccount(context, subAccountUser)
  if (account === undefined) return refuse(Words.unknownSubAccount(subAccountUser, context.user))
  if (!isName(name)) return refuse(Words.invalidName)
  account.subAccount = { master: context.user, name }
  return done
}

const transferRefusal = ({ user }: ActionContext, sub: string, isDeposit: boolean): string =>
  isDeposit ? Words.subAccountTransfer(user, sub) : Words.subAccountTransfer(sub, user)

/**
 * Executes the action `subAccountTransfer`, which moves dollars between the perpetuals of an account and the perpetuals
 * of its sub-account.
 */
export const transfer: Handler<"subAccountTransfer"> = (context, { isDeposit, subAccountUser, usd: amount }) => {
  const sub = findSubAccount(context, subAccountUser)
  if (sub === undefined) return refuse(transferRefusal(context, subAccountUser, isDeposit))
  const master = actor(context)
  const usd = BigInt(amount)
  const [from, to] = isDeposit ? [master, sub] : [sub, master]
  if (usd === 0n) return refuse(Words.invalidAmount)
  if (!moveUsd(context.venue, from, to, usd)) return refuse(Words.insufficientWithdrawal)
  note(context, [from, to], {
    type: "subAccountTransfer",
    usdc: printUsd(usd),
    user: from.address,
    destination: to.address
  })
  return done
}

/** Executes the action `subAccountSpotTransfer`. */
export const spotTransfer: Handler<"subAccountSpotTransfer"> = (
  context,
  { amount, isDeposit, subAccountUser, token: name }
) => {
  const sub = findSubAccount(context, subAccountUser)
  if (sub === undefined) return refuse(transferRefusal(context, subAccountUser, isDeposit))
  const token = parseToken(context.venue, name)
  if (token === undefined) return refuse(Words.unknownToken(name))
  const wei = readAmount(amount, token.weiDecimals)
  if (wei === undefined) return refuse(Words.invalidAmount)
  const master = actor(context)
  const [from, to] = isDeposit ? [master, sub] : [sub, master]
  if (!moveSpot(context.venue, from, to, token.index, wei)) {
    return refuse(spotRefusal(context.venue, token.index, from, to))
  }
  note(context, [from, to], {
    type: "spotTransfer",
    token: token.name,
    amount: printDecimal(wei, token.weiDecimals),
    usdcValue: "0.0",
    user: from.address,
    destination: to.address,
    fee: "0.0",
    nativeTokenFee: "0.0",
    nonce: null
  })
  return done
}

const day = 86_400_000

/** Default and maximum validity of an API wallet, in days. */
const agentDays = 90
const mostAgentDays = 180

/** Maximum number of named API wallets of an account, and of additional ones for each sub-account. */
const mostAgents = 3
const agentsOfSubAccount = 2

/** Matches the suffix of an API wallet's name. The suffix contains the time until which the wallet is valid. */
const untilShape = / valid_until ([0-9]{1,16})$/u

const zeroAddress = `0x${"0".repeat(40)}`

const without = (agents: VenueState.Account["extraAgents"], name: string): VenueState.Account["extraAgents"] =>
  agents.filter((agent) => agent.name !== name)

/**
 * Executes the action `approveAgent`. A named API wallet replaces the account's API wallet of the same name. An unnamed
 * API wallet replaces the previous unnamed one.
 */
export const approveAgent: Handler<"approveAgent"> = (context, { agentAddress, agentName }) => {
  const { user, venue: { state: { now } } } = context
  const agent = lowerCase(agentAddress)
  const previousUser = context.identity.agents.get(agent) ?? user
  const identity = VenueState.withoutExpiredAgents(
    VenueState.withoutExpiredAgents(context.identity, user, now),
    previousUser,
    now
  )
  const given = agentName ?? ""
  const until = untilShape.exec(given)?.[1]
  const name = given.replace(untilShape, "")
  const validUntil = until === undefined ? now + agentDays * day : toVenueTime(context, Number(until))
  const { extraAgents, mainAgent } = VenueState.accountOrNew(identity, user)
  const replaced = name === "" ? mainAgent?.address : extraAgents.find((known) => known.name === name)?.address
  if (agent === zeroAddress) {
    const agents = replaced === undefined ? identity.agents : VenueState.withoutEntry(identity.agents, replaced)
    const fields = name === "" ? { mainAgent: undefined } : { extraAgents: without(extraAgents, name) }
    context.identity = VenueState.changeAccount({ ...identity, agents }, user, fields)
    return done
  }
  if (validUntil < now || validUntil > now + mostAgentDays * day) return refuse(Words.agentExpired)
  if (identity.accounts.has(agent)) return refuse(Words.agentIsUser)
  if (identity.agents.has(agent) && agent !== replaced) return refuse(Words.agentUsed)
  const limit = mostAgents + agentsOfSubAccount * listSubAccounts(context).length
  if (name !== "" && without(extraAgents, name).length >= limit) return refuse(Words.tooManyAgents(limit))
  const agents = VenueState.withEntry(
    replaced === undefined ? identity.agents : VenueState.withoutEntry(identity.agents, replaced),
    agent,
    user
  )
  context.identity = VenueState.changeAccount(
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

/**
 * Executes the action `approveBuilderFee`. `maxFeeRate` is a percentage: `0.1%` is 100 tenths of a basis point.
 *
 * Programs contain the addresses of their builders. The sandbox therefore funds an address that the venue does not know
 * with the balance that a builder must have.
 */
export const approveBuilderFee: Handler<"approveBuilderFee"> = (context, { builder, maxFeeRate }) => {
  const { venue } = context
  const address = lowerCase(builder)
  const fee = (parseDecimal(maxFeeRate.slice(0, -1), 6) ?? 0n) / 1_000n
  if (fee > highestBuilderFee) return refuse(Words.builderFeeTooHigh)
  if (fee > 0n && !context.identity.accounts.has(address) && receiver(context, address) !== undefined) {
    moveCash(venue.state, open(context, address), "", builderFunds)
    addTo(venue.state.deposited, usdc, builderFunds * weiPerUsd)
  }
  const clearing = venue.state.accounts.get(address)?.clearings.get("")
  if (fee > 0n && (clearing === undefined || Margin.marginSums(venue, clearing).value < builderFunds)) {
    return refuse(Words.poorBuilder)
  }
  const account = actor(context)
  if (fee === 0n) account.builders.delete(address)
  else account.builders.set(address, fee)
  return done
}

/** The volume in whole dollars that an account needs for a referral code. */
const referrerVolume = 10_000

/** Executes the action `registerReferrer`. */
export const registerReferrer: Handler<"registerReferrer"> = (context, { code }) => {
  const { codes } = context.venue.state
  const account = actor(context)
  const untraded = volumeRefusal(account, "generate referral code", referrerVolume)
  if (untraded !== undefined) return refuse(untraded)
  if (codes.has(code) || account.code !== undefined) return refuse(Words.codeTaken)
  if (code.trim() === "") return refuse(Words.invalidName)
  codes.set(code, account.address)
  account.code = code
  return done
}

/** Executes the action `setReferrer`. */
export const setReferrer: Handler<"setReferrer"> = (context, { code }) => {
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
export const reserveRequests: Handler<"reserveRequestWeight"> = (context, { destination, weight }) => {
  const { venue } = context
  const account = actor(context)
  const cost = BigInt(weight) * requestPrice
  if (Margin.withdrawable(venue, account, "") < cost) return refuse(Words.insufficientWithdrawal)
  moveCash(venue.state, account, "", -cost)
  venue.state.house.feesUsd += cost
  ensureAccount(venue.state, destination ?? account.address).reserved += weight
  return done
}

/** Executes the action `setDisplayName`. */
export const setDisplayName: Handler<"setDisplayName"> = (context, { displayName }) => {
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

/** The account value, or the traded volume, that portfolio margin requires: in millionths of a dollar. */
const portfolioValue = 10_000_000_000n
const portfolioVolume = 5_000_000_000_000n

/**
 * Sets the abstraction mode of an account. In the modes `unifiedAccount` and `portfolioMargin` the spot balance of USDC
 * is the collateral of all perpetuals. They cannot be left while there are positions.
 */
const setMode = (venue: Venue, account: TradingAccount, mode: TradingAccount["abstraction"]): ActionDecision => {
  if (
    mode === "portfolioMargin" && Margin.accountValue(venue, account).all < portfolioValue &&
    account.volume + account.earlierVolume < portfolioVolume
  ) return refuse(Words.portfolioMarginThreshold)
  const hasPositions = [...account.clearings.values()].some(({ positions }) => positions.size > 0)
  const before = account.abstraction
  const wasUnified = isUnified(account)
  account.abstraction = mode
  const hasLoan = (account.spot.get(usdc)?.total ?? 0n) < 0n
  if (wasUnified && !isUnified(account) && hasPositions || before === "portfolioMargin" && mode !== before && hasLoan) {
    account.abstraction = before
    return refuse(Words.abstractionTransition)
  }
  for (const dex of account.clearings.keys()) sweep(venue.state, account, dex)
  emit(venue, { kind: "account", user: account.address })
  return done
}

/** Executes the action `userSetAbstraction`. */
export const setAbstraction: Handler<"userSetAbstraction"> = (context, { abstraction, user }) => {
  const account = target(context, user)
  return account === undefined
    ? refuse(Words.unknownSubAccount(user, context.user))
    : setMode(context.venue, account, abstractions[abstraction])
}

/** The modes from which an account can change to DEX abstraction. */
const separateModes: ReadonlySet<TradingAccount["abstraction"]> = new Set(["default", "disabled", "dexAbstraction"])

/** Executes the actions `userDexAbstraction` and `userPortfolioMargin`. */
export const switchAbstraction = (
  context: ActionContext,
  mode: "dexAbstraction" | "portfolioMargin",
  { enabled, user }: Pick<ActionOf<"userDexAbstraction">, "enabled" | "user">
): ActionDecision => {
  const account = target(context, user)
  if (account === undefined) return refuse(Words.unknownSubAccount(user, context.user))
  if (mode === "dexAbstraction" && !separateModes.has(account.abstraction)) return refuse(Words.abstractionTransition)
  return setMode(context.venue, account, enabled ? mode : "default")
}

/**
 * Executes the actions `agentSetAbstraction` and `agentEnableDexAbstraction`. An API wallet can only change the initial
 * mode, to the unified account or to DEX abstraction.
 */
export const setAgentAbstraction = (
  context: ActionContext,
  abstraction: ActionOf<"agentSetAbstraction">["abstraction"] | "dexAbstraction"
): ActionDecision => {
  const account = actor(context)
  const mode = abstraction === "dexAbstraction" ? abstraction : abstractions[abstraction]
  return account.abstraction !== "default" || mode === "disabled" || mode === "portfolioMargin"
    ? refuse(Words.abstractionTransition)
    : setMode(context.venue, account, mode)
}

/** Executes the action `spotUser` with `toggleSpotDusting`: sets whether the account opts out of spot dusting. */
export const toggleDusting = (context: ActionContext, optOut: boolean): ActionDecision => {
  actor(context).optedOutOfDusting = optOut
  return done
}

const sumStake = ({ identity }: ActionContext, address: Address): bigint => {
  const { delegations, stake } = VenueState.accountOrNew(identity, address)
  return [...delegations.values()].reduce((sum, { wei }) => sum + wei, stake)
}

/**
 * Executes the action `linkStakingUser`: the trading account requests the link, and the staking account, which has
 * stake, accepts it.
 */
export const linkStaking: Handler<"linkStakingUser"> = (context, { isFinalize, user: other }) => {
  const account = actor(context)
  const address = lowerCase(other)
  if (address === account.address) return refuse(Words.stakingLink("cannot link to self"))
  if (!isFinalize) {
    if (sumStake(context, address) === 0n) return refuse(Words.stakingLink("the staking user has no stake"))
    account.stakingLink = { user: address, isFinal: false }
    return done
  }
  const asking = context.venue.state.accounts.get(address)
  if (asking?.stakingLink?.user !== account.address) return refuse(Words.stakingLink("no link was requested"))
  asking.stakingLink = { user: account.address, isFinal: true }
  return done
}

/** Executes the action `stakingLinkDisableTradingUser`. */
export const unlinkStaking: Handler<"stakingLinkDisableTradingUser"> = (context, { tradingUser }) => {
  const trading = context.venue.state.accounts.get(lowerCase(tradingUser))
  if (trading?.stakingLink?.user !== context.user) return refuse(Words.stakingLink("the users are not linked"))
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
export const convertToMultiSig: Handler<"convertToMultiSigUser"> = (context, { signers }) => {
  const rule = decodeSigners(signers)
  if (Option.isNone(rule)) return refuse(Words.invalidSigners)
  if (rule.value === null) {
    context.identity = VenueState.changeAccount(context.identity, context.user, { multiSig: undefined })
    return done
  }
  const multiSig = { ...rule.value, authorizedUsers: rule.value.authorizedUsers.map(lowerCase) }
  const refusal = VenueState.multiSigRefusal(context.identity, context.user, multiSig)
  if (refusal !== undefined) return refuse(refusal)
  context.identity = VenueState.changeAccount(context.identity, context.user, { multiSig })
  return done
}

/** Executes the action `evmUserModify`: selects the size of the blocks for the account's EVM transactions. */
export const selectBlocks: Handler<"evmUserModify"> = (context, { usingBigBlocks }) => {
  context.identity = VenueState.changeAccount(context.identity, context.user, { usingBigBlocks })
  return done
}

/** Decimals of the leverage in `topUpIsolatedOnlyMargin`. */
const leverageDecimals = 4

const findPerpetual = ({ listing }: Venue, id: number): Perpetual | undefined => {
  const asset = listing.byId.get(id)
  return asset?.kind === "perpetual" ? asset : undefined
}

/** Executes the action `updateLeverage`. */
export const updateLeverage: Handler<"updateLeverage"> = (context, { asset: id, isCross, leverage }) => {
  const { venue } = context
  const asset = findPerpetual(venue, id)
  if (asset === undefined) return refuse(Words.unknownAsset(id))
  if (leverage < 1 || leverage > asset.maxLeverage) return refuse(Words.invalidLeverage)
  if (isCross && asset.market.marginMode !== undefined) return refuse(Words.crossNotAllowed)
  const account = actor(context)
  const clearing = ensureClearing(account, asset.dex)
  const position = clearing.positions.get(asset.coin)
  if (position !== undefined && position.isCross !== isCross) return refuse(Words.leverageType)
  const before = account.leverage.get(asset.coin)
  const { value } = Margin.leverageSetting(account, asset)
  const held = position?.leverage
  account.leverage.set(asset.coin, { isCross, value: leverage })
  if (position !== undefined) position.leverage = leverage
  const isLower = leverage < (held ?? value)
  const restore = () => {
    if (before === undefined) account.leverage.delete(asset.coin)
    else account.leverage.set(asset.coin, before)
    if (position !== undefined && held !== undefined) position.leverage = held
  }
  if (isLower && position?.isCross === false) {
    const mark = Margin.markPrice(venue, asset)
    if (position.raw + position.size * mark < divideUp(abs(position.size) * mark, BigInt(leverage))) {
      restore()
      return refuse(Words.isolatedLeverage)
    }
  } else if (isLower) {
    const { needed, value } = Margin.backing(venue, account, asset.dex)
    if (needed > 0n && value < needed) {
      restore()
      return refuse(Words.crossLeverage)
    }
  }
  emit(venue, { kind: "account", user: account.address })
  return done
}

/**
 * Executes the action `updateIsolatedMargin`, which adds margin to an isolated position or removes margin from it. The
 * amount is in millionths of a dollar.
 */
export const updateIsolatedMargin: Handler<"updateIsolatedMargin"> = (context, { asset: id, ntli }) => {
  const { venue } = context
  const asset = findPerpetual(venue, id)
  if (asset === undefined) return refuse(Words.unknownAsset(id))
  const account = actor(context)
  const clearing = ensureClearing(account, asset.dex)
  const position = clearing.positions.get(asset.coin)
  const change = BigInt(ntli)
  if (change === 0n) return refuse(Words.zeroMargin)
  if (position === undefined) return refuse(Words.emptyPosition)
  if (position.isCross) return refuse(Words.notIsolated)
  if (change > 0n && Margin.freeMargin(venue, account, asset.dex) < change) return refuse(Words.marginIncrease)
  const mark = Margin.markPrice(venue, asset)
  const notional = abs(position.size) * mark
  // the remaining margin must cover both the initial margin and a tenth of the notional value, as the venue requires
  // for transfers
  const kept = max(divideUp(notional, BigInt(position.leverage)), notional / 10n)
  if (change < 0n && asset.market.marginMode === "strictIsolated") return refuse(Words.strictReduction)
  if (change < 0n && position.raw + position.size * mark + change < kept) return refuse(Words.marginReduction)
  clearing.cash -= change
  position.raw += change
  sweep(venue.state, account, asset.dex)
  emit(venue, { kind: "account", user: account.address })
  return done
}

/**
 * Executes the action `topUpIsolatedOnlyMargin`, which adds enough margin to a strictly isolated position to reduce its
 * leverage to the requested leverage.
 */
export const topUp: Handler<"topUpIsolatedOnlyMargin"> = (context, { asset: id, leverage }) => {
  const { venue } = context
  const asset = findPerpetual(venue, id)
  if (asset === undefined) return refuse(Words.unknownAsset(id))
  if (asset.market.marginMode !== "strictIsolated") return refuse(Words.notStrictIsolated)
  const position = ensureClearing(actor(context), asset.dex).positions.get(asset.coin)
  if (position === undefined) return refuse(Words.emptyPosition)
  const target = parseDecimal(leverage, leverageDecimals) ?? 0n
  if (target <= 0n) return refuse(Words.invalidLeverage)
  const mark = Margin.markPrice(venue, asset)
  const wanted = divideUp(abs(position.size) * mark * 10n ** BigInt(leverageDecimals), target)
  const change = wanted - position.raw - position.size * mark
  return change <= 0n
    ? refuse(Words.zeroMargin)
    : updateIsolatedMargin(context, { type: "updateIsolatedMargin", asset: id, isBuy: true, ntli: Number(change) })
}

/** Executes the action `cDeposit`, which moves HYPE from the spot balance to the staking balance. */
export const stake: Handler<"cDeposit"> = (context, { wei }) => {
  const account = actor(context)
  if (wei === 0n || takeSpot(context.venue, account, context.venue.listing.hype, wei) === undefined) {
    return refuse(Words.insufficientTransfer)
  }
  addTo(context.venue.state.deposited, context.venue.listing.hype, -wei)
  const { stake } = VenueState.accountOrNew(context.identity, context.user)
  context.identity = VenueState.changeAccount(context.identity, context.user, { stake: stake + wei })
  note(context, [account], { type: "cStakingTransfer", token: "HYPE", amount: printDecimal(wei, 8), isDeposit: true })
  return done
}

/** Returns the undelegated stake of the acting account, in wei of HYPE. It pays priority fees. */
export const undelegated = (context: ActionContext) => {
  const available = () => VenueState.accountOrNew(context.identity, context.user).stake
  return {
    available,
    burn: (wei: bigint): void => {
      context.identity = VenueState.changeAccount(context.identity, context.user, { stake: available() - wei })
    }
  }
}

/** The duration of a withdrawal from staking to spot, in milliseconds. */
export const unstakingTime = 7 * day

/**
 * Executes the action `cWithdraw`, which moves HYPE from the staking balance to the spot balance. The HYPE arrives
 * after seven days. At most five withdrawals can be pending.
 */
export const unstake: Handler<"cWithdraw"> = (context, { wei }) => {
  const account = actor(context)
  const { stake } = VenueState.accountOrNew(context.identity, context.user)
  if (wei === 0n || stake < wei || account.unstaking.length >= 5) return refuse(Words.insufficientStaking)
  context.identity = VenueState.changeAccount(context.identity, context.user, { stake: stake - wei })
  addTo(context.venue.state.deposited, context.venue.listing.hype, wei)
  account.unstaking = [...account.unstaking, { wei, at: context.venue.state.now + unstakingTime }]
  note(context, [account], { type: "cStakingTransfer", token: "HYPE", amount: printDecimal(wei, 8), isDeposit: false })
  return done
}
