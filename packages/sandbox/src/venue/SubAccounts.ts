/** Sub-accounts: creates and renames them, and transfers between an account and its sub-accounts. */
import type { ActionOf } from "@trigate/domain/actions/ActionSchemas"
import { lowerCase } from "@trigate/domain/encoding/Hex"
import * as Result from "effect/Result"
import { moveSpot, moveUsd, parseToken, readAmount } from "../internal/venue/Balances.ts"
import * as Random from "../Seed.ts"
import type { ActionContext, ActionDecision } from "./ActionContext.ts"
import { actor, done, note, receiver, refuse } from "./ActionContext.ts"
import { printUsd } from "./Assets.ts"
import * as Decimals from "./Decimals.ts"
import type { TradingAccount } from "./TradingAccount.ts"
import { changeAccount } from "./VenueState.ts"
import * as Words from "./Words.ts"

/** Returns a sub-account of the acting account; `undefined` if the address is not a sub-account of that account. */
export const findSubAccount = ({ user, venue }: ActionContext, address: string): TradingAccount | undefined => {
  const account = venue.state.accounts.get(lowerCase(address))
  return account?.subAccount?.master === user ? account : undefined
}

const mostSubAccounts = 10
const isName = (name: string): boolean => name.trim() !== "" && name.length <= 16

/** Executes the action `createSubAccount`. */
export const create = (context: ActionContext, { name }: ActionOf<"createSubAccount">): ActionDecision => {
  const { user, venue } = context
  if (!isName(name)) return refuse(Words.invalidName)
  const own = [...venue.state.accounts.values()].filter(({ subAccount }) => subAccount?.master === user)
  if (own.length >= mostSubAccounts) return refuse(Words.tooManySubAccounts)
  const address = Random.hex(venue.seed, `subAccount/${user}/${own.length}`, 40)
  const account = receiver(context, address)
  if (account === undefined) return refuse(Words.tooManyAccounts)
  account.subAccount = { master: user, name }
  account.tierVolumes = actor(context).tierVolumes
  context.identity = changeAccount(context.identity, address, { leader: user })
  return Result.succeed({ type: "createSubAccount", data: address })
}

/** Executes the action `subAccountModify`, which renames a sub-account. */
export const rename = (
  context: ActionContext,
  { name, subAccountUser }: ActionOf<"subAccountModify">
): ActionDecision => {
  const account = findSubAccount(context, subAccountUser)
  if (account === undefined) return refuse(Words.unknownSubAccount)
  if (!isName(name)) return refuse(Words.invalidName)
  account.subAccount = { master: context.user, name }
  return done
}

/**
 * Executes the action `subAccountTransfer`, which moves dollars between the perpetuals of an account and the perpetuals
 * of its sub-account.
 */
export const transfer = (
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
export const spotTransfer = (
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
