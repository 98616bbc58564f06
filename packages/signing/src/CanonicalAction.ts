/** Actions as the venue prints them before hashing, whatever the order and spelling of the JSON that was sent. */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as MultiSigAction from "./MultiSigAction.ts"
import { UnsignableAction, wrongShape } from "./UnsignableAction.ts"
import { documentedChainField, type VenueProfile } from "./VenueProfile.ts"

/** An action as plain members, in hash order. */
export type Action = Readonly<Record<string, unknown>>

/** An action in the venue's form: a wrapper, or an action that wraps no other. */
export type CanonicalAction =
  | { readonly kind: "single"; readonly action: Action }
  | { readonly kind: "multiSig"; readonly action: MultiSigAction.MultiSigAction }

/** A known action: the venue's key orders for it, and the key that only the documented form has. */
interface Form {
  readonly type: string
  readonly orders: ReadonlyArray<ReadonlyArray<string>>
  readonly addresses: ReadonlyArray<string>
  readonly documentedKey: string
  readonly real: string
}

/** Orders use the documents' chain field; the profile's spelling replaces it on the way out. */
const forms: ReadonlyMap<unknown, Form> = new Map([
  {
    type: "evmUserModify",
    orders: [["type", "usingBigBlocks"]],
    addresses: [],
    documentedKey: "modifications",
    real: "boolean `usingBigBlocks`"
  },
  {
    type: "CSignerAction",
    orders: [["type", "jailSelf"], ["type", "unjailSelf"]],
    addresses: [],
    documentedKey: "payload",
    real: "`jailSelf` or `unjailSelf`, null"
  },
  {
    type: "tokenDelegate",
    orders: [["type", "signatureChainId", documentedChainField, "validator", "wei", "isUndelegate", "nonce"]],
    addresses: ["validator"],
    documentedKey: "amount",
    real: "integer `wei`"
  }
].map((form) => [form.type, form]))

const spell = (profile: VenueProfile, key: string): string => key === documentedChainField ? profile.chainField : key

const respell = (profile: VenueProfile, action: Action): Result.Result<Action, UnsignableAction> => {
  if (!Object.hasOwn(action, documentedChainField)) {
    return Result.succeed(action)
  }
  return Object.hasOwn(action, profile.chainField)
    ? Result.fail(wrongShape(documentedChainField, `absent where "${profile.chainField}" is given`))
    : Result.succeed(Object.fromEntries(Object.entries(action).map(([key, value]) => [spell(profile, key), value])))
}

const unknownForm = (profile: VenueProfile, form: Form, action: Action): UnsignableAction => {
  const complete = form.orders.some((keys) => keys.every((key) => Object.hasOwn(action, spell(profile, key))))
  return !complete && Object.hasOwn(action, form.documentedKey)
    ? new UnsignableAction({
      reason: "documentedForm",
      path: [form.documentedKey],
      detail: `The venue takes ${form.type} with ${form.real}, not with \`${form.documentedKey}\``
    })
    : new UnsignableAction({ reason: "shape", path: [], detail: `${form.type} takes ${form.real}` })
}

const arrange = (profile: VenueProfile, form: Form, action: Action): Result.Result<Action, UnsignableAction> => {
  const orders = form.orders.map((keys) => keys.map((key) => spell(profile, key)))
    .filter((keys) => keys.every((key) => Object.hasOwn(action, key)))
  const [keys] = orders
  if (keys === undefined || orders.length > 1) {
    return Result.fail(unknownForm(profile, form, action))
  }
  return Result.succeed(Object.fromEntries(keys.map((key) => {
    const value = action[key]
    return [key, form.addresses.includes(key) && Predicate.isString(value) ? value.toLowerCase() : value]
  })))
}

const single = (profile: VenueProfile, action: Action): Result.Result<Action, UnsignableAction> =>
  Result.flatMap(respell(profile, action), (respelled) => {
    const form = forms.get(respelled["type"])
    return form === undefined ? Result.succeed(respelled) : arrange(profile, form, respelled)
  })

const wrapper = (
  profile: VenueProfile,
  action: Action
): Result.Result<MultiSigAction.MultiSigAction, UnsignableAction> =>
  Result.gen(function*() {
    const read = yield* MultiSigAction.read(action)
    const inner = yield* (read.payload.action["type"] === "multiSig"
      ? Result.fail(wrongShape("type", "another than multiSig inside a wrapper"))
      : single(profile, read.payload.action)).pipe(
        Result.mapError((error) => error.within("payload", "action"))
      )
    return { ...read, payload: { ...read.payload, action: inner } }
  })

/**
 * Puts an action into the venue's form. Fails with `UnsignableAction`; a wrapper inside a wrapper is refused.
 *
 * The four known actions get the venue's key order, lower-case addresses and the profile's chain field; members that
 * the venue does not know are dropped from them, as its parser drops them. Actions of other types keep their order.
 */
export const canonicalize = (
  profile: VenueProfile,
  action: unknown
): Result.Result<CanonicalAction, UnsignableAction> => {
  if (!Predicate.isReadonlyObject(action)) {
    return Result.fail(wrongShape("action", "an object"))
  }
  return action["type"] === "multiSig"
    ? Result.map(wrapper(profile, action), (action) => ({ kind: "multiSig", action }))
    : Result.map(single(profile, action), (action) => ({ kind: "single", action }))
}
