/** What of a signed body is wrong by itself, whoever signed it, and its action as the venue would print it. */
import { formKeys, hasDocumentedForm } from "@trigate/domain/actions/Action"
import type { Mistake } from "@trigate/domain/Inspection"
import * as ActionForm from "@trigate/signing/actions/ActionForm"
import * as ActionOrder from "@trigate/signing/actions/ActionOrder"
import type { Action, CanonicalAction } from "@trigate/signing/actions/CanonicalAction"
import * as UserSigned from "@trigate/signing/actions/UserSigned"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Predicate from "effect/Predicate"
import * as ActionShape from "./ActionShape.ts"
import type { ReadBody } from "./ActionShape.ts"

/** The mistakes that a body shows, and its action without those that can be mended. */
export interface BodyForm {
  readonly mistakes: ReadonlyArray<Mistake>
  /** Absent for an action without a canonical form. */
  readonly mended: CanonicalAction | undefined
}

const actionForm = (profile: VenueProfile, action: Action, path: ActionForm.Path): ActionForm.Form => {
  const type = UserSigned.find(action["type"])
  if (type === undefined) {
    const order = ActionOrder.l1.get(String(action["type"]))
    return order === undefined ? { value: action, faults: [] } : ActionForm.formOf(order, action, path)
  }
  const form = ActionForm.formOf(UserSigned.order(profile)(type), action, path)
  // other members are not signed, addresses are signed as bytes, and what is missing is told by the failure to sign it
  return { ...form, faults: form.faults.filter(({ mistake }) => mistake === "valueType") }
}

const asAction = ({ value }: ActionForm.Form, otherwise: Action): Action =>
  Predicate.isReadonlyObject(value) ? value : otherwise

/** The units of times, by how many digits they have this century. */
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

const nonceMistakes = ({ signed }: ReadBody): ReadonlyArray<Mistake> => {
  const { action, expiresAfter, nonce } = signed
  const type = UserSigned.find(action.type)
  const field = type === undefined ? "nonce" : UserSigned.nonceField(type)?.name ?? "nonce"
  const inner = action[field]
  return [
    ...timeMistake(["nonce"], nonce),
    ...timeMistake(["expiresAfter"], expiresAfter),
    ...(Predicate.isNumber(inner) && inner !== nonce
      ? [{ mistake: "otherNonce" as const, path: ["action", field], found: String(inner), expected: String(nonce) }]
      : [])
  ]
}

const signatureMistakes = ({ signed: { signature } }: ReadBody): ReadonlyArray<Mistake> =>
  signature.v === 0 || signature.v === 1
    ? [{
      mistake: "recoveryBitForm",
      path: ["signature", "v"],
      found: String(signature.v),
      expected: String(signature.v + 27)
    }]
    : []

const documentedMistakes = (body: ReadBody): ReadonlyArray<Mistake> =>
  ActionShape.documentedForms(body).map(({ path }): Mistake => {
    const inner = path.length > 2 && body.action?.type === "multiSig" ? body.action.payload.action : body.signed.action
    return {
      mistake: "documentedForm",
      path: [...path],
      found: String(path.at(-1)),
      expected: hasDocumentedForm(inner.type) ? formKeys[inner.type].real.join(" or ") : ""
    }
  })

// more would not explain a body of a thousand orders better
const maxMistakes = 16

/** The form of a body; `canonical` is its action as it is hashed here. */
export const of = (profile: VenueProfile, body: ReadBody, canonical: CanonicalAction | undefined): BodyForm => {
  const beside = [...documentedMistakes(body), ...nonceMistakes(body), ...signatureMistakes(body)]
  if (canonical === undefined) return { mistakes: beside.slice(0, maxMistakes), mended: undefined }
  if (canonical.kind === "single") {
    const form = actionForm(profile, canonical.action, ["action"])
    return {
      mistakes: [...form.faults, ...beside].slice(0, maxMistakes),
      mended: { kind: "single", action: asAction(form, canonical.action) }
    }
  }
  const wrapper = canonical.action
  const form = actionForm(profile, wrapper.payload.action, ["action", "payload", "action"])
  const payload = { ...wrapper.payload, action: asAction(form, wrapper.payload.action) }
  return {
    mistakes: [...form.faults, ...beside].slice(0, maxMistakes),
    mended: { kind: "multiSig", action: { ...wrapper, payload } }
  }
}
