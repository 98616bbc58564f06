/** Transfers: between accounts, between spot and perpetuals, between dexes, into and out of the venue. */
import type { ActionOf } from "@trigate/domain/actions/ActionSchemas"
import { type Address, lowerCase } from "@trigate/domain/encoding/Hex"
import type { SpotToken } from "@trigate/domain/info/SpotMeta"
import { moveSpot, moveUsd, ownDex, parseToken, readAmount, takeSpot } from "../internal/venue/Balances.ts"
import type { ActionContext, ActionDecision } from "./ActionContext.ts"
import { actor, done, note, open, receiver, refuse } from "./ActionContext.ts"
import { findUsdPair, printUsd, usdc, usdDecimals, weiPerUsd } from "./Assets.ts"
import * as Decimals from "./Decimals.ts"
import { withdrawable } from "./Margin.ts"
import { markPrice } from "./Quotes.ts"
import { findSubAccount } from "./SubAccounts.ts"
import type { TradingAccount } from "./TradingAccount.ts"
import { ensureBalance } from "./TradingAccount.ts"
import { addTo, ensureAccount, moveCash } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import * as Words from "./Words.ts"

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
  const pair = findUsdPair(venue.listing, index)
  return pair === undefined ? 0n : wei * markPrice(venue, pair) / pair.weiPerLot / weiPerUsd
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
