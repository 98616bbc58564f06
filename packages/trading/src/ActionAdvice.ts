/** Warnings about an action that is sent all the same, and the documented forms that strict mode refuses. */
import { documentedFormAdvice, formKeys, hasDocumentedForm } from "@trigate/domain/Action"
import type { RequestFault } from "@trigate/domain/RequestError"
import type { SignedEnvelope } from "@trigate/domain/SignedAction"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import { documentedChainField } from "@trigate/signing/VenueProfile"
import * as Predicate from "effect/Predicate"
import { actionPaths } from "./ActionShape.ts"

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

const formFaults = (actions: ReadonlyArray<Placed>): ReadonlyArray<RequestFault> =>
  actions.flatMap(({ action, path }) => {
    const message = documentedFormAdvice(action)
    return message === undefined || !hasDocumentedForm(action.type)
      ? []
      : [{ path: [...path, formKeys[action.type].documented], message }]
  })

/** The documented forms in a body: the path of each, and the form that the venue takes instead. */
export const documentedForms = (signed: SignedEnvelope): ReadonlyArray<RequestFault> => formFaults(placed(signed))

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
    ...formFaults(actions).map(({ message }) => message),
    ...actions.flatMap((action) => otherNetwork(profile, action)),
    ...(wrapped === "evmUserModify"
      ? ["The original key keeps control of a multi-sig user's EVM account: such users should not use the EVM"]
      : []),
    ...(Predicate.isNumber(signed.expiresAfter) && signed.expiresAfter <= now
      ? ["expiresAfter has passed: the venue refuses the action and counts it several times"]
      : [])
  ]
}
