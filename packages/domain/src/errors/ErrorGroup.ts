/** What a caller does about an error: the four groups, and catching the errors of one of them. */
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Predicate from "effect/Predicate"

/** What to do about the errors of each group. */
export const errorGroups = {
  "retry-later": "Try again later, after `retryAfter` seconds if they are given.",
  "fix-request": "Change the request. The same one would be refused again.",
  "fix-setup": "Change an address, a key or a setting. The request may be right.",
  "outcome-unknown": "Find out what became of the call before you sign or send anything anew. It may have taken effect."
} as const

/** What a caller does about an error. */
export type ErrorGroup = keyof typeof errorGroups

/** An error that declares its group. */
export interface Grouped<Group extends ErrorGroup = ErrorGroup> {
  readonly group: Group
}

/** The groups of some errors. */
export type GroupOf<E> = E extends Grouped ? E["group"] : never

/** The errors of a group among others. */
export type InGroup<E, Group extends ErrorGroup> = Extract<E, Grouped<Group>>

/** Whether an error is of a group. */
export const isIn = <const Group extends ErrorGroup>(group: Group) => <E>(error: E): error is InGroup<E, Group> =>
  Predicate.hasProperty(error, "group") && error.group === group

/**
 * Handles the errors of one group and takes them out of the error type; the others go on as they are.
 *
 * A group that the effect cannot fail with does not compile.
 */
export const catchGroup: {
  <const Group extends GroupOf<E>, E, A2, E2, R2>(
    group: Group,
    handler: (error: NoInfer<InGroup<E, Group>>) => Effect.Effect<A2, E2, R2>
  ): <A, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A | A2, E2 | Exclude<E, Grouped<Group>>, R | R2>
  <A, E, R, const Group extends GroupOf<E>, A2, E2, R2>(
    self: Effect.Effect<A, E, R>,
    group: Group,
    handler: (error: InGroup<E, Group>) => Effect.Effect<A2, E2, R2>
  ): Effect.Effect<A | A2, E2 | Exclude<E, Grouped<Group>>, R | R2>
} = dual(
  3,
  <A, E, R, const Group extends GroupOf<E>, A2, E2, R2>(
    self: Effect.Effect<A, E, R>,
    group: Group,
    handler: (error: InGroup<E, Group>) => Effect.Effect<A2, E2, R2>
  ) => Effect.catchIf(self, isIn(group), handler)
)
