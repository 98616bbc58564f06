/**
 * The action log: records every signed action before its first byte is sent. Retains an action until its nonce is too
 * old to use; drops the oldest settled actions earlier if there are too many.
 *
 * This module contains the policy: which action may be sent, what remains of an attempt, how much one signer or caller
 * may use, and how long entries are retained. A {@link Driver} stores the entries, and changes one only if it meets a
 * condition.
 */
import type { ActionEntry, ActionReference, Settled } from "@trigate/domain/actions/ActionOutcome"
import { CurrentCaller } from "@trigate/domain/Caller"
import { type Address, longAgo, millisBetween, monotonicTime } from "@trigate/domain/encoding/Encoding"
import type { UpstreamUnavailable } from "@trigate/domain/errors/GatewayError"
import { counter, gauge } from "@trigate/domain/unstable/DeclaredMetric"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as LoggedAction from "./LoggedAction.ts"
import type {
  Claim,
  ClaimRefusal,
  Claims,
  Conclusion,
  Entry,
  EntryKey,
  Excess,
  Guard,
  Holding,
  Part,
  Recorded,
  Sending,
  Settlement,
  State,
  Unanswered,
  Unsettled,
  Used
} from "./LoggedAction.ts"

/** The storage backend of an action log. */
export type Backing = "memory" | "SQLite" | "Postgres" | "Redis"

/**
 * The retention limits for known signers. Unknown signers share an additional tenth of each limit.
 *
 * {@link LoggedAction.makeQuotas} defines how much of a limit one signer or one caller is allowed to use.
 */
export interface Options {
  /**
   * Maximum number of unanswered actions (state `sent` or `unknown`). Default: 10 000. While the action log is full,
   * further actions are refused.
   */
  readonly capacity?: number
  /**
   * Maximum total size, in bytes, of unanswered bodies. Default: 64 MiB. While the action log is full, further actions
   * are refused.
   */
  readonly maxBytes?: number
  /**
   * Maximum number of settled actions. Default: 100 000. If there are more, the oldest settled actions are dropped.
   *
   * The venue still refuses their nonces.
   */
  readonly settledCapacity?: number
  /**
   * How long an entry is retained after the later of two times: the time in the action's nonce, and the time at which
   * the action was sent. Default: 2 days.
   *
   * Must be at least the venue's maximum age of a nonce: an action with an older nonce can no longer execute.
   */
  readonly keep?: Duration.Input
}

/**
 * Records signed actions.
 *
 * Provided by `ActionLogMemory.layer`, `ActionLogRedis.layer` or `ActionLogSql.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { ActionLog, ActionLogMemory } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const log = yield* ActionLog.ActionLog
 *   yield* Console.log(log.backing, (yield* log.unanswered).length)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, ActionLogMemory.layer({ capacity: 1000 })))
 * ```
 * ```text
 * memory 0
 * ```
 */
export class ActionLog extends Context.Service<
  ActionLog,
  Claims & {
    readonly backing: Backing
    /** Returns the actions in state `sent` or `unknown`, oldest first. */
    readonly unanswered: Effect.Effect<ReadonlyArray<Unanswered>, UpstreamUnavailable>
    /**
     * Removes an unanswered action by its fingerprint. Returns whether the action was in the action log. The nonce of
     * the action stays used, unless the signer is unknown.
     */
    readonly forget: (fingerprint: string) => Effect.Effect<boolean, UpstreamUnavailable>
    /**
     * Returns the actions that a reference identifies: a signer and nonce, a fingerprint, or a client order ID. Only a
     * client order ID can identify several actions.
     */
    readonly find: (reference: ActionReference) => Effect.Effect<ReadonlyArray<Recorded>, UpstreamUnavailable>
    /**
     * Returns up to {@link lookupsAtOnce} actions of unknown outcome whose lookup at the venue is due, and reserves them
     * for this caller.
     *
     * The wait until the next lookup of an action is half of the time since the action was sent, but at least one second
     * and at most five minutes.
     */
    readonly takeUnknown: Effect.Effect<ReadonlyArray<Unsettled>, UpstreamUnavailable>
    /** Waits until it is time to call `takeUnknown` again. That call may still return no action. */
    readonly untilTurn: Effect.Effect<void>
    /**
     * Settles an action of unknown outcome by its fingerprint. Returns `false`, and changes nothing, if the action is
     * being sent again or its outcome is already known.
     */
    readonly conclude: (fingerprint: string, conclusion: Conclusion) => Effect.Effect<boolean, UpstreamUnavailable>
    /** Returns the used fraction of the action log's capacity for unanswered actions, as far as this process knows. */
    readonly used: Effect.Effect<Used>
    /** Returns whether the store of the action log is reachable; always `true` for a log in memory. */
    readonly isUp: Effect.Effect<boolean>
  }
>()("@trigate/trading/actionLog/ActionLog") {}

/** The metrics, by their name in the server's table of metrics. */
export const metrics = {
  actionLogEntries: gauge(
    "trigate_action_log_entries",
    "Unanswered signed actions: those in flight from this process, and those of unknown outcome in the whole log",
    ["state"]
  ),
  actionLogOldest: gauge(
    "trigate_action_log_oldest_unknown_timestamp_seconds",
    "Time at which the oldest action of unknown outcome was first sent, in seconds since 1970; 0 if there are no such actions"
  ),
  actionLogDegraded: gauge(
    "trigate_action_log_degraded",
    "1 while the action log cannot be written and signed actions are refused, otherwise 0"
  ),
  actionLogUnshared: counter(
    "trigate_action_log_unshared_total",
    "Actions sent while Redis was unreachable, so that the used nonces were unknown to other replicas"
  ),
  actionsNotKnown: counter(
    "trigate_actions_not_known_total",
    "Relayed signed actions of a type, or with members, that the catalog of this version lacks"
  ),
  actionLogSettled: counter(
    "trigate_action_log_settled_total",
    "Actions of unknown outcome that were settled from the venue's state, without sending them again: `accepted` or `neverArrived`",
    ["state"]
  )
} as const

/**
 * The time after which an unsettled `sent` action becomes `unknown` (its lease). If it is a function, this function is
 * called at each claim and returns the lease for that claim.
 */
export type Lease = Duration.Input | (() => Duration.Input)

/** Returns a function that returns the current lease of a claim, in milliseconds. Default: 1 minute. */
const leaseMillis = (lease: Lease = "1 minute"): () => number => {
  const millis = (input: Duration.Input) => Duration.toMillis(input)
  if (Predicate.isFunction(lease)) return () => millis(lease())
  const fixed = millis(lease)
  return () => fixed
}

/** Default maximum bytes of the actions in the action log. */
export const mostLogged = 64 * 1024 * 1024

/** Returns the options, completed with the defaults. Converts `keep` to milliseconds. */
export const resolveLimits = (options: Options) => ({
  capacity: options.capacity ?? 10_000,
  maxBytes: options.maxBytes ?? mostLogged,
  settledCapacity: {
    familiar: options.settledCapacity ?? 100_000,
    strangers: (options.settledCapacity ?? 100_000) / 10
  },
  keep: Duration.toMillis(options.keep ?? "2 days")
})

/** Milliseconds between two removals of expired entries. */
const pruneInterval = 3_600_000

/** Logs a warning about unanswered actions that expired. */
const warnExpired = (count: number): Effect.Effect<void> =>
  count === 0
    ? Effect.void
    : Effect.logWarning(
      `${count} actions of unknown outcome expired from the action log: their nonces are too old to execute`
    )

/** Gauges: the unanswered actions by state, and the time at which the oldest action of unknown outcome was first sent. */
export const gauges = {
  sent: metrics.actionLogEntries.series({ state: "sent" }),
  unknown: metrics.actionLogEntries.series({ state: "unknown" }),
  oldest: metrics.actionLogOldest.series({}),
  degraded: metrics.actionLogDegraded.series({})
}

/** Maximum number of actions of unknown outcome that one round looks up at the venue. */
export const lookupsAtOnce = 20

/** The time between two rounds in which actions of unknown outcome are looked up at the venue. */
export const turnEvery = Duration.seconds(1)

/** The time between two checks of whether the store of the log is reachable. */
const checkEvery = Duration.seconds(10)

/** An action that a claim adds to a store, or sends again. */
export interface Opening {
  readonly key: EntryKey
  readonly sending: Sending
  readonly part: Part
  readonly token: string
  /** The current time, in milliseconds, which is the time of the first attempt if the store does not have the action. */
  readonly now: number
  readonly leaseUntil: number
  readonly expiresAt: number
}

/** The entry that has the key of an action which cannot be added. */
export type Standing = Pick<Entry, "expiresAt" | "fingerprint" | "leaseUntil" | "state">

/** Returns whether a store added an action (`new`) or marked it as sent again (`repeat`). */
export const isWritten = (written: "new" | "repeat" | Standing): written is "new" | "repeat" =>
  Predicate.isString(written)

/** The change of an entry: a new state, or the time of its next lookup (`undefined`: it is never looked up). */
export type Change =
  | {
    readonly state: State | "gone"
    readonly settled?: Settled | undefined
    /** The part of the log to which a settled entry belongs. Default: its part so far, or `familiar` if that is not stored. */
    readonly part?: Part | undefined
  }
  | { readonly lookUpAt: number | undefined }

/**
 * The entries to find: the entry with a key, the unanswered actions that this process can list, the entries whose lookup
 * may be due, or the entries that a reference identifies.
 */
export type Selection =
  | { readonly key: EntryKey }
  | { readonly open: "all" | { readonly fingerprint: string } }
  | { readonly due: number }
  | ActionReference

/** The number and size of some unanswered actions of one signer or caller, and those of unknown outcome among them. */
export interface Counted extends Holding {
  readonly unknown: number
  /** The time at which the oldest action of unknown outcome was first sent. */
  readonly oldestUnknown: number | null
  readonly firstExpiry: number
}

/**
 * A store of entries. It contains no policy: it stores what the log decides, and each change is atomic and happens only
 * if the entry meets the change's condition.
 */
export interface Driver<E> {
  readonly backing: Backing
  /**
   * Adds an entry in state `sent`. If the store has an entry with this key that meets the condition, marks that entry as
   * sent by this attempt instead. Otherwise returns the entry that has the key.
   */
  readonly insert: (
    opening: Opening,
    guard: Guard
  ) => Effect.Effect<"new" | "repeat" | Standing, E>
  /** Changes an entry if it meets the condition. Returns whether it did. */
  readonly update: (key: EntryKey, guard: Guard, change: Change) => Effect.Effect<boolean, E>
  /** Returns at most {@link LoggedAction.mostFound} entries for a reference, and {@link lookupsAtOnce} due ones. */
  readonly find: (selection: Selection, now: number) => Effect.Effect<ReadonlyArray<Entry>, E>
  readonly count: (now: number) => Effect.Effect<ReadonlyArray<Counted>, E>
  /**
   * Drops the expired entries. With `settled`, also drops the oldest settled entries beyond these numbers.
   * Returns the number of dropped entries that were unanswered.
   */
  readonly trim: (now: number, settled?: { readonly [P in Part]: number }) => Effect.Effect<number, E>
  /** Returns whether a signer has an accepted action, according to the store. */
  readonly isKnown: (signer: string) => Effect.Effect<boolean, E>
  /** Stores that a signer has an accepted action. */
  readonly know: (signer: string, now: number) => Effect.Effect<unknown, E>
  /** Runs operations within the deadline of the store. Fails with the reason. */
  readonly step: <A>(operations: Effect.Effect<A, E>) => Effect.Effect<A, string>
  /**
   * Like `step`, for operations on which actions depend: reports whether the store can be written. If the operations may
   * take effect although their result is lost, runs `late` after them.
   */
  readonly write: <A>(operations: Effect.Effect<A, E>, late?: Effect.Effect<void>) => Effect.Effect<A, string>
  /** Prepares the store; must succeed once before the first claim. Absent if there is nothing to prepare. */
  readonly prepare?: Effect.Effect<void, E>
  /** Whether the unanswered actions are in the memory of this process, so that counting them is cheap. */
  readonly isLocal: boolean
  readonly isUp: Effect.Effect<boolean>
  /** See `untilTurn` of {@link ActionLog}. Default: one second. */
  readonly untilTurn?: Effect.Effect<void>
}

/** The limits of the log, the lease of a claim, and the time between two counts of the unanswered actions. */
export interface CoreOptions extends Options {
  readonly lease?: Lease
  readonly countEvery?: Duration.Input
}

/** An attempt to send an action. */
interface Attempt extends Pick<Opening, "key" | "sending" | "token"> {
  readonly isRepeat: boolean
  readonly holding: Holding
}

/** Milliseconds between counts of the unanswered actions while the log is full. */
const countInterval = 1000

/** Makes an action log from a driver. Also returns the effect that counts the unanswered actions again. */
export const make = Effect.fnUntraced(function*<E>(driver: Driver<E>, options: CoreOptions) {
  const { capacity, keep, maxBytes, settledCapacity } = resolveLimits(options)
  const lease = leaseMillis(options.lease)
  const context = yield* Effect.context()
  const scope = yield* Effect.scope
  const start = yield* Clock.currentTimeMillis
  const run = `${start.toString(36)}.${(yield* Random.nextInt).toString(36)}`
  const claimsBetweenPrunes = Math.min(1000, settledCapacity.familiar)
  const signers = LoggedAction.makeSigners()
  // the unanswered actions in the store: counted there, then updated with this process's own claims
  const quotas = LoggedAction.makeQuotas({ capacity, maxBytes })
  let claims = 0
  let inFlight = 0
  let prunedAt = monotonicTime(yield* Clock.Clock)
  let countedAt = longAgo
  // the earliest time at which a counted action expires
  let firstExpiry = 0
  let isReady = driver.prepare === undefined
  // a log in memory has this metric after its first action of unknown outcome
  let hasOldest = !isReady

  const reportInFlight = (change: number): void => {
    inFlight += change
    gauges.sent.updateUnsafe(inFlight, context)
    // a store without `prepare` is empty until its first count
    if (countedAt === longAgo) gauges.unknown.updateUnsafe(0, context)
  }

  const counting = Effect.gen(function*() {
    const clock = yield* Clock.Clock
    countedAt = monotonicTime(clock)
    const counted = yield* driver.count(clock.currentTimeMillisUnsafe())
    quotas.reset(counted)
    firstExpiry = counted.reduce((first, each) => Math.min(first, each.firstExpiry), Infinity)
    gauges.unknown.updateUnsafe(counted.reduce((sum, { unknown }) => sum + unknown, 0), context)
    const oldest = counted.reduce((first, { oldestUnknown }) => Math.min(first, oldestUnknown ?? Infinity), Infinity)
    hasOldest ||= oldest !== Infinity
    if (hasOldest) gauges.oldest.updateUnsafe(oldest === Infinity ? 0 : oldest / 1000, context)
  })
  const recount = Effect.ignore(driver.step(counting))

  const prune = Effect.fnUntraced(function*(settled?: typeof settledCapacity) {
    yield* warnExpired(yield* driver.trim(yield* Clock.currentTimeMillis, settled))
    yield* counting
  })
  // limits how often the actions are counted while the log is full
  const freeQuotas = Effect.clockWith((clock) =>
    clock.currentTimeMillisUnsafe() < firstExpiry && millisBetween(countedAt, monotonicTime(clock)) < countInterval
      ? Effect.void
      : prune()
  )
  /** Applies the limits of retention: in the memory of this process at each claim, elsewhere from time to time. */
  const retain = (now: number): Effect.Effect<unknown> => {
    if (driver.isLocal) {
      const trimmed = Effect.flatMap(
        driver.trim(now, settledCapacity),
        (expired) => expired === 0 ? Effect.void : Effect.andThen(warnExpired(expired), counting)
      )
      return Effect.ignore(driver.step(trimmed))
    }
    return Effect.clockWith((clock) => {
      const at = monotonicTime(clock)
      if (millisBetween(prunedAt, at) <= pruneInterval && claims % claimsBetweenPrunes > 0) return Effect.void
      prunedAt = at
      return Effect.forkIn(Effect.ignore(driver.step(prune(settledCapacity))), scope)
    })
  }

  const ready = Effect.suspend(() =>
    isReady ? Effect.void : Effect.gen(function*() {
      yield* driver.prepare ?? Effect.void
      yield* prune(settledCapacity)
      isReady = true
    })
  )

  const deferred = new Map<string, Effect.Effect<unknown, E>>()
  const writeFirst = Effect.suspend(() => {
    const [first] = deferred
    if (first === undefined) return Effect.void
    const [token, write] = first
    return Effect.onExit(driver.write(write), (exit) =>
      Effect.sync(() => {
        deferred.delete(token)
        // the next attempt is for another write, in case this one can never succeed
        if (Exit.isFailure(exit)) deferred.set(token, write)
      }))
  })
  const writeDeferred = writeFirst.pipe(
    Effect.retry(Schedule.spaced("1 second")),
    Effect.ignore,
    Effect.repeat({ while: () => deferred.size > 0 })
  )

  /** Retries a failed write later. */
  const defer = (token: string, write: Effect.Effect<unknown, E>) =>
    Effect.suspend(() => {
      const isFirst = deferred.size === 0
      // if too many writes are deferred, this write is dropped: the settled action stays `sent`, and becomes `unknown`
      // after its lease
      if (deferred.size < capacity) deferred.set(token, write)
      return isFirst ? Effect.asVoid(Effect.forkIn(Effect.delay(writeDeferred, "1 second"), scope)) : Effect.void
    })

  const quotaPart = ({ isListed, signer }: Sending): Effect.Effect<Part, E> => {
    if (signer === undefined) return Effect.succeed("strangers")
    if (isListed || signers.has(signer.toLowerCase())) return Effect.succeed("familiar")
    return Effect.map(driver.isKnown(signer.toLowerCase()), (isKnown) => {
      if (isKnown) signers.add(signer.toLowerCase())
      return isKnown ? "familiar" : "strangers"
    })
  }

  /** Returns the state of an action after an event that its state permits. An action without a signer claims no nonce. */
  const stateAfter = (
    state: "sent" | "unknown",
    isRepeat: boolean,
    attempted: LoggedAction.Attempted,
    signer?: string
  ) => {
    const next = LoggedAction.nextState(state, isRepeat, attempted) ?? state
    return signer === undefined && next !== "sent" && next !== "unknown" ? "gone" : next
  }

  /** Adds an action to the store, or marks it as sent again. Returns the refusal if it must not be sent. */
  const open = Effect.fnUntraced(function*(opening: Omit<Opening, "part">) {
    if (!isReady) yield* ready
    const { key, now, sending } = opening
    const { fingerprint, nonce, signer } = sending
    const part = yield* quotaPart(sending)
    const holding = LoggedAction.holdingFor(part, sending)
    const guard: Guard = {
      states: signer === undefined ? ["sent", "unknown"] : LoggedAction.statesBefore.sent,
      fingerprint,
      now
    }
    let excess: Excess | undefined
    for (const isLast of [false, true]) {
      excess = quotas.excess(part, holding.owner, holding.bytes)
      // an action that is already in the log needs no capacity
      if (excess === undefined || (yield* driver.find({ key }, now)).length > 0) {
        quotas.add(holding)
        const written = yield* Effect.onExitPrimitive(driver.insert({ ...opening, part }, guard), (exit) => {
          if (Exit.isFailure(exit) || exit.value !== "new") quotas.remove(holding)
          return undefined
        })
        if (isWritten(written)) return { isRepeat: written === "repeat", holding }
        if (written.expiresAt > now) {
          return signer === undefined
            ? LoggedAction.overQuota("full")
            : LoggedAction.alreadyUsed(
              signer,
              nonce,
              LoggedAction.stateAt(written, now),
              written.fingerprint === fingerprint
            )
        }
        // the entry that has the nonce has expired
        if (!isLast) yield* prune()
      } else if (!isLast) yield* freeQuotas
    }
    return LoggedAction.overQuota(excess ?? "full")
  })

  /** Reverts a claim whose caller did not get the result. */
  const withdraw = (key: EntryKey, token: string) =>
    defer(
      token,
      Effect.gen(function*() {
        const [entry] = yield* driver.find({ key }, yield* Clock.currentTimeMillis)
        if (entry === undefined) return
        const state = stateAfter("sent", (entry.attempts ?? 1) > 1, "released", entry.signer)
        yield* driver.update(key, { states: ["sent"], token }, { state })
      })
    )

  /** Records the result of an attempt. While the store cannot be written, records it later. */
  const settle = Effect.fnUntraced(function*(
    { holding, isRepeat, key, sending: { signer }, token }: Attempt,
    settlement: Settlement,
    entries: ReadonlyArray<ActionEntry> | undefined
  ) {
    const state = stateAfter("sent", isRepeat, settlement, signer)
    const isAccepted = state === "accepted" && signer !== undefined
    const isNew = isAccepted && !signers.has(signer.toLowerCase())
    const settled: Settled | undefined = state === "accepted" || state === "rejected"
      ? { by: "response", ...(entries === undefined ? {} : { entries }) }
      : undefined
    const guard = { states: LoggedAction.statesBefore[settlement], token }
    const update = driver.update(key, guard, { state, settled, part: isAccepted ? "familiar" : holding.part })
    const settledAt = yield* Clock.currentTimeMillis
    const write = isNew ? Effect.tap(update, () => driver.know(signer.toLowerCase(), settledAt)) : update
    reportInFlight(-1)
    if (isAccepted) signers.add(signer.toLowerCase())
    const later = defer(token, write)
    const isChanged = yield* driver.write(write, later).pipe(Effect.catch(() => Effect.as(later, true)))
    if (isChanged && state !== "unknown") quotas.remove(holding)
    if (state === "unknown" || isRepeat) {
      hasOldest = true
      yield* recount
    }
  })

  const claim = Effect.fnUntraced(function*(sending: Sending): Effect.fn.Return<Claim, ClaimRefusal> {
    const now = yield* Clock.currentTimeMillis
    claims += 1
    const key = LoggedAction.entryKey(sending)
    const token = `${run}.${claims.toString(36)}`
    const expiresAt = LoggedAction.expiryTime(sending.nonce, now, keep)
    const opened = yield* Effect.mapError(
      driver.write(open({ key, sending, token, now, leaseUntil: now + lease(), expiresAt }), withdraw(key, token)),
      LoggedAction.notSent
    )
    if ("_tag" in opened) return yield* opened
    const { holding, isRepeat } = opened
    reportInFlight(1)
    yield* retain(now)
    if (isRepeat && driver.isLocal) yield* recount
    let isOpen = true
    return {
      isRepeat,
      settle: (settlement, _status, entries) =>
        Effect.suspend(() => {
          if (!isOpen) return Effect.void
          isOpen = false
          return settle({ sending, key, token, holding, isRepeat }, settlement, entries)
        })
    }
  })

  const read = <A>(operations: Effect.Effect<A, E>) => Effect.mapError(driver.step(operations), LoggedAction.unreadable)
  const find = (selection: Selection) =>
    read(Effect.flatMap(Clock.currentTimeMillis, (now) => driver.find(selection, now)))

  /** Applies an event to the entries that permit it. Returns whether there was one. */
  const apply = Effect.fnUntraced(function*(
    entries: ReadonlyArray<Entry>,
    attempted: "orderStatus" | "expiry" | "forgotten",
    settled?: Settled
  ) {
    const now = yield* Clock.currentTimeMillis
    const changes = yield* Effect.forEach(entries, (entry) => {
      const state = stateAfter("unknown", true, attempted, entry.signer)
      const guard = { states: LoggedAction.statesBefore[attempted], fingerprint: entry.fingerprint, now }
      return Effect.tap(
        driver.update(LoggedAction.entryKey(entry), guard, { state, settled }),
        (isChanged) =>
          Effect.sync(() => {
            if (isChanged && state === "accepted" && entry.signer !== undefined) signers.add(entry.signer.toLowerCase())
          })
      )
    })
    return changes.includes(true)
  })

  const takeUnknown = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    // before the store is prepared, there are no actions
    const due = isReady ? yield* find({ due: now }) : []
    const taken = yield* read(Effect.forEach(due, (entry) => {
      const { fingerprint, leaseUntil, lookUpAt, nonce, openedAt, signer, trace } = entry
      const state = LoggedAction.stateAt(entry, now)
      const isDue = state === "unknown" && trace !== undefined
      const next = isDue
        ? LoggedAction.nextLookup(openedAt, now, trace.expiresAfter)
        : state === "sent"
        ? leaseUntil
        : undefined
      const guard: Guard = { states: [state], now, lookUpAt }
      return Effect.map(
        driver.update(LoggedAction.entryKey(entry), guard, { lookUpAt: next }),
        (isTaken) =>
          isTaken && isDue
            ? [{ fingerprint, nonce, openedAt, trace, ...(signer === undefined ? {} : { signer }) } satisfies Unsettled]
            : []
      )
    }, { concurrency: "unbounded" }))
    return taken.flat()
  })

  if (driver.isLocal) yield* recount
  gauges.degraded.updateUnsafe(0, context)
  // prepares the store before the first action, so that a failure is reported at startup
  if (!isReady) yield* Effect.ignore(driver.write(ready))
  if (driver.prepare !== undefined) {
    const watch = Effect.suspend(() => isReady ? recount : Effect.void)
    yield* Effect.forkScoped(Effect.forever(Effect.delay(watch, options.countEvery ?? "15 seconds")))
  }

  const isUp = Effect.suspend(() =>
    isReady
      ? driver.isUp
      : Effect.flatMap(Effect.isSuccess(driver.write(ready)), (isUp) => isUp ? driver.isUp : Effect.succeed(false))
  )
  const log = ActionLog.of({
    backing: driver.backing,
    claim,
    unanswered: Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      if (driver.isLocal) yield* retain(now)
      return (yield* find({ open: "all" })).flatMap((entry): ReadonlyArray<Unanswered> => {
        const { actionType, body, fingerprint, nonce, openedAt, signer } = entry
        const state = LoggedAction.stateAt(entry, now)
        return body === undefined || actionType === undefined || (state !== "sent" && state !== "unknown")
          ? []
          : [{ nonce, fingerprint, actionType, body, openedAt, state, ...(signer === undefined ? {} : { signer }) }]
      }).toSorted((one, other) => one.openedAt - other.openedAt)
    }),
    forget: (fingerprint) =>
      Effect.tap(
        Effect.flatMap(find({ open: { fingerprint } }), (entries) => read(apply(entries, "forgotten"))),
        () => recount
      ),
    find: (reference) =>
      Effect.map(
        Effect.zip(find(reference), Clock.currentTimeMillis),
        ([entries, now]) =>
          entries.filter((entry) => LoggedAction.isNamed(reference, entry)).map((entry) =>
            LoggedAction.recordedFrom(entry, now)
          )
      ),
    takeUnknown,
    untilTurn: driver.untilTurn ?? Effect.sleep(turnEvery),
    conclude: (fingerprint, { settled, state }) =>
      Effect.tap(
        Effect.flatMap(find({ id: fingerprint }), (entries) =>
          read(apply(entries, state === "accepted" ? "orderStatus" : "expiry", settled))),
        () =>
          recount
      ),
    used: Effect.sync(quotas.used),
    isUp
  })
  // the metric has to show the state of the store also while no action is sent
  if (driver.backing !== "memory") yield* Effect.forkScoped(Effect.forever(Effect.delay(isUp, checkEvery)))
  return { log, recount }
})

/** The members that each audit entry has. */
interface Audited {
  /** The time at which it happened, in milliseconds since 1970; of an attempt, when it ended. */
  readonly time: number
  /** The `id` of the `Caller` on whose request it happened. */
  readonly caller: string
}

/** The audit record of one attempt to send an action. */
export interface AttemptEntry extends Audited {
  readonly message: "action"
  /** The ID of the request for which the action was sent; absent without a request. */
  readonly requestId: string | undefined
  /** The recovered signer, in lower case; absent if none can be recovered. */
  readonly signer: Address | undefined
  readonly nonce: number
  /** The fingerprint of the signed content, as in the action log. */
  readonly digest: string
  readonly actionType: string
  readonly outcome: Settlement
  /** HTTP status of the response; absent without a response. */
  readonly status: number | undefined
}

/** The audit record of an action that the guard refused before it was sent. */
interface RefusalEntry extends Audited {
  readonly message: "refusal"
  readonly signer: Address | undefined
  readonly nonce: number | undefined
  readonly digest: string | undefined
  readonly actionType: string
  readonly account: Address | undefined
  readonly policy: string | undefined
  readonly rule: string
  readonly measured: number | undefined
  readonly limit: number | undefined
}

/** The audit record of a change by an operator, or of a switch that fires. */
type ChangeEntry =
  & Audited
  & (
    /** A halt or its end, of an account, a coin or `all`. */
    | { readonly message: "halt" | "resume"; readonly target: string }
    /** Policies came into force. The version is a hash of the document. */
    | { readonly message: "policies"; readonly version: string; readonly policies: number }
    /** A dead man's switch has fired, because the caller's heartbeats stopped. */
    | { readonly message: "switch"; readonly name: string; readonly signer: Address }
    /** An action of unknown outcome was removed from the action log. */
    | { readonly message: "forget"; readonly digest: string }
  )

/** An entry of the audit log. */
export type AuditEntry = AttemptEntry | RefusalEntry | ChangeEntry

/**
 * Receives the entries of the audit log: one for each attempt to send a signed action, written when its result is known,
 * one for each action that the guard refuses, and one for each change by an operator.
 *
 * An attempt is claimed and settled in the action log, so the audit log includes attempts whose caller has disconnected.
 * An entry contains the type and the digest of the action, but neither its other members nor its signature.
 *
 * Provided by `Layer.succeed`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { ActionLog, ActionLogMemory } from "@trigate/trading"
 * import { Layer } from "effect"
 *
 * const audit = Layer.succeed(ActionLog.AuditLog, {
 *   write: (entry) => entry.message === "action" && console.log(entry.signer, entry.actionType, entry.outcome)
 * })
 *
 * export const audited = ActionLog.layerAudited().pipe(Layer.provide([ActionLogMemory.layer(), audit]))
 * ```
 */
export class AuditLog extends Context.Service<AuditLog, {
  /** Writes an entry without blocking. */
  readonly write: (entry: AuditEntry) => void
}>()("@trigate/trading/actionLog/ActionLog/AuditLog") {}

/** Returns an action log that reports the first result of each attempt. */
const observed = (
  log: ActionLog["Service"],
  report: (sending: Sending, outcome: Settlement, time: number, status: number | undefined) => void
): ActionLog["Service"] =>
  ActionLog.of({
    ...log,
    claim: (sending) =>
      Effect.map(log.claim(sending), (claim) => {
        let isOpen = true
        return {
          ...claim,
          settle: (outcome, status, entries) =>
            Effect.flatMap(Clock.currentTimeMillis, (time) => {
              if (isOpen) report(sending, outcome, time, status)
              isOpen = false
              return claim.settle(outcome, status, entries)
            })
        }
      })
  })

/**
 * Provides the action log of the context, and adds an audit entry for each attempt to send an action.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerAudited = (): Layer.Layer<ActionLog, never, ActionLog | AuditLog> =>
  Layer.effect(
    ActionLog,
    Effect.zipWith(ActionLog, AuditLog, (log, { write }) => {
      const attempts = observed(
        log,
        ({ actionType, caller, fingerprint: digest, nonce, requestId, signer }, outcome, time, status) =>
          write({ time, message: "action", requestId, caller, signer, nonce, digest, actionType, outcome, status })
      )
      const forget = Effect.fnUntraced(function*(digest: string) {
        const isForgotten = yield* log.forget(digest)
        const { id: caller } = yield* CurrentCaller
        if (isForgotten) write({ time: yield* Clock.currentTimeMillis, message: "forget", caller, digest })
        return isForgotten
      })
      return ActionLog.of({ ...attempts, forget })
    })
  )

/** Maximum number of remembered signers. The venue allows subscriptions for ten users at a time. */
const mostFamiliar = 1000

/** Counts the actions of the signers of switches: the venue forgets a nonce once a hundred higher ones were used. */
export class UsedNonces {
  readonly #counts = new Map<string, number>()

  /** Counts an action of a signer that is watched. */
  note(signer: string): void {
    const count = this.#counts.get(signer)
    if (count !== undefined) this.#counts.set(signer, count + 1)
  }

  /** Returns the number of actions of a signer since it is watched, and watches it from now on. */
  count(signer: string): number {
    const count = this.#counts.get(signer) ?? 0
    this.#counts.set(signer, count)
    return count
  }

  /** Forgets the signers that no switch names. */
  retain(signers: ReadonlySet<string>): void {
    for (const signer of this.#counts.keys()) if (!signers.has(signer)) this.#counts.delete(signer)
  }
}

/** The state that {@link layerNoting} updates. */
export interface Noted {
  /** The signers of accepted actions. */
  readonly familiar: Set<string>
  /** The actions of signers that the venue may have received. */
  readonly nonces?: UsedNonces
}

/**
 * Provides the action log of the context, and adds the signer of each accepted action to the set `familiar`. When the
 * venue's maximum number of users is reached, these users have priority over others.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { ActionLog, ActionLogMemory } from "@trigate/trading"
 * import { Layer } from "effect"
 *
 * const familiar = new Set<string>()
 *
 * export const log = Layer.provide(ActionLog.layerNoting({ familiar }), ActionLogMemory.layer())
 * ```
 */
export const layerNoting = ({ familiar, nonces }: Noted): Layer.Layer<ActionLog, never, ActionLog> =>
  Layer.effect(
    ActionLog,
    Effect.map(ActionLog, (log) =>
      observed(log, ({ signer }, outcome) => {
        if (outcome !== "released" && signer !== undefined) nonces?.note(signer)
        if (outcome !== "accepted" || signer === undefined || familiar.size >= mostFamiliar) return
        familiar.add(signer.toLowerCase())
      }))
  )
