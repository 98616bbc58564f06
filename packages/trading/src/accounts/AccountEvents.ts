/**
 * The log of account events: fills, order updates, funding, ledger updates (including liquidations) and TWAP slices.
 * The events have consecutive numbers.
 *
 * The log contains the events of watched accounts. An account is watched while a caller reads its events, or if a
 * setting names it. The replica that owns the log subscribes at the venue and appends received events.
 *
 * If the log already contains the account, the replica buffers new events and queries the missed ones. It merges both
 * by the venue's row IDs, and then appends them. If events may still be missing, the account begins a new epoch: no
 * caller can resume from a position before the gap.
 */
import type { ResumePosition } from "@trigate/domain/streams/ResumePosition"
import type { Frame, Topic } from "@trigate/upstream/streams/Topic"
import type * as Effect from "effect/Effect"
import type { EventLog } from "./EventLog.ts"
import type { Bounds, EventStore } from "./EventStore.ts"

/** Maximum number of account events that wait to be written to the event log. */
export const mostPending = 10_000

/** Receives the complete states of watched accounts. */
export interface StateObserver {
  /**
   * The names of the subscriptions whose frames contain a complete state of an account. These subscriptions are opened
   * for each watched account.
   */
  readonly names: ReadonlyArray<string>
  readonly received: (user: string, frame: Frame) => void
  /**
   * Reports that the observer receives no further states of an account, and that the account's log may be incomplete
   * from now on.
   */
  readonly ended: (user: string) => void
}

/** The accounts to log, and the bounds of the event log. */
export interface Options {
  /** Accounts in lower case that are always watched. */
  readonly accounts?: ReadonlyArray<string>
  readonly bounds?: Bounds
  readonly states?: StateObserver | undefined
  /** The maximum number of accounts that one caller is allowed to watch. Default: unlimited. */
  readonly usersOfCaller?: number
}

/** A caller that reads the events of an account. */
export interface Watcher {
  /** The name of the caller. The limit on watched accounts applies to each name separately. */
  readonly caller: string
  /** Reports that the account cannot be watched. No events will follow. */
  readonly refused: (message: string) => void
}

/**
 * The phase of a watched account. `waiting`: not recorded, because the venue or a limit refused it, or because the last
 * writer of the log records it while the store is unreachable. Then: waiting for its subscriptions to be accepted,
 * querying missed events, or complete.
 */
export type Phase = "waiting" | "subscribing" | "refilling" | "live"

/**
 * The role of this process in the event log. `writer`: writes the shared log. `reader`: reads the log that another
 * replica writes. `alone`: continues with a log of its own, because the store is unreachable.
 */
export type Role = "writer" | "reader" | "alone"

/** The state of the event log in this process. */
export interface Status extends Pick<AccountEvents, "backing"> {
  /** Whether the store of the event log is reachable. */
  readonly isUp: boolean
  readonly role: Role
  /** The position of the newest event in this process's copy of the event log. */
  readonly head: ResumePosition
  readonly accounts: ReadonlyArray<{ readonly user: string; readonly phase: Phase }>
  /** The number of accounts whose events should arrive, but do not: they are configured, or their log has ended. */
  readonly unrecorded: number
}

/** The log of account events. An account is logged while a caller reads its events, or if a setting names it. */
export interface AccountEvents {
  readonly log: EventLog
  readonly backing: EventStore["Service"]["backing"]
  /** Returns whether a topic's rows are written to the event log while the account of that topic is watched. */
  readonly isLogged: (topic: Topic) => boolean
  /** Watches an account until the returned function is called, and for a grace period after that. */
  readonly watch: (user: string, watcher: Watcher) => () => void
  /**
   * Reads the shared log again if this process's copy does not reach a position. A caller can have such a position
   * because another replica already delivered the event at that position to the caller.
   */
  readonly catchUp: (position: ResumePosition) => Effect.Effect<void>
  /** Returns whether the event log of an account is complete and up to date in this process. */
  readonly isLive: (user: string) => boolean
  /** Returns whether this process records an account. */
  readonly isRecording: (user: string) => boolean
  /**
   * Ends the epoch of an account because events are missing from the account's log: callers cannot resume from a
   * position in that epoch.
   */
  readonly interrupt: (user: string) => void
  readonly status: () => Status
}
