/** Transfers between accounts, between spot and perpetuals, into and out of vaults and the venue. */
import { type Address, lowerCase } from "@trigate/domain/encoding/Encoding"
import type { SpotToken } from "@trigate/domain/info/Market"
import type { ActionOf } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as Result from "effect/Result"
import * as Random from "../Seed.ts"
import { actor, done, findSubAccount, note, open, receiver, refuse } from "./AccountActions.ts"
import type { ActionContext, ActionDecision, Handler } from "./AccountActions.ts"
import { portfolio, remember } from "./AccountReads.ts"
import {
  abs,
  divideUp,
  findCollateral,
  findUsdPair,
  max,
  printDecimal,
  printUsd,
  usdc,
  usdDecimals,
  weiPerUsd
} from "./Assets.ts"
import { accountValue, marginSums, markPrice, perpetualByCoin, withdrawable } from "./Margin.ts"
import { moveSpot, moveUsd, ownDex, parseToken, readAmount, spotRefusal, takeSpot } from "./Matching.ts"
import { execute } from "./Orders.ts"
import {
  addTo,
  ensureAccount,
  ensureBalance,
  isUnified,
  makeOrder,
  moveCash,
  type TradingAccount,
  type Vault,
  type VaultShare
} from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import * as Words from "./VenueRefusal.ts"
import { changeAccount } from "./VenueState.ts"

/** Executes the action `usdSend`. */
export const usdSend: Handler<"usdSend"> = (context, { amount, destination }) => {
  const usd = readAmount(amount, usdDecimals)
  if (usd === undefined) return refuse(Words.invalidAmount)
  if (lowerCase(destination) === context.user) return refuse(Words.selfTransfer)
  const from = actor(context)
  const to = receiver(context, destination)
  if (to === undefined) return refuse(Words.tooManyAccounts)
  if (!moveUsd(context.venue, from, to, usd)) return refuse(Words.insufficientWithdrawal)
  open(context, destination)
  note(context, [from, to], {
    type: "internalTransfer",
    usdc: printUsd(usd),
    user: from.address,
    destination: to.address,
    fee: "0.0"
  })
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

/** The system address of HYPE. */
export const hypeBridge = "0x2222222222222222222222222222222222222222"

/** Returns the system address of a token other than HYPE. */
export const systemAddress = (token: number): Address => `0x20${token.toString(16).padStart(38, "0")}`

/**
 * Sends a spot token, in wei. If the receiver is the token's system address, and the token has a contract, the EVM credits
 * the sender later. Returns the refusal.
 */
const send = (
  { venue }: ActionContext,
  from: TradingAccount,
  to: TradingAccount,
  { evmContract, index }: SpotToken,
  wei: bigint
): string | undefined => {
  const [system, extra] = index === venue.listing.hype
    ? [hypeBridge, 0]
    : [systemAddress(index), evmContract?.evm_extra_wei_decimals]
  const isBridged = to.address === system && extra !== undefined
  if (isBridged && wei % 10n ** BigInt(Math.max(0, -extra)) !== 0n) return Words.tooManyDecimals
  if (!moveSpot(venue, from, to, index, wei)) return spotRefusal(venue, index, from, to)
  if (isBridged) venue.state.bridged = [...venue.state.bridged, { user: from.address, token: index, wei }]
  return undefined
}

/** Executes the action `spotSend`. */
export const spotSend: Handler<"spotSend"> = (context, action) => {
  const token = parseToken(context.venue, action.token)
  if (token === undefined) return refuse(Words.unknownToken(action.token))
  const wei = readAmount(action.amount, token.weiDecimals)
  if (wei === undefined) return refuse(Words.invalidAmount)
  if (lowerCase(action.destination) === context.user) return refuse(Words.selfTransfer)
  const from = actor(context)
  const to = receiver(context, action.destination)
  if (to === undefined) return refuse(Words.tooManyAccounts)
  const refusal = send(context, from, to, token, wei)
  if (refusal !== undefined) return refuse(refusal)
  open(context, action.destination)
  note(context, [from, to], {
    type: "spotTransfer",
    token: token.name,
    amount: printDecimal(wei, token.weiDecimals),
    usdcValue: printUsd(valueInUsd(context.venue, token, wei)),
    user: from.address,
    destination: to.address,
    fee: "0.0",
    nativeTokenFee: "0.0",
    nonce: context.nonce,
    feeToken: ""
  })
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
  if (isUnified(account)) return refuse(Words.unifiedDisabled)
  if (toPerp) {
    if (takeSpot(venue, account, usdc, usd * weiPerUsd) === undefined) return refuse(Words.insufficientTransfer)
    moveCash(venue.state, account, ownDex, usd)
  } else {
    if (withdrawable(venue, account, ownDex) < usd) return refuse(Words.insufficientWithdrawal)
    moveCash(venue.state, account, ownDex, -usd)
    ensureBalance(account, usdc).total += usd * weiPerUsd
  }
  note(context, [account], { type: "accountClassTransfer", usdc: printUsd(usd), toPerp })
  return done
}

/** Executes the action `usdClassTransfer`. The text `amount` can also name a sub-account: `10 subaccount:0x…`. */
export const usdClassTransfer: Handler<"usdClassTransfer"> = (context, { amount, toPerp }) => {
  const [text = "", sub] = amount.split(" subaccount:")
  const usd = readAmount(text, usdDecimals)
  if (usd === undefined) return refuse(Words.invalidAmount)
  const account = sub === undefined ? actor(context) : findSubAccount(context, sub)
  return account === undefined
    ? refuse(Words.unknownSubAccount(sub ?? "", context.user))
    : classTransfer(context, account, usd, toPerp)
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
  const dexes = [sourceDex, destinationDex].filter((dex) => dex !== spotDex)
  const isCollateral = dexes.every((dex) => findCollateral(dex) === token.index)
  if (wei === undefined || dexes.length > 0 && (!isCollateral || wei % weiPerUsd !== 0n)) {
    return refuse(Words.invalidAmount)
  }
  const from = fromSubAccount === undefined || fromSubAccount === null || fromSubAccount === ""
    ? actor(context)
    : findSubAccount(context, fromSubAccount)
  if (from === undefined) return refuse(Words.unknownSubAccount(fromSubAccount ?? "", context.user))
  const to = receiver(context, action.destination)
  if (to === undefined) return refuse(Words.tooManyAccounts)
  if (from === to && sourceDex === destinationDex) return refuse(Words.selfTransfer)
  if (from === to && isUnified(from)) return refuse(Words.unifiedDisabled)
  const usd = wei / weiPerUsd
  if (sourceDex === spotDex && destinationDex === spotDex) {
    const refusal = send(context, from, to, token, wei)
    if (refusal !== undefined) return refuse(refusal)
  } else if (sourceDex === spotDex) {
    if (takeSpot(venue, from, token.index, wei) === undefined) return refuse(Words.insufficientTransfer)
    moveCash(venue.state, to, destinationDex, usd)
  } else {
    if (withdrawable(venue, from, sourceDex) < usd) return refuse(Words.insufficientWithdrawal)
    moveCash(venue.state, from, sourceDex, -usd)
    if (destinationDex === spotDex) ensureBalance(to, token.index).total += wei
    else moveCash(venue.state, to, destinationDex, usd)
  }
  open(context, action.destination)
  note(context, [from, to], {
    type: "send",
    user: from.address,
    destination: to.address,
    sourceDex,
    destinationDex,
    token: token.name,
    amount: printDecimal(wei, token.weiDecimals),
    usdcValue: printUsd(valueInUsd(venue, token, wei)),
    fee: "0.0",
    nativeTokenFee: "0.0",
    nonce: context.nonce,
    feeToken: ""
  })
  return done
}

/**
 * Executes the action `sendToEvmWithData`, which moves an amount to an EVM chain. The sandbox debits the amount and
 * delivers it to no contract.
 */
export const sendToEvm: Handler<"sendToEvmWithData"> = (context, action) => {
  const { venue } = context
  const { amount, destinationRecipient, sourceDex } = action
  const token = parseToken(venue, action.token)
  if (token === undefined) return refuse(Words.unknownToken(action.token))
  if (sourceDex !== spotDex && !isDex(venue, sourceDex)) return refuse(Words.unknownDex(sourceDex))
  const wei = readAmount(amount, token.weiDecimals)
  if (
    wei === undefined || sourceDex !== spotDex && (token.index !== findCollateral(sourceDex) || wei % weiPerUsd !== 0n)
  ) {
    return refuse(Words.invalidAmount)
  }
  const account = actor(context)
  if (sourceDex === spotDex) {
    if (takeSpot(venue, account, token.index, wei) === undefined) return refuse(Words.insufficientTransfer)
  } else {
    if (withdrawable(venue, account, sourceDex) < wei / weiPerUsd) return refuse(Words.insufficientWithdrawal)
    moveCash(venue.state, account, sourceDex, -wei / weiPerUsd)
  }
  addTo(venue.state.deposited, token.index, -wei)
  note(context, [account], {
    type: "send",
    user: account.address,
    destination: destinationRecipient,
    sourceDex,
    destinationDex: "",
    token: token.name,
    amount: printDecimal(wei, token.weiDecimals),
    usdcValue: printUsd(valueInUsd(venue, token, wei)),
    fee: "0.0",
    nativeTokenFee: "0.0",
    nonce: context.nonce,
    feeToken: ""
  })
  return done
}

/** The fee of a withdrawal, one dollar, in millionths of a dollar. */
const withdrawalFee = 1_000_000n

/** Executes the action `withdraw3`: debits the amount, and pays out the amount minus the fee. */
export const withdraw: Handler<"withdraw3"> = (context, { amount }) => {
  const { venue } = context
  const usd = readAmount(amount, usdDecimals)
  if (usd === undefined || usd <= withdrawalFee) return refuse(Words.invalidAmount)
  const account = actor(context)
  if (withdrawable(venue, account, ownDex) < usd) return refuse(Words.insufficientWithdrawal)
  moveCash(venue.state, account, ownDex, -usd)
  venue.state.house.feesUsd += withdrawalFee
  addTo(venue.state.deposited, usdc, -(usd - withdrawalFee) * weiPerUsd)
  note(context, [account], {
    type: "withdraw",
    usdc: printUsd(usd - withdrawalFee),
    nonce: context.nonce,
    fee: printUsd(withdrawalFee)
  })
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
  note({ venue }, [ensureAccount(venue.state, address)], { type: "deposit", usdc: printUsd(usd) })
}

/** Deposits wei of a spot token from outside the venue. */
export const depositSpot = (venue: Venue, address: Address, token: number, wei: bigint): void => {
  const account = ensureAccount(venue.state, address)
  ensureBalance(account, token).total += wei
  addTo(venue.state.deposited, token, wei)
}

const usd = 1_000_000n
const smallestVault = 100n * usd
const smallestDeposit = 5n * usd
const lockup = 86_400_000
/** Divisor of a vault's shares: the leader must own at least one twentieth of them. */
const leaderPart = 20n

/** Returns the value of a vault, in millionths of a dollar. */
export const vaultValue = (venue: Venue, address: Address): bigint =>
  [...ensureAccount(venue.state, address).clearings.values()].reduce(
    (total, clearing) => total + max(0n, marginSums(venue, clearing).value),
    0n
  )

/** The period after its creation, in milliseconds, in which `vaultSummaries` lists a vault. */
const listedFor = 7_200_000

/** Returns the response to the query `vaultSummaries`: the vaults of the last two hours. */
export const vaultSummaries = (venue: Venue) =>
  [...venue.state.vaults].flatMap(([vaultAddress, vault]) => {
    const { createdAt, leader, name, totalShares } = vault
    return createdAt <= venue.state.now - listedFor ? [] : [{
      name,
      vaultAddress,
      leader,
      tvl: printUsd(vaultValue(venue, vaultAddress)),
      isClosed: totalShares === 0n,
      relationship: { type: "normal" },
      createTimeMillis: createdAt
    }]
  })

/** Returns the value of a depositor's shares. */
export const vaultEquity = (venue: Venue, address: Address, vault: Vault, user: Address): bigint => {
  const shares = vault.shares.get(user)?.shares ?? 0n
  return vault.totalShares === 0n ? 0n : vaultValue(venue, address) * shares / vault.totalShares
}

const noShare: VaultShare = { shares: 0n, lockedUntil: 0, enteredAt: 0, basis: 0n, realized: 0n }

const addShares = (vault: Vault, user: Address, shares: bigint, paid: bigint, now: number): void => {
  const known = vault.shares.get(user) ?? noShare
  vault.shares.set(user, {
    shares: known.shares + shares,
    lockedUntil: now + lockup,
    enteredAt: known.shares === 0n ? now : known.enteredAt,
    basis: known.basis + paid,
    realized: known.realized
  })
  vault.totalShares += shares
}

const day = 86_400_000
/** The period, in days, from whose profit the yearly rate of a vault follows. */
const rateDays = 30
/** Maximum number of depositors that `vaultDetails` lists. */
const listedFollowers = 100

/** Returns the profit of a vault's last days as a part of its value, extrapolated to a year. */
const yearlyRate = (venue: Venue, account: TradingAccount, value: bigint): number => {
  const { profit, time } = accountValue(venue, account)
  const first = account.values.find((each) => each.time >= time - rateDays * day)
  return first === undefined || first.time === time || value === 0n
    ? 0
    : Number(profit - first.profit) / Number(value) * 365 * day / (time - first.time)
}

/** Returns the response to the query `vaultDetails`: `null` for an unknown vault. `user` is the account that asks. */
export const vaultDetails = (venue: Venue, vaultAddress: Address, user: Address | undefined) => {
  const vault = venue.state.vaults.get(vaultAddress)
  if (vault === undefined) return null
  const { leader, shares, totalShares } = vault
  const { now } = venue.state
  const account = ensureAccount(venue.state, vaultAddress)
  const value = vaultValue(venue, vaultAddress)
  const free = Number(printUsd(withdrawable(venue, account, ownDex)))
  const follower = (user: string, share: VaultShare) => {
    const equity = value * share.shares / totalShares
    return {
      user,
      vaultEquity: printUsd(equity),
      pnl: printUsd(equity - share.basis),
      allTimePnl: printUsd(equity - share.basis + share.realized),
      daysFollowing: Math.floor((now - share.enteredAt) / day),
      vaultEntryTime: share.enteredAt,
      lockupUntil: share.lockedUntil
    }
  }
  const depositors = [...shares].filter(([, each]) => each.shares > 0n).toSorted(([, one], [, other]) =>
    one.shares === other.shares ? 0 : one.shares > other.shares ? -1 : 1
  )
  const own = depositors.find(([address]) => address === user)
  return {
    name: vault.name,
    vaultAddress,
    leader,
    description: vault.description,
    portfolio: portfolio(venue, account),
    apr: yearlyRate(venue, account, value),
    followerState: own === undefined ? null : follower(...own),
    leaderFraction: totalShares === 0n ? 0 : Number(shares.get(leader)?.shares ?? 0n) / Number(totalShares),
    leaderCommission: 0,
    followers: depositors.slice(0, listedFollowers).map(([address, share]) =>
      follower(address === leader ? "Leader" : address, share)
    ),
    maxDistributable: free,
    maxWithdrawable: free,
    isClosed: totalShares === 0n,
    relationship: { type: "normal" },
    allowDeposits: vault.allowDeposits,
    alwaysCloseOnWithdraw: vault.alwaysCloseOnWithdraw
  }
}

/**
 * Returns whether the leader owns enough of a vault after `user` has received shares. A negative number burns shares.
 */
const leaderOwnsEnough = (vault: Vault, user: Address, shares: bigint): boolean => {
  const leaders = (vault.shares.get(vault.leader)?.shares ?? 0n) + (user === vault.leader ? shares : 0n)
  return leaders * leaderPart >= vault.totalShares + shares
}

/** Executes the action `createVault`. */
export const create: Handler<"createVault"> = (context, action) => {
  const { user, venue } = context
  const initial = BigInt(action.initialUsd)
  if (initial < smallestVault) return refuse(Words.vaultTooSmall)
  if (action.name.trim() === "") return refuse(Words.invalidName)
  const address = Random.hex(venue.seed, `vault/${user}/${context.nonce}`, 40)
  const leader = actor(context)
  const account = receiver(context, address)
  if (account === undefined) return refuse(Words.tooManyAccounts)
  if (!moveUsd(venue, leader, account, initial)) return refuse(Words.vaultBalance)
  const vault: Vault = {
    name: action.name,
    description: action.description,
    leader: user,
    createdAt: venue.state.now,
    allowDeposits: true,
    alwaysCloseOnWithdraw: false,
    totalShares: 0n,
    shares: new Map()
  }
  addShares(vault, user, initial, initial, venue.state.now)
  venue.state.vaults.set(address, vault)
  context.identity = changeAccount(context.identity, address, { leader: user })
  note(context, [leader], { type: "vaultCreate", vault: address, usdc: printUsd(initial), fee: "0.0" })
  return Result.succeed({ type: "createVault", data: address })
}

const ledVault = ({ user, venue }: ActionContext, address: string): Vault | string => {
  const vault = venue.state.vaults.get(lowerCase(address))
  if (vault === undefined) return Words.unknownVault(lowerCase(address))
  return vault.leader === user ? vault : Words.notVaultLeader
}

/** Executes the action `vaultModify`. `null` means no change. */
export const modify: Handler<"vaultModify"> = (context, action) => {
  const vault = ledVault(context, action.vaultAddress)
  if (typeof vault === "string") return refuse(vault)
  vault.allowDeposits = action.allowDeposits ?? vault.allowDeposits
  vault.alwaysCloseOnWithdraw = action.alwaysCloseOnWithdraw ?? vault.alwaysCloseOnWithdraw
  return done
}

/** Closes the fraction `part / whole` of each position of an account at the market. */
const closePart = (venue: Venue, account: TradingAccount, part: bigint, whole: bigint): void => {
  const sizes = [...account.clearings.values()].flatMap(({ positions }) =>
    Array.from(positions, ([coin, { size }]) => ({ coin, size }))
  )
  for (const { coin, size } of sizes) {
    const asset = perpetualByCoin(venue, coin)
    const sz = abs(size) * part / whole
    if (asset === undefined || sz === 0n) continue
    const isBuy = size < 0n
    const px = isBuy ? markPrice(venue, asset) * 2n : 1n
    const order = makeOrder(venue.state, { user: account.address, coin, isBuy, px, sz, reduceOnly: true, tif: "Ioc" })
    remember(venue, account, order)
    execute(venue, asset, order)
  }
}

/** Executes the action `vaultTransfer`: deposits into a vault, or withdraws from it after a lockup of one day. */
export const transfer: Handler<"vaultTransfer"> = (context, action) => {
  const { user, venue } = context
  const address = lowerCase(action.vaultAddress)
  const vault = venue.state.vaults.get(address)
  if (vault === undefined) return refuse(Words.unknownVault(address))
  const account = ensureAccount(venue.state, address)
  const depositor = actor(context)
  const amount = BigInt(action.usd)
  const value = vaultValue(venue, address)
  if (action.isDeposit) {
    if (amount < smallestDeposit) return refuse(Words.smallVaultDeposit)
    if (!vault.allowDeposits) return refuse(Words.vaultClosed)
    const shares = value === 0n || vault.totalShares === 0n ? amount : amount * vault.totalShares / value
    if (!leaderOwnsEnough(vault, user, shares)) return refuse(Words.leaderShare)
    if (!moveUsd(venue, depositor, account, amount)) return refuse(Words.insufficientWithdrawal)
    addShares(vault, user, shares, amount, venue.state.now)
    note(context, [depositor], { type: "vaultDeposit", vault: address, usdc: printUsd(amount) })
    return done
  }
  const owned = vault.shares.get(user)
  if (owned === undefined || owned.shares === 0n || value === 0n) return refuse(Words.emptyVault)
  if (owned.lockedUntil > venue.state.now) return refuse(Words.vaultLockup)
  const burned = divideUp(amount * vault.totalShares, value)
  if (amount === 0n || burned > owned.shares) return refuse(Words.insufficientWithdrawal)
  if (!leaderOwnsEnough(vault, user, -burned)) return refuse(Words.leaderWithdrawal)
  if (vault.alwaysCloseOnWithdraw) closePart(venue, account, burned, vault.totalShares)
  if (!moveUsd(venue, account, depositor, amount)) return refuse(Words.insufficientWithdrawal)
  const basis = owned.basis * burned / owned.shares
  vault.shares.set(user, {
    ...owned,
    shares: owned.shares - burned,
    basis: owned.basis - basis,
    realized: owned.realized + amount - basis
  })
  vault.totalShares -= burned
  note(context, [depositor], {
    type: "vaultWithdraw",
    vault: address,
    user,
    requestedUsd: printUsd(amount),
    commission: "0.0",
    closingCost: "0.0",
    basis: "0.0",
    netWithdrawnUsd: printUsd(amount)
  })
  return done
}

/**
 * Executes the action `vaultDistribute`, which pays an amount to all depositors in proportion to their shares. An
 * amount of zero pays out the whole value and closes the vault.
 */
export const distribute: Handler<"vaultDistribute"> = (context, action) => {
  const { venue } = context
  const vault = ledVault(context, action.vaultAddress)
  if (typeof vault === "string") return refuse(vault)
  const address = lowerCase(action.vaultAddress)
  const account = ensureAccount(venue.state, address)
  const isClosing = action.usd === 0
  const amount = isClosing ? vaultValue(venue, address) : BigInt(action.usd)
  if (vault.totalShares === 0n) return refuse(Words.emptyVault)
  if (withdrawable(venue, account, "") < amount) return refuse(Words.insufficientWithdrawal)
  for (const [depositor, share] of vault.shares) {
    const part = amount * share.shares / vault.totalShares
    if (part === 0n) continue
    // a payout to all returns a part of the paid price: the depositors make no profit from it
    vault.shares.set(depositor, { ...share, basis: share.basis - part })
    const to = ensureAccount(venue.state, depositor)
    moveCash(venue.state, account, "", -part)
    moveCash(venue.state, to, "", part)
    note(context, [to], { type: "vaultDistribution", vault: address, usdc: printUsd(part) })
  }
  if (isClosing) {
    vault.shares.clear()
    vault.totalShares = 0n
    vault.allowDeposits = false
  }
  return done
}
