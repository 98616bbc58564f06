/** Validators: their registration, profiles, votes and jails, and the stake that accounts delegate to them. */
import { type Address, lowerCase } from "@trigate/domain/encoding/Encoding"
import type { ActionOf } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as Random from "../Seed.ts"
import { done, refuse } from "./AccountActions.ts"
import type { ActionContext, ActionDecision, Handler } from "./AccountActions.ts"
import { printDecimal } from "./Assets.ts"
import * as Words from "./VenueRefusal.ts"
import * as VenueState from "./VenueState.ts"

type ValidatorAction = ActionOf<"CValidatorAction">
type Registration = Extract<ValidatorAction, { readonly register: unknown }>["register"]
type ProfileChange = Extract<ValidatorAction, { readonly changeProfile: unknown }>["changeProfile"]

const day = 86_400_000

/** Maximum number of delegations that the venue lists for one account. */
const listedDelegations = 100

const usualCommission = 400
const wholeCommission = 10_000

/** The commission to which a validator can raise its own, in hundredths of a percent. */
const freeCommission = 100

/** Sets the validator of the acting account. */
const setOwn = (context: ActionContext, validator: VenueState.Validator): void => {
  const { identity, user } = context
  context.identity = { ...identity, validators: VenueState.withEntry(identity.validators, user, validator) }
}

/** Moves stake of an account to a validator. A negative amount moves it back. Newly delegated stake is locked for a day. */
const move = (
  context: ActionContext,
  user: Address,
  address: Address,
  validator: VenueState.Validator,
  wei: bigint
): void => {
  const { identity, nonce, venue: { state: { now } } } = context
  const account = VenueState.accountOrNew(identity, user)
  const known = account.delegations.get(address) ?? { wei: 0n, lockedUntil: 0 }
  const isUndelegate = wei < 0n
  const changed = VenueState.changeAccount(identity, user, {
    stake: account.stake - wei,
    delegations: VenueState.withEntry(account.delegations, address, {
      wei: known.wei + wei,
      lockedUntil: isUndelegate ? known.lockedUntil : now + day
    }),
    delegationHistory: [
      {
        time: now,
        hash: Random.hex(user, `delegation/${nonce}`, 64),
        validator: address,
        wei: isUndelegate ? -wei : wei,
        isUndelegate
      },
      ...account.delegationHistory
    ].slice(0, listedDelegations)
  })
  context.identity = {
    ...changed,
    validators: VenueState.withEntry(changed.validators, address, { ...validator, stake: validator.stake + wei })
  }
}

/** Executes the action `tokenDelegate`: moves stake from the account to a validator, or back. */
export const delegate: Handler<"tokenDelegate"> = (context, { isUndelegate, validator: named, wei: moved }) => {
  const { identity, user } = context
  const address = lowerCase(named)
  const wei = isUndelegate ? -moved : moved
  const validator = identity.validators.get(address)
  if (validator === undefined) return refuse(Words.unknownValidator)
  if (validator.delegationsDisabled === true && !isUndelegate) return refuse(Words.delegationsDisabled)
  const { delegations, stake } = VenueState.accountOrNew(identity, user)
  if (stake - wei < 0n || (delegations.get(address)?.wei ?? 0n) + wei < 0n) return refuse(Words.insufficientStake)
  move(context, user, address, validator, wei)
  return done
}

const findSigned = ({ identity, user }: ActionContext) =>
  [...identity.validators].find(([address, { signer = address }]) => signer === user)

/** Executes the action `CSignerAction`: jails or unjails the validator for which the account signs. */
export const setJailed: Handler<"CSignerAction"> = (context, action) => {
  const { identity } = context
  const [address, validator] = findSigned(context) ?? []
  if (address === undefined || validator === undefined) return refuse(Words.notValidator)
  const validators = VenueState.withEntry(identity.validators, address, { ...validator, jailed: "jailSelf" in action })
  context.identity = { ...identity, validators }
  return done
}

/** Returns whether another validator has the signer. */
const isUsed = ({ identity, user }: ActionContext, signer: Address): boolean =>
  [...identity.validators].some(([address, validator]) => address !== user && (validator.signer ?? address) === signer)

const register = (context: ActionContext, { initial_wei, profile, unjailed }: Registration): ActionDecision => {
  const { identity, user } = context
  const wei = BigInt(initial_wei)
  const signer = lowerCase(profile.signer)
  if (identity.validators.has(user)) return refuse(Words.validatorExists)
  if (profile.delegations_disabled && wei > 0n) return refuse(Words.delegationsDisabled)
  if (profile.commission_bps > wholeCommission) return refuse(Words.invalidCommission)
  if (isUsed(context, signer)) return refuse(Words.signerUsed)
  if (VenueState.accountOrNew(identity, user).stake < wei) return refuse(Words.insufficientStake)
  const validator = {
    name: profile.name,
    description: profile.description,
    nodeIp: profile.node_ip.Ip,
    signer,
    commissionBps: profile.commission_bps,
    delegationsDisabled: profile.delegations_disabled,
    jailed: !unjailed,
    stake: 0n
  }
  setOwn(context, validator)
  if (wei > 0n) move(context, user, user, validator, wei)
  return done
}

/** Changes the members of a profile that are not null. A commission above 1 % cannot be higher than before. */
const changeProfile = (
  context: ActionContext,
  validator: VenueState.Validator,
  profile: ProfileChange
): ActionDecision => {
  const {
    commission_bps: commission,
    description,
    disable_delegations: isDisabled,
    name,
    node_ip: node,
    signer,
    unjailed
  } = profile
  const most = Math.max(freeCommission, validator.commissionBps ?? usualCommission)
  if (commission !== null && commission > most) return refuse(Words.invalidCommission)
  if (signer !== null && isUsed(context, lowerCase(signer))) return refuse(Words.signerUsed)
  setOwn(context, {
    ...validator,
    jailed: !unjailed,
    ...(name === null ? {} : { name }),
    ...(description === null ? {} : { description }),
    ...(node === null ? {} : { nodeIp: node.Ip }),
    ...(signer === null ? {} : { signer: lowerCase(signer) }),
    ...(commission === null ? {} : { commissionBps: commission }),
    ...(isDisabled === null ? {} : { delegationsDisabled: isDisabled })
  })
  return done
}

/** Removes the validator of the acting account, and returns the delegated stake to its owners. */
const unregister = (context: ActionContext): ActionDecision => {
  const { user } = context
  for (const [address, { delegations }] of context.identity.accounts) {
    const validator = context.identity.validators.get(user)
    const wei = delegations.get(user)?.wei ?? 0n
    if (validator !== undefined && wei > 0n) move(context, address, user, validator, -wei)
  }
  context.identity = { ...context.identity, validators: VenueState.withoutEntry(context.identity.validators, user) }
  return done
}

/** Executes the action `CValidatorAction`. */
export const change: Handler<"CValidatorAction"> = (context, action) => {
  if ("register" in action) return register(context, action.register)
  const validator = context.identity.validators.get(context.user)
  if (validator === undefined) return refuse(Words.unknownValidator)
  return "unregister" in action ? unregister(context) : changeProfile(context, validator, action.changeProfile)
}

/** Executes the action `validatorL1Stream`: the vote of a validator on the risk-free rate. */
export const vote: Handler<"validatorL1Stream"> = (context, { riskFreeRate }) => {
  const validator = context.identity.validators.get(context.user)
  if (validator === undefined) return refuse(Words.unknownValidator)
  setOwn(context, { ...validator, riskFreeRate })
  return done
}

/** Returns the response to the query `validatorSummaries`: the validators, without block statistics. */
export const validatorSummaries = ({ validators }: VenueState.VenueState) =>
  [...validators].map(([validator, { commissionBps = usualCommission, description, jailed, name, signer, stake }]) => ({
    validator,
    signer: signer ?? validator,
    name,
    description: description ?? "A validator of the sandbox",
    nRecentBlocks: 0,
    stake: Number(stake),
    isJailed: jailed,
    unjailableAfter: jailed ? 0 : null,
    isActive: !jailed,
    commission: printDecimal(BigInt(commissionBps), 4),
    stats: ["day", "week", "month"].map((period) => [
      period,
      { uptimeFraction: jailed ? "0.0" : "1.0", predictedApr: "0.0", nSamples: 0 }
    ])
  }))
