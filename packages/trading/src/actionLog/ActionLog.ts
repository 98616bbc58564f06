/**
 * The action log: records every signed action before its first byte is sent, and retains it until its nonce is too old
 * to use.
 */
import type { ActionReference, Settled } from "@trigate/domain/actions/ActionRecord"
import type { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import * as Continuation from "@trigate/domain/operations/Continuation"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as EntryMaps from "../internal/actionLog/EntryMaps.ts"
import { metrics } from "./ActionLogMetrics.ts"
import * as ActionLogQuota from "./ActionLogQuota.ts"
import * as ActionTrace from "./ActionTrace.ts"
import {
  alreadyUsed,
  claimantId,
  entryKey,
  entryKeys,
  expiryTime,
  isNamed,
  makeClaim,
  nextLookup,
  notSent,
  recordedFrom,
  storedState
} from "./LoggedAction.ts"
import type {
  Claim,
  ClaimRefusal,
  Conclusion,
  Recorded,
  Remains,
  Sending,
  Signed,
  State,
  Unanswered,
  Unsettled
} from "./LoggedAction.ts"

/** The storage backend of an action log. */
export type Backing = "memory" | "SQLite" | "Postgres" | "Redis"

/**
 * The retention limits for known signers. Unknown signers share an additional tenth of each limit.
 *
 * `ActionLogQuota` defines how much of a limit one signer or one caller is allowed to use.
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
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { ActionLog } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const log = yield* ActionLog.ActionLog
 *   yield* Console.log(log.backing, (yield* log.unanswered).length)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, ActionLog.layerMemory({ capacity: 1000 })))
 * ```
 * ```text
 * memory 0
 * ```
 */
export class ActionLog extends Context.Service<ActionLog, {
  readonly backing: Backing
  /**
   * Records an action as `sent` at the time `now` (milliseconds), like `claim`, but synchronously. Returns `undefined`
   * if the log cannot record the action synchronously.
   */
  readonly tryClaim: (sending: Sending, now: number) => Result.Result<Claim, ClaimRefusal> | undefined
  /**
   * Records an action as `sent`. Must succeed before any byte of the action is sent.
   *
   * Fails with `NonceAlreadyUsed` if the action log has an action with this nonce that is `sent` or settled, or that is
   * `unknown` and has different signed content. An action without a signer does not claim a nonce. Fails with
   * `UpstreamUnavailable` if the log is full or cannot be written.
   */
  readonly claim: (sending: Sending) => Effect.Effect<Claim, ClaimRefusal>
  /** Returns the actions in state `sent` or `unknown`, oldest first. */
  readonly unanswered: Effect.Effect<ReadonlyArray<Unanswered>, UpstreamUnavailable>
  /**
   * Removes an unanswered action by its fingerprint. Returns whether the action was in the action log. The nonce of the
   * action stays used.
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
  readonly used: Effect.Effect<ActionLogQuota.Used>
  /** Returns whether the store of the action log is reachable; always `true` for a log in memory. */
  readonly isUp: Effect.Effect<boolean>
}>()("@trigate/trading/actionLog/ActionLog") {}

/**
 * The time after which an unsettled `sent` action becomes `unknown` (its lease). If it is a function, this function is
 * called at each claim and returns the lease for that claim.
 */
export type Lease = Duration.Input | (() => Duration.Input)

/** Returns a function that returns the current lease of a claim, in milliseconds. Default: 1 minute. */
export const leaseMillis = (lease: Lease = "1 minute"): () => number => {
  const millis = (input: Duration.Input) => Duration.toMillis(Duration.fromInputUnsafe(input))
  if (Predicate.isFunction(lease)) return () => millis(lease())
  const fixed = millis(lease)
  return () => fixed
}

/** Records an action as `sent`, in one synchronous step if possible; see {@link ActionLog}. */
export const take = (log: ActionLog["Service"], sending: Sending): Effect.Effect<Claim, ClaimRefusal> =>
  Continuation.withContext((context) => {
    const claimed = log.tryClaim(sending, Context.get(context, Clock.Clock).currentTimeMillisUnsafe())
    return claimed === undefined ? log.claim(sending) : Effect.fromResult(claimed)
  })

/**
 * Claims the right to send an action for the duration of an effect. If the result is not recorded when the effect ends,
 * the action becomes `unknown`.
 */
export const claimed = <A, E>(
  log: ActionLog["Service"],
  sending: Sending,
  use: (claim: Claim) => Effect.Effect<A, E>
): Effect.Effect<A, E | ClaimRefusal> =>
  Continuation.acquireUseRelease(take(log, sending), use, (claim) => claim.settle("unknown"))

const scarcities: { readonly [S in ActionLogQuota.Scarcity]: string } = {
  full: "is full of unanswered actions; resolve or forget some",
  share: "contains the maximum number of unanswered actions of this signer; resolve or forget some",
  strangers: "contains the maximum number of unanswered actions of unknown signers: a signer is known after an " +
    "accepted action, or if it is on an allow-list"
}

/** Makes the error for an action that exceeds its quota of the action log. */
export const overQuota = (scarcity: ActionLogQuota.Scarcity): UpstreamUnavailable => notSent(scarcities[scarcity])

/**
 * Returns the capacity of the action log that an action uses, and the owner of the action: the signer, or the caller if
 * the signer is unknown.
 */
export const quotaHolding = (part: ActionLogQuota.Part, sending: Sending): ActionLogQuota.Holding => ({
  part,
  holder: part === "familiar" ? claimantId(sending) : sending.caller,
  count: 1,
  bytes: sending.body.length
})

/** Returns the options, completed with the defaults. Converts `keep` to milliseconds. */
export const resolveLimits = (options: Options) => ({
  capacity: options.capacity ?? 10_000,
  maxBytes: options.maxBytes ?? 64 * 1024 * 1024,
  settledCapacity: {
    familiar: options.settledCapacity ?? 100_000,
    strangers: (options.settledCapacity ?? 100_000) / 10
  },
  keep: Duration.toMillis(Duration.fromInputUnsafe(options.keep ?? "2 days"))
})

/** Milliseconds between two removals of expired entries. */
export const pruneInterval = 3_600_000

/** Logs a warning about unanswered actions that expired. */
export const warnExpired = (count: number): Effect.Effect<void> =>
  count === 0
    ? Effect.void
    : Effect.logWarning(
      `${count} actions of unknown outcome expired from the action log: their nonces are too old to execute`
    )

/** Gauges: the unanswered actions by state, and the time at which the oldest action of unknown outcome was first sent. */
export const gauges = {
  sent: metrics.actionLogEntries.series({ state: "sent" }),
  unknown: metrics.actionLogEntries.series({ state: "unknown" }),
  oldest: metrics.actionLogOldest.series({})
}

/**
 * Returns the value of the gauge `oldest`. The argument contains the times, in milliseconds, at which the actions of
 * unknown outcome were first sent.
 */
export const oldestSeconds = (openedAt: Iterable<number>): number => {
  let oldest = Infinity
  for (const millis of openedAt) oldest = Math.min(oldest, millis)
  return oldest === Infinity ? 0 : oldest / 1000
}

/** Maximum number of actions of unknown outcome that one round looks up at the venue. */
export const lookupsAtOnce = 20

/** The time between two rounds in which actions of unknown outcome are looked up at the venue. */
export const turnEvery = Duration.seconds(1)

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
}

/**
 * Makes an in-memory action log, which is lost when the process ends. `known` are the signers that are known at the
 * start.
 */
export const makeMemory = Effect.fnUntraced(
  function*(options: Options = {}, known: ActionLogQuota.Signers = ActionLogQuota.makeSigners()) {
    const { capacity, keep, maxBytes, settledCapacity } = resolveLimits(options)
    const context = yield* Effect.context()
    const unanswered = new Map<string, Entry>()
    const answered = { familiar: EntryMaps.makeQueue<Answered>(), strangers: EntryMaps.makeQueue<Answered>() }
    const room = ActionLogQuota.make({ capacity, maxBytes })
    const index = EntryMaps.makeIndex()
    const isUnknownNew = Latch.makeUnsafe(false)
    let prunedAt = yield* Clock.currentTimeMillis
    // the earliest time at which an unanswered action expires
    let firstExpiry = Infinity
    let inFlight = 0

    const report = () => {
      gauges.sent.updateUnsafe(inFlight, context)
      gauges.unknown.updateUnsafe(Math.max(0, unanswered.size - inFlight), context)
    }

    // scans all entries, so it is called only when the number of unknown outcomes changes
    const reportOldest = () => {
      const unknown = [...unanswered.values()].filter(({ state }) => state === "unknown")
      gauges.oldest.updateUnsafe(oldestSeconds(unknown.map(({ openedAt }) => openedAt)), context)
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
      const { cloids, expiry, fingerprint, holding, nonce, signer } = entry
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
        settled
      })
    }

    const dropAnswered = (part: ActionLogQuota.Part, now: number) =>
      answered[part].drop(
        ({ expiry }, size) => expiry > now && size <= settledCapacity[part],
        (key, past) => unindexed(key, past.cloids, past)
      )

    const recorded = (entry: Entry | Answered): Recorded =>
      recordedFrom(
        "trace" in entry
          ? { ...entry, settled: undefined, expiresAfter: entry.trace.expiresAfter }
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
        return warnExpired(count)
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
        return Result.fail(alreadyUsed(signer, nonce, state, standing?.fingerprint === fingerprint))
      }
      const holding = earlier?.holding ??
        quotaHolding(
          signer !== undefined && (isListed || known.has(signer.toLowerCase())) ? "familiar" : "strangers",
          sending
        )
      const scarcity = isRepeat ? undefined : room.scarcity(holding.part, holding.holder, holding.bytes)
      if (scarcity !== undefined) return Result.fail(overQuota(scarcity))
      const expiry = expiryTime(nonce, now, keep)
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
        makeClaim(
          sending,
          isRepeat,
          (remains, settled) => Continuation.withContext(() => Exit.succeed(settle(key, entry, remains, settled)))
        )
      )
    }

    return ActionLog.of({
      backing: "memory",
      tryClaim: (sending, now) =>
        now - prunedAt > pruneInterval || firstExpiry <= now ? undefined : attempt(entryKey(sending), sending, now),
      claim: (sending) =>
        Effect.flatMap(
          Effect.tap(Clock.currentTimeMillis, prune),
          (now) => Effect.fromResult(attempt(entryKey(sending), sending, now))
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
          entryKeys(reference, index.find).flatMap((key) => find(key) ?? []).map(recorded).filter((each) =>
            isNamed(reference, each)
          )
        ),
      takeUnknown: Effect.map(Clock.currentTimeMillis, (now) => {
        const taken: Array<Unsettled> = []
        for (const [key, entry] of unanswered) {
          if (taken.length === lookupsAtOnce) break
          if (entry.state !== "unknown" || entry.lookUpAt > now) continue
          unanswered.set(key, { ...entry, lookUpAt: nextLookup(entry.openedAt, now) })
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
        yield* Effect.sleep(turnEvery)
      }),
      conclude: (fingerprint, conclusion) =>
        Effect.sync(() => {
          const found = index.find(fingerprint).flatMap((key) => {
            const entry = unanswered.get(key)
            return entry?.state === "unknown" ? [[key, entry] as const] : []
          })
          for (const [key, entry] of found) remember(key, entry, storedState(conclusion), conclusion.settled)
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
 * Provides the in-memory action log of this process. Each call makes its own layer, so two gateways in one process
 * share nothing.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (options: Options = {}): Layer.Layer<ActionLog> =>
  Layer.effect(ActionLog, makeMemory(options))
