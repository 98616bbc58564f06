/** `ActionLog` in the memory of this process: lost when the process ends, and not shared with replicas. */
import type { Settled } from "@trigate/domain/actions/ActionRecord"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ActionLog from "./ActionLog.ts"
import * as ActionLogQuota from "./ActionLogQuota.ts"
import * as ActionTrace from "./ActionTrace.ts"
import * as LoggedAction from "./LoggedAction.ts"
import type {
  Claim,
  ClaimRefusal,
  Recorded,
  Remains,
  Sending,
  Signed,
  State,
  Unanswered,
  Unsettled
} from "./LoggedAction.ts"

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

interface Entry extends Unanswered {
  readonly expiry: number
  readonly holding: ActionLogQuota.Holding
  readonly trace: ActionTrace.ActionTrace
  readonly cloids: ReadonlyArray<string>
  readonly lookUpAt: number
}

interface Answered extends Pick<Signed, "fingerprint" | "nonce" | "signer"> {
  readonly state: State
  readonly expiry: number
  readonly cloids: ReadonlyArray<string>
  readonly settled: Settled | undefined
  readonly vault: string
}

/**
 * Makes an in-memory action log, which is lost when the process ends. `known` are the signers that are known at the
 * start.
 */
export const make = Effect.fnUntraced(
  function*(options: ActionLog.Options = {}, known: ActionLogQuota.Signers = ActionLogQuota.makeSigners()) {
    const { capacity, keep, maxBytes, settledCapacity } = ActionLog.resolveLimits(options)
    const context = yield* Effect.context()
    const unanswered = new Map<string, Entry>()
    const answered = { familiar: makeQueue<Answered>(), strangers: makeQueue<Answered>() }
    const room = ActionLogQuota.make({ capacity, maxBytes })
    const index = makeIndex()
    const isUnknownNew = Latch.makeUnsafe(false)
    let prunedAt = yield* Clock.currentTimeMillis
    // the earliest time at which an unanswered action expires
    let firstExpiry = Infinity
    let inFlight = 0

    const report = () => {
      ActionLog.gauges.sent.updateUnsafe(inFlight, context)
      ActionLog.gauges.unknown.updateUnsafe(Math.max(0, unanswered.size - inFlight), context)
    }

    // scans all entries, so it is called only when the number of unknown outcomes changes
    const reportOldest = () => {
      const unknown = [...unanswered.values()].filter(({ state }) => state === "unknown")
      ActionLog.gauges.oldest.updateUnsafe(ActionLog.oldestSeconds(unknown.map(({ openedAt }) => openedAt)), context)
    }

    const find = (key: string): Entry | Answered | undefined =>
      unanswered.get(key) ?? answered.familiar.get(key) ?? answered.strangers.get(key)

    const indexed = (key: string, cloids: ReadonlyArray<string>, { fingerprint }: Pick<Signed, "fingerprint">) => {
      index.add(fingerprint, key)
      for (const cloid of cloids) index.add(cloid, key)
    }

    const unindexed = (key: string, cloids: ReadonlyArray<string>, { fingerprint }: Pick<Signed, "fingerprint">) => {
      index.remove(fingerprint, key)
      for (const cloid of cloids) index.remove(cloid, key)
    }

    const remove = (key: string): boolean => {
      const entry = unanswered.get(key)
      if (entry !== undefined) {
        room.remove(entry.holding)
        unindexed(key, entry.cloids, entry)
      }
      return unanswered.delete(key)
    }

    const remember = (key: string, entry: Entry, state: State, settled?: Settled) => {
      const { cloids, expiry, fingerprint, holding, nonce, signer, trace: { vault = "" } } = entry
      const { part } = holding
      if (signer === undefined) {
        remove(key)
        return
      }
      // the index keeps the names of the entry
      room.remove(holding)
      unanswered.delete(key)
      if (state === "accepted") known.add(signer.toLowerCase())
      answered[state === "accepted" ? "familiar" : part].set(key, {
        signer,
        nonce,
        state,
        expiry,
        fingerprint,
        cloids,
        settled,
        vault
      })
    }

    const dropAnswered = (part: ActionLogQuota.Part, now: number) =>
      answered[part].drop(
        ({ expiry }, size) => expiry > now && size <= settledCapacity[part],
        (key, past) => unindexed(key, past.cloids, past)
      )

    const recorded = (entry: Entry | Answered): Recorded =>
      LoggedAction.recordedFrom(
        "trace" in entry
          ? {
            ...entry,
            settled: undefined,
            expiresAfter: entry.trace.expiresAfter,
            vault: entry.trace.vault ?? ""
          }
          : { ...entry, expiresAfter: undefined }
      )

    const prune = (now: number) =>
      Effect.suspend(() => {
        prunedAt = now
        const count = [...unanswered].filter(([key, { expiry }]) => expiry <= now && remove(key)).length
        firstExpiry = Infinity
        for (const { expiry } of unanswered.values()) firstExpiry = Math.min(firstExpiry, expiry)
        report()
        reportOldest()
        return ActionLog.warnExpired(count)
      })

    const settle = (key: string, entry: Entry, remains: Remains, settled: Settled | undefined) => {
      inFlight -= 1
      // another attempt with the same content may have replaced the entry, or an operator may have removed it
      if (unanswered.get(key) === entry) {
        if (remains === "unknown") unanswered.set(key, { ...entry, state: "unknown" })
        else if (remains === "gone") remove(key)
        else remember(key, entry, remains, settled)
      }
      report()
      if (remains === "unknown") {
        reportOldest()
        isUnknownNew.openUnsafe()
      }
    }

    const attempt = (key: string, sending: Sending, now: number): Result.Result<Claim, ClaimRefusal> => {
      const { actionType, body, fingerprint, isListed, nonce, signer, trace = { legs: [] } } = sending
      dropAnswered("familiar", now)
      dropAnswered("strangers", now)
      const earlier = unanswered.get(key)
      const past = answered.familiar.get(key) ?? answered.strangers.get(key)
      const standing = past !== undefined && past.expiry > now ? past : earlier
      const state = standing?.state
      const isRepeat = earlier !== undefined
      if (
        signer !== undefined && state !== undefined &&
        !(state === "unknown" && earlier?.fingerprint === fingerprint)
      ) {
        return Result.fail(LoggedAction.alreadyUsed(signer, nonce, state, standing?.fingerprint === fingerprint))
      }
      const holding = earlier?.holding ??
        ActionLogQuota.holdingFor(
          signer !== undefined && (isListed || known.has(signer.toLowerCase())) ? "familiar" : "strangers",
          sending
        )
      const scarcity = isRepeat ? undefined : room.scarcity(holding.part, holding.holder, holding.bytes)
      if (scarcity !== undefined) return Result.fail(ActionLogQuota.overQuota(scarcity))
      const expiry = LoggedAction.expiryTime(nonce, now, keep)
      const entry: Entry = {
        ...(earlier ?? {
          ...(signer === undefined ? {} : { signer }),
          nonce,
          actionType,
          fingerprint,
          body,
          trace,
          cloids: ActionTrace.cloids(trace),
          holding,
          openedAt: now,
          lookUpAt: 0
        }),
        state: "sent",
        expiry
      }
      if (!isRepeat) {
        room.add(holding)
        indexed(key, entry.cloids, entry)
      }
      firstExpiry = Math.min(firstExpiry, expiry)
      unanswered.set(key, entry)
      inFlight += 1
      report()
      if (isRepeat) reportOldest()
      return Result.succeed(
        LoggedAction.makeClaim(
          sending,
          isRepeat,
          (remains, settled) => Effect.sync(() => settle(key, entry, remains, settled))
        )
      )
    }

    return ActionLog.ActionLog.of({
      backing: "memory",
      tryClaim: (sending, now) =>
        now - prunedAt > ActionLog.pruneInterval || firstExpiry <= now
          ? undefined
          : attempt(LoggedAction.entryKey(sending), sending, now),
      claim: (sending) =>
        Effect.flatMap(
          Effect.tap(Clock.currentTimeMillis, prune),
          (now) => Effect.fromResult(attempt(LoggedAction.entryKey(sending), sending, now))
        ),
      unanswered: Effect.map(Effect.flatMap(Clock.currentTimeMillis, prune), () =>
        [...unanswered.values()]
          .map((
            { cloids: _cloids, expiry: _expiry, holding: _holding, lookUpAt: _lookUpAt, trace: _trace, ...entry }
          ) => entry)
          .toSorted((one, other) => one.openedAt - other.openedAt)),
      forget: (fingerprint) =>
        Effect.sync(() => {
          const found = [...unanswered].find(([, entry]) => entry.fingerprint === fingerprint)
          if (found === undefined) return false
          remember(...found, "forgotten")
          report()
          reportOldest()
          return true
        }),
      find: (reference) =>
        Effect.sync(() =>
          LoggedAction.entryKeys(reference, index.find).flatMap((key) => find(key) ?? []).map(recorded).filter((each) =>
            LoggedAction.isNamed(reference, each)
          )
        ),
      takeUnknown: Effect.map(Clock.currentTimeMillis, (now) => {
        const taken: Array<Unsettled> = []
        for (const [key, entry] of unanswered) {
          if (taken.length === ActionLog.lookupsAtOnce) break
          if (entry.state !== "unknown" || entry.lookUpAt > now) continue
          unanswered.set(key, { ...entry, lookUpAt: LoggedAction.nextLookup(entry.openedAt, now) })
          const { fingerprint, nonce, openedAt, signer, trace } = entry
          taken.push({ fingerprint, nonce, openedAt, trace, ...(signer === undefined ? {} : { signer }) })
        }
        return taken
      }),
      // no timer runs while there are no unknown outcomes
      untilTurn: Effect.gen(function*() {
        let next = Infinity
        for (const { lookUpAt, state } of unanswered.values()) {
          if (state === "unknown") next = Math.min(next, lookUpAt)
        }
        const isNew = isUnknownNew.await
        const wait = next - (yield* Clock.currentTimeMillis)
        yield* wait === Infinity ? isNew : Effect.timeoutOption(isNew, Math.max(0, wait))
        isUnknownNew.closeUnsafe()
        yield* Effect.sleep(ActionLog.turnEvery)
      }),
      conclude: (fingerprint, conclusion) =>
        Effect.sync(() => {
          const found = index.find(fingerprint).flatMap((key) => {
            const entry = unanswered.get(key)
            return entry?.state === "unknown" ? [[key, entry] as const] : []
          })
          for (const [key, entry] of found) {
            remember(key, entry, LoggedAction.storedState(conclusion), conclusion.settled)
          }
          report()
          reportOldest()
          return found.length > 0
        }),
      used: Effect.sync(room.used),
      isUp: Effect.succeed(true)
    })
  }
)

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
