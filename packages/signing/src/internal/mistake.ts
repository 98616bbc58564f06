/** Building blocks of signing mistakes: a signing hypothesis with one mistake, and edits of an action. */
import type { Mistake } from "@trigate/domain/Inspection"
import * as Predicate from "effect/Predicate"
import * as ActionForm from "../actions/ActionForm.ts"
import type * as ActionHash from "../actions/ActionHash.ts"
import * as ActionOrder from "../actions/ActionOrder.ts"
import type * as Signable from "../actions/Signable.ts"
import * as UserSigned from "../actions/UserSigned.ts"
import * as SignedDigest from "../inspection/SignedDigest.ts"
import * as SignedView from "../inspection/SignedView.ts"
import type { Part, Rewrite, View } from "../inspection/SignedView.ts"
import type { SignedRequest } from "../SignerRecovery.ts"
import { trimmedHex } from "./bytes.ts"
import { Packed } from "./looseEncoding.ts"

/**
 * A view (a signing hypothesis) with one mistake. If a comparison of the hashed values does not show the mistake,
 * `finding` describes it.
 */
export interface MistakenView {
  readonly view: View
  readonly finding?: Omit<Mistake, "mistake">
}

export interface Subject {
  readonly view: View
  readonly request: SignedRequest
  readonly part: Part
  /**
   * Addresses that the signer could have signed as the vault: the expected signer, and other addresses that the gateway
   * knows.
   */
  readonly known: ReadonlyArray<string>
}

export type Vary = (subject: Subject) => Iterable<MistakenView>

export type Members = ReadonlyArray<readonly [key: string, value: unknown]>

interface Change {
  readonly leaf?: (value: unknown, sent: unknown, key: string) => unknown
  readonly members?: (members: Members, sent: unknown) => Members
}

export const rewriter = ({ leaf = (value) => value, members = (all) => all }: Change): Rewrite => {
  const walk = (value: unknown, sent: unknown, key: string): unknown => {
    if (Array.isArray(value)) {
      return value.map((item: unknown, index) => walk(item, SignedView.readMember(sent, index), key))
    }
    if (!Predicate.isObject(value) || value instanceof Packed) return leaf(value, sent, key)
    const changed = members(Object.entries(value), sent)
    return Object.fromEntries(
      changed.map(([name, item]) => [name, walk(item, SignedView.readMember(sent, name), name)])
    )
  }
  return (value, sent) => walk(value, sent, "")
}

export const rewriting = (...rewrites: ReadonlyArray<Rewrite>): Vary => ({ view }) =>
  rewrites.map((rewrite) => ({ view: SignedView.withRewrite(view, rewrite) }))

export type Edit = (value: unknown) => unknown

const editAt = (value: unknown, [key, ...rest]: ActionForm.Path, edit: Edit): unknown => {
  if (key === undefined) return edit(value)
  if (Array.isArray(value)) return value.map((item: unknown, at) => at === key ? editAt(item, rest, edit) : item)
  return Predicate.isObject(value)
    ? Object.fromEntries(
      Object.entries(value).map(([name, item]) => [
        name,
        name === key ? editAt(item, rest, edit) : item
      ])
    )
    : value
}

/** Returns a copy of a signing hypothesis (view) in which the action is edited at the given paths. */
export const edited = (view: View, paths: ReadonlyArray<ActionForm.Path>, edit: Edit): View => {
  let action: unknown = view.action
  for (const path of paths) action = editAt(action, path, edit)
  return Predicate.isReadonlyObject(action) ? { ...view, action } : view
}

/**
 * Maximum number of values that are changed one at a time. If there are more values, most mistakes change all of them
 * together, because a program usually repeats its mistake in every value of a batch.
 */
export const maxLeaves = 16

export const actionOrder = ({ action, profile }: View): ActionOrder.ActionOrder | undefined => {
  const type = UserSigned.find(action["type"])
  if (type !== undefined) return UserSigned.order(profile)(type)
  return ActionOrder.l1(action["type"])
}

export const leavesIn = (view: View, ...kinds: ReadonlyArray<ActionOrder.Kind>): ReadonlyArray<ActionForm.Leaf> => {
  const order = actionOrder(view)
  return order === undefined ? [] : ActionForm.listLeaves(order, view.action).filter(({ kind }) => kinds.includes(kind))
}

export const ofText = (edit: (text: string) => unknown): Edit => (value) =>
  Predicate.isString(value) ? edit(value) : value

export const isUserSigned = (view: View): boolean => UserSigned.find(view.action["type"]) !== undefined

export const withContext = (view: View, change: Partial<ActionHash.HashContext>): View => ({
  ...view,
  context: { ...view.context, ...change }
})

export const isGiven = (value: unknown): value is string | number | bigint => value !== undefined && value !== null

export const sameHex = (a: unknown, b: unknown): boolean =>
  Predicate.isString(a) && Predicate.isString(b) && /^0x[0-9a-fA-F]+$/.test(a) && /^0x[0-9a-fA-F]+$/.test(b) &&
  trimmedHex(a) === trimmedHex(b)

type Reshape = View["reshape"]

/** Returns a signing hypothesis (view) whose typed data are changed by `reshape`. */
export const reshaped = (view: View, reshape: Reshape, finding: Omit<Mistake, "mistake">): MistakenView => ({
  view: { ...view, reshape: (signable) => reshape(view.reshape(signable)) },
  finding
})

/** Returns the typed data of a signing hypothesis (view); `undefined` if the hypothesis has none. */
export const subjectTypedData = ({ part, request, view }: Subject): Signable.Signable | undefined =>
  SignedDigest.viewTypedData(view, part, request.action)
