/**
 * The accounts to watch: accounts in the settings, accounts whose events callers read, and accounts that other replicas
 * requested. The process that owns the event log records the events of all these accounts.
 *
 * If an account cannot be recorded, its watchers are refused, and the recording is attempted again while anything needs
 * the account. So no watcher waits in vain, and every needed account is recorded as soon as possible.
 */
import type { Seat, Sink } from "@trigate/upstream/streams/Seat"
import type { Topic } from "@trigate/upstream/streams/Topic"
import * as Effect from "effect/Effect"
import type { Options as EventsOptions, Phase, Watcher } from "../../accounts/AccountEvents.ts"
import type { EventLog } from "../../accounts/EventLog.ts"
import * as EventStore from "../../accounts/EventStore.ts"
import * as AccountRecording from "./AccountRecording.ts"

/** The streams whose frames are recorded. */
export interface Source {
  readonly join: (caller: string, sink: Sink) => Seat
  /** Returns the topic of a user's subscription, given the subscription's name. */
  readonly topicOf: (name: string, user: string) => Topic | undefined
  /** Returns the error message for a caller that would exceed its limit of watched accounts. */
  readonly refusal: (limit: number) => string
}

/** The dependencies of watched accounts. */
export interface Options extends Pick<EventsOptions, "accounts" | "states" | "usersOfCaller"> {
  readonly log: EventLog
  readonly source: Source
  readonly recording: Omit<AccountRecording.Options, "join" | "log" | "states">
  readonly now: () => number
  /** Returns whether this process owns a log, and therefore records the accounts. */
  readonly isOwner: () => boolean
  /** Returns whether another replica records the accounts that have no watcher in this process. */
  readonly isSpared: () => boolean
}

/** An account that is watched. */
interface Watched {
  readonly user: string
  readonly topics: ReadonlyArray<Topic>
  readonly watchers: Set<Watcher>
  /** The time at which the last watcher of the account left. */
  idleSince: number
  /** The time at which another replica last asked this process to watch the account. */
  wantedAt: number
  /** The time at which this process last asked the owner of the event log to watch the account. */
  requestedAt: number
  /** The time from which the watchers of the account have waited for its log to begin. */
  waitingSince: number
  /** The time from which the account can be recorded again after a refusal. */
  retryAt: number
  /** Whether the log of the account has begun since this process watches the account. */
  hasBegun: boolean
  recording: AccountRecording.AccountRecording | undefined
}

/** Milliseconds between two requests to the owner of the event log to continue watching an account. */
const wantEvery = 20_000

/** Milliseconds after which the watchers of an account are refused because the account still cannot be watched. */
const refuseAfter = 20_000

/** Milliseconds between two attempts to record an account that the venue, or a limit, refuses. */
const retryAfter = 10_000

/** Returns the error message for the callers of an account that cannot be watched at present. */
export const unavailable = (user: string): string => `The account ${user} cannot be watched at present: try again later`

/** Makes the watched accounts of a process. No account is watched before a call of `startAll` or `watch`. */
export const make = (
  { accounts, isOwner, isSpared, log, now, recording, source, states, usersOfCaller = Number.POSITIVE_INFINITY }:
    Options
) => {
  const watched = new Map<string, Watched>()
  const configured = new Set(accounts)
  const isNeeded = ({ user, watchers }: Watched): boolean => watchers.size > 0 || configured.has(user)
  const isWanted = ({ wantedAt }: Watched): boolean => now() - wantedAt < EventStore.wantFor

  const stopRecording = (each: Watched): void => {
    const { recording } = each
    each.recording = undefined
    recording?.stop()
  }

  /** Refuses the watchers of an account that cannot be watched at present. */
  const refuse = (each: Watched, message: string): void => {
    const { watchers } = each
    if (watchers.size > 0) each.idleSince = now()
    for (const watcher of watchers) watcher.refused(message)
    watchers.clear()
  }

  /** Records an account, if this process records it and does not do so yet. */
  const record = (each: Watched): void => {
    if (each.recording !== undefined || !isOwner() || (isSpared() && each.watchers.size === 0)) return
    each.waitingSince = now()
    const started = AccountRecording.make(
      { ...recording, join: source.join, log, states },
      each.user,
      each.topics,
      (message) => {
        stopRecording(each)
        each.retryAt = now() + retryAfter
        // callers at other replicas read the account, too
        if (log.since(each.user) !== undefined) recording.push({ kind: "end", user: each.user, name: "", rows: [] })
        refuse(each, message)
      }
    )
    each.recording = started
    started.start()
  }

  const find = (user: string): Watched => {
    const known = watched.get(user)
    if (known !== undefined) return known
    const names = [...AccountRecording.logged.map(({ name }) => name), ...states?.names ?? []]
    const each: Watched = {
      user,
      topics: names.flatMap((name) => source.topicOf(name, user) ?? []),
      watchers: new Set(),
      idleSince: now(),
      wantedAt: Number.NEGATIVE_INFINITY,
      requestedAt: Number.NEGATIVE_INFINITY,
      waitingSince: now(),
      retryAt: Number.NEGATIVE_INFINITY,
      hasBegun: false,
      recording: undefined
    }
    watched.set(user, each)
    return each
  }

  /** Returns the number of accounts that a caller watches, not counting `user`. */
  const usersBeside = (user: string, caller: string): number => {
    let count = 0
    for (const each of watched.values()) {
      if (each.user !== user && [...each.watchers].some((watcher) => watcher.caller === caller)) count++
    }
    return count
  }

  const isWaiting = ({ recording, user }: Watched): boolean =>
    isOwner() ? recording === undefined || recording.phase() === "subscribing" : log.since(user) === undefined

  /**
   * Drops the accounts that are not needed any more, attempts again to record refused accounts, and refuses the watchers
   * that have waited too long.
   */
  const tidy = (): void => {
    const at = now()
    for (const each of watched.values()) {
      const isIdle = isWaiting(each) || at - each.idleSince >= EventStore.wantFor
      if (isIdle && !isNeeded(each) && !isWanted(each)) {
        stopRecording(each)
        watched.delete(each.user)
        continue
      }
      if (at >= each.retryAt) record(each)
      if (!isWaiting(each)) each.hasBegun = true
      else if (at - each.waitingSince >= refuseAfter) refuse(each, unavailable(each.user))
    }
  }

  log.listen({
    appended: () => {},
    replaced: () => {
      for (const each of watched.values()) {
        each.waitingSince = now()
        // the store may have lost the request
        each.requestedAt = Number.NEGATIVE_INFINITY
      }
    }
  })

  return {
    has: (user: string): boolean => watched.has(user),
    phase: (user: string): Phase | undefined => watched.get(user)?.recording?.phase(),
    users: (): Iterable<string> => watched.keys(),
    /** Returns whether the events of an account should arrive: it is configured, or its log has begun here before. */
    isDue: (user: string): boolean => configured.has(user) || watched.get(user)?.hasBegun === true,
    interrupt: (user: string): void => watched.get(user)?.recording?.interrupt(),
    watchConfigured: (): void => {
      for (const user of configured) record(find(user))
    },
    /** Watches an account until the returned function is called, and for a grace period after that. */
    watch: (user: string, watcher: Watcher): () => void => {
      if (usersBeside(user, watcher.caller) >= usersOfCaller) {
        watcher.refused(source.refusal(usersOfCaller))
        return () => {}
      }
      const each = find(user)
      each.watchers.add(watcher)
      if (each.watchers.size === 1) each.waitingSince = now()
      record(each)
      return () => {
        if (each.watchers.delete(watcher) && each.watchers.size === 0) each.idleSince = now()
      }
    },
    startAll: (): void => {
      for (const each of watched.values()) record(each)
    },
    stopAll: (): void => {
      for (const each of watched.values()) stopRecording(each)
    },
    /** Watches the accounts that other replicas requested. */
    takeWanted: (store: EventStore.EventStore["Service"]): Effect.Effect<void, EventStore.EventStoreUnavailable> =>
      Effect.map(store.wanted, (users) => {
        for (const user of users) {
          const each = find(user)
          each.wantedAt = now()
          if (now() >= each.retryAt) record(each)
        }
      }),
    /** Asks the owner of the event log to watch the accounts that this process needs. */
    request: Effect.fnUntraced(function*(store: EventStore.EventStore["Service"]) {
      const at = now()
      for (const each of watched.values()) {
        if (!isNeeded(each) || at - each.requestedAt < wantEvery) continue
        yield* store.want(each.user)
        each.requestedAt = at
      }
    }),
    tidy
  }
}

/** The accounts that a process watches. */
export type WatchedAccounts = ReturnType<typeof make>
