/** What an action does to the venue once it is known who acts. */
import { EvmUserModify, JailSelf, MultiSig, TokenDelegate, UnjailSelf } from "@trigate/domain/Action"
import type { Address } from "@trigate/domain/Hex"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { withEntry } from "./Entries.ts"
import * as VenueRefusal from "./VenueRefusal.ts"
import type { VenueState } from "./VenueState.ts"
import { accountOf, changeAccount, lower } from "./VenueState.ts"

/** The documents' `venueChain` is no field of the real wire. */
const WireTokenDelegate = TokenDelegate.check(
  Schema.makeFilter(({ hyperliquidChain }) => hyperliquidChain === undefined ? "Expected hyperliquidChain" : undefined)
)

/** Does nothing but use up its nonce. */
const Noop = Schema.Struct({ type: Schema.Literal("noop") })

/** The actions that can stand alone or inside a multi-sig wrapper, in the form that the real wire takes. */
export const SingleAction = Schema.Union([WireTokenDelegate, JailSelf, UnjailSelf, EvmUserModify, Noop])
export type SingleAction = typeof SingleAction.Type

/** Every action of the venue, in the form that the real wire takes. */
export const VenueAction = Schema.Union([MultiSig, ...SingleAction.members])
export type VenueAction = typeof VenueAction.Type

type Outcome = Result.Result<VenueState, string>

const moveStake = (state: VenueState, user: Address, validator: Address, wei: bigint): Outcome => {
  const target = state.validators.get(validator)
  if (target === undefined) return Result.fail(VenueRefusal.unknownValidator)
  const account = accountOf(state, user)
  const delegated = (account.delegations.get(validator) ?? 0n) + wei
  const stake = account.stake - wei
  if (stake < 0n || delegated < 0n) return Result.fail(VenueRefusal.insufficientStake)
  const changed = changeAccount(state, user, (account) => ({
    ...account,
    stake,
    delegations: withEntry(account.delegations, validator, delegated)
  }))
  return Result.succeed({
    ...changed,
    validators: withEntry(changed.validators, validator, { ...target, stake: target.stake + wei })
  })
}

const setJailed = (state: VenueState, signer: Address, jailed: boolean): Outcome => {
  const validator = state.validators.get(signer)
  return validator === undefined
    ? Result.fail(VenueRefusal.notValidator)
    : Result.succeed({ ...state, validators: withEntry(state.validators, signer, { ...validator, jailed }) })
}

/** Executes an action of `user`; the failure is the venue's refusal. */
export const execute = (state: VenueState, user: Address, action: SingleAction): Outcome => {
  switch (action.type) {
    case "noop":
      return Result.succeed(state)
    case "evmUserModify":
      return Result.succeed(
        changeAccount(state, user, (account) => ({ ...account, usingBigBlocks: action.usingBigBlocks }))
      )
    case "CSignerAction":
      return setJailed(state, user, "jailSelf" in action)
    case "tokenDelegate":
      return moveStake(state, user, lower(action.validator), action.isUndelegate ? -action.wei : action.wei)
  }
}
