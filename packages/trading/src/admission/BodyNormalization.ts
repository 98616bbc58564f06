/**
 * Finds the mistakes in a signed body that do not depend on the signer. Returns the body's action as the venue would
 * serialize it.
 */
import { formKeys, hasDocumentedForm } from "@trigate/domain/actions/Action"
import { isActionType } from "@trigate/domain/actions/ActionCatalog"
import type { Mistake } from "@trigate/domain/Inspection"
import * as ActionForm from "@trigate/signing/actions/ActionForm"
import * as ActionNames from "@trigate/signing/actions/ActionNames"
import * as ActionOrder from "@trigate/signing/actions/ActionOrder"
import type { Action, CanonicalAction } from "@trigate/signing/actions/CanonicalAction"
import * as UserSigned from "@trigate/signing/actions/UserSigned"
import * as SigningMistake from "@trigate/signing/inspection/SigningMistake"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ActionDecoder from "./ActionDecoder.ts"
import type { ReadBody } from "./ActionDecoder.ts"

/** The mistakes in a body, and its action with the correctable mistakes corrected. */
export interface BodyNormalization {
  readonly mistakes: ReadonlyArray<Mistake>
  /** The types, members and words of the corrected action that the catalog lacks, one clause each. */
  readonly unknown: ReadonlyArray<string>
  /** The action with its mistakes corrected; absent if the action has no canonical form. */
  readonly mended: CanonicalAction | undefined
}

/** The mistake that does not affect the signature of a user-signed action: its addresses are signed as bytes. */
const beside: Mistake["mistake"] = "letterCase"

const typeForm = (profile: VenueProfile, action: Action, path: ActionForm.Path): ActionForm.Form | undefined => {
  const type = String(action["type"])
  const meant = isActionType(type) ? undefined : ActionNames.nearestType(type)
  if (meant === undefined) return undefined
  const form = actionForm(profile, { ...action, type: meant }, path)
  return {
    value: form.value,
    faults: [
      { mistake: "unknownType", path: [...path, "type"], found: JSON.stringify(type), expected: JSON.stringify(meant) },
      ...form.faults
    ]
  }
}

const actionForm = (profile: VenueProfile, action: Action, path: ActionForm.Path, isHashed = true): ActionForm.Form => {
  const type = UserSigned.find(action["type"])
  if (type === undefined) {
    const order = ActionOrder.l1(action["type"])
    if (order === undefined) return typeForm(profile, action, path) ?? { value: action, faults: [] }
    const form = ActionForm.normalizeAction(order, action, path)
    return Predicate.isReadonlyObject(form.value) ? { ...form, value: ActionOrder.arrange(order, form.value) } : form
  }
  const order = UserSigned.order(profile)(type)
  const form = ActionForm.normalizeAction(order, action, path, isHashed)
  return isHashed ? form : { ...form, faults: form.faults.filter(({ mistake }) => mistake !== beside) }
}

const asAction = ({ value }: ActionForm.Form, otherwise: Action): Action =>
  Predicate.isReadonlyObject(value) ? value : otherwise

/** Units, other than milliseconds, in which clients send timestamps. The magnitude of a timestamp shows its unit. */
const units = [
  { from: 5e8, to: 1e11, name: "seconds", toMillis: (time: bigint) => time * 1000n },
  { from: 1e14, to: 1e17, name: "microseconds", toMillis: (time: bigint) => time / 1000n },
  { from: 1e17, to: 1e20, name: "nanoseconds", toMillis: (time: bigint) => time / 1_000_000n }
] as const

const timeMistake = (path: ActionForm.Path, value: unknown): ReadonlyArray<Mistake> => {
  if (!Predicate.isNumber(value) && !Predicate.isBigInt(value)) return []
  const unit = units.find(({ from, to }) => value >= from && value < to)
  return unit === undefined || !Number.isInteger(Number(value)) ? [] : [{
    mistake: "timeUnit",
    path,
    found: `${value} (${unit.name})`,
    expected: String(unit.toMillis(BigInt(value)))
  }]
}

const actionNonceMistakes = ({ action, path }: ActionDecoder.Placed, nonce: number): ReadonlyArray<Mistake> => {
  const type = UserSigned.find(action["type"])
  const field = type === undefined ? "nonce" : UserSigned.nonceField(type)?.name ?? "nonce"
  const inner = action[field]
  const unit = timeMistake([...path, field], inner)
  const isScheduled = action["type"] === "scheduleCancel"
  if (isScheduled) return timeMistake([...path, "time"], action["time"])
  if (!Predicate.isNumber(inner) || inner === nonce) return type === undefined ? [] : unit
  if (unit.length > 0) return unit
  // the signature covers the action's own nonce, or, for the inner action of a multi-sig, the nonce of the body
  return [{
    mistake: "otherNonce",
    path: path.length === 1 ? ["nonce"] : [...path, field],
    found: String(path.length === 1 ? nonce : inner),
    expected: String(path.length === 1 ? inner : nonce)
  }]
}

const nonceMistakes = (body: ReadBody): ReadonlyArray<Mistake> => {
  const { expiresAfter, nonce } = body.signed
  const unit = timeMistake(["nonce"], nonce)
  return [
    ...unit,
    ...timeMistake(["expiresAfter"], expiresAfter),
    ...ActionDecoder.actionsIn(body).flatMap((placed) => actionNonceMistakes(placed, nonce))
      .filter(({ mistake }) => mistake !== "otherNonce" || unit.length === 0)
  ]
}

const bitMistake = (v: unknown, path: ActionForm.Path): ReadonlyArray<Mistake> =>
  v === 0 || v === 1
    ? [{ mistake: "recoveryBitForm", path: [...path, "v"], found: String(v), expected: String(v + 27) }]
    : []

const signatureMistakes = ({ action, signed: { signature } }: ReadBody): ReadonlyArray<Mistake> => [
  ...bitMistake(signature.v, ["signature"]),
  ...(action?.type === "multiSig"
    ? action.signatures.flatMap(({ v }, index) => bitMistake(v, ["action", "signatures", index]))
    : [])
]

const documentedMistakes = (body: ReadBody): ReadonlyArray<Mistake> =>
  ActionDecoder.documentedForms(body).map(({ path }): Mistake => {
    const inner = path.length > 2 && body.action?.type === "multiSig" ? body.action.payload.action : body.signed.action
    return {
      mistake: "documentedForm",
      path: [...path],
      found: String(path.at(-1)),
      expected: hasDocumentedForm(inner.type) ? formKeys[inner.type].real.join(" or ") : ""
    }
  })

/** Describes what a body has and the catalog lacks, except the parts that are mistakes. */
const unexplainedParts = (body: ReadBody, mistakes: ReadonlyArray<Mistake>): ReadonlyArray<string> =>
  ActionDecoder.actionsIn(body).flatMap((placed) =>
    ActionDecoder.describeUnknown(
      placed,
      (part) => !mistakes.some(({ path }) => part.path.every((key, at) => key === path[at]))
    )
  )

// maximum number of reported mistakes: a body with a thousand orders could otherwise produce thousands
const maxMistakes = 16

/**
 * Returns the mistakes in a body, and the body's action with the correctable mistakes corrected. `canonical` is the
 * action in the form that is hashed.
 */
export const of = (
  profile: VenueProfile,
  body: ReadBody,
  canonical: CanonicalAction | undefined
): BodyNormalization => {
  const others = [...documentedMistakes(body), ...nonceMistakes(body), ...signatureMistakes(body)]
  const normalization = (faults: ReadonlyArray<Mistake>, mended: CanonicalAction | undefined): BodyNormalization => ({
    mistakes: [...faults, ...others].slice(0, maxMistakes),
    unknown: unexplainedParts(body, [...faults, ...others]),
    mended
  })
  if (canonical === undefined) return normalization([], undefined)
  if (canonical.kind === "single") {
    const form = actionForm(profile, canonical.action, ["action"], false)
    return normalization(form.faults, { kind: "single", action: asAction(form, canonical.action) })
  }
  const wrapper = canonical.action
  const form = actionForm(profile, wrapper.payload.action, ["action", "payload", "action"])
  const payload = { ...wrapper.payload, action: asAction(form, wrapper.payload.action) }
  return normalization(form.faults, { kind: "multiSig", action: { ...wrapper, payload } })
}

/** Returns the mistakes in an unsigned action, one sentence each, in ASCII without line breaks. */
export const ofAction = (profile: VenueProfile, action: Action): ReadonlyArray<string> =>
  actionForm(profile, action, ["action"]).faults.slice(0, maxSentences)
    .map((mistake) => SigningMistake.mistakeClause(profile, mistake))

/** Maximum number of mistakes that are described in sentences. */
const maxSentences = 4

/**
 * Returns the mistakes in a body, one sentence each. They are ASCII without line breaks, so that they fit into a
 * header.
 */
export const sentences = (profile: VenueProfile, body: ReadBody): ReadonlyArray<string> =>
  of(profile, body, Result.getOrUndefined(ActionDecoder.canonicalAction(profile, body))).mistakes
    // omits the use of a documented form that the venue does not accept, because a warning already reports it
    .filter(({ mistake }) => mistake !== "documentedForm").slice(0, maxSentences)
    .map((mistake) => SigningMistake.mistakeClause(profile, mistake))
