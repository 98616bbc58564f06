/** Converts an action to the form in which the venue hashes it, whatever the order and format of its JSON. */
import { formKeys, hasDocumentedForm } from "@trigate/domain/actions/Action"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as MultiSig from "../multisig/MultiSig.ts"
import { documentedChainField, type VenueProfile } from "../VenueProfile.ts"
import { UnsignableAction, wrongShape } from "./ActionHash.ts"
import * as ActionOrder from "./ActionOrder.ts"
import * as UserSigned from "./UserSigned.ts"

/** An action as plain members, in the order in which they are hashed. */
export type Action = Readonly<Record<string, unknown>>

/** An action in the venue's form: a multi-sig wrapper, or any other action. */
export type CanonicalAction =
  | { readonly kind: "single"; readonly action: Action }
  | { readonly kind: "multiSig"; readonly action: MultiSig.MultiSigAction }

type KnownType = keyof typeof formKeys

const respell = (profile: VenueProfile, action: Action): Result.Result<Action, UnsignableAction> => {
  if (!Object.hasOwn(action, documentedChainField)) return Result.succeed(action)
  return Object.hasOwn(action, profile.chainField)
    ? Result.fail(wrongShape(documentedChainField, `absent where "${profile.chainField}" is present`))
    : Result.succeed(Object.fromEntries(
      Object.entries(action).map(([key, value]) => [key === documentedChainField ? profile.chainField : key, value])
    ))
}

const orderIn = (profile: VenueProfile, type: string): ActionOrder.ActionOrder | undefined => {
  const userSigned = UserSigned.find(type)
  return userSigned === undefined ? ActionOrder.l1(type) : UserSigned.order(profile)(userSigned)
}

const arrange = (profile: VenueProfile, type: KnownType, action: Action): Result.Result<Action, UnsignableAction> => {
  const { advice, documented, real } = formKeys[type]
  const has = (key: string) => Object.hasOwn(action, key)
  const keys = [...orderIn(profile, type) ?? []].flatMap(([key, { presence }]) =>
    presence !== "oneOf" || has(key) ? [key] : []
  )
  const forms = keys.every(has) ? real.filter(has).length : 0
  if (forms !== 1) {
    const detail = `${type} must have the members ${real.join(" or ")}`
    return Result.fail(
      forms > 1 || !has(documented)
        ? new UnsignableAction({ reason: "shape", path: [], detail })
        : new UnsignableAction({ reason: "documentedForm", path: [documented], detail: advice })
    )
  }
  return Result.succeed(Object.fromEntries(keys.map((key) => {
    const value = action[key]
    return [key, key === "validator" && Predicate.isString(value) ? value.toLowerCase() : value]
  })))
}

const single = (profile: VenueProfile, action: Action): Result.Result<Action, UnsignableAction> =>
  Result.flatMap(respell(profile, action), (respelled) => {
    const type = respelled["type"]
    if (!Predicate.isString(type)) return Result.succeed(respelled)
    if (hasDocumentedForm(type)) return arrange(profile, type, respelled)
    const order = ActionOrder.l1(type)
    return Result.succeed(order === undefined ? respelled : ActionOrder.arrange(order, respelled))
  })

const sortMembers = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sortMembers)
  return Predicate.isReadonlyObject(value)
    ? Object.fromEntries(
      Object.entries(value).toSorted(([a], [b]) => a < b ? -1 : 1).map(([name, item]) => [name, sortMembers(item)])
    )
    : value
}

const typeFirst = ({ type, ...members }: Action): Action => ({ type, ...members })

/** The index of an unknown member in its object that is tried last; most objects of actions have fewer members. */
const lastIndex = 8

/**
 * Generates forms in which an action with an unknown type or member can have been hashed, most likely first: as sent,
 * with its unknown members behind or between the known ones, without them, and with sorted members. Only the sender knows
 * the positions of unknown members. Generates nothing for any other action.
 */
const unknownForms = function*(profile: VenueProfile, action: Action): Generator<Action> {
  const type = action["type"]
  const order = Predicate.isString(type) ? orderIn(profile, type) : undefined
  if (order !== undefined && ActionOrder.isKnown(order, action)) return
  yield action
  if (order !== undefined) {
    yield ActionOrder.arrangeAround(order, action, Infinity)
    yield ActionOrder.arrangeAround(order, action, undefined)
    for (let at = lastIndex; at >= 0; at--) yield ActionOrder.arrangeAround(order, action, at)
  }
  const sorted = sortMembers(action)
  yield typeFirst(action)
  if (Predicate.isReadonlyObject(sorted)) yield* [typeFirst(sorted), sorted]
}

/**
 * Converts an action to the form in which its multi-sig wrapper is hashed. Fails with `UnsignableAction`, also for a
 * nested wrapper.
 *
 * The key order of a user-signed action matters only inside a wrapper, which is hashed whole. Outside a wrapper, the
 * action is signed field by field.
 */
export const canonicalizeInner = (
  profile: VenueProfile,
  action: Action
): Result.Result<Action, UnsignableAction> =>
  action["type"] === "multiSig"
    ? Result.fail(wrongShape("type", "an action type other than multiSig"))
    : Result.map(single(profile, action), (spelled) => {
      const type = UserSigned.find(spelled["type"])
      return type === undefined ? spelled : ActionOrder.arrange(UserSigned.order(profile)(type), spelled)
    })

/**
 * Like {@link canonicalize}, for a decoded multi-sig wrapper.
 *
 * Also converts the inner action. Fails with `UnsignableAction`, also for a nested wrapper.
 */
export const canonicalizeMultiSig = (
  profile: VenueProfile,
  wrapper: MultiSig.Wrapper
): Result.Result<CanonicalAction, UnsignableAction> =>
  Result.mapBoth(canonicalizeInner(profile, wrapper.payload.action), {
    onFailure: (error) => error.within("payload", "action"),
    onSuccess: (action): CanonicalAction => ({
      kind: "multiSig",
      action: MultiSig.normalize({ ...wrapper, payload: { ...wrapper.payload, action } })
    })
  })

/**
 * Converts an action to the venue's form. Fails with `UnsignableAction`, also for a wrapper inside a wrapper.
 *
 * `multiSig`, `evmUserModify`, `CSignerAction` and `tokenDelegate` get the venue's key order, lower-case addresses and
 * the profile's chain field, and lose members that the venue ignores. Actions with published members get the venue's
 * order at every level ({@link ActionOrder.l1}). All other actions keep their own order.
 */
export const canonicalize = (
  profile: VenueProfile,
  action: unknown
): Result.Result<CanonicalAction, UnsignableAction> => {
  if (!Predicate.isReadonlyObject(action)) return Result.fail(wrongShape("action", "an object"))
  return action["type"] === "multiSig"
    ? Result.flatMap(MultiSig.read(action), (wrapper) => canonicalizeMultiSig(profile, wrapper))
    : Result.map(single(profile, action), (action) => ({ kind: "single", action }))
}

/**
 * Generates other forms in which an action whose type or members are unknown can have been hashed, most likely first.
 * `sent` is the action as sent or, for a wrapper, its inner action. A known signer confirms a form; without one,
 * {@link canonicalize} returns the most likely form.
 */
export const otherForms = function*(
  profile: VenueProfile,
  { action, kind }: CanonicalAction,
  sent: Action
): Generator<CanonicalAction> {
  const spelled = Result.getOrElse(respell(profile, sent), () => sent)
  if (kind === "multiSig") {
    for (const form of unknownForms(profile, spelled)) {
      yield { kind, action: { ...action, payload: { ...action.payload, action: form } } }
    }
  } else if (UserSigned.find(spelled["type"]) === undefined) {
    for (const form of unknownForms(profile, spelled)) yield { kind, action: form }
  }
}
