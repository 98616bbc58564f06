/** One way to read a request: what would be hashed and signed if a program did everything else as the venue does. */
import type { Difference, Mistake } from "@trigate/domain/Inspection"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ActionForm from "../actions/ActionForm.ts"
import * as ActionHash from "../actions/ActionHash.ts"
import type { Action, CanonicalAction } from "../actions/CanonicalAction.ts"
import * as Signable from "../actions/Signable.ts"
import * as UserSigned from "../actions/UserSigned.ts"
import { type Hex, toUint64 } from "../internal/bytes.ts"
import * as MultiSig from "../multisig/MultiSig.ts"
import type { VenueProfile } from "../VenueProfile.ts"

/** Whose signature is examined: the request's own, or those inside a multi-sig wrapper. */
export type Part = "outer" | "inner"

/** A change to a value before it is hashed; `sent` is its counterpart in the body as it was sent. */
export type Rewrite = (value: unknown, sent: unknown) => unknown

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
  readonly hash: (value: unknown, context: ActionHash.HashContext) => Result.Result<Hex, unknown>
  /** Applied to the typed data. */
  readonly reshape: (signable: Signable.Signable) => Signable.Signable
  readonly digest: (signable: Signable.Signable) => Hex
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
  hash: ActionHash.hash,
  reshape: (signable) => signable,
  digest: Signable.digest,
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

const agentDigest = (view: View, value: unknown): Result.Result<Hex, unknown> =>
  Result.map(
    view.hash(value, view.context),
    (hash) => view.digest(view.reshape(ActionHash.agentSignable(view.profile, hash)))
  )

/** The digest that is signed for a part under a view; `sent` is the action as it was sent. */
export const digestOf = (view: View, part: Part, sent: unknown): Result.Result<Hex, unknown> =>
  Result.gen(function*() {
    const { action, context, profile } = view
    const whole = wholeOf(view)
    const signed = (signable: Signable.Signable) => view.digest(view.reshape(signable))
    if (whole !== undefined && part === "outer") {
      const hash = yield* view.hash(hashedOf(view, part, sent).value, context)
      return signed(yield* MultiSig.leaderSignable(profile, whole.signatureChainId, hash, context.nonce))
    }
    const parties = view.wrapped ? whole?.payload : undefined
    const scheme = yield* UserSigned.schemeOf(action)
    if (scheme.scheme === "userSigned" && !view.asL1) {
      return signed(
        parties === undefined
          ? yield* UserSigned.signable(profile, scheme.type, action)
          : yield* UserSigned.innerSignable(profile, scheme.type, action, parties)
      )
    }
    if (whole === undefined || parties === undefined) return yield* agentDigest(view, hashedOf(view, part, sent).value)
    const payload = memberOf(sent, "payload")
    const sentValue = [
      memberOf(payload, "multiSigUser"),
      memberOf(payload, "outerSigner"),
      memberOf(payload, "action")
    ]
    return yield* agentDigest(view, view.rewrite(MultiSig.innerValue(whole), sentValue))
  })

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
