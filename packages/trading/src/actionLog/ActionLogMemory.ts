/** `ActionLog` in the memory of this process: lost when the process ends, and not shared with replicas. */
import { Settled } from "@trigate/domain/actions/ActionOutcome"
import {
  addMillis,
  longAgo,
  lowerCase,
  millisBetween,
  type MonotonicTime,
  monotonicTime,
  of,
  stringify
} from "@trigate/domain/encoding/Encoding"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as ActionLog from "./ActionLog.ts"
import * as LoggedAction from "./LoggedAction.ts"

/**
 * Makes an index from fingerprints and client order IDs (cloids) to the keys of log entries. A fingerprint or cloid
 * that has only one key, which is the usual case, is stored without a set.
 */
const makeIndex = () => {
  const names = new Map<string, string | Set<string>>()
  const find = (by: string): ReadonlyArray<string> => {
    const keys = names.get(by)
    return keys === undefined ? [] : Predicate.isString(keys) ? [keys] : [...keys]
  }
  const set = (by: string, keys: ReadonlyArray<string>): void => {
    const [first] = keys
    if (first === undefined) names.delete(by)
    else names.set(by, keys.length === 1 ? first : new Set(keys))
  }
  return {
    add: (by: string, key: string) => {
      const known = names.get(by)
      if (known === undefined) names.set(by, key)
      else if (Predicate.isString(known)) set(by, [known, ...(known === key ? [] : [key])])
      else known.add(key)
    },
    remove: (by: string, key: string) => {
      if (names.get(by) === key) names.delete(by)
      else set(by, find(by).filter((each) => each !== key))
    },
    find
  }
}

/** The list of keys is compacted only if it contains at least this many dropped keys. */
const droppedKeys = 1_000

/**
 * Makes a map that drops its oldest entries. A plain `Map` becomes slower with each dropped entry, because iterating
 * over it also visits the slots of deleted entries.
 */
const makeQueue = <A>() => {
  const entries = new Map<string, A>()
  let keys: Array<string> = []
  let dropped = 0
  return {
    get: (key: string): A | undefined => entries.get(key),
    set: (key: string, entry: A) => {
      if (!entries.has(key)) keys.push(key)
      entries.set(key, entry)
    },
    /**
     * Drops entries, oldest first, until `isKept` returns `true` for an entry; `size` is the current number of entries.
     */
    drop: (isKept: (entry: A, size: number) => boolean, onDrop: (key: string, entry: A) => void) => {
      for (;;) {
        const key = keys[dropped]
        const entry = key === undefined ? undefined : entries.get(key)
        if (key === undefined || entry === undefined || isKept(entry, entries.size)) return
        onDrop(key, entry)
        entries.delete(key)
        dropped += 1
        if (dropped >= droppedKeys && dropped * 2 >= keys.length) {
          keys = keys.slice(dropped)
          dropped = 0
        }
      }
    }
  }
}

interface Stored extends LoggedAction.Entry {
  readonly holding: LoggedAction.Holding
  /** The text of the key. */
  readonly name: string
  readonly names: ReadonlyArray<string>
  /** The time of the next lookup, which a wall clock that jumps does not move. Absent before the first lookup is set. */
  readonly dueAt?: MonotonicTime
}

/**
 * A settled action. A log has up to 100 000 of them, so the outcome, which only a query for the action reads, is JSON
 * text: one string instead of a dozen objects that a garbage collection visits.
 */
interface SettledAction extends Pick<LoggedAction.Entry, "expiresAt" | "state"> {
  readonly vault: string
  /** The fingerprint and the client order IDs. */
  readonly names: ReadonlyArray<string>
  readonly outcome: string | undefined
}

const decodeOutcome = Schema.decodeUnknownSync(Settled)

/** Returns the entry of a settled action, with the key whose text is `name`. */
const settledEntry = (name: string, { expiresAt, names, outcome, state, vault }: SettledAction): LoggedAction.Entry => {
  const [claimant = "", nonce] = name.split(":")
  return {
    signer: lowerCase(claimant),
    nonce: Number(nonce),
    fingerprint: names[0] ?? "",
    vault,
    openedAt: 0,
    lookUpAt: 0,
    state,
    token: "",
    expiresAt,
    leaseUntil: 0,
    settled: outcome === undefined ? undefined : decodeOutcome(of(outcome).valueOrUndefined)
  }
}

/** Makes the store of the entries of one process. */
export const makeDriver = (clock: Clock.Clock): ActionLog.Driver<never> => {
  const unanswered = new Map<string, Stored>()
  const settledQueues = { familiar: makeQueue<SettledAction>(), strangers: makeQueue<SettledAction>() }
  const index = makeIndex()
  const isUnknownNew = Latch.makeUnsafe(false)
  // the earliest time at which an unanswered action expires
  let firstExpiry = Infinity

  const getSettled = (name: string): LoggedAction.Entry | undefined => {
    const settled = settledQueues.familiar.get(name) ?? settledQueues.strangers.get(name)
    return settled === undefined ? undefined : settledEntry(name, settled)
  }

  const forgetNames = (name: string, { names }: Pick<Stored, "names">): void => {
    for (const each of names) index.remove(each, name)
  }

  const remove = (name: string, entry: Stored): void => {
    unanswered.delete(name)
    forgetNames(name, entry)
  }

  const insert = ({ expiresAt, key, now, part, sending, token }: ActionLog.Opening, guard: LoggedAction.Guard) => {
    const name = LoggedAction.formatKey(key)
    const settled = getSettled(name)
    if (settled !== undefined && settled.expiresAt > now) return settled
    const earlier = unanswered.get(name)
    if (earlier !== undefined && (!LoggedAction.isMet(guard, earlier) || earlier.expiresAt <= now)) return earlier
    const { actionType, body, fingerprint, nonce, signer, trace = { legs: [] } } = sending
    const entry: Stored = {
      ...(earlier ?? {
        signer,
        nonce,
        actionType,
        fingerprint,
        body,
        trace,
        vault: trace.vault ?? "",
        name,
        // not by a spread, which reserves memory for sixteen more elements
        names: [fingerprint].concat(LoggedAction.listCloids(trace)),
        holding: LoggedAction.holdingFor(part, sending),
        openedAt: now,
        lookUpAt: 0
      }),
      state: "sent",
      token,
      expiresAt,
      // this process itself settles each attempt
      leaseUntil: Infinity
    }
    for (const each of earlier === undefined ? entry.names : []) index.add(each, name)
    firstExpiry = Math.min(firstExpiry, expiresAt)
    unanswered.set(name, entry)
    return earlier === undefined ? "new" : "repeat"
  }

  const update = (key: LoggedAction.EntryKey, guard: LoggedAction.Guard, change: ActionLog.Change): boolean => {
    const name = LoggedAction.formatKey(key)
    const entry = unanswered.get(name)
    if (entry === undefined || !LoggedAction.isMet(guard, entry)) return false
    if ("lookUpAt" in change) {
      const { lookUpAt = Infinity } = change
      const dueAt = addMillis(monotonicTime(clock), lookUpAt - clock.currentTimeMillisUnsafe())
      unanswered.set(name, { ...entry, lookUpAt, dueAt })
    } else if (change.state === "gone") {
      remove(name, entry)
    } else if (change.state === "sent" || change.state === "unknown") {
      unanswered.set(name, { ...entry, state: change.state })
      if (change.state === "unknown") isUnknownNew.openUnsafe()
    } else {
      // the index keeps the names of the entry
      unanswered.delete(entry.name)
      const part = change.part ?? (change.state === "accepted" ? "familiar" : entry.holding.part)
      settledQueues[part].set(entry.name, {
        state: change.state,
        expiresAt: entry.expiresAt,
        vault: entry.vault ?? "",
        names: entry.names,
        outcome: change.settled === undefined ? undefined : stringify(change.settled)
      })
    }
    return true
  }

  const select = (selection: ActionLog.Selection): ReadonlyArray<LoggedAction.Entry> => {
    if ("open" in selection) {
      const { open } = selection
      const all = [...unanswered.values()]
      return open === "all" ? all : all.filter(({ fingerprint }) => fingerprint === open.fingerprint)
    }
    if ("due" in selection) {
      const found: Array<Stored> = []
      const now = monotonicTime(clock)
      for (const entry of unanswered.values()) {
        if (found.length === ActionLog.lookupsAtOnce) break
        if (entry.state === "unknown" && (entry.dueAt ?? longAgo) <= now) found.push(entry)
      }
      return found
    }
    const names = "key" in selection
      ? [LoggedAction.formatKey(selection.key)]
      : "id" in selection
      ? index.find(selection.id)
      : "cloid" in selection
      ? index.find(selection.cloid.toLowerCase())
      : [`${selection.signer.toLowerCase()}:${selection.nonce}`]
    return names.flatMap((name) => unanswered.get(name) ?? getSettled(name) ?? [])
  }

  const trim = (now: number, settled?: { readonly familiar: number; readonly strangers: number }): number => {
    for (const part of ["familiar", "strangers"] as const) {
      settledQueues[part].drop(
        ({ expiresAt }, size) => expiresAt > now && (settled === undefined || size <= settled[part]),
        forgetNames
      )
    }
    if (firstExpiry > now) return 0
    const expired = [...unanswered].filter(([, { expiresAt }]) => expiresAt <= now)
    for (const [name, entry] of expired) remove(name, entry)
    firstExpiry = Infinity
    for (const { expiresAt } of unanswered.values()) firstExpiry = Math.min(firstExpiry, expiresAt)
    return expired.length
  }

  return {
    backing: "memory",
    isLocal: true,
    insert: (opening, guard) => Effect.sync(() => insert(opening, guard)),
    update: (key, guard, change) => Effect.sync(() => update(key, guard, change)),
    find: (selection) => Effect.sync(() => select(selection)),
    count: () =>
      Effect.sync(() =>
        Array.from(unanswered.values(), ({ expiresAt, holding, openedAt, state }) => {
          const [unknown, oldestUnknown] = state === "unknown" ? [1, openedAt] : [0, null]
          return { ...holding, unknown, oldestUnknown, firstExpiry: expiresAt }
        })
      ),
    trim: (now, settled) => Effect.sync(() => trim(now, settled)),
    isKnown: () => Effect.succeed(false),
    know: () => Effect.void,
    step: identity,
    write: identity,
    isUp: Effect.succeed(true),
    // no timer runs while there are no unknown outcomes
    untilTurn: Effect.gen(function*() {
      const now = monotonicTime(clock)
      let wait = Infinity
      for (const { dueAt = longAgo, state } of unanswered.values()) {
        if (state === "unknown") wait = Math.min(wait, millisBetween(now, dueAt))
      }
      const isNew = isUnknownNew.await
      yield* wait === Infinity ? isNew : Effect.timeoutOption(isNew, Math.max(0, wait))
      isUnknownNew.closeUnsafe()
      yield* Effect.sleep(ActionLog.turnEvery)
    })
  }
}

/** Makes an action log in memory, which is lost when the process ends. */
export const make = (options: ActionLog.Options = {}) =>
  Effect.flatMap(Clock.Clock, (clock) => Effect.map(ActionLog.make(makeDriver(clock), options), ({ log }) => log))

/**
 * Provides an action log in the memory of this process. Each call returns a new layer with a separate log.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { ActionLogMemory } from "@trigate/trading"
 *
 * export const log = ActionLogMemory.layer({ capacity: 1000 })
 * ```
 */
export const layer = (options: ActionLog.Options = {}): Layer.Layer<ActionLog.ActionLog> =>
  Layer.effect(ActionLog.ActionLog, make(options))
