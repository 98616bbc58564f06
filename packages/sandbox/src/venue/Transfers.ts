/** Transfers: between accounts, between spot and perpetuals, between dexes and sub-accounts, into and out of the venue. */
import type { ActionOf } from "@trigate/domain/actions/ActionSchemas"
import { type Address, lowerCase } from "@trigate/domain/encoding/Hex"
import type { SpotToken } from "@trigate/domain/info/SpotMeta"
import type { ActionContext, ActionDecision } from "./ActionContext.ts"
import { actor, done, note, open, receiver, refuse } from "./ActionContext.ts"
import { accountOrNew as readIdentity, changeAccount } from "./VenueState.ts"

import { hype, printUsd, usdc, usdDecimals, weiPerUsd } from "./Assets.ts"
import * as Decimals from "./Decimals.ts"
import { withdrawable } from "./Margin.ts"
import { available } from "./OrderLife.ts"
import { markPrice } from "./Quotes.ts"
import type { TradingAccount } from "./TradingState.ts"
import { addTo, ensureAccount, ensureBalance, moveCash } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import * as Words from "./Words.ts"

const day = 86_400_000

/** The venue's own dex of perpetuals. */
const ownDex = ""

/** Parses a positive amount. */
const readAmount = (text: string, decimals: number): bigint | undefined => {
  const amount = Decimals.parse(text, decimals)
  return amount === undefined || amount <= 0n ? undefined : amount
}

/** Returns the token that an action names. The text is `PURR:0x…`, or only the token's name or ID. */
const parseToken = ({ listing }: Venue, text: string): SpotToken | undefined => {
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
const takeSpot = (from: TradingAccount, token: number, wei: bigint): bigint | undefined => {
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

/** Executes the action `usdSend`. */
export const usdSend = (context: ActionContext, { amount, destination }: ActionOf<"usdSend">): ActionDecision => {
  const usd = readAmount(amount, usdDecimals)
  if (usd === undefined) return refuse(Words.invalidAmount)
  if (lowerCase(destination) === context.user) return refuse(Words.selfTransfer)
  const from = actor(context)
  const to = receiver(context, destination)
  if (to === undefined) return refuse(Words.tooManyAccounts)
  if (!moveUsd(context.venue, from, to, usd)) return refuse(Words.insufficientWithdrawal)
  open(context, destination)
  note(
    context,
    { type: "internalTransfer", usdc: printUsd(usd), user: from.address, destination: to.address, fee: "0.0" },
    from,
    to
  )
  return done
}

/**
 * Returns the value of an amount of a spot token (`wei`), in millionths of a dollar. Uses the mark price of the token's
 * USDC pair. Returns zero for a token without such a pair.
 */
const valueInUsd = (venue: Venue, { index }: SpotToken, wei: bigint): bigint => {
  if (index === usdc) return wei / weiPerUsd
  for (const asset of venue.listing.byId.values()) {
    if (asset.kind === "spot" && asset.base.index === index && asset.quote.index === usdc) {
      return wei * markPrice(venue, asset) / asset.weiPerLot / weiPerUsd
    }
  }
  return 0n
}

/** Executes the action `spotSend`. */
export const spotSend = (context: ActionContext, action: ActionOf<"spotSend">): ActionDecision => {
  const token = parseToken(context.venue, action.token)
  if (token === undefined) return refuse(Words.unknownToken(action.token))
  const wei = readAmount(action.amount, token.weiDecimals)
  if (wei === undefined) return refuse(Words.invalidAmount)
  if (lowerCase(action.destination) === context.user) return refuse(Words.selfTransfer)
  const from = actor(context)
  const to = receiver(context, action.destination)
  if (to === undefined) return refuse(Words.tooManyAccounts)
  if (!moveSpot(from, to, token.index, wei)) return refuse(Words.insufficientTransfer)
  open(context, action.destination)
  note(
    context,
    {
      type: "spotTransfer",
      token: token.name,
      amount: Decimals.print(wei, token.weiDecimals),
      usdcValue: printUsd(valueInUsd(context.venue, token, wei)),
      user: from.address,
      destination: to.address,
      fee: "0.0",
      nativeTokenFee: "0.0",
      nonce: context.nonce,
      feeToken: ""
    },
    from,
    to
  )
  return done
}

/** Moves dollars of an account between its spot and perpetual balances. */
export const classTransfer = (
  context: ActionContext,
  account: TradingAccount,
  usd: bigint,
  toPerp: boolean
): ActionDecision => {
  const { venue } = context
  if (toPerp) {
    if (takeSpot(account, usdc, usd * weiPerUsd) === undefined) return refuse(Words.insufficientTransfer)
    moveCash(venue.state, account, ownDex, usd)
  } else {
    if (withdrawable(venue, account, ownDex) < usd) return refuse(Words.insufficientWithdrawal)
    moveCash(venue.state, account, ownDex, -usd)
    ensureBalance(account, usdc).total += usd * weiPerUsd
  }
  note(context, { type: "accountClassTransfer", usdc: printUsd(usd), toPerp }, account)
  return done
}

/** Executes the action `usdClassTransfer`. The text `amount` can also name a sub-account: `10 subaccount:0x…`. */
export const usdClassTransfer = (
  context: ActionContext,
  { amount, toPerp }: ActionOf<"usdClassTransfer">
): ActionDecision => {
  const [text = "", sub] = amount.split(" subaccount:")
  const usd = readAmount(text, usdDecimals)
  if (usd === undefined) return refuse(Words.invalidAmount)
  const account = sub === undefined ? actor(context) : findSubAccount(context, sub)
  return account === undefined ? refuse(Words.unknownSubAccount) : classTransfer(context, account, usd, toPerp)
}

/** Returns a sub-account of the acting account; `undefined` if the address is not a sub-account of that account. */
export const findSubAccount = ({ user, venue }: ActionContext, address: string): TradingAccount | undefined => {
  const account = venue.state.accounts.get(lowerCase(address))
  return account?.subAccount?.master === user ? account : undefined
}

const isDex = ({ listing }: Venue, dex: string): boolean => dex === ownDex || listing.dexes.includes(dex)

const spotDex = "spot"

/**
 * Executes the actions `sendAsset` and `agentSendAsset`. `agentSendAsset` can move funds only between the account's own
 * balances.
 */
export const sendAsset = (
  context: ActionContext,
  action: Pick<
    ActionOf<"sendAsset">,
    "destination" | "sourceDex" | "destinationDex" | "token" | "amount" | "fromSubAccount"
  >
): ActionDecision => {
  const { venue } = context
  const { amount, destinationDex, fromSubAccount, sourceDex } = action
  for (const dex of [sourceDex, destinationDex]) {
    if (dex !== spotDex && !isDex(venue, dex)) return refuse(Words.unknownDex(dex))
  }
  const token = parseToken(venue, action.token)
  if (token === undefined) return refuse(Words.unknownToken(action.token))
  const wei = readAmount(amount, token.weiDecimals)
  const isOfPerps = sourceDex !== spotDex || destinationDex !== spotDex
  if (wei === undefined || isOfPerps && (token.index !== usdc || wei % weiPerUsd !== 0n)) {
    return refuse(Words.invalidAmount)
  }
  const from = fromSubAccount === undefined || fromSubAccount === null || fromSubAccount === ""
    ? actor(context)
    : findSubAccount(context, fromSubAccount)
  if (from === undefined) return refuse(Words.unknownSubAccount)
  const to = receiver(context, action.destination)
  if (to === undefined) return refuse(Words.tooManyAccounts)
  if (from === to && sourceDex === destinationDex) return refuse(Words.selfTransfer)
  const usd = wei / weiPerUsd
  if (sourceDex === spotDex && destinationDex === spotDex) {
    if (!moveSpot(from, to, token.index, wei)) return refuse(Words.insufficientTransfer)
  } else if (sourceDex === spotDex) {
    if (takeSpot(from, usdc, wei) === undefined) return refuse(Words.insufficientTransfer)
    moveCash(venue.state, to, destinationDex, usd)
  } else {
    if (withdrawable(venue, from, sourceDex) < usd) return refuse(Words.insufficientWithdrawal)
    moveCash(venue.state, from, sourceDex, -usd)
    if (destinationDex === spotDex) ensureBalance(to, usdc).total += wei
    else moveCash(venue.state, to, destinationDex, usd)
  }
  open(context, action.destination)
  note(
    context,
    {
      type: "send",
      user: from.address,
      destination: to.address,
      sourceDex,
      destinationDex,
      token: token.name,
      amount: Decimals.print(wei, token.weiDecimals),
      usdcValue: printUsd(valueInUsd(venue, token, wei)),
      fee: "0.0",
      nativeTokenFee: "0.0",
      nonce: context.nonce,
      feeToken: ""
    },
    from,
    to
  )
  return done
}

/** The fee of a withdrawal, one dollar, in millionths of a dollar. */
const withdrawalFee = 1_000_000n

/** Executes the action `withdraw3`: debits the amount, and pays out the amount minus the fee. */
export const withdraw = (context: ActionContext, { amount }: ActionOf<"withdraw3">): ActionDecision => {
  const { venue } = context
  const usd = readAmount(amount, usdDecimals)
  if (usd === undefined || usd <= withdrawalFee) return refuse(Words.invalidAmount)
  const account = actor(context)
  if (withdrawable(venue, account, ownDex) < usd) return refuse(Words.insufficientWithdrawal)
  moveCash(venue.state, account, ownDex, -usd)
  venue.state.house.feesUsd += withdrawalFee
  addTo(venue.state.deposited, usdc, -(usd - withdrawalFee) * weiPerUsd)
  note(
    context,
    { type: "withdraw", usdc: printUsd(usd - withdrawalFee), nonce: context.nonce, fee: printUsd(withdrawalFee) },
    account
  )
  return done
}

/**
 * Executes the action `sendToEvmWithData`: debits the spot balance. The sandbox's EVM does not execute the contract
 * call.
 */
export const sendToEvm = (context: ActionContext, action: ActionOf<"sendToEvmWithData">): ActionDecision => {
  const token = parseToken(context.venue, action.token)
  if (token === undefined) return refuse(Words.unknownToken(action.token))
  const wei = readAmount(action.amount, token.weiDecimals)
  if (wei === undefined || action.sourceDex !== spotDex) return refuse(Words.invalidAmount)
  const account = actor(context)
  if (takeSpot(account, token.index, wei) === undefined) return refuse(Words.insufficientTransfer)
  addTo(context.venue.state.deposited, token.index, -wei)
  note(
    context,
    {
      type: "send",
      user: account.address,
      destination: action.destinationRecipient,
      sourceDex: spotDex,
      destinationDex: "",
      token: token.name,
      amount: Decimals.print(wei, token.weiDecimals),
      usdcValue: "0.0",
      fee: "0.0",
      nativeTokenFee: "0.0",
      nonce: context.nonce,
      feeToken: ""
    },
    account
  )
  return done
}

/**
 * Executes the action `subAccountTransfer`, which moves dollars between the perpetuals of an account and the perpetuals
 * of its sub-account.
 */
export const subAccountTransfer = (
  context: ActionContext,
  { isDeposit, subAccountUser, usd: amount }: ActionOf<"subAccountTransfer">
): ActionDecision => {
  const sub = findSubAccount(context, subAccountUser)
  if (sub === undefined) return refuse(Words.unknownSubAccount)
  const master = actor(context)
  const usd = BigInt(amount)
  const [from, to] = isDeposit ? [master, sub] : [sub, master]
  if (usd === 0n) return refuse(Words.invalidAmount)
  if (!moveUsd(context.venue, from, to, usd)) return refuse(Words.insufficientWithdrawal)
  note(
    context,
    { type: "subAccountTransfer", usdc: printUsd(usd), user: from.address, destination: to.address },
    from,
    to
  )
  return done
}

/** Executes the action `subAccountSpotTransfer`. */
export const subAccountSpotTransfer = (
  context: ActionContext,
  { amount, isDeposit, subAccountUser, token: name }: ActionOf<"subAccountSpotTransfer">
): ActionDecision => {
  const sub = findSubAccount(context, subAccountUser)
  if (sub === undefined) return refuse(Words.unknownSubAccount)
  const token = parseToken(context.venue, name)
  if (token === undefined) return refuse(Words.unknownToken(name))
  const wei = readAmount(amount, token.weiDecimals)
  if (wei === undefined) return refuse(Words.invalidAmount)
  const master = actor(context)
  const [from, to] = isDeposit ? [master, sub] : [sub, master]
  if (!moveSpot(from, to, token.index, wei)) return refuse(Words.insufficientTransfer)
  note(
    context,
    {
      type: "spotTransfer",
      token: token.name,
      amount: Decimals.print(wei, token.weiDecimals),
      usdcValue: "0.0",
      user: from.address,
      destination: to.address,
      fee: "0.0",
      nativeTokenFee: "0.0",
      nonce: null
    },
    from,
    to
  )
  return done
}

/** Executes the action `cDeposit`, which moves HYPE from the spot balance to the staking balance. */
export const stake = (context: ActionContext, { wei }: ActionOf<"cDeposit">): ActionDecision => {
  const account = actor(context)
  if (wei === 0n || takeSpot(account, hype, wei) === undefined) return refuse(Words.insufficientTransfer)
  addTo(context.venue.state.deposited, hype, -wei)
  const { stake } = readIdentity(context.identity, context.user)
  context.identity = changeAccount(context.identity, context.user, { stake: stake + wei })
  note(
    context,
    { type: "cStakingTransfer", token: "HYPE", amount: Decimals.print(wei, 8), isDeposit: true },
    account
  )
  return done
}

/** The duration of a withdrawal from staking to spot, in milliseconds. */
export const unstakingTime = 7 * day

/**
 * Executes the action `cWithdraw`, which moves HYPE from the staking balance to the spot balance. The HYPE arrives
 * after seven days. At most five withdrawals can be pending.
 */
export const unstake = (context: ActionContext, { wei }: ActionOf<"cWithdraw">): ActionDecision => {
  const account = actor(context)
  const { stake } = readIdentity(context.identity, context.user)
  if (wei === 0n || stake < wei || account.unstaking.length >= 5) return refuse(Words.insufficientStaking)
  context.identity = changeAccount(context.identity, context.user, { stake: stake - wei })
  addTo(context.venue.state.deposited, hype, wei)
  account.unstaking = [...account.unstaking, { wei, at: context.venue.state.now + unstakingTime }]
  note(
    context,
    { type: "cStakingTransfer", token: "HYPE", amount: Decimals.print(wei, 8), isDeposit: false },
    account
  )
  return done
}

/** Adds initial dollars to an account's perpetuals, without a ledger entry. */
export const endowUsd = (venue: Venue, address: Address, usd: bigint): void => {
  moveCash(venue.state, ensureAccount(venue.state, address), ownDex, usd)
  addTo(venue.state.deposited, usdc, usd * weiPerUsd)
}

/** Deposits dollars from outside the venue into an account's perpetuals. */
export const depositUsd = (venue: Venue, address: Address, usd: bigint): void => {
  endowUsd(venue, address, usd)
  note({ venue }, { type: "deposit", usdc: printUsd(usd) }, ensureAccount(venue.state, address))
}

/** Deposits wei of a spot token from outside the venue. */
export const depositSpot = (venue: Venue, address: Address, token: number, wei: bigint): void => {
  const account = ensureAccount(venue.state, address)
  ensureBalance(account, token).total += wei
  addTo(venue.state.deposited, token, wei)
}
