/**
 * The accounts to watch: accounts in the settings, accounts whose events callers read, and accounts that other replicas
 * requested. The process that owns the event log records the events of all these accounts.
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
  /** Returns whether this process owns the log, and therefore records the accounts. */
  readonly isOwner: () => boolean
}

/** An account that is watched. */
interface Watched {
  readonly user: string
  readonly topics: ReadonlyArray<Topic>
  readonly watchers: Set<Watcher>
  /** The time at which the last watcher of the account left. */
  idleSince: number
  /** The time at which a replica last asked the owner of the event log to watch this account. */
  wantedAt: number
  /** The time at which the first watcher of the account came. */
  watchedAt: number
  recording: AccountRecording.AccountRecording | undefined
}

/** Milliseconds between two requests to the owner of the event log to continue watching an account. */
const wantEvery = 20_000

/** Milliseconds after which the watchers of an account are refused because the account still cannot be watched. */
const refuseAfter = 20_000

/** Makes the watched accounts of a process. No account is watched before a call of `startAll` or `watch`. */
export const make = (
  { accounts, isOwner, log, now, recording, source, states, usersOfCaller = Number.POSITIVE_INFINITY }: Options
) => {
  const watched = new Map<string, Watched>()
  const configured = new Set(accounts)
  const isNeeded = ({ user, watchers }: Watched): boolean => watchers.size > 0 || configured.has(user)

  const stopRecording = (each: Watched): void => {
    const { recording } = each
    each.recording = undefined
    recording?.stop()
  }

  /** Refuses the watchers of an account that cannot be watched. */
  const refuse = (each: Watched, message: string): void => {
    stopRecording(each)
    watched.delete(each.user)
    for (const watcher of each.watchers) watcher.refused(message)
  }

  const startRecording = (each: Watched): void => {
    const started = AccountRecording.make(
      { ...recording, join: source.join, log, states },
      each.user,
      each.topics,
      (message) => refuse(each, message)
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
      watchedAt: now(),
      recording: undefined
    }
    watched.set(user, each)
    if (isOwner()) startRecording(each)
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

  /** Drops the accounts that are not needed any more, and the accounts that could not be watched. */
  const tidy = (): void => {
    const at = now()
    for (const each of watched.values()) {
      if (each.watchers.size > 0 && log.since(each.user) === undefined && at - each.watchedAt >= refuseAfter) {
        refuse(each, `The account ${each.user} cannot be watched at present: try again later`)
      } else if (!isNeeded(each) && at - Math.max(each.idleSince, each.wantedAt) >= EventStore.wantFor) {
        stopRecording(each)
        watched.delete(each.user)
      }
    }
  }

  return {
    has: (user: string): boolean => watched.has(user),
    phase: (user: string): Phase | undefined => watched.get(user)?.recording?.phase(),
    users: (): Iterable<string> => watched.keys(),
    interrupt: (user: string): void => watched.get(user)?.recording?.interrupt(),
    watchConfigured: (): void => {
      for (const user of configured) find(user)
    },
    /** Watches an account until the returned function is called, and for a grace period after that. */
    watch: (user: string, watcher: Watcher): () => void => {
      if (usersBeside(user, watcher.caller) >= usersOfCaller) {
        watcher.refused(source.refusal(usersOfCaller))
        return () => {}
      }
      const each = find(user)
      each.watchers.add(watcher)
      if (each.watchers.size === 1) each.watchedAt = now()
      return () => {
        each.watchers.delete(watcher)
        if (each.watchers.size === 0) each.idleSince = now()
      }
    },
    startAll: (): void => {
      for (const each of watched.values()) startRecording(each)
    },
    stopAll: (): void => {
      for (const each of watched.values()) stopRecording(each)
    },
    /** Watches the accounts that other replicas requested. */
    takeWanted: (store: EventStore.EventStore["Service"]): Effect.Effect<void, EventStore.EventStoreUnavailable> =>
      Effect.map(store.wanted, (users) => {
        for (const user of users) find(user).wantedAt = now()
      }),
    /** Asks the owner of the event log to watch the accounts that this process needs. */
    request: Effect.fnUntraced(function*(store: EventStore.EventStore["Service"]) {
      const at = now()
      for (const each of watched.values()) {
        if (!isNeeded(each) || at - each.wantedAt < wantEvery) continue
        yield* store.want(each.user)
        each.wantedAt = at
      }
    }),
    tidy
  }
}

/** The accounts that a process watches. */
export type WatchedAccounts = ReturnType<typeof make>
