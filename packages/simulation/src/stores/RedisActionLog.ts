/**
 * The action log that replicas share, in a simulated Redis: what the scripts of `ActionLogRedis` do, in TypeScript. The
 * conditions and the policy are those of production; bodies stay in the memory of each process.
 */
import type { ActionReference, Settled } from "@trigate/domain/actions/ActionOutcome"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogRedis from "@trigate/trading/actionLog/ActionLogRedis"
import * as LoggedAction from "@trigate/trading/unstable/actionLog/LoggedAction"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Access from "./Access.ts"

type Value = Pick<LoggedAction.Entry, "expiresAt" | "fingerprint" | "leaseUntil" | "state" | "token">

interface About {
  readonly id: string
  readonly openedAt: number
  readonly trace: LoggedAction.ActionTrace
}

/** A sorted set. */
type Scores = Map<string, number>

/** The keys of Redis, by kind; entries are named by signer and nonce. */
export interface State {
  readonly values: Access.Keys<Value>
  readonly abouts: Access.Keys<About>
  readonly settled: Access.Keys<Settled>
  /** The entry of a fingerprint, and the entries with a client order ID. */
  readonly ids: Access.Keys<string>
  readonly cloids: Access.Keys<Set<string>>
  /** Under one key: the time of the next lookup of each unanswered entry. */
  readonly open: Access.Keys<Scores>
  /** The expiry of each settled entry, by its part. */
  readonly answered: Access.Keys<Scores>
  readonly signers: Access.Keys<true>
}

const isAddress = Schema.is(Encoding.Address)

/** The value of an entry that expired, but is still listed for a lookup. */
const expired: Value = { state: "forgotten", fingerprint: "", leaseUntil: 0, expiresAt: 0, token: "" }

const meets = (guard: LoggedAction.Guard, value: Value): boolean =>
  LoggedAction.isMet(guard, { ...value, lookUpAt: guard.lookUpAt ?? 0 })

/** Returns the members of a sorted set, ordered by score and then by name. */
const ranked = (scores: Scores): ReadonlyArray<readonly [member: string, score: number]> =>
  [...scores].toSorted(([one, first], [other, second]) => first - second || (one < other ? -1 : 1))

const insert = (
  state: State,
  { expiresAt, key, leaseUntil, now: at, sending, token }: ActionLog.Opening,
  guard: LoggedAction.Guard,
  now: number
): "new" | "repeat" | ActionLog.Standing => {
  const member = LoggedAction.formatKey(key)
  const { fingerprint, trace = { legs: [] } } = sending
  const standing = Access.getKey(state.values, member, now)
  const found = standing !== undefined && standing.expiresAt <= (guard.now ?? 0) ? undefined : standing
  if (found !== undefined && !meets(guard, found)) return found
  const diesAt = now + expiresAt - at
  Access.setKey(state.values, member, { state: "sent", fingerprint, leaseUntil, expiresAt, token }, diesAt)
  Access.changeKey(state.open, "", now, (): Scores => new Map(), (scores) => scores.set(member, leaseUntil))
  Access.prolongKey(state.open, "", diesAt)
  Access.expireKey(state.abouts, member, now, diesAt)
  Access.expireKey(state.ids, fingerprint, now, diesAt)
  if (found !== undefined) return "repeat"
  Access.setKey(state.abouts, member, { id: fingerprint, openedAt: at, trace }, diesAt)
  Access.setKey(state.ids, fingerprint, member, diesAt)
  for (const cloid of LoggedAction.listCloids(trace)) {
    Access.changeKey(state.cloids, cloid, now, () => new Set<string>(), (members) => members.add(member))
    Access.prolongKey(state.cloids, cloid, diesAt)
  }
  return "new"
}

const dropSettled = (state: State, member: string, now: number): void => {
  const about = Access.getKey(state.abouts, member, now)
  if (about !== undefined) {
    state.ids.delete(about.id)
    for (const cloid of LoggedAction.listCloids(about.trace)) {
      Access.changeKey(state.cloids, cloid, now, () => new Set<string>(), (members) => members.delete(member))
    }
  }
  for (const keys of [state.values, state.abouts, state.settled]) keys.delete(member)
}

const update = (
  state: State,
  key: LoggedAction.EntryKey,
  guard: LoggedAction.Guard,
  { part, settled, settledCapacity, state: next }: ActionLogRedis.Ending,
  now: number
): boolean => {
  const member = LoggedAction.formatKey(key)
  const found = Access.getKey(state.values, member, now)
  if (found === undefined || !meets(guard, found)) return false
  Access.changeKey(state.open, "", now, (): Scores => new Map(), (scores) => {
    if (next === "unknown") scores.set(member, 0)
    else scores.delete(member)
  })
  if (next === "gone") {
    state.values.delete(member)
    state.abouts.delete(member)
    return true
  }
  const diesAt = state.values.get(member)?.diesAt ?? now
  Access.setKey(state.values, member, { ...found, state: next }, diesAt)
  if (next === "unknown") return true
  if (settled !== undefined) Access.setKey(state.settled, member, settled, diesAt)
  Access.changeKey(state.answered, part, now, (): Scores => new Map(), (scores) => {
    scores.set(member, found.expiresAt)
    for (const [oldest] of ranked(scores).slice(0, Math.max(0, scores.size - settledCapacity))) {
      scores.delete(oldest)
      dropSettled(state, oldest, now)
    }
  })
  Access.prolongKey(state.answered, part, diesAt)
  return true
}

const move = (
  state: State,
  key: LoggedAction.EntryKey,
  from: number | undefined,
  to: number | undefined,
  now: number
): boolean => {
  const member = LoggedAction.formatKey(key)
  const score = Access.getKey(state.open, "", now)?.get(member)
  if (score === undefined || score !== from) return false
  Access.changeKey(state.open, "", now, (): Scores => new Map(), (scores) => {
    if (to === undefined) scores.delete(member)
    else scores.set(member, to)
  })
  return true
}

const select = (
  state: State,
  selection: ActionReference | { readonly due: number },
  now: number
): ReadonlyArray<string> => {
  if ("due" in selection) {
    return ranked(Access.getKey(state.open, "", now) ?? new Map())
      .flatMap(([member, score]) => score <= selection.due ? [member] : [])
      .slice(0, ActionLog.lookupsAtOnce)
  }
  if ("id" in selection) return [Access.getKey(state.ids, selection.id, now) ?? []].flat()
  if ("cloid" in selection) {
    const start = selection.signer === undefined ? "" : `${selection.signer.toLowerCase()}:`
    return [...Access.getKey(state.cloids, selection.cloid.toLowerCase(), now) ?? []]
      .filter((member) => member.startsWith(start) && Access.getKey(state.values, member, now) !== undefined)
      .slice(0, LoggedAction.mostFound)
  }
  return [`${selection.signer.toLowerCase()}:${selection.nonce}`]
}

const find = (
  state: State,
  selection: ActionReference | { readonly due: number },
  now: number
): ReadonlyArray<LoggedAction.Entry> =>
  select(state, selection, now).flatMap((member): ReadonlyArray<LoggedAction.Entry> => {
    const value = Access.getKey(state.values, member, now)
    if (value === undefined && !("due" in selection)) return []
    const [signer = "", nonce = "0"] = member.split(":")
    const about = Access.getKey(state.abouts, member, now)
    return [{
      nonce: Number(nonce),
      signer: isAddress(signer) ? signer : undefined,
      ...(value ?? expired),
      openedAt: about?.openedAt ?? 0,
      lookUpAt: Access.getKey(state.open, "", now)?.get(member) ?? 0,
      trace: about?.trace,
      vault: about === undefined ? undefined : about.trace.vault ?? "",
      settled: Access.getKey(state.settled, member, now)
    }]
  })

/** The shared part of the action log in one simulated Redis. */
export type Store = Access.Disk<State>

/** Makes the store. Replicas that use it share their claims. */
export const make = (): Store =>
  Access.makeDisk((): State => ({
    values: new Map(),
    abouts: new Map(),
    settled: new Map(),
    ids: new Map(),
    cloids: new Map(),
    open: new Map(),
    answered: new Map(),
    signers: new Map()
  }))

/** Returns the shared entries, as one replica reaches them. */
export const makeEntries = ({ current }: Store, access: Access.Access): ActionLogRedis.SharedEntries => ({
  insert: (opening, guard) => Access.redis(access, (now) => insert(current(), opening, guard, now)),
  update: (key, guard, ending) => Access.redis(access, (now) => update(current(), key, guard, ending, now)),
  move: (key, from, to) => Access.redis(access, (now) => move(current(), key, from, to, now)),
  find: (selection) => Access.redis(access, (now) => find(current(), selection, now)),
  isKnown: (signer) => Access.redis(access, (now) => Access.getKey(current().signers, signer, now) !== undefined),
  know: (signer) =>
    Access.redis(access, (now) => Access.setKey(current().signers, signer, true, now + LoggedAction.knownFor)),
  ping: Access.redis(access, () => true)
})

/**
 * Provides the action log of one replica.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import * as Access from "@trigate/simulation/unstable/stores/Access"
 * import * as RedisActionLog from "@trigate/simulation/unstable/stores/RedisActionLog"
 * import { ActionLog } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const replica = RedisActionLog.layer(RedisActionLog.make(), Access.direct)
 *
 * const program = ActionLog.ActionLog.use(({ backing, unanswered }) =>
 *   Effect.flatMap(unanswered, ({ length }) => Console.log(backing, length))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, replica))
 * ```
 * ```text
 * Redis 0
 * ```
 */
export const layer = (
  store: Store,
  access: Access.Access,
  options: Omit<ActionLogRedis.Options, "prefix"> = {}
): Layer.Layer<ActionLog.ActionLog> =>
  Layer.effect(ActionLog.ActionLog, ActionLogRedis.make(options, makeEntries(store, access)))
