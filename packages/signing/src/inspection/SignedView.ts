/** One way to read a request: what would be hashed and signed if a program did everything else as the venue does. */
import type { Difference, Mistake } from "@trigate/domain/Inspection"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ActionForm from "../actions/ActionForm.ts"
import * as ActionHash from "../actions/ActionHash.ts"
import type { Action, CanonicalAction } from "../actions/CanonicalAction.ts"
import * as MsgPack from "../actions/MsgPack.ts"
import * as Signable from "../actions/Signable.ts"
import * as UserSigned from "../actions/UserSigned.ts"
import { concat, fromHex, isAddress, keccak256, toHex, toUint64, uint64Bytes } from "../internal/bytes.ts"
import * as Loose from "../internal/looseEncoding.ts"
import * as MultiSig from "../multisig/MultiSig.ts"
import type { VenueProfile } from "../VenueProfile.ts"

/** Whose signature is examined: the request's own, or those inside a multi-sig wrapper. */
export type Part = "outer" | "inner"

/** A change to a value before it is hashed; `sent` is its counterpart in the body as it was sent. */
export type Rewrite = (value: unknown, sent: unknown) => unknown

/** The bytes that are hashed: the action, then what stands beside it; empty where there is nothing. */
export interface Preimage {
  readonly action: Uint8Array
  readonly nonce: Uint8Array
  readonly vault: Uint8Array
  readonly expires: Uint8Array
}

/** A way to read a request. */
export interface View {
  readonly profile: VenueProfile
  /** The wrapper, where there is one; its inner action is {@link View.action}. */
  readonly wrapper: MultiSig.MultiSigAction | undefined
  /** The single action, or the one inside the wrapper, in the venue's form. */
  readonly action: Action
  readonly context: ActionHash.HashContext
  /** Applied to what is hashed. */
  readonly rewrite: Rewrite
  /** How the action is written before it is hashed; `undefined` is the venue's encoder. */
  readonly encoding: Loose.Encoding | undefined
  /** Whether JSON is hashed instead of MessagePack. */
  readonly json: Loose.JsonStyle | undefined
  /** Puts the bytes that are hashed together; `undefined` is the venue's order, with its markers. */
  readonly arrange: ((parts: Preimage, context: ActionHash.HashContext) => Uint8Array) | undefined
  readonly hashBytes: (bytes: Uint8Array) => Uint8Array
  /** Applied to the typed data. */
  readonly reshape: (signable: Signable.Signable) => Signable.Signable
  readonly digest: (signable: Signable.Signable) => Uint8Array
  /** The typed data that an L1 action was signed as, instead of as the agent. */
  readonly asTyped: ((action: Action) => Signable.Signable | undefined) | undefined
  /** Whether the leader signed what co-signers sign, or a co-signer what the leader signs. */
  readonly otherPart: boolean
  /** Whether inner signers name the account and the leader. */
  readonly wrapped: boolean
  /** Whether a user-signed action is hashed whole, as an L1 action is. */
  readonly asL1: boolean
}

/** The right way to read a request; `canonical` is its action. */
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

/** Where an action repeats the nonce of its body: every user-signed one does, and some L1 actions. */
export const nonceKey = ({ action, context }: View): string | undefined =>
  ["nonce", "time"].find((key) => {
    const value = toUint64(action[key])
    return value !== undefined && ("signatureChainId" in action || value === BigInt(context.nonce))
  })

/** The view with another nonce, beside the action and in it. */
export const withNonce = (view: View, nonce: bigint): View => {
  const key = nonceKey(view)
  return {
    ...view,
    context: { ...view.context, nonce },
    action: key === undefined ? view.action : { ...view.action, [key]: nonce }
  }
}

/** The view for another profile, in an action that names its network too. */
export const withProfile = (view: View, profile: VenueProfile): View => ({
  ...view,
  profile,
  action: Object.fromEntries(
    Object.entries(view.action).map(([key, value]) =>
      key === view.profile.chainField ? [profile.chainField, profile.chainName] : [key, value]
    )
  )
})

/** The view under another chain id, in the action and in the wrapper. */
export const withChainId = (view: View, signatureChainId: string): View => ({
  ...view,
  action: "signatureChainId" in view.action ? { ...view.action, signatureChainId } : view.action,
  wrapper: view.wrapper === undefined ? undefined : { ...view.wrapper, signatureChainId }
})

/** The view with one more rewriting of what is hashed. */
export const withRewrite = (view: View, rewrite: Rewrite): View => ({
  ...view,
  rewrite: (value, sent) => rewrite(view.rewrite(value, sent), sent)
})

/** A member or an item, own ones only. */
export const memberOf = (value: unknown, key: string | number): unknown =>
  Predicate.isObjectOrArray(value) && Object.hasOwn(value, key) && Predicate.hasProperty(value, key)
    ? value[key]
    : undefined

/** Where the action of a view stands in the body. */
export const actionPath = ({ wrapper }: View): ActionForm.Path =>
  wrapper === undefined ? ["action"] : ["action", "payload", "action"]

interface Hashed {
  readonly value: unknown
  readonly sent: unknown
  readonly path: ActionForm.Path
}

const wholeOf = ({ action, wrapper }: View): MultiSig.MultiSigAction | undefined =>
  wrapper === undefined ? undefined : { ...wrapper, payload: { ...wrapper.payload, action } }

/** What of a view is hashed for a part, beside its counterpart in the action that was sent. */
const hashedOf = (view: View, part: Part, sent: unknown): Hashed => {
  const whole = wholeOf(view)
  if (whole !== undefined && part === "outer") {
    return { value: view.rewrite(MultiSig.hashedWrapper(whole), sent), sent, path: ["action"] }
  }
  const sentAction = whole === undefined ? sent : memberOf(memberOf(sent, "payload"), "action")
  return { value: view.rewrite(view.action, sentAction), sent: sentAction, path: actionPath(view) }
}

const noBytes = new Uint8Array(0)

const encoded = ({ encoding, json }: View, value: unknown): Result.Result<Uint8Array, unknown> => {
  if (json !== undefined) return Result.succeed(Loose.encodeJson(json, value))
  return encoding === undefined ? MsgPack.encode(value) : Result.succeed(Loose.encode(encoding, value))
}

const hashed = (view: View, value: unknown): Result.Result<Uint8Array, unknown> => {
  const { arrange, context, hashBytes } = view
  const { expiresAfter, vaultAddress } = context
  const nonce = toUint64(context.nonce)
  const expires = expiresAfter === null || expiresAfter === undefined ? undefined : toUint64(expiresAfter)
  if (nonce === undefined) return Result.fail("nonce")
  return Result.map(encoded(view, value), (action) => {
    const parts: Preimage = {
      action,
      nonce: uint64Bytes(nonce),
      vault: isAddress(vaultAddress) ? fromHex(vaultAddress) : noBytes,
      expires: expires === undefined ? noBytes : uint64Bytes(expires)
    }
    return hashBytes(arrange === undefined ? venuePreimage(parts) : arrange(parts, context))
  })
}

/** The venue's order: a marker before the vault, 1 or 0, and a 0 before the expiry where there is one. */
export const venuePreimage = ({ action, expires, nonce, vault }: Preimage): Uint8Array =>
  concat(
    action,
    nonce,
    Uint8Array.of(vault.length === 0 ? 0 : 1),
    vault,
    expires.length === 0 ? noBytes : Uint8Array.of(0),
    expires
  )

type SignableOf = Result.Result<Signable.Signable, unknown>

const agentOf = (view: View, value: unknown): SignableOf =>
  Result.map(hashed(view, value), (hash) => ActionHash.agentSignable(view.profile, toHex(hash)))

const innerSignable = (view: View, whole: MultiSig.MultiSigAction | undefined, sent: unknown): SignableOf => {
  const { action, asTyped, profile } = view
  const parties = view.wrapped ? whole?.payload : undefined
  const scheme = UserSigned.schemeOf(action)
  if (Result.isFailure(scheme)) return Result.fail<unknown>(scheme.failure)
  if (scheme.success.scheme === "userSigned" && !view.asL1) {
    const { type } = scheme.success
    return parties === undefined
      ? UserSigned.signable(profile, type, action)
      : UserSigned.innerSignable(profile, type, action, parties)
  }
  if (asTyped !== undefined) {
    const signable = asTyped(action)
    return signable === undefined ? Result.fail<unknown>("typed") : Result.succeed(signable)
  }
  if (whole === undefined || parties === undefined) return agentOf(view, hashedOf(view, "inner", sent).value)
  const payload = memberOf(sent, "payload")
  const sentValue = [
    memberOf(payload, "multiSigUser"),
    memberOf(payload, "outerSigner"),
    memberOf(payload, "action")
  ]
  return agentOf(view, view.rewrite(MultiSig.innerValue(whole), sentValue))
}

/** The typed data of a part under a view, before they are reshaped. */
const signableOf = (view: View, given: Part, sent: unknown): SignableOf => {
  const part = view.otherPart ? given === "outer" ? "inner" : "outer" : given
  const whole = wholeOf(view)
  if (whole === undefined || part === "inner") return innerSignable(view, whole, sent)
  const { value } = hashedOf(view, part, sent)
  return view.asL1
    ? agentOf(view, value)
    : Result.flatMap(
      hashed(view, value),
      (hash) => MultiSig.leaderSignable(view.profile, whole.signatureChainId, toHex(hash), view.context.nonce)
    )
}

/** Whether two views have the same typed data before they are reshaped. */
const isAlike = (a: View, b: View): boolean =>
  a.profile === b.profile && a.wrapper === b.wrapper && a.action === b.action && a.context === b.context &&
  a.rewrite === b.rewrite && a.encoding === b.encoding && a.json === b.json && a.arrange === b.arrange &&
  a.hashBytes === b.hashBytes && a.asTyped === b.asTyped && a.otherPart === b.otherPart && a.wrapped === b.wrapped &&
  a.asL1 === b.asL1

/** The digest that is signed for a part under a view. */
export type DigestOf = (view: View) => Result.Result<Uint8Array, unknown>

/**
 * Makes the digests of views; `sent` is the action as it was sent.
 *
 * Views that only reshape the typed data share what is hashed: that of `right`, and of the view before.
 */
export const digester = (right: View, part: Part, sent: unknown): DigestOf => {
  let first: SignableOf | undefined
  let last = right
  let lastSignable: SignableOf | undefined
  const signable = (view: View): SignableOf => {
    if (isAlike(view, right)) return first ??= signableOf(right, part, sent)
    if (lastSignable === undefined || !isAlike(view, last)) {
      lastSignable = signableOf(view, part, sent)
      last = view
    }
    return lastSignable
  }
  return (view) => {
    const found = signable(view)
    return Result.isFailure(found)
      ? Result.fail(found.failure)
      : Result.succeed(view.digest(view.reshape(found.success)))
  }
}

/** The digest that is signed for a part under a view; `sent` is the action as it was sent. */
export const digestOf = (view: View, part: Part, sent: unknown): Result.Result<Uint8Array, unknown> =>
  digester(view, part, sent)(view)

/** The typed data of a part under a view, reshaped as the view says; `undefined` where there are none. */
export const typedOf = (view: View, part: Part, sent: unknown): Signable.Signable | undefined => {
  const found = signableOf(view, part, sent)
  return Result.isFailure(found) ? undefined : view.reshape(found.success)
}

const maxDifferences = 16

/** Where two values differ: values, members that only one has, and the order of members that both have. */
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

/** What a view hashes otherwise than the right one, each place as a mistake of that name. */
export const mistakesBetween = (
  mistake: Mistake["mistake"],
  view: View,
  rightView: View,
  part: Part,
  sent: unknown
): ReadonlyArray<Mistake> => {
  const hashed = hashedOf(view, part, sent)
  const found = differences(hashed.value, hashedOf(rightView, part, sent).value, hashed.path).slice(0, maxFindings)
  return found.length === 0 ? [{ mistake, path: [] }] : found.map((difference) => mistakeAt(mistake, difference))
}
