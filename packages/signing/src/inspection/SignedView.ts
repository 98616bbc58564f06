/** A view of a request: a hypothesis about how the signer deviated from the venue's hashing and signing. */
import type { Difference, Mistake } from "@trigate/domain/Inspection"
import * as Predicate from "effect/Predicate"
import * as ActionForm from "../actions/ActionForm.ts"
import type * as ActionHash from "../actions/ActionHash.ts"
import type { Action, CanonicalAction } from "../actions/CanonicalAction.ts"
import * as Signable from "../actions/Signable.ts"
import { keccak256, toUint64 } from "../internal/bytes.ts"
import * as Loose from "../internal/looseEncoding.ts"
import * as MultiSig from "../multisig/MultiSig.ts"
import type { VenueProfile } from "../VenueProfile.ts"

/**
 * The signatures that are examined: the signature of the request itself, or the signatures inside a multi-sig wrapper.
 */
export type Part = "outer" | "inner"

/** Changes a value before it is hashed; `sent` is the corresponding value in the body as sent. */
export type Rewrite = (value: unknown, sent: unknown) => unknown

/** The hashed bytes: the action, then its context (nonce, vault, expiry). The bytes of an absent value are empty. */
export interface Preimage {
  readonly action: Uint8Array
  readonly nonce: Uint8Array
  readonly vault: Uint8Array
  readonly expires: Uint8Array
}

/** A hypothesis about how a request was signed: the function or value for each step of signing. */
export interface View {
  readonly profile: VenueProfile
  /** The multi-sig wrapper, if any; {@link View.action} replaces its inner action. */
  readonly wrapper: MultiSig.MultiSigAction | undefined
  /** The action in the venue's form; for a wrapper, its inner action. */
  readonly action: Action
  readonly context: ActionHash.HashContext
  /** Changes the action, or the value that contains it, before it is encoded and hashed. */
  readonly rewrite: Rewrite
  /** The encoding of the action before it is hashed; `undefined` for the venue's encoding. */
  readonly encoding: Loose.Encoding | undefined
  /** The style of JSON to hash instead of MessagePack. */
  readonly json: Loose.JsonStyle | undefined
  /** Concatenates the parts of the hashed bytes; `undefined` for the venue's order, with its marker bytes. */
  readonly arrange: ((parts: Preimage, context: ActionHash.HashContext) => Uint8Array) | undefined
  readonly hashBytes: (bytes: Uint8Array) => Uint8Array
  /** Changes the typed data. */
  readonly reshape: (signable: Signable.Signable) => Signable.Signable
  readonly digest: (signable: Signable.Signable) => Uint8Array
  /**
   * Makes the typed data that the signer signed for an L1 action, if it was not the phantom agent (the venue's typed
   * data, which contains the action only as a hash); `undefined` if the signer signed the phantom agent.
   */
  readonly asTyped: ((action: Action) => Signable.Signable | undefined) | undefined
  /**
   * Whether the signer signed the message of the other role: the leader signed the co-signers' message, or a co-signer
   * signed the leader's message.
   */
  readonly otherPart: boolean
  /** Whether the message of the inner signers contains the addresses of the multi-sig account and the leader. */
  readonly wrapped: boolean
  /** Whether a user-signed action is hashed as a whole, like an L1 action. */
  readonly asL1: boolean
}

/**
 * Members of a view that only one mistake can change. Two mistakes cannot be combined if both change the same member in
 * this list.
 */
const exclusive = ["profile", "wrapper", "json", "arrange", "hashBytes", "digest", "asTyped"] as const

/** Returns the correct view of a request; `canonical` is the request's action in the venue's form. */
export const right = (profile: VenueProfile, canonical: CanonicalAction, context: ActionHash.HashContext): View => ({
  profile,
  ...(canonical.kind === "multiSig"
    ? { wrapper: canonical.action, action: canonical.action.payload.action }
    : { wrapper: undefined, action: canonical.action }),
  context,
  rewrite: (value) => value,
  encoding: undefined,
  json: undefined,
  arrange: undefined,
  hashBytes: keccak256,
  reshape: (signable) => signable,
  digest: Signable.digestBytes,
  asTyped: undefined,
  otherPart: false,
  wrapped: true,
  asL1: false
})

/**
 * Returns the member that repeats the nonce of the body. All user-signed actions and some L1 actions have such a
 * member.
 */
export const nonceKey = ({ action, context }: View): string | undefined =>
  ["nonce", "time"].find((key) => {
    const value = toUint64(action[key])
    return value !== undefined && ("signatureChainId" in action || value === BigInt(context.nonce))
  })

/** Returns a copy of the view in which `nonce` is the nonce of both the envelope and the action. */
export const withNonce = (view: View, nonce: bigint): View => {
  const key = nonceKey(view)
  return {
    ...view,
    context: { ...view.context, nonce },
    action: key === undefined ? view.action : { ...view.action, [key]: nonce }
  }
}

/** Returns a copy of the view for the given profile, in which the action also names the profile's network. */
export const withProfile = (view: View, profile: VenueProfile): View => ({
  ...view,
  profile,
  action: view.profile.chainField in view.action
    ? Object.fromEntries(
      Object.entries(view.action).map(([key, value]) =>
        key === view.profile.chainField ? [profile.chainField, profile.chainName] : [key, value]
      )
    )
    : view.action
})

/** Returns a copy of the view in which `signatureChainId` is the chain ID of both the action and the wrapper. */
export const withChainId = (view: View, signatureChainId: string): View => ({
  ...view,
  action: "signatureChainId" in view.action ? { ...view.action, signatureChainId } : view.action,
  wrapper: view.wrapper === undefined ? undefined : { ...view.wrapper, signatureChainId }
})

/** Returns a copy of the view with one more rewrite of the hashed value. */
export const withRewrite = (view: View, rewrite: Rewrite): View => ({
  ...view,
  rewrite: (value, sent) => rewrite(view.rewrite(value, sent), sent)
})

/**
 * Combines two changes of an action's members; `undefined` if both change the same member, or if both change the order.
 */
const combinedActions = (right: Action, first: Action, second: Action): Action | undefined => {
  if (second === right) return first
  if (first === right) return second
  const names = Object.keys(right)
  if ([first, second].some((each) => Object.keys(each).join() !== names.join())) return undefined
  if (names.some((name) => first[name] !== right[name] && second[name] !== right[name])) return undefined
  return Object.fromEntries(names.map((name) => [name, second[name] === right[name] ? first[name] : second[name]]))
}

/**
 * Combines two views of the same request: the changes of `first`, then those of `second`.
 *
 * Rewrites, encodings and changes of the typed data are composed. Returns `undefined` if the views conflict, for
 * example if both change the same member of the action.
 */
export const combined = (right: View, first: View, second: View): View | undefined => {
  const action = combinedActions(right.action, first.action, second.action)
  const isChanged = (view: View, name: keyof View): boolean => view[name] !== right[name]
  const isFree = (name: keyof View): boolean => !isChanged(first, name) || !isChanged(second, name)
  if (action === undefined || !exclusive.every(isFree)) return undefined
  const later = <Name extends keyof View>(name: Name): View[Name] =>
    isChanged(second, name) ? second[name] : first[name]
  const inContext = <Name extends keyof ActionHash.HashContext>(name: Name): ActionHash.HashContext[Name] =>
    second.context[name] === right.context[name] ? first.context[name] : second.context[name]
  const [one, other] = [first.encoding, second.encoding]
  return {
    profile: later("profile"),
    wrapper: later("wrapper"),
    action,
    context: isFree("context")
      ? later("context")
      : {
        nonce: inContext("nonce"),
        vaultAddress: inContext("vaultAddress"),
        expiresAfter: inContext("expiresAfter")
      },
    rewrite: isFree("rewrite")
      ? later("rewrite")
      : (value, sent) => second.rewrite(first.rewrite(value, sent), sent),
    encoding: one === undefined || other === undefined ? other ?? one : Loose.combined(one, other),
    json: later("json"),
    arrange: later("arrange"),
    hashBytes: later("hashBytes"),
    reshape: isFree("reshape") ? later("reshape") : (signable) => second.reshape(first.reshape(signable)),
    digest: later("digest"),
    asTyped: later("asTyped"),
    otherPart: later("otherPart"),
    wrapped: later("wrapped"),
    asL1: later("asL1")
  }
}

/** Returns an object's own member, or a list's item. */
export const readMember = (value: unknown, key: string | number): unknown =>
  Predicate.isObjectOrArray(value) && Object.hasOwn(value, key) && Predicate.hasProperty(value, key)
    ? value[key]
    : undefined

/** Returns the path of a view's action in the body. */
export const actionPath = ({ wrapper }: View): ActionForm.Path =>
  wrapper === undefined ? ["action"] : ["action", "payload", "action"]

/** A hashed value and the corresponding sent value. */
export interface Hashed {
  readonly value: unknown
  readonly sent: unknown
  readonly path: ActionForm.Path
}

/** Returns the multi-sig wrapper around a view's action; `undefined` without a wrapper. */
export const viewWrapper = ({ action, wrapper }: View): MultiSig.MultiSigAction | undefined =>
  wrapper === undefined ? undefined : { ...wrapper, payload: { ...wrapper.payload, action } }

/**
 * Returns the value that is hashed for the outer or inner signatures according to a view, and the corresponding value
 * of the action `sent`.
 */
export const hashedValue = (view: View, part: Part, sent: unknown): Hashed => {
  const whole = viewWrapper(view)
  if (whole !== undefined && part === "outer") {
    return { value: view.rewrite(MultiSig.hashedWrapper(whole), sent), sent, path: ["action"] }
  }
  const sentAction = whole === undefined ? sent : readMember(readMember(sent, "payload"), "action")
  return { value: view.rewrite(view.action, sentAction), sent: sentAction, path: actionPath(view) }
}

const maxDifferences = 16

/**
 * Returns the differences between two values: unequal values, members that only one of them has, and a different order
 * of the members that both have.
 */
export const differences = (
  sent: unknown,
  canonical: unknown,
  path: ActionForm.Path = []
): ReadonlyArray<Difference> => {
  if (Array.isArray(sent) && Array.isArray(canonical) && sent.length === canonical.length) {
    return sent.flatMap((item: unknown, index) => differences(item, canonical[index], [...path, index]))
      .slice(0, maxDifferences)
  }
  if (!Predicate.isReadonlyObject(sent) || !Predicate.isReadonlyObject(canonical)) {
    const [left, right] = [ActionForm.quoted(sent), ActionForm.quoted(canonical)]
    return left === right ? [] : [{ path, sent: left, canonical: right }]
  }
  const found: Array<Difference> = []
  const common = Object.keys(sent).filter((key) => Object.hasOwn(canonical, key)).join(", ")
  const ordered = Object.keys(canonical).filter((key) => Object.hasOwn(sent, key)).join(", ")
  if (common !== ordered) found.push({ path, sent: common, canonical: ordered })
  for (const key of new Set([...Object.keys(canonical), ...Object.keys(sent)])) {
    if (found.length >= maxDifferences) break
    const at = [...path, key]
    if (!Object.hasOwn(sent, key)) found.push({ path: at, canonical: ActionForm.quoted(canonical[key]) })
    else if (!Object.hasOwn(canonical, key)) found.push({ path: at, sent: ActionForm.quoted(sent[key]) })
    else found.push(...differences(sent[key], canonical[key], at))
  }
  return found.slice(0, maxDifferences)
}

const maxFindings = 4

const mistakeAt = (mistake: Mistake["mistake"], { canonical, path, sent }: Difference): Mistake => ({
  mistake,
  path,
  ...(sent === undefined ? {} : { found: sent }),
  ...(canonical === undefined ? {} : { expected: canonical })
})

/** Returns the differences between a view's hashed value and the correct one, each as a mistake with the given name. */
export const mistakesBetween = (
  mistake: Mistake["mistake"],
  view: View,
  rightView: View,
  part: Part,
  sent: unknown
): ReadonlyArray<Mistake> => {
  const hashed = hashedValue(view, part, sent)
  const found = differences(hashed.value, hashedValue(rightView, part, sent).value, hashed.path).slice(0, maxFindings)
  return found.length === 0 ? [{ mistake, path: [] }] : found.map((difference) => mistakeAt(mistake, difference))
}
