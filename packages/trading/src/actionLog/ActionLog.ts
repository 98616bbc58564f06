/**
 * The action log: records every signed action before its first byte is sent, and retains it until its nonce is too old
 * to use.
 *
 * State transitions: `sent` → `accepted`, `rejected` or `unknown`, and `unknown` → `sent` when a body with equal signed
 * content is sent again. Each nonce of a signer has one entry, so the log also prevents a nonce from being sent twice.
 */
import { NonceAlreadyUsed } from "@trigate/domain/actions/ActionError"
import type { ActionEntry } from "@trigate/domain/actions/ActionOutcome"
import type { ActionReference, ActionState, Settled } from "@trigate/domain/actions/ActionRecord"
import type { Address } from "@trigate/domain/encoding/Hex"
import { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as EntryMaps from "../internal/actionLog/EntryMaps.ts"
import { metrics } from "./ActionLogMetrics.ts"
import * as ActionLogQuota from "./ActionLogQuota.ts"
import * as ActionTrace from "./ActionTrace.ts"

/** A signed action. */
export interface Signed {
  /** The recovered signer, in lower case; absent if none can be recovered. */
  readonly signer?: Address
  readonly nonce: number
  readonly actionType: string
  /** Digest of the signed content, in 0x hex. Two bodies with the same fingerprint request the same action. */
  readonly fingerprint: string
  /** The bytes of the body, as sent. */
  readonly body: Uint8Array
}

/** An action about to be sent. */
export interface Sending extends Signed {
  /** The `id` of the `Caller` for whom the action is sent. */
  readonly caller: string
  /** Whether the signer is on an allow-list; the log then treats it as a known signer. */
  readonly isListed: boolean
  /** The ID of the request for which the action is sent; absent without a request. */
  readonly requestId?: string
  /**
   * The action's orders and expiry, by which its effect can be looked up at the venue; absent if the action has neither
   * orders nor expiry.
   */
  readonly trace?: ActionTrace.ActionTrace
}

/**
 * The state of an action.
 *
 * - `sent`: the action may have been sent, and the venue's response may still arrive.
 * - `accepted`: the venue accepted it.
 * - `rejected`: the venue did not accept it.
 * - `unknown`: the venue may have accepted it, and no response is expected.
 * - `forgotten`: an operator who knows the outcome removed the action from the log's unanswered actions.
 */
export type State = "sent" | "accepted" | "rejected" | "unknown" | "forgotten"

/** An action in state `sent` or `unknown`: the venue may have accepted it. */
export interface Unanswered extends Signed {
  /** The time at which the action was first sent, in milliseconds. */
  readonly openedAt: number
  readonly state: "sent" | "unknown"
}

/** An action of the log, in any state. */
export interface Recorded extends Pick<Signed, "fingerprint" | "nonce" | "signer"> {
  readonly state: ActionState
  /**
   * How the outcome was determined. Absent while the outcome is unknown, and for an action that an earlier version of
   * the gateway settled.
   */
  readonly settled?: Settled
  /**
   * Time in milliseconds, by the venue's clock, after which the venue refuses the action. Absent if the action has no
   * expiry, or if its outcome is known.
   */
  readonly expiresAfter?: number
}

/** An action of unknown outcome, with the orders and the expiry by which its effect can be looked up at the venue. */
export interface Unsettled extends Pick<Signed, "fingerprint" | "nonce" | "signer"> {
  /** The time at which the action was first sent, in milliseconds. */
  readonly openedAt: number
  readonly trace: ActionTrace.ActionTrace
}

/** The outcome of an action, as shown by the venue's state. */
export interface Conclusion {
  readonly state: "accepted" | "neverArrived"
  readonly settled: Settled
}

/**
 * The result of one attempt to send an action.
 *
 * - `accepted`: the venue accepted the signed content, in this attempt or an earlier one.
 * - `rejected`: the venue accepted no attempt.
 * - `refused`: the venue refused this attempt, but may have accepted an earlier one.
 * - `released`: the venue did not accept this attempt, and the nonce remains unused.
 * - `unknown`: the venue may have accepted this attempt.
 */
export type Settlement = "accepted" | "rejected" | "refused" | "released" | "unknown"

/** The right to make one attempt to send an action. */
export interface Claim {
  /** Whether the venue may have accepted an earlier attempt with equal signed content. */
  readonly isRepeat: boolean
  /**
   * Records the result of the attempt. If the venue responded, also records the HTTP status and the result of each
   * order, cancel or modify. Only the first call has an effect.
   */
  readonly settle: (
    settlement: Settlement,
    status?: number,
    entries?: ReadonlyArray<ActionEntry>
  ) => Effect.Effect<void>
}

/**
 * The reason why an action must not be sent.
 *
 * `NonceAlreadyUsed`: the nonce was sent before. `UpstreamUnavailable`: the log is full or cannot be written.
 */
export type ClaimRefusal = NonceAlreadyUsed | UpstreamUnavailable

/** The storage backend of a log. */
export type Backing = "memory" | "SQLite" | "Postgres" | "Redis"

/**
 * The retention limits for known signers. Unknown signers share an additional tenth of each limit.
 *
 * `ActionLogQuota` defines how much of a limit one signer or one caller is allowed to use.
 */
export interface Options {
  /**
   * Maximum number of unanswered actions (state `sent` or `unknown`). Default: 10 000. While the log is full, further
   * actions are refused.
   */
  readonly capacity?: number
  /**
   * Maximum total size, in bytes, of unanswered bodies. Default: 64 MiB. While the log is full, further actions are
   * refused.
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
   * if that is not possible.
   */
  readonly tryClaim: (sending: Sending, now: number) => Result.Result<Claim, ClaimRefusal> | undefined
  /**
   * Records an action as `sent`. Must succeed before any byte of the action is sent.
   *
   * Fails with `NonceAlreadyUsed` if the log has an action with this nonce that is `sent` or settled, or that is
   * `unknown` and has different signed content. An action without a signer does not claim a nonce. Fails with
   * `UpstreamUnavailable` if the log is full or cannot be written.
   */
  readonly claim: (sending: Sending) => Effect.Effect<Claim, ClaimRefusal>
  /** Returns the actions in state `sent` or `unknown`, oldest first. */
  readonly unanswered: Effect.Effect<ReadonlyArray<Unanswered>, UpstreamUnavailable>
  /**
   * Removes an unanswered action by its fingerprint. Returns whether the action was in the log. The nonce of the action
   * stays used.
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
  /** Returns the used fraction of the log's capacity for unanswered actions, as far as this process knows. */
  readonly used: Effect.Effect<ActionLogQuota.Used>
  /** Returns whether the store is reachable; always `true` in memory. */
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
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const claimed = log.tryClaim(sending, now)
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
  Effect.acquireUseRelease(take(log, sending), use, (claim) => claim.settle("unknown"))

const upstream = "action-log"

/** Makes the error for an action that the log cannot record. */
export const notSent = (why: string): UpstreamUnavailable =>
  new UpstreamUnavailable({ upstream, attempts: 0, detail: `The action was not sent: the action log ${why}` })

/** Makes the error for a log that cannot be read. */
export const unreadable = (why: string): UpstreamUnavailable =>
  new UpstreamUnavailable({ upstream, attempts: 1, detail: `The action log ${why}` })

const scarcities: { readonly [S in ActionLogQuota.Scarcity]: string } = {
  full: "is full of unanswered actions; resolve or forget some",
  share: "contains the maximum number of unanswered actions of this signer; resolve or forget some",
  strangers: "contains the maximum number of unanswered actions of unknown signers: a signer is known after an " +
    "accepted action, or if it is on an allow-list"
}

/** Makes the error for an action that exceeds its quota of the log. */
export const overQuota = (scarcity: ActionLogQuota.Scarcity): UpstreamUnavailable => notSent(scarcities[scarcity])

const reasons: { readonly [S in State]: string } = {
  sent: "is being sent right now",
  accepted: "was sent before, and its outcome is known",
  rejected: "was sent before, and its outcome is known",
  unknown: "was sent before, and its outcome is unknown: only the same signed content may be sent again",
  forgotten: "was sent before, and was removed from the action log"
}

/**
 * Makes the error for a nonce that was sent before; `isSame` means that the earlier action has equal signed content.
 */
export const alreadyUsed = (signer: Address, nonce: number, state: State, isSame: boolean): NonceAlreadyUsed =>
  new NonceAlreadyUsed({
    signer,
    nonce,
    ...(isSame && (state === "accepted" || state === "rejected") ? { settled: state } : {}),
    detail: `An action of ${signer} with nonce ${nonce} ${reasons[state]}`
  })

/** Returns the ID under which an action's nonce is claimed: the signer, or the fingerprint if the signer is unknown. */
export const claimantId = ({ fingerprint, signer }: Pick<Signed, "fingerprint" | "signer">): string =>
  signer?.toLowerCase() ?? fingerprint

/** Returns the key of a log entry. Each nonce of a signer has one key; see {@link claimantId}. */
export const entryKey = (sending: Signed): string => `${claimantId(sending)}:${sending.nonce}`

/**
 * Returns the keys of the entries that a reference can identify. `find` returns the keys for a fingerprint or a client
 * order ID.
 */
export const entryKeys = (
  reference: ActionReference,
  find: (by: string) => ReadonlyArray<string>
): ReadonlyArray<string> => {
  if ("id" in reference) return find(reference.id)
  return "cloid" in reference
    ? find(reference.cloid.toLowerCase())
    : [`${reference.signer.toLowerCase()}:${reference.nonce}`]
}

/** Returns whether a reference identifies an action. */
export const isNamed = (
  reference: ActionReference,
  { fingerprint, signer }: Pick<Signed, "fingerprint" | "signer">
): boolean =>
  "id" in reference
    ? fingerprint === reference.id
    : reference.signer === undefined || signer?.toLowerCase() === reference.signer.toLowerCase()

/**
 * Returns the capacity of the log that an action uses, and the owner of the action: the signer, or the caller if the
 * signer is unknown.
 */
export const quotaHolding = (part: ActionLogQuota.Part, sending: Sending): ActionLogQuota.Holding => ({
  part,
  holder: part === "familiar" ? claimantId(sending) : sending.caller,
  count: 1,
  bytes: sending.body.length
})

/** Returns the options with defaults; `keep` in milliseconds. */
export const resolveLimits = (options: Options) => ({
  capacity: options.capacity ?? 10_000,
  maxBytes: options.maxBytes ?? 64 * 1024 * 1024,
  settledCapacity: {
    familiar: options.settledCapacity ?? 100_000,
    strangers: (options.settledCapacity ?? 100_000) / 10
  },
  keep: Duration.toMillis(Duration.fromInputUnsafe(options.keep ?? "2 days"))
})

/** Returns the time, in milliseconds, at which the entry of an action that is sent now expires. */
export const expiryTime = (nonce: number, now: number, keep: number): number => Math.max(nonce, now) + keep

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

/** The state of a log entry after an attempt. `gone`: the entry is removed. */
export type Remains = "accepted" | "rejected" | "unknown" | "gone"

/** Maximum number of actions of unknown outcome that one round looks up at the venue. */
export const lookupsAtOnce = 20

/**
 * Returns the next time at which an action of unknown outcome is looked up at the venue; all times are in milliseconds.
 */
export const nextLookup = (openedAt: number, now: number): number =>
  now + Math.max(1000, Math.min(300_000, (now - openedAt) / 2))

/**
 * Returns the state to store for an action whose outcome was looked up at the venue. An earlier version of the gateway
 * can also read that state.
 */
export const storedState = ({ state }: Conclusion): "accepted" | "rejected" =>
  state === "accepted" ? "accepted" : "rejected"

/** Returns the state that callers see for a stored state: `neverArrived` if the action expired without effect. */
const shownState = (state: State, settled: Settled | undefined): ActionState =>
  state === "rejected" && settled?.by === "expiry" ? "neverArrived" : state

/** Converts an entry of the log to the form that `find` returns. */
export const recordedFrom = (
  { expiresAfter, fingerprint, nonce, settled, signer, state }:
    & Pick<Signed, "fingerprint" | "nonce" | "signer">
    & { readonly state: State; readonly settled: Settled | undefined; readonly expiresAfter: number | undefined }
): Recorded => ({
  fingerprint,
  nonce,
  ...(signer === undefined ? {} : { signer }),
  state: shownState(state, settled),
  ...(settled === undefined ? {} : { settled }),
  ...(expiresAfter === undefined ? {} : { expiresAfter })
})

/** The time between two rounds in which actions of unknown outcome are looked up at the venue. */
export const turnEvery = Duration.seconds(1)

const entryRemains = (signer: Address | undefined, isRepeat: boolean, settlement: Settlement): Remains => {
  if (settlement === "unknown") return "unknown"
  if (isRepeat && (settlement === "refused" || settlement === "released")) return "unknown"
  // an action without a signer does not claim a nonce
  if (settlement === "released" || signer === undefined) return "gone"
  return settlement === "accepted" ? "accepted" : "rejected"
}

/**
 * Makes a claim. Its first `settle` calls `write` with the resulting state of the log entry; later calls do nothing.
 */
export const makeClaim = (
  { signer }: Signed,
  isRepeat: boolean,
  write: (remains: Remains, settled: Settled | undefined) => Effect.Effect<void>
): Claim => {
  let isOpen = true
  return {
    isRepeat,
    settle: (settlement, _status, entries) =>
      Effect.suspend(() => {
        if (!isOpen) return Effect.void
        isOpen = false
        const remains = entryRemains(signer, isRepeat, settlement)
        return write(
          remains,
          remains === "accepted" || remains === "rejected"
            ? { by: "response", ...(entries === undefined ? {} : { entries }) }
            : undefined
        )
      })
  }
}

interface Entry extends Unanswered {
  readonly expiry: number
  readonly holding: ActionLogQuota.Holding
  readonly trace: ActionTrace.ActionTrace
  readonly lookUpAt: number
}

interface Answered extends Pick<Signed, "fingerprint" | "nonce" | "signer"> {
  readonly state: State
  readonly expiry: number
  readonly cloids: ReadonlyArray<string>
  readonly settled: Settled | undefined
}

/** Makes an in-memory log, which is lost when the process ends. `known` are the signers that are known at the start. */
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
        unindexed(key, ActionTrace.cloids(entry.trace), entry)
      }
      return unanswered.delete(key)
    }

    const remember = (key: string, entry: Entry, state: State, settled?: Settled) => {
      const { expiry, fingerprint, holding: { part }, nonce, signer } = entry
      remove(key)
      if (signer === undefined) return
      if (state === "accepted") known.add(signer.toLowerCase())
      const cloids = ActionTrace.cloids(entry.trace)
      indexed(key, cloids, entry)
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
      const { caller: _caller, isListed, requestId: _requestId, trace = { legs: [] }, ...signed } = sending
      const { nonce, signer } = signed
      dropAnswered("familiar", now)
      dropAnswered("strangers", now)
      const earlier = unanswered.get(key)
      const past = answered.familiar.get(key) ?? answered.strangers.get(key)
      const standing = past !== undefined && past.expiry > now ? past : earlier
      const state = standing?.state
      const isRepeat = earlier !== undefined
      if (
        signer !== undefined && state !== undefined &&
        !(state === "unknown" && earlier?.fingerprint === signed.fingerprint)
      ) {
        return Result.fail(alreadyUsed(signer, nonce, state, standing?.fingerprint === signed.fingerprint))
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
        ...(earlier ?? { ...signed, trace, holding, openedAt: now, lookUpAt: 0 }),
        state: "sent",
        expiry
      }
      if (!isRepeat) {
        room.add(holding)
        indexed(key, ActionTrace.cloids(trace), signed)
      }
      firstExpiry = Math.min(firstExpiry, expiry)
      unanswered.set(key, entry)
      inFlight += 1
      report()
      if (isRepeat) reportOldest()
      return Result.succeed(
        makeClaim(sending, isRepeat, (remains, settled) => Effect.sync(() => settle(key, entry, remains, settled)))
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
          .map(({ expiry: _expiry, holding: _holding, lookUpAt: _lookUpAt, trace: _trace, ...entry }) => entry)
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
 * Provides the in-memory log of this process. Each call makes its own layer, so two gateways in one process share
 * nothing.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (options: Options = {}): Layer.Layer<ActionLog> =>
  Layer.effect(ActionLog, makeMemory(options))
