/** One value for each address, found from any of the targets that lead to it. */
import * as Redacted from "effect/Redacted"
import type { Target } from "../Upstream.ts"

/** The values of all addresses seen so far. */
export interface KnownAddresses<A> {
  /** The value of a target's address, made when the address is first seen. */
  readonly of: (target: Target) => A
  readonly all: () => Iterable<A>
}

/** What tells one address from another: its label and its base URL, which is a secret. */
export const identityOf = (target: Target): string => `${target.label} ${Redacted.value(target.base)}`

/** No address is known at first. */
export const make = <A>(first: (target: Target) => A): KnownAddresses<A> => {
  const byAddress = new Map<string, A>()
  // targets are made once and used for every call: finding theirs must not cost a hash of the URL
  const byTarget = new WeakMap<Target, A>()
  const find = (target: Target): A => {
    const identity = identityOf(target)
    const known = byAddress.get(identity) ?? first(target)
    byAddress.set(identity, known)
    byTarget.set(target, known)
    return known
  }
  return {
    of: (target) => byTarget.get(target) ?? find(target),
    all: () => byAddress.values()
  }
}
