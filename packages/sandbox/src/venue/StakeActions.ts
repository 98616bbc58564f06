/** Actions about stake and validators: moves HYPE to and from stake, delegates stake, and jails validators. */
import type { ActionOf } from "@trigate/domain/actions/ActionSchemas"
import { lowerCase } from "@trigate/domain/encoding/Hex"
import { takeSpot } from "../internal/venue/Balances.ts"
import * as Random from "../Seed.ts"
import type { ActionContext, ActionDecision } from "./ActionContext.ts"
import { actor, done, note, refuse } from "./ActionContext.ts"
import { hype } from "./Assets.ts"
import * as Decimals from "./Decimals.ts"
import type { Stake } from "./Orders.ts"
import { addTo } from "./TradingState.ts"
import * as VenueRefusal from "./VenueRefusal.ts"
import { accountOrNew, changeAccount, withEntry } from "./VenueState.ts"
import * as Words from "./Words.ts"

const day = 86_400_000

/** Maximum number of delegations that the venue lists for one account. */
const listedDelegations = 100

/** Executes the action `cDeposit`, which moves HYPE from the spot balance to the staking balance. */
export const stake = (context: ActionContext, { wei }: ActionOf<"cDeposit">): ActionDecision => {
  const account = actor(context)
  if (wei === 0n || takeSpot(account, hype, wei) === undefined) return refuse(Words.insufficientTransfer)
  addTo(context.venue.state.deposited, hype, -wei)
  const { stake } = accountOrNew(context.identity, context.user)
  context.identity = changeAccount(context.identity, context.user, { stake: stake + wei })
  note(
    context,
    { type: "cStakingTransfer", token: "HYPE", amount: Decimals.print(wei, 8), isDeposit: true },
    account
  )
  return done
}

/** Returns the undelegated stake of the acting account, which pays priority fees. */
export const undelegated = (context: ActionContext): Stake => {
  const available = () => accountOrNew(context.identity, context.user).stake
  return {
    available,
    burn: (wei) => {
      context.identity = changeAccount(context.identity, context.user, { stake: available() - wei })
    }
  }
}

/** The duration of a withdrawal from staking to spot, in milliseconds. */
export const unstakingTime = 7 * day

/**
 * Executes the action `cWithdraw`, which moves HYPE from the staking balance to the spot balance. The HYPE arrives
 * after seven days. At most five withdrawals can be pending.
 */
export const unstake = (context: ActionContext, { wei }: ActionOf<"cWithdraw">): ActionDecision => {
  const account = actor(context)
  const { stake } = accountOrNew(context.identity, context.user)
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

/** Moves stake from the account to a validator, or back. Newly delegated stake is locked for a day. */
export const delegate = (
  context: ActionContext,
  { isUndelegate, validator: named, wei: moved }: ActionOf<"tokenDelegate">
): ActionDecision => {
  const { identity, nonce, user, venue: { state: { now } } } = context
  const validator = lowerCase(named)
  const wei = isUndelegate ? -moved : moved
  const target = identity.validators.get(validator)
  if (target === undefined) return refuse(VenueRefusal.unknownValidator)
  const account = accountOrNew(identity, user)
  const known = account.delegations.get(validator) ?? { wei: 0n, lockedUntil: 0 }
  const delegated = known.wei + wei
  const stake = account.stake - wei
  if (stake < 0n || delegated < 0n) return refuse(VenueRefusal.insufficientStake)
  const changed = changeAccount(identity, user, {
    stake,
    delegations: withEntry(account.delegations, validator, {
      wei: delegated,
      lockedUntil: isUndelegate ? known.lockedUntil : now + day
    }),
    delegationHistory: [
      { time: now, hash: Random.hex(user, `delegation/${nonce}`, 64), validator, wei: moved, isUndelegate },
      ...account.delegationHistory
    ].slice(0, listedDelegations)
  })
  context.identity = {
    ...changed,
    validators: withEntry(changed.validators, validator, { ...target, stake: target.stake + wei })
  }
  return done
}

/** Jails or unjails the validator that signs the action. */
export const setJailed = (
  context: ActionContext,
  action: ActionOf<"CSignerAction">
): ActionDecision => {
  const { identity, user } = context
  const validator = identity.validators.get(user)
  if (validator === undefined) return refuse(VenueRefusal.notValidator)
  const validators = withEntry(identity.validators, user, { ...validator, jailed: "jailSelf" in action })
  context.identity = { ...identity, validators }
  return done
}
