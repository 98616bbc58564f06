/** Actions about stake and validators: delegates stake, and jails validators. */
import type { ActionOf } from "@trigate/domain/actions/ActionSchemas"
import { lowerCase } from "@trigate/domain/encoding/Hex"
import * as Random from "../Seed.ts"
import type { ActionContext, ActionDecision } from "./ActionContext.ts"
import { done, refuse } from "./ActionContext.ts"
import * as VenueRefusal from "./VenueRefusal.ts"
import { accountOrNew, changeAccount, withEntry } from "./VenueState.ts"

const day = 86_400_000

/** Maximum number of delegations that the venue lists for one account. */
const listedDelegations = 100

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
