/**
 * Mistakes in the members of an action, in their order, presence and values, and the building blocks of all mistakes.
 */
import { actionCatalog } from "@trigate/domain/actions/Action"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import type { Mistake } from "@trigate/domain/unstable/Inspection"
import * as Predicate from "effect/Predicate"
import * as ActionForm from "../actions/ActionForm.ts"
import * as ActionHash from "../actions/ActionHash.ts"
import * as CanonicalAction from "../actions/CanonicalAction.ts"
import * as SignedView from "../inspection/SignedView.ts"
import { type IntegerStyle, Packed, type Part, type Rewrite, standard, type View } from "../inspection/SignedView.ts"

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
  readonly request: CanonicalAction.SignedRequest
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

/** Returns a signing hypothesis in which the members of every object are changed. */
const withMembersChanged = (view: View, members: (all: Members) => Members): MistakenView => ({
  view: SignedView.withRewrite(view, rewriter({ members }))
})

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

export const actionOrder = ({ action, profile }: View): CanonicalAction.ActionOrder | undefined =>
  CanonicalAction.orderIn(profile, action["type"])

export const leavesIn = (view: View, ...kinds: ReadonlyArray<CanonicalAction.Kind>): ReadonlyArray<ActionForm.Leaf> => {
  const order = actionOrder(view)
  return order === undefined ? [] : ActionForm.listLeaves(order, view.action).filter(({ kind }) => kinds.includes(kind))
}

export const ofText = (edit: (text: string) => unknown): Edit => (value) =>
  Predicate.isString(value) ? edit(value) : value

export const isUserSigned = (view: View): boolean => CanonicalAction.find(view.action["type"]) !== undefined

export const withContext = (view: View, change: Partial<ActionHash.HashContext>): View => ({
  ...view,
  context: { ...view.context, ...change }
})

export const isGiven = (value: unknown): value is string | number | bigint => value !== undefined && value !== null

export const sameHex = (a: unknown, b: unknown): boolean =>
  Predicate.isString(a) && Predicate.isString(b) && /^0x[0-9a-fA-F]+$/.test(a) && /^0x[0-9a-fA-F]+$/.test(b) &&
  ActionHash.trimmedHex(a) === ActionHash.trimmedHex(b)

type Reshape = View["reshape"]

/** Returns a signing hypothesis (view) whose typed data are changed by `reshape`. */
export const reshaped = (view: View, reshape: Reshape, finding: Omit<Mistake, "mistake">): MistakenView => ({
  view: { ...view, reshape: (signable) => reshape(view.reshape(signable)) },
  finding
})

/** Returns the typed data of a signing hypothesis (view); `undefined` if the hypothesis has none. */
export const subjectTypedData = ({ part, request, view }: Subject): ActionHash.Signable | undefined =>
  SignedView.viewTypedData(view, part, request.action)

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

export const chainIds = (spell: (chainId: ActionHash.Hex) => string): Rewrite =>
  rewriter({
    leaf: (value, _sent, key) =>
      key === "signatureChainId" && Predicate.isString(value) ? spell(ActionHash.trimmedHex(value)) : value
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

const sorted = (members: Members): Members => members.toSorted(([a], [b]) => a < b ? -1 : 1)

const hasType = (members: Members): boolean => members.some(([key]) => key === "type")

/** Sorts members alphabetically, as serializers with sorted maps do. */
export const sortedKeys = rewriter({ members: sorted })

/** Sorts members by length, then alphabetically, as canonical CBOR and some maps do. */
export const keysByLength = rewriter({
  members: (all) => all.toSorted(([a], [b]) => a.length - b.length || (a < b ? -1 : 1))
})

export const reversedKeys = rewriter({ members: (all) => all.toReversed() })

/** Sorts members like {@link sortedKeys}, but not in objects with the member `type`, such as the action itself. */
export const sortedInside = rewriter({ members: (all) => hasType(all) ? all : sorted(all) })

export const sortedOutside = rewriter({ members: (all) => hasType(all) ? sorted(all) : all })

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
    yield withMembersChanged(view, (all) =>
      all.map((entry, place) => {
        const [name] = entry
        const other = name === first ? all[place + 1] : name === second ? all[place - 1] : undefined
        return other !== undefined && other[0] === (name === first ? second : first) ? other : entry
      }))
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
    for (const from of names.keys()) {
      for (const to of names.keys()) {
        if (Math.abs(to - from) < 2) continue
        yield withMembersChanged(view, (all) => all.map(([key]) => key).join() === set ? moved(all, from, to) : all)
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
      yield withMembersChanged(
        view,
        (all) => all.map(([key]) => key).join() === set ? order.flatMap((at) => all.slice(at, at + 1)) : all
      )
    }
  }
}

/** Returns a signing hypothesis in which members are missing from the objects at the given paths. */
const withoutMembers = (view: View, paths: ReadonlyArray<ActionForm.Path>, ...keys: ReadonlyArray<string>) => ({
  view: edited(view, paths, ofMembers((all) => all.filter(([name]) => !keys.includes(name))))
})

/** Generates signing hypotheses in which two members of one object are missing from the signed data. */
export const droppedPairs: Vary = function*({ view }) {
  for (const paths of objectsIn(view.action)) {
    const names = entriesAt(view, paths).map(([name]) => name)
    for (const [index, key] of names.entries()) {
      for (const other of names.slice(index + 1)) yield withoutMembers(view, paths, key, other)
    }
  }
}

export const droppedMembers: Vary = function*({ view }) {
  for (const paths of objectsIn(view.action)) {
    for (const [key] of entriesAt(view, paths)) yield withoutMembers(view, paths, key)
  }
}

type Position = CanonicalAction.MemberPosition

/** Returns a view whose action has values for members that are absent or null; `undefined` leaves a member as it is. */
const withValues = (view: View, valueOf: (name: string, place: Position) => unknown): View | undefined => {
  const order = actionOrder(view)
  if (order === undefined) return undefined
  const fill = (members: CanonicalAction.ActionOrder, part: unknown): unknown => {
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
  const collect = (members: CanonicalAction.ActionOrder): void => {
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
  toMistakenViews(withValues(view, (_name, place) => CanonicalAction.isMark(place) ? false : undefined))

/** The values that programs sign for a value that is absent, by its kind. */
const absentValues = (shape: CanonicalAction.Shape): ReadonlyArray<unknown> => {
  const kind = shape._tag === "Value" ? shape.kind : shape._tag
  if (kind === "flag") return [false]
  if (kind === "integer" || kind === "id") return [0]
  return kind === "Members" || kind === "null" ? [] : ["", "null", "None", "undefined", "nil"]
}

/** Generates signing hypotheses in which an absent value or a null was signed as text such as "null", as 0 or as false. */
export const absentMembers: Vary = function*({ view }) {
  const mayBeAbsent = (place: Position) =>
    !CanonicalAction.isMark(place) && (place.presence === "optional" || place.presence === "nullable")
  for (const [only, { shape }] of isUserSigned(view) ? [] : placesIn(view, mayBeAbsent)) {
    for (const value of absentValues(shape)) {
      yield* toMistakenViews(withValues(view, (name) => name === only ? value : undefined))
    }
  }
}

/** Returns the paths of the lists of an action that are sorted by key and have several pairs. */
const sortedLists = (
  shape: CanonicalAction.Shape,
  value: unknown,
  path: ActionForm.Path = []
): ReadonlyArray<ActionForm.Path> => {
  if (Array.isArray(value)) {
    return shape._tag === "List" && shape.isSorted
      ? value.length > 1 ? [path] : []
      : value.flatMap((item: unknown, index) =>
        sortedLists(CanonicalAction.itemShape(shape, index), item, [...path, index])
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
  yield withMembersChanged(view, (all) => all.filter(([, item]) => item !== null))
  for (const paths of objectsIn(view.action)) {
    for (const [key, item] of entriesAt(view, paths)) {
      if (item === null) yield withoutMembers(view, paths, key)
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

/** Returns whether the action is hashed as a whole, and signed as the hash in an agent. */
export const isHashed = ({ part, view }: Pick<Subject, "part" | "view">): boolean =>
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
    [...(CanonicalAction.l1(type)?.keys() ?? [])].toSorted().join() === names
  )
  const snake = own.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  const spellings = [own.toLowerCase(), own.toUpperCase(), snake, `${own.slice(0, 1).toUpperCase()}${own.slice(1)}`]
  for (
    const type of new Set([...alike, ...spellings, `${own}s`, own.replace(/s$/, ""), `${own}Action`, `${own}Order`])
  ) {
    if (type !== own) yield { view: { ...view, action: { ...view.action, type } } }
  }
}

/**
 * Returns the decimal numbers in the action of a signing hypothesis (view), including the amounts of user-signed
 * actions, which are text.
 */
export const decimalsIn = (view: View): ReadonlyArray<ActionForm.Leaf> => [
  ...leavesIn(view, "decimal"),
  ...leavesIn(view, "text").filter(({ path }) => path.at(-1) === "amount")
]

/**
 * Generates signing hypotheses for each edit: first one in which all given values are edited, then one for each edited
 * value.
 */
export const spelling = (leaves: (view: View) => ReadonlyArray<ActionForm.Leaf>, ...edits: ReadonlyArray<Edit>): Vary =>
  function*({ view }) {
    const paths = leaves(view).map(({ path }) => path)
    for (const edit of edits) {
      yield { view: edited(view, paths, edit) }
      if (paths.length > 1) { for (const path of paths.slice(0, maxLeaves)) yield { view: edited(view, [path], edit) } }
    }
  }

const fraction = (text: string): string => text.split(".")[1] ?? ""

/** Pads the number to at least `count` decimal places, as programs with fixed-point output print it. */
const places = (count: number): Edit =>
  ofText((text) =>
    fraction(text).length >= count ? text : `${text.split(".")[0] ?? ""}.${fraction(text).padEnd(count, "0")}`
  )

export const trailingZeros: ReadonlyArray<Edit> = [
  places(1),
  ofText((text) => text.includes(".") ? `${text}0` : `${text}.0`),
  ...[2, 3, 4, 5, 6, 7, 8].map(places)
]

export const exponent: Edit = ofText((text) => {
  const digits = /^0\.(0*)([1-9][0-9]*)$/.exec(text)
  const [, zeros = "", [first = "", ...rest] = ""] = digits ?? []
  if (digits === null) return text
  return `${first}${rest.length === 0 ? "" : `.${rest.join("")}`}e-${zeros.length + 1}`
})

/** Formats the exponent with two digits, as Python does. */
export const longExponent: Edit = (value) => {
  const text = exponent(value)
  return Predicate.isString(text) ? text.replace(/e-([0-9])$/, "e-0$1") : text
}

export const checksummed = (address: string): string => {
  const digits = address.slice(2).toLowerCase()
  const hash = ActionHash.toHex(ActionHash.keccak256(Utf8.encode(digits))).slice(2)
  return `0x${
    Array.from(digits, (digit, at) => Number(`0x${hash[at] ?? "0"}`) >= 8 ? digit.toUpperCase() : digit).join("")
  }`
}

export const upperCase = (hex: string): string => `0x${hex.slice(2).toUpperCase()}`

export const addressesIn = (view: View): ReadonlyArray<ActionForm.Leaf> =>
  leavesIn(view, "address", "cloid", "id", "text").filter(({ value }) =>
    Predicate.isString(value) && /^0x[0-9a-f]{32,40}$/.test(value)
  )

export const toNumber: Edit = ofText((text) => /^-?[0-9]+(?:\.[0-9]+)?$/.test(text) ? Number(text) : text)

export const toText: Edit = (value) => Predicate.isNumber(value) || Predicate.isBigInt(value) ? value.toString() : value

export const rounded: Edit = (value) => Predicate.isBigInt(value) ? BigInt(Number(value)) : value

/**
 * Generates signing hypotheses in which an integer of the body was signed with its exact value, and sent after rounding
 * to a double. Tries the integers that round to the sent integer.
 */
export const unrounded = function*({ view }: Subject): Iterable<MistakenView> {
  for (const { path, value } of leavesIn(view, "integer").slice(0, maxLeaves)) {
    if (!Predicate.isBigInt(value) || BigInt(Number(value)) !== value) continue
    const step = 2n ** BigInt(Math.max(0, value.toString(2).length - 53))
    for (let off = 1n; off <= step / 2n && off <= 64n; off++) {
      yield { view: edited(view, [path], () => value + off) }
      yield { view: edited(view, [path], () => value - off) }
    }
  }
}

export const normalized = (form: "NFC" | "NFD"): Rewrite =>
  rewriter({ leaf: (value) => Predicate.isString(value) ? value.normalize(form) : value })

export const jsonIn = ofText((text) => text.replaceAll(/\s*([,:])\s*/g, "$1"))
export const spacedJson = ofText((text) => text.replaceAll(/\s*([,:])\s*/g, "$1 "))

const halvable = 2 ** 51

/**
 * Generates signing hypotheses in which integers are encoded as doubles: first only the large integers, as JavaScript
 * libraries do, then all integers, then one integer at a time.
 */
export const integersAsFloats: Vary = function*({ view }) {
  const leaves = leavesIn(view, "integer", "id").flatMap(({ path, value }) =>
    Predicate.isNumber(value) && Math.abs(value) < halvable ? [{ path, value }] : []
  )
  const large = leaves.filter(({ value }) => value > 0xffff_ffff)
  for (const group of [large, leaves, ...leaves.slice(0, maxLeaves).map((leaf) => [leaf])]) {
    const [first] = group
    if (first === undefined) continue
    const paths = group.map(({ path }) => path)
    const floating = edited(view, paths, (value) => Predicate.isNumber(value) ? new Packed(value, "double") : value)
    yield {
      view: { ...floating, encoding: view.encoding ?? standard },
      finding: {
        path: [...SignedView.actionPath(view), ...first.path],
        found: `${first.value}.0`,
        expected: String(first.value)
      }
    }
  }
}

const inType = (least: IntegerStyle["least"], signed: boolean): IntegerStyle => ({ least, signed, fixed: false })

/** The types in which programs encode all integers, most likely first. */
const integerTypes: ReadonlyArray<IntegerStyle> = [
  inType(8, true),
  inType(8, false),
  { least: 1, signed: true, fixed: true },
  inType(4, true),
  inType(4, false),
  inType(2, false),
  inType(2, true),
  ...([8, 4, 2] as const).flatMap((least) => [true, false].map((signed) => ({ least, signed, fixed: true }))),
  inType(1, false),
  inType(1, true),
  ...([4, 2, 1] as const).flatMap((least) =>
    [false, true].map((fixed) => ({ least, signed: true, fixed, onlyLeast: true }))
  )
]

/** The types of one member, or of the small and of the large integers. */
const ownTypes = ([8, 4, 2, 1] as const).flatMap((least) => [true, false].map((signed) => inType(least, signed)))

const typeName = ({ fixed, least, onlyLeast = false, signed }: IntegerStyle): string => {
  if (signed && least === 1 && fixed && !onlyLeast) return "signed types (0xd0 to 0xd3)"
  const code = (signed ? 0xd0 : 0xcc) + Math.log2(least)
  const range = `${fixed ? " above 127" : ""}${onlyLeast ? ", if they fit" : ""}`
  return `${signed ? "int" : "uint"}${least * 8} (0x${code.toString(16)})${range}`
}

/** Integers from this value on do not fit into 16 bits. */
const large = 65_536

/**
 * Generates signing hypotheses in which integers have wider or signed types: first all integers, then the integers of
 * one member, then the small and the large integers in two types, as the fields of a struct have.
 */
export const integerWidths: Vary = function*({ view }) {
  for (const integer of integerTypes) {
    yield {
      view: { ...view, encoding: { ...(view.encoding ?? standard), integer } },
      finding: { path: [], found: typeName(integer) }
    }
  }
  const members = new Map<string, Array<ActionForm.Path>>()
  const bySize: { readonly [size in "small" | "large"]: Array<ActionForm.Path> } = { small: [], large: [] }
  for (const { path, value } of leavesIn(view, "integer", "id")) {
    if (!Predicate.isNumber(value) && !Predicate.isBigInt(value)) continue
    const name = path.filter(Predicate.isString).join(".")
    members.set(name, [...(members.get(name) ?? []), path])
    bySize[value < large ? "small" : "large"].push(path)
  }
  if (members.size < 2) return
  const packed = (from: View, paths: ReadonlyArray<ActionForm.Path>, style: IntegerStyle): View => ({
    ...edited(
      from,
      paths,
      (value) => Predicate.isNumber(value) || Predicate.isBigInt(value) ? new Packed(value, style) : value
    ),
    encoding: from.encoding ?? standard
  })
  for (const paths of [...members.values()].slice(0, maxLeaves)) {
    for (const style of ownTypes) {
      yield {
        view: packed(view, paths, style),
        finding: { path: [...SignedView.actionPath(view), ...paths[0] ?? []], found: typeName(style) }
      }
    }
  }
  if (bySize.small.length === 0 || bySize.large.length === 0) return
  for (const small of [inType(4, false), inType(4, true), inType(2, false)]) {
    for (const wide of [inType(8, false), inType(8, true)]) {
      yield {
        view: packed(packed(view, bySize.small, small), bySize.large, wide),
        finding: { path: [], found: `${typeName(small)} and ${typeName(wide)}` }
      }
    }
  }
}
