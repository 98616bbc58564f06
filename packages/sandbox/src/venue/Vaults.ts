/**
 * Vaults: a leader trades for the account of a vault, and depositors own shares of the account. In the sandbox, leaders
 * receive no part of the depositors' profits.
 */
import type { ActionOf } from "@trigate/domain/actions/ActionSchemas"
import { type Address, lowerCase } from "@trigate/domain/encoding/Hex"
import * as Result from "effect/Result"
import { moveUsd } from "../internal/venue/Balances.ts"
import * as Random from "../Seed.ts"
import type { ActionContext, ActionDecision } from "./ActionContext.ts"
import { actor, done, note, receiver, refuse } from "./ActionContext.ts"
import { printUsd } from "./Assets.ts"
import { divideUp, max } from "./Decimals.ts"
import { marginSums, withdrawable } from "./Margin.ts"
import type { Vault } from "./TradingState.ts"
import { ensureAccount, moveCash } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import { changeAccount } from "./VenueState.ts"
import * as Words from "./Words.ts"

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

const addShares = (vault: Vault, user: Address, shares: bigint, lockedUntil: number): void => {
  const known = vault.shares.get(user)
  vault.shares.set(user, { shares: (known?.shares ?? 0n) + shares, lockedUntil })
  vault.totalShares += shares
}

/**
 * Returns whether the leader owns enough of a vault after `user` has received shares. A negative number burns shares.
 */
const leaderOwnsEnough = (vault: Vault, user: Address, shares: bigint): boolean => {
  const leaders = (vault.shares.get(vault.leader)?.shares ?? 0n) + (user === vault.leader ? shares : 0n)
  return leaders * leaderPart >= vault.totalShares + shares
}

/** Executes the action `createVault`. */
export const create = (context: ActionContext, action: ActionOf<"createVault">): ActionDecision => {
  const { user, venue } = context
  const initial = BigInt(action.initialUsd)
  if (initial < smallestVault) return refuse(Words.vaultTooSmall)
  if (action.name.trim() === "") return refuse(Words.invalidName)
  const address = Random.hex(venue.seed, `vault/${user}/${context.nonce}`, 40)
  const leader = actor(context)
  const account = receiver(context, address)
  if (account === undefined) return refuse(Words.tooManyAccounts)
  if (!moveUsd(venue, leader, account, initial)) return refuse(Words.insufficientWithdrawal)
  const vault: Vault = {
    name: action.name,
    description: action.description,
    leader: user,
    createdAt: venue.state.now,
    allowDeposits: true,
    totalShares: 0n,
    shares: new Map()
  }
  addShares(vault, user, initial, venue.state.now + lockup)
  venue.state.vaults.set(address, vault)
  context.identity = changeAccount(context.identity, address, { leader: user })
  note(context, { type: "vaultCreate", vault: address, usdc: printUsd(initial), fee: "0.0" }, leader)
  return Result.succeed({ type: "createVault", data: address })
}

const ledVault = ({ user, venue }: ActionContext, address: string): Vault | string => {
  const vault = venue.state.vaults.get(lowerCase(address))
  return vault === undefined
    ? `Vault not registered: ${lowerCase(address)}`
    : vault.leader === user
    ? vault
    : Words.notVaultLeader
}

/** Executes the action `vaultModify`. */
export const modify = (
  context: ActionContext,
  action: Pick<ActionOf<"vaultModify">, "vaultAddress" | "allowDeposits">
): ActionDecision => {
  const vault = ledVault(context, action.vaultAddress)
  if (typeof vault === "string") return refuse(vault)
  vault.allowDeposits = action.allowDeposits ?? vault.allowDeposits
  return done
}

/** Executes the action `vaultTransfer`: deposits into a vault, or withdraws from it after a lockup of one day. */
export const transfer = (context: ActionContext, action: ActionOf<"vaultTransfer">): ActionDecision => {
  const { user, venue } = context
  const address = lowerCase(action.vaultAddress)
  const vault = venue.state.vaults.get(address)
  if (vault === undefined) return refuse(`Vault not registered: ${address}`)
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
    addShares(vault, user, shares, venue.state.now + lockup)
    note(context, { type: "vaultDeposit", vault: address, usdc: printUsd(amount) }, depositor)
    return done
  }
  const owned = vault.shares.get(user)
  if (owned === undefined || owned.shares === 0n || value === 0n) return refuse(Words.emptyVault)
  if (owned.lockedUntil > venue.state.now) return refuse(Words.vaultLockup)
  const burned = divideUp(amount * vault.totalShares, value)
  if (amount === 0n || burned > owned.shares) return refuse(Words.insufficientWithdrawal)
  if (!leaderOwnsEnough(vault, user, -burned)) return refuse(Words.leaderWithdrawal)
  if (!moveUsd(venue, account, depositor, amount)) return refuse(Words.insufficientWithdrawal)
  owned.shares -= burned
  vault.totalShares -= burned
  note(
    context,
    {
      type: "vaultWithdraw",
      vault: address,
      user,
      requestedUsd: printUsd(amount),
      commission: "0.0",
      closingCost: "0.0",
      basis: "0.0",
      netWithdrawnUsd: printUsd(amount)
    },
    depositor
  )
  return done
}

/**
 * Executes the action `vaultDistribute`, which pays an amount to all depositors in proportion to their shares. An
 * amount of zero pays out the whole value and closes the vault.
 */
export const distribute = (context: ActionContext, action: ActionOf<"vaultDistribute">): ActionDecision => {
  const { venue } = context
  const vault = ledVault(context, action.vaultAddress)
  if (typeof vault === "string") return refuse(vault)
  const address = lowerCase(action.vaultAddress)
  const account = ensureAccount(venue.state, address)
  const isClosing = action.usd === 0
  const amount = isClosing ? vaultValue(venue, address) : BigInt(action.usd)
  if (vault.totalShares === 0n) return refuse(Words.emptyVault)
  if (withdrawable(venue, account, "") < amount) return refuse(Words.insufficientWithdrawal)
  for (const [depositor, { shares }] of vault.shares) {
    const part = amount * shares / vault.totalShares
    if (part === 0n) continue
    const to = ensureAccount(venue.state, depositor)
    moveCash(venue.state, account, "", -part)
    moveCash(venue.state, to, "", part)
    note(context, { type: "vaultDistribution", vault: address, usdc: printUsd(part) }, to)
  }
  if (isClosing) {
    vault.shares.clear()
    vault.totalShares = 0n
    vault.allowDeposits = false
  }
  return done
}
