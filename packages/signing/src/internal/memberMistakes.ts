/** Signing mistakes in the members of an action: members that were hashed in another order, omitted, or added. */
import * as Predicate from "effect/Predicate"
import type * as ActionForm from "../actions/ActionForm.ts"
import * as ActionOrder from "../actions/ActionOrder.ts"
import * as SignedView from "../inspection/SignedView.ts"
import type { Rewrite, View } from "../inspection/SignedView.ts"
import { type Hex, trimmedHex } from "./bytes.ts"
import type { Edit, Members, Vary } from "./mistake.ts"
import { actionOrder, edited, maxLeaves, rewriter, sameHex } from "./mistake.ts"

const isScalar = (key: string): boolean => key === "r" || key === "s"

/** Restores the leading zeros that the inner signatures have in the sent action. */
export const signaturesAsSent = rewriter({
  leaf: (value, sent, key) => isScalar(key) && sameHex(value, sent) ? sent : value
})

export const signaturesPadded = rewriter({
  leaf: (value, _sent, key) =>
    isScalar(key) && Predicate.isString(value) && /^0x[0-9a-f]{1,64}$/.test(value)
      ? `0x${value.slice(2).padStart(64, "0")}`
      : value
})

export const chainIds = (spell: (chainId: Hex) => string): Rewrite =>
  rewriter({
    leaf: (value, _sent, key) =>
      key === "signatureChainId" && Predicate.isString(value) ? spell(trimmedHex(value)) : value
  })

/**
 * Sorts the members of the canonical action back into the order in which the client sent them. Members that were not
 * sent are last.
 */
export const keysAsSent = rewriter({
  members: (members, sent) => {
    const order = new Map(Predicate.isObject(sent) ? Object.keys(sent).map((key, index) => [key, index]) : [])
    const at = (key: string) => order.get(key) ?? order.size
    return members.toSorted(([a], [b]) => at(a) - at(b))
  }
})

/** Sorts members alphabetically, as serializers with sorted maps do. */
export const sortedKeys = rewriter({ members: (all) => all.toSorted(([a], [b]) => a < b ? -1 : 1) })

/** Sorts members by length, then alphabetically, as canonical CBOR and some maps do. */
export const keysByLength = rewriter({
  members: (all) => all.toSorted(([a], [b]) => a.length - b.length || (a < b ? -1 : 1))
})

export const reversedKeys = rewriter({ members: (all) => all.toReversed() })

/** Sorts members like {@link sortedKeys}, but not in objects with the member `type`, such as the action itself. */
export const sortedInside = rewriter({
  members: (all) => all.some(([key]) => key === "type") ? all : all.toSorted(([a], [b]) => a < b ? -1 : 1)
})

export const sortedOutside = rewriter({
  members: (all) => all.some(([key]) => key === "type") ? all.toSorted(([a], [b]) => a < b ? -1 : 1) : all
})

export const typeLast = rewriter({
  members: (all) => [...all.filter(([key]) => key !== "type"), ...all.filter(([key]) => key === "type")]
})

/**
 * Returns the paths of an action's objects, in groups. Objects are in one group if their paths differ only in list
 * indexes and their members have equal names.
 */
const objectsIn = (value: unknown): ReadonlyArray<ReadonlyArray<ActionForm.Path>> => {
  const groups = new Map<string, Array<ActionForm.Path>>()
  const walk = (part: unknown, path: ActionForm.Path): void => {
    if (Array.isArray(part)) part.forEach((item: unknown, at) => walk(item, [...path, at]))
    else if (Predicate.isObject(part)) {
      const place = `${path.filter(Predicate.isString).join(".")}:${Object.keys(part).join()}`
      const group = groups.get(place)
      if (group === undefined) groups.set(place, [path])
      else group.push(path)
      for (const [key, item] of Object.entries(part)) walk(item, [...path, key])
    }
  }
  walk(value, [])
  return [...groups.values()].slice(0, maxLeaves)
}

const at = (value: unknown, path: ActionForm.Path): unknown =>
  path.reduce<unknown>((part, key) => SignedView.readMember(part, key), value)

const entriesAt = (view: View, paths: ReadonlyArray<ActionForm.Path>): Members => {
  const [first = []] = paths
  const value = at(view.action, first)
  return Predicate.isObject(value) ? Object.entries(value) : []
}

const ofMembers = (edit: (members: Members) => Members): Edit => (value) =>
  Predicate.isObject(value) ? Object.fromEntries(edit(Object.entries(value))) : value

/**
 * Generates signing hypotheses in which two adjacent members are swapped, in every object in which they are adjacent.
 */
export const swappedNeighbours: Vary = function*({ view }) {
  const pairs = new Map<string, readonly [string, string]>()
  for (const paths of objectsIn(view.action)) {
    const names = entriesAt(view, paths).map(([name]) => name)
    for (const [index, second] of names.entries()) {
      const first = names[index - 1]
      if (first !== undefined) pairs.set(`${first},${second}`, [first, second])
    }
  }
  for (const [first, second] of pairs.values()) {
    yield {
      view: SignedView.withRewrite(
        view,
        rewriter({
          members: (all) =>
            all.map((entry, place) => {
              const [name] = entry
              const other = name === first ? all[place + 1] : name === second ? all[place - 1] : undefined
              return other !== undefined && other[0] === (name === first ? second : first) ? other : entry
            })
        })
      )
    }
  }
}

/**
 * Generates signing hypotheses in which one member is at another position, in every object with the same members.
 * Serializers of unordered maps can cause such an order.
 */
export const movedMembers: Vary = function*({ view }) {
  for (const paths of objectsIn(view.action)) {
    const names = entriesAt(view, paths).map(([name]) => name)
    const set = names.join()
    if (names.length < 3) continue
    for (const [from, name] of names.entries()) {
      for (const to of names.keys()) {
        if (Math.abs(to - from) < 2) continue
        yield {
          view: SignedView.withRewrite(
            view,
            rewriter({
              members: (all) => {
                const moved = all.find(([key]) => key === name)
                if (moved === undefined || all.map(([key]) => key).join() !== set) return all
                const rest = all.filter((entry) => entry !== moved)
                return [...rest.slice(0, to), moved, ...rest.slice(to)]
              }
            })
          )
        }
      }
    }
  }
}

const maxPermuted = 4

const permutations = (count: number): ReadonlyArray<ReadonlyArray<number>> =>
  count === 0
    ? [[]]
    : permutations(count - 1).flatMap((order) =>
      Array.from({ length: count }, (_, at) => [...order.slice(0, at), count - 1, ...order.slice(at)])
    )

/** Generates signing hypotheses with every possible member order of each small object. */
export const permutedMembers: Vary = function*({ view }) {
  for (const paths of objectsIn(view.action)) {
    const names = entriesAt(view, paths).map(([name]) => name)
    const set = names.join()
    if (names.length < 3 || names.length > maxPermuted) continue
    for (const order of permutations(names.length)) {
      yield {
        view: SignedView.withRewrite(
          view,
          rewriter({
            members: (all) =>
              all.map(([key]) => key).join() === set ? order.flatMap((at) => all.slice(at, at + 1)) : all
          })
        )
      }
    }
  }
}

/** Generates signing hypotheses in which two members of one object are missing from the signed data. */
export const droppedPairs: Vary = function*({ view }) {
  for (const paths of objectsIn(view.action)) {
    const names = entriesAt(view, paths).map(([name]) => name)
    for (const [index, key] of names.entries()) {
      for (const other of names.slice(index + 1)) {
        yield { view: edited(view, paths, ofMembers((all) => all.filter(([name]) => name !== key && name !== other))) }
      }
    }
  }
}

export const droppedMembers: Vary = function*({ view }) {
  for (const paths of objectsIn(view.action)) {
    for (const [key] of entriesAt(view, paths)) {
      yield { view: edited(view, paths, ofMembers((all) => all.filter(([name]) => name !== key))) }
    }
  }
}

/**
 * Generates signing hypotheses in which members have the value `added` instead of being absent, at their position in the
 * venue's order: first one of the members that `isMeant` selects at a time, then all of them at once.
 */
const addedMembers = (isMeant: (place: ActionOrder.MemberPosition) => boolean, added: unknown): Vary =>
  function*({ view }) {
    const order = actionOrder(view)
    if (order === undefined) return
    const addTo = (members: ActionOrder.ActionOrder, value: unknown, only?: string): unknown => {
      if (Array.isArray(value)) return value.map((item: unknown) => addTo(members, item, only))
      if (!Predicate.isReadonlyObject(value)) return value
      return Object.fromEntries(
        [...members].flatMap(([name, place]): Members =>
          Object.hasOwn(value, name)
            ? [[name, addTo(place.members, value[name], only)]]
            : isMeant(place) && (only === undefined || only === name)
            ? [[name, added]]
            : []
        )
      )
    }
    const names = new Set<string>()
    const collect = (members: ActionOrder.ActionOrder): void => {
      for (const [name, place] of members) {
        if (isMeant(place)) names.add(name)
        collect(place.members)
      }
    }
    collect(order)
    for (const only of [...names, undefined]) {
      const action = addTo(order, view.action, only)
      if (Predicate.isReadonlyObject(action)) yield { view: { ...view, action } }
    }
  }

export const addedNulls = addedMembers(({ presence }) => presence === "optional", null)

export const addedFalses = addedMembers(ActionOrder.isMark, false)

export const nullsDropped = rewriter({ members: (all) => all.filter(([, item]) => item !== null) })
