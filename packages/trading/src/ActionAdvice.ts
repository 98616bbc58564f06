/** Warnings about an action that is sent all the same, and the documented forms that strict mode refuses. */
import { documentedFormAdvice, formKeys, hasDocumentedForm } from "@trigate/domain/Action"
import type { RequestFault } from "@trigate/domain/RequestError"
import type { SignedEnvelope } from "@trigate/domain/SignedAction"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import { documentedChainField } from "@trigate/signing/VenueProfile"
import * as Predicate from "effect/Predicate"
import type { ReadBody } from "./ActionShape.ts"
import { actionPaths } from "./ActionShape.ts"

interface Placed {
  readonly path: ReadonlyArray<string>
  readonly action: SignedEnvelope["action"]
}

const [outer, inner] = actionPaths

const actionsIn = ({ action, signed }: ReadBody): ReadonlyArray<Placed> => [
  { path: outer, action: signed.action },
  ...(action?.type === "multiSig" ? [{ path: inner, action: action.payload.action }] : [])
]

/** The documented forms in a body: the path of each, and the form that the venue takes instead. */
export const documentedForms = (body: ReadBody): ReadonlyArray<RequestFault> =>
  actionsIn(body).flatMap(({ action, path }) => {
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
export const warnings = (profile: VenueProfile, body: ReadBody, now: number): ReadonlyArray<string> => {
  const actions = actionsIn(body)
  const { expiresAfter } = body.signed
  return [
    ...documentedForms(body).map(({ message }) => message),
    ...actions.flatMap((action) => otherNetwork(profile, action)),
    ...(actions[1]?.action.type === "evmUserModify"
      ? ["The original key keeps control of a multi-sig user's EVM account: such users should not use the EVM"]
      : []),
    ...(Predicate.isNumber(expiresAfter) && expiresAfter <= now
      ? ["expiresAfter has passed: the venue refuses the action and counts it several times"]
      : [])
  ]
}
