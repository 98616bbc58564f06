/** What is worth telling about an action that is relayed all the same, and the forms that strict mode refuses. */
import { documentedFormAdvice, formKeys, hasDocumentedForm } from "@trigate/domain/Action"
import type { RequestFault } from "@trigate/domain/RequestError"
import type { SignedEnvelope } from "@trigate/domain/SignedAction"
import * as SigningCaution from "@trigate/signing/SigningCaution"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import { documentedChainField } from "@trigate/signing/VenueProfile"
import * as Predicate from "effect/Predicate"
import { actionPaths } from "./ChainField.ts"

interface AnyAction {
  readonly type: string
  readonly [member: string]: unknown
}

const isAction = (value: unknown): value is AnyAction =>
  Predicate.hasProperty(value, "type") && Predicate.isString(value.type)

interface Placed {
  readonly path: ReadonlyArray<string>
  readonly action: AnyAction
}

const placed = (signed: SignedEnvelope): ReadonlyArray<Placed> =>
  actionPaths.flatMap((path) => {
    let value: unknown = signed
    for (const key of path) value = Predicate.hasProperty(value, key) ? value[key] : undefined
    return isAction(value) ? [{ path, action: value }] : []
  })

/** The documented forms in a body, each with its path and with the form that the real wire takes. */
export const documentedForms = (signed: SignedEnvelope): ReadonlyArray<RequestFault> =>
  placed(signed).flatMap(({ action, path }) => {
    const message = documentedFormAdvice(action)
    return message === undefined || !hasDocumentedForm(action.type)
      ? []
      : [{ path: [...path, formKeys[action.type].documented], message }]
  })

const otherNetwork = (profile: VenueProfile, { action }: Placed): ReadonlyArray<string> => {
  const chain = action[profile.chainField] ?? action[documentedChainField]
  return Predicate.isString(chain) && chain !== profile.chainName
    ? [`${action.type} is not for ${profile.chainName}, the network that this gateway sends to`]
    : []
}

/** Warnings in the order of the body; ASCII without line breaks, so that they fit into a header. */
export const warnings = (profile: VenueProfile, signed: SignedEnvelope, now: number): ReadonlyArray<string> => {
  const actions = placed(signed)
  const wrapped = actions.length > 1 ? actions.at(-1)?.action.type : undefined
  return [
    ...documentedForms(signed).map(({ message }) => message),
    ...actions.flatMap((action) => otherNetwork(profile, action)),
    ...(wrapped === "evmUserModify"
      ? ["The original key keeps control of a multi-sig user's EVM account: such users should not use the EVM"]
      : []),
    ...(Predicate.isNumber(signed.expiresAfter) && signed.expiresAfter <= now
      ? ["expiresAfter has passed: the venue refuses the action and counts it several times"]
      : [])
  ]
}

// a body of a thousand addresses is not explained better by a thousand lines
const MAX_SIGNING_WARNINGS = 16

/** What makes correct signatures look wrong at the venue: an action as it was sent, against its canonical form. */
export const signingWarnings = (sent: unknown, canonical: unknown): ReadonlyArray<string> =>
  [...SigningCaution.ofValues(sent), ...SigningCaution.ofOrder(sent, canonical)]
    .slice(0, MAX_SIGNING_WARNINGS)
    .map(({ message }) => message)
