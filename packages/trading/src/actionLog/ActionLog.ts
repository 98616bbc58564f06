/**
 * The action log: records every signed action before its first byte is sent. Retains an action until its nonce is too
 * old to use; drops the oldest settled actions earlier if there are too many.
 */
import type { ActionReference } from "@trigate/domain/actions/ActionRecord"
import type { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { metrics } from "./ActionLogMetrics.ts"
import type * as ActionLogQuota from "./ActionLogQuota.ts"
import type { Claims, Conclusion, Recorded, Unanswered, Unsettled } from "./LoggedAction.ts"

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
    readonly used: Effect.Effect<ActionLogQuota.Used>
    /** Returns whether the store of the action log is reachable; always `true` for a log in memory. */
    readonly isUp: Effect.Effect<boolean>
  }
>()("@trigate/trading/actionLog/ActionLog") {}

/**
 * The time after which an unsettled `sent` action becomes `unknown` (its lease). If it is a function, this function is
 * called at each claim and returns the lease for that claim.
 */
export type Lease = Duration.Input | (() => Duration.Input)

/** Returns a function that returns the current lease of a claim, in milliseconds. Default: 1 minute. */
export const leaseMillis = (lease: Lease = "1 minute"): () => number => {
  const millis = (input: Duration.Input) => Duration.toMillis(input)
  if (Predicate.isFunction(lease)) return () => millis(lease())
  const fixed = millis(lease)
  return () => fixed
}

/** Returns the options, completed with the defaults. Converts `keep` to milliseconds. */
export const resolveLimits = (options: Options) => ({
  capacity: options.capacity ?? 10_000,
  maxBytes: options.maxBytes ?? 64 * 1024 * 1024,
  settledCapacity: {
    familiar: options.settledCapacity ?? 100_000,
    strangers: (options.settledCapacity ?? 100_000) / 10
  },
  keep: Duration.toMillis(options.keep ?? "2 days")
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
