/** Signing mistakes in the members of an action: members that were hashed in another order, omitted, or added. */
import { actionCatalog } from "@trigate/domain/actions/ActionCatalog"
import * as Predicate from "effect/Predicate"
import * as ActionForm from "../actions/ActionForm.ts"
import * as ActionOrder from "../actions/ActionOrder.ts"
import * as SignedView from "../inspection/SignedView.ts"
import type { Rewrite, View } from "../inspection/SignedView.ts"
import { type Hex, trimmedHex } from "./bytes.ts"
import type { Edit, Members, Subject, Vary } from "./mistake.ts"
import { actionOrder, edited, isGiven, isUserSigned, maxLeaves, rewriter, sameHex } from "./mistake.ts"

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

type Position = ActionOrder.MemberPosition

/** Returns a view whose action has values for members that are absent or null; `undefined` leaves a member as it is. */
const withValues = (view: View, valueOf: (name: string, place: Position) => unknown): View | undefined => {
  const order = actionOrder(view)
  if (order === undefined) return undefined
  const fill = (members: ActionOrder.ActionOrder, part: unknown): unknown => {
    if (Array.isArray(part)) return part.map((item: unknown) => fill(members, item))
    if (!Predicate.isReadonlyObject(part)) return part
    return Object.fromEntries(
      [...members].flatMap(([name, place]): Members => {
        const given = part[name] ?? null
        if (given !== null) return [[name, fill(place.members, given)]]
        const value = valueOf(name, place)
        return value !== undefined ? [[name, value]] : Object.hasOwn(part, name) ? [[name, null]] : []
      })
    )
  }
  const action = fill(order, view.action)
  return Predicate.isReadonlyObject(action) ? { ...view, action } : undefined
}

/** Returns all members of an action's declaration that pass a test, by name. */
const placesIn = (view: View, test: (place: Position) => boolean): ReadonlyMap<string, Position> => {
  const found = new Map<string, Position>()
  const collect = (members: ActionOrder.ActionOrder): void => {
    for (const [name, place] of members) {
      if (test(place)) found.set(name, place)
      collect(place.members)
    }
  }
  collect(actionOrder(view) ?? new Map<string, Position>())
  return found
}

const toMistakenViews = (...views: ReadonlyArray<View | undefined>): ReadonlyArray<{ readonly view: View }> =>
  views.flatMap((view) => view === undefined ? [] : [{ view }])

/**
 * Generates signing hypotheses in which members have the value `added` instead of being absent, at their position in the
 * venue's order: first one of the members that `isMeant` selects at a time, then all of them at once.
 */
export const addedNulls: Vary = ({ view }) => {
  const isOptional = ({ presence }: Position): boolean => presence === "optional"
  return [...placesIn(view, isOptional).keys(), undefined].flatMap((only) =>
    toMistakenViews(withValues(view, (name, place) => isOptional(place) && (only ?? name) === name ? null : undefined))
  )
}

/** Generates the signing hypothesis in which flags that are omitted if they are false were hashed as false. */
export const addedFalses: Vary = ({ view }) =>
  toMistakenViews(withValues(view, (_name, place) => ActionOrder.isMark(place) ? false : undefined))

/** The values that programs sign for a value that is absent, by its kind. */
const absentValues = (shape: ActionOrder.Shape): ReadonlyArray<unknown> => {
  const kind = shape._tag === "Value" ? shape.kind : shape._tag
  if (kind === "flag") return [false]
  if (kind === "integer" || kind === "id") return [0]
  return kind === "Members" || kind === "null" ? [] : ["", "null", "None", "undefined", "nil"]
}

/** Generates signing hypotheses in which an absent value or a null was signed as text such as "null", as 0 or as false. */
export const absentMembers: Vary = function*({ view }) {
  const mayBeAbsent = (place: Position) =>
    !ActionOrder.isMark(place) && (place.presence === "optional" || place.presence === "nullable")
  for (const [only, { shape }] of isUserSigned(view) ? [] : placesIn(view, mayBeAbsent)) {
    for (const value of absentValues(shape)) {
      yield* toMistakenViews(withValues(view, (name) => name === only ? value : undefined))
    }
  }
}

/** Returns the paths of the lists of an action that are sorted by key and have several pairs. */
const sortedLists = (
  shape: ActionOrder.Shape,
  value: unknown,
  path: ActionForm.Path = []
): ReadonlyArray<ActionForm.Path> => {
  if (Array.isArray(value)) {
    return shape._tag === "List" && shape.isSorted
      ? value.length > 1 ? [path] : []
      : value.flatMap((item: unknown, index) =>
        sortedLists(ActionOrder.itemShape(shape, index), item, [...path, index])
      )
  }
  return shape._tag === "Members" && Predicate.isReadonlyObject(value)
    ? [...shape.order].flatMap(([name, place]) => sortedLists(place.shape, value[name], [...path, name]))
    : []
}

type Pairs = ReadonlyArray<unknown>

const compareText = (one: string, other: string): number => one < other ? -1 : one > other ? 1 : 0

const pairText = (pair: unknown, index: number): string => Array.isArray(pair) ? String(pair[index]) : ""

/** The orders of a list of pairs in which programs sign it, most likely first. */
const pairOrders: ReadonlyArray<(pairs: Pairs) => Pairs> = [
  (pairs) => pairs.toReversed(),
  (pairs) => pairs.toSorted((a, b) => Number(pairText(a, 1)) - Number(pairText(b, 1))),
  (pairs) => pairs.toSorted((a, b) => Number(pairText(b, 1)) - Number(pairText(a, 1))),
  (pairs) => pairs.toSorted((a, b) => compareText(pairText(a, 0).toLowerCase(), pairText(b, 0).toLowerCase())),
  (pairs) => pairs.toSorted((a, b) => pairText(a, 0).length - pairText(b, 0).length)
]

/** Returns the list with the item of one index before the item of another. */
const moved = <A>(items: ReadonlyArray<A>, from: number, to: number): ReadonlyArray<A> =>
  items.toSpliced(from, 1).toSpliced(to, 0, ...items.slice(from, from + 1))

/** Returns orders in which the keys of the lists of an action can have been inserted. */
const keyOrders = (keys: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  keys.length <= maxPermuted
    ? permutations(keys.length).map((order) => order.flatMap((at) => keys.slice(at, at + 1)))
    : [
      ...keys.slice(1, maxLeaves).map((_, at) => moved(keys, at + 1, at)),
      ...keys.slice(0, maxLeaves).map((_, at) => moved(keys, at, 0))
    ]

/**
 * Generates signing hypotheses in which lists that are sorted by key were signed in another order: first all lists of
 * the action, then one list.
 */
export const unsortedLists: Vary = function*({ view }) {
  const order = actionOrder(view)
  if (order === undefined) return
  const all = sortedLists({ _tag: "Members", order }, view.action)
  const [first] = all
  if (first === undefined) return
  const pairsAt = (path: ActionForm.Path): Pairs => {
    const list = at(view.action, path)
    return Array.isArray(list) ? list : []
  }
  const keys = [...new Set(all.flatMap((path) => pairsAt(path).map((pair) => pairText(pair, 0))))]
  const byKeys = (names: ReadonlyArray<string>) => (pairs: Pairs): Pairs =>
    pairs.toSorted((a, b) => names.indexOf(pairText(a, 0)) - names.indexOf(pairText(b, 0)))
  const orders = [...pairOrders, ...keyOrders(keys).map(byKeys)]
  for (const paths of [all, ...(all.length > 1 ? all.map((path) => [path]) : [])]) {
    for (const rearranged of paths === all || keys.length <= maxPermuted ? orders : pairOrders) {
      const changed = paths.find((path) => ActionForm.unsortedPair(rearranged(pairsAt(path))) !== undefined)
      if (changed === undefined) continue
      const found = ActionForm.unsortedPair(rearranged(pairsAt(changed))) ?? ""
      yield {
        view: edited(view, paths, (part) => Array.isArray(part) ? rearranged(part) : part),
        finding: { path: [...SignedView.actionPath(view), ...changed], found, expected: ActionForm.sortedList }
      }
    }
  }
}

/** Generates signing hypotheses in which nulls were omitted: first all nulls, then one. */
export const droppedNulls: Vary = function*({ view }) {
  yield {
    view: SignedView.withRewrite(view, rewriter({ members: (all) => all.filter(([, item]) => item !== null) }))
  }
  for (const paths of objectsIn(view.action)) {
    for (const [key, item] of entriesAt(view, paths)) {
      if (item !== null) continue
      yield { view: edited(view, paths, ofMembers((all) => all.filter(([name]) => name !== key))) }
    }
  }
}

/** The members of a body that are appended to the hashed action. */
const appended = ["nonce", "vaultAddress", "expiresAfter"] as const

/** Generates signing hypotheses in which the given members were hashed as the action's last members. */
const withMembers = (view: View, added: Readonly<Record<string, unknown>>): View => ({
  ...view,
  action: { ...view.action, ...added }
})

const isHashed = ({ part, view }: Subject): boolean =>
  !isUserSigned(view) && (view.wrapper === undefined || part === "inner")

/** Generates signing hypotheses in which an absent vault or expiry was hashed as a null in the action. */
export const bodyNulls: Vary = (subject) => {
  const { view } = subject
  const absent = appended.slice(1).filter((name) => !isGiven(view.context[name]) && !Object.hasOwn(view.action, name))
  const groups = isHashed(subject) ? [...absent.map((name) => [name]), absent, absent.toReversed()] : []
  return groups.map((names) => ({ view: withMembers(view, Object.fromEntries(names.map((name) => [name, null]))) }))
}

/** Generates signing hypotheses in which members of the body were hashed with the action, in the action or around it. */
export const bodyMembers: Vary = function*(subject) {
  const { request, view } = subject
  if (!isHashed(subject)) return
  const names = appended.filter((name) => !Object.hasOwn(view.action, name))
  const groups = names.flatMap((name, at) => [[name], ...names.slice(at + 1).map((other) => [name, other])])
  for (const group of [...groups, names]) {
    if (!group.some((name) => isGiven(request[name]))) continue
    yield { view: withMembers(view, Object.fromEntries(group.map((name) => [name, request[name] ?? null]))) }
  }
  const given = appended.filter((name) => request[name] !== undefined)
  for (const group of [given, appended.slice(0, 1), appended]) {
    const members = Object.fromEntries(group.map((name) => [name, request[name] ?? null]))
    const whole = SignedView.withRewrite(view, (action) => ({ action, ...members }))
    const finding = { path: [], found: `an object of action, ${group.join(", ")}` }
    yield { view: whole, finding }
    yield { view: { ...whole, arrange: ({ action }) => action }, finding }
  }
}

/** Generates signing hypotheses in which an L1 action was hashed with the type of another, or with another spelling. */
export const otherTypes: Vary = function*(subject) {
  const { view } = subject
  const own = view.action["type"]
  if (!isHashed(subject) || !Predicate.isString(own)) return
  const names = Object.keys(view.action).toSorted().join()
  const alike = Object.keys(actionCatalog).filter((type) =>
    [...(ActionOrder.l1(type)?.keys() ?? [])].toSorted().join() === names
  )
  const snake = own.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  const spellings = [own.toLowerCase(), own.toUpperCase(), snake, `${own.slice(0, 1).toUpperCase()}${own.slice(1)}`]
  for (
    const type of new Set([...alike, ...spellings, `${own}s`, own.replace(/s$/, ""), `${own}Action`, `${own}Order`])
  ) {
    if (type !== own) yield { view: { ...view, action: { ...view.action, type } } }
  }
}
