/**
 * Records the events of watched accounts in the event store of the context. One replica owns the log; the others read
 * it.
 *
 * If the event log already contains the account, new events are buffered until the missed ones have been queried. The
 * missed and the new events are then merged and written to the log.
 *
 * If an account cannot be recorded, its watchers are refused, and the recording is attempted again while anything needs
 * the account. So no watcher waits in vain, and every needed account is recorded as soon as possible.
 */
import { addMillis, longAgo, millisBetween, type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import {
  type Frame,
  type Row,
  RowSet,
  type Sink,
  type Subscriber,
  type Topic
} from "@trigate/upstream/unstable/streams/Topic"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { metrics as accountMetrics } from "../../accounts/AccountChecks.ts"
import * as EventStore from "../../accounts/AccountEvents.ts"
import { EventLog, mostPending } from "../../accounts/AccountEvents.ts"
import type {
  AccountEvents,
  NewEntry,
  Options as EventsOptions,
  Phase,
  Role,
  StateObserver,
  Watcher
} from "../../accounts/AccountEvents.ts"
import { makeOwnership, write } from "./LogOwnership.ts"

/** Milliseconds by which a query of missed events starts before the newest logged event, because clocks can differ. */
const clockMargin = 5000

/** The rows that a query returned after a lost recording. `isComplete` is `false` if rows may still be missing. */
interface MissedRows {
  readonly entries: ReadonlyArray<NewEntry>
  readonly isComplete: boolean
}

const nothingMissed: MissedRows = { entries: [], isComplete: true }

/** Queries the events of a subscription since the end of its log. */
const load = Effect.fnUntraced(function*(user: string, { name, refill, rows }: Topic, end: number) {
  if (refill === undefined || rows === undefined) return { entries: [], isComplete: false }
  const to = yield* Clock.currentTimeMillis
  const since = end - clockMargin
  const loaded = yield* Effect.result(refill.load({ since, last: undefined, lost: { from: since, to } }))
  if (Result.isFailure(loaded)) return { entries: [], isComplete: false }
  const entries = loaded.success.texts.flatMap((text): ReadonlyArray<NewEntry> => {
    const read = rows.read(text)
    const sorted = read?.rows.filter(({ time }) => time >= since).toSorted((a, b) => a.time - b.time)
    return sorted === undefined ? [] : [{ kind: "refill", user, name, rows: sorted }]
  })
  return { entries, isComplete: true }
})

/** The subscriptions whose rows are logged. */
export const logged = Subscriptions.table.filter(({ isLogged }) => isLogged === true)

/** Returns whether the rows of a topic are logged while the topic's account is watched. */
export const isLogged = ({ name }: Topic): boolean => logged.some((declaration) => declaration.name === name)

/** The dependencies of account recordings. */
export interface Options {
  readonly log: EventLog
  readonly join: (caller: string, sink: Sink) => Subscriber
  readonly states: StateObserver | undefined
  /** Writes an entry to the event log. */
  readonly push: (entry: NewEntry) => void
  /** Reports that events of an account are missing. */
  readonly interrupted: (user: string) => void
  /** Runs an effect in the background, and interrupts it when the event log ends. */
  readonly fork: (effect: Effect.Effect<void>) => void
}

const refillMark = /,"isRefill":true\}$/u

/** A recorded topic whose events are buffered, because earlier events may be missing from the log. */
interface HeldTopic {
  readonly topic: Topic
  /** The time at which the log of the topic ends; `undefined` if the log contains no earlier events of the topic. */
  readonly end: number | undefined
  /** The first snapshot, sorted by time; `undefined` before it was received. */
  snapshot: ReadonlyArray<Row> | undefined
  isReady: boolean
  entries: Array<NewEntry>
}

/** Makes the recording of an account. `refused` reports that the venue refused a subscription. */
export const makeRecording = (
  { fork, interrupted, join, log, push, states }: Options,
  user: string,
  topics: ReadonlyArray<Topic>,
  refused: (message: string) => void
) => {
  /**
   * Whether callers already read the account in the log. If they do, each topic continues as soon as its missed events
   * are known; otherwise, the log of the account begins when all topics are complete.
   */
  const hasBegun = log.since(user) !== undefined
  const begunAt = log.begunAt(user)
  const held = new Map(
    topics.filter(isLogged).map((topic): readonly [string, HeldTopic] => [topic.key, {
      topic,
      // if the log contains no row of the topic, rows may be missing since the log of the account began
      end: log.streamReachedAt(user, topic.name) ?? (begunAt === undefined ? undefined : begunAt - clockMargin),
      snapshot: undefined,
      isReady: false,
      entries: []
    }])
  )
  let phase: Phase = "subscribing"
  let isStopped = false
  let isQuerying = false

  const begin = (name = ""): NewEntry => ({ kind: "begin", user, name, rows: [] })

  /** Ends the epoch of the account, because events of a subscription (of an unknown one by default) are missing. */
  const interrupt = (name?: string): void => {
    interrupted(user)
    push(begin(name))
  }

  /** Returns whether the log and the first snapshot of a topic may lack events between them. */
  const mayLackEvents = ({ end, snapshot, topic: { name } }: HeldTopic): boolean => {
    if (end === undefined) return false
    if (snapshot === undefined) return true
    const [oldest] = snapshot
    return oldest === undefined
      ? log.streamReachedAt(user, name) !== undefined
      : oldest.time >= end && !new RowSet(log.newest(user, name, 1)).hasAnyOf(snapshot)
  }

  /** Writes the missed and the buffered events of a topic to the event log. Later events are written at once. */
  const release = ({ end = 0, entries, topic }: HeldTopic, missed: MissedRows): void => {
    held.delete(topic.key)
    const write = (entry: NewEntry): void =>
      push({
        ...entry,
        kind: hasBegun && entry.kind === "past" ? "refill" : entry.kind,
        rows: entry.rows.filter(({ time }) => time >= end)
      })
    for (const entry of missed.entries) write(entry)
    if (!missed.isComplete) interrupt(topic.name)
    for (const entry of entries) write(entry)
    if (held.size > 0) return
    phase = "live"
    if (!hasBegun) push(begin())
  }

  /**
   * Queries the missed events, one topic after another in the order of their ranks. A topic waits until the venue has
   * sent the snapshots of those before it, but not of those after it.
   */
  const queryNext = (): void => {
    const [next] = [...held.values()].toSorted((a, b) => (a.topic.refill?.rank ?? 0) - (b.topic.refill?.rank ?? 0))
    if (isQuerying || next === undefined || !next.isReady) return
    isQuerying = true
    fork(Effect.map(load(user, next.topic, next.end ?? 0), (missed) => {
      isQuerying = false
      if (isStopped) return
      if (held.has(next.topic.key)) release(next, missed)
      queryNext()
    }))
  }

  /** Called when the venue has accepted all subscriptions of an account and has sent their initial snapshots. */
  const accepted = (): void => {
    phase = "refilling"
    for (const each of held.values()) if (!mayLackEvents(each)) release(each, nothingMissed)
    queryNext()
  }

  const noteReady = ({ key }: Topic): void => {
    const ready = held.get(key)
    if (phase !== "subscribing" || ready === undefined) return
    ready.isReady = true
    const isLast = [...held.values()].every(({ isReady }) => isReady)
    if (isLast) return accepted()
    if (!hasBegun) return
    if (!mayLackEvents(ready)) release(ready, nothingMissed)
    queryNext()
  }

  const record = (frame: Frame): void => {
    const { text, topic } = frame
    if (!isLogged(topic)) return states?.received(user, frame)
    const read = topic.rows?.read(text)
    if (read === undefined) return
    const kind = read.isSnapshot ? "past" : refillMark.test(text) ? "refill" : "event"
    const entry: NewEntry = { kind, user, name: topic.name, rows: read.rows.toSorted((a, b) => a.time - b.time) }
    const holding = held.get(topic.key)
    // an empty snapshot is not logged, but it also shows that the subscription is ready
    if (entry.rows.length > 0) {
      if (holding === undefined) push(entry)
      else if (holding.entries.push(entry) > mostPending) dropHeld(holding)
    }
    if (!read.isSnapshot) return
    if (holding !== undefined) holding.snapshot ??= entry.rows
    noteReady(topic)
  }

  /** Drops the buffered events of a topic, because events before the next one are missing. */
  const dropHeld = (holding: HeldTopic): void => {
    holding.entries = []
    // the log of an account that has not begun begins after the missing events
    if (!hasBegun) return
    interrupted(user)
    holding.entries.push(begin(holding.topic.name))
  }

  const sink: Sink = {
    subscribed: (topic) => {
      if (topic.delivery !== "snapshot") noteReady(topic)
    },
    deliver: record,
    refused: (topic, message) => {
      if (isLogged(topic)) refused(message)
    },
    interrupted: (topic) => {
      if (!isLogged(topic)) return
      const holding = held.get(topic.key)
      if (holding === undefined) return interrupt(topic.name)
      if (!hasBegun) return dropHeld(holding)
      interrupted(user)
      holding.entries.push(begin(topic.name))
    },
    flush: () => {}
  }
  const subscriber: Subscriber = join(`account ${user}`, sink)
  return {
    phase: () => phase,
    /** Subscribes at the venue. */
    start: () => {
      for (const topic of topics) {
        // a refusal ends the recording at once
        if (isStopped) return
        subscriber.subscribe(topic)
      }
    },
    /** Begins a new epoch of the account's log, because events are missing from the log. */
    interrupt: () => {
      if (phase === "live") interrupt()
    },
    /** Ends the recording. Drops the buffered events. */
    stop: () => {
      isStopped = true
      subscriber.leave()
      states?.ended(user)
    }
  }
}

/** The streams whose frames are recorded. */
export interface Source {
  readonly join: (caller: string, sink: Sink) => Subscriber
  /** Returns the topic of a user's subscription, given the subscription's name. */
  readonly topicOf: (name: string, user: string) => Topic | undefined
  /** Returns the error message for a caller that would exceed its limit of watched accounts. */
  readonly refusal: (limit: number) => string
}

/** The dependencies of watched accounts. */
export interface WatchOptions extends Pick<EventsOptions, "accounts" | "states" | "usersOfCaller"> {
  readonly log: EventLog
  readonly source: Source
  readonly recording: Omit<Options, "join" | "log" | "states">
  readonly now: () => MonotonicTime
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
  idleSince: MonotonicTime
  /** The caller of the last watcher. The account counts to it until the recording ends. */
  lastCaller: string | undefined
  /** The time at which another replica last asked this process to watch the account. */
  wantedAt: MonotonicTime
  /** The time at which this process last asked the owner of the event log to watch the account. */
  requestedAt: MonotonicTime
  /** The time from which the watchers of the account have waited for its log to begin. */
  waitingSince: MonotonicTime
  /** The time from which the account can be recorded again after a refusal. */
  retryAt: MonotonicTime
  /** Whether the log of the account has begun since this process watches the account. */
  hasBegun: boolean
  recording: ReturnType<typeof makeRecording> | undefined
}

/** Milliseconds between two requests to the owner of the event log to continue watching an account. */
const wantEvery = 20_000

/** Milliseconds after which the watchers of an account are refused because the account still cannot be watched. */
const refuseAfter = 20_000

/** Milliseconds between two attempts to record an account that the venue, or a limit, refuses. */
const retryAfter = 10_000

/**
 * Milliseconds after the start of a writer during which a refusal ends no stream, and the attempt is repeated every
 * second: the venue's limits may still contain the connections and the reported use of the previous writer.
 */
const takeoverFor = 10_000

/** Returns the error message for the callers of an account that cannot be watched at present. */
export const unavailable = (user: string): string => `The account ${user} cannot be watched at present: try again later`

/** Makes the watched accounts of a process. No account is watched before a call of `startAll` or `watch`. */
export const makeWatched = (
  { accounts, isOwner, isSpared, log, now, recording, source, states, usersOfCaller = Number.POSITIVE_INFINITY }:
    WatchOptions
) => {
  const watched = new Map<string, Watched>()
  const configured = new Set(accounts)
  /** The time at which this process last began to write a log. */
  let startedAt = longAgo
  const isNeeded = ({ user, watchers }: Watched): boolean => watchers.size > 0 || configured.has(user)
  const isWanted = ({ wantedAt }: Watched): boolean => millisBetween(wantedAt, now()) < EventStore.wantFor

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
    const started = makeRecording(
      { ...recording, join: source.join, log, states },
      each.user,
      each.topics,
      (message) => {
        stopRecording(each)
        const isTakenOver = started.phase() === "subscribing" && log.since(each.user) !== undefined
        if (isTakenOver && millisBetween(startedAt, now()) < takeoverFor) {
          each.retryAt = addMillis(now(), 1000)
          return
        }
        each.retryAt = addMillis(now(), retryAfter)
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
    const names = [...logged.map(({ name }) => name), ...states?.names ?? []]
    const each: Watched = {
      user,
      topics: names.flatMap((name) => source.topicOf(name, user) ?? []),
      watchers: new Set(),
      idleSince: now(),
      lastCaller: undefined,
      wantedAt: longAgo,
      requestedAt: longAgo,
      waitingSince: now(),
      retryAt: longAgo,
      hasBegun: false,
      recording: undefined
    }
    watched.set(user, each)
    return each
  }

  /** Returns the accounts beside `user` that a caller watches, or that are recorded because it watched them last. */
  const findOthers = (user: string, caller: string): ReadonlyArray<Watched> =>
    [...watched.values()].filter((each) =>
      each.user !== user &&
      (isNeeded(each)
        ? [...each.watchers].some((watcher) => watcher.caller === caller)
        : each.lastCaller === caller && !isWanted(each))
    )

  const isWaiting = ({ recording, user }: Watched): boolean =>
    isOwner() ? recording === undefined || recording.phase() === "subscribing" : log.since(user) === undefined

  /**
   * Drops the accounts that are not needed any more, attempts again to record refused accounts, and refuses the watchers
   * that have waited too long.
   */
  const tidy = (): void => {
    const at = now()
    for (const each of watched.values()) {
      const isIdle = isWaiting(each) || millisBetween(each.idleSince, at) >= EventStore.wantFor
      if (isIdle && !isNeeded(each) && !isWanted(each)) {
        stopRecording(each)
        watched.delete(each.user)
        continue
      }
      if (at >= each.retryAt) record(each)
      if (!isWaiting(each)) each.hasBegun = true
      else if (millisBetween(each.waitingSince, at) >= refuseAfter) refuse(each, unavailable(each.user))
    }
  }

  log.listen({
    appended: () => {},
    replaced: () => {
      for (const each of watched.values()) {
        each.waitingSince = now()
        // the store may have lost the request
        each.requestedAt = longAgo
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
      const others = findOthers(user, watcher.caller)
      if (others.length >= usersOfCaller) {
        const idle = others.filter((other) =>
          !isNeeded(other)
        ).toSorted((a, b) => millisBetween(b.idleSince, a.idleSince))[0]
        if (idle === undefined) {
          watcher.refused(source.refusal(usersOfCaller))
          return () => {}
        }
        stopRecording(idle)
        watched.delete(idle.user)
      }
      const each = find(user)
      each.lastCaller = watcher.caller
      each.watchers.add(watcher)
      if (each.watchers.size === 1) each.waitingSince = now()
      record(each)
      return () => {
        if (each.watchers.delete(watcher) && each.watchers.size === 0) each.idleSince = now()
      }
    },
    startAll: (): void => {
      startedAt = now()
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
        if (!isNeeded(each) || millisBetween(each.requestedAt, at) < wantEvery) continue
        yield* store.want(each.user)
        each.requestedAt = at
      }
    }),
    tidy
  }
}

/** The accounts that a process watches. */
export type WatchedAccounts = ReturnType<typeof makeWatched>

/** Milliseconds between two reads of the event log by a replica that does not write the log. */
const pollEvery = 200

/**
 * Milliseconds between two attempts of a writer to renew its lease, and of a reader to acquire it. A reader tries more
 * often, so that it continues soon after a writer has released the lease at its end.
 */
const electEvery = (role: Role): number => role === "reader" ? 250 : 1000

/** Makes the event log of watched accounts. The log's fibers end with the scope. */
export const make = Effect.fnUntraced(function*(source: Source, options: EventsOptions = {}) {
  const clock = yield* Clock.Clock
  const scope = yield* Scope.Scope
  const context = yield* Effect.context()
  const runFork = Effect.runForkWith(context)
  const fork = (effect: Effect.Effect<void>) => void Fiber.runIn(runFork(effect), scope)
  const log = new EventLog(options.bounds ?? EventStore.defaultBounds)
  const pending = yield* Queue.unbounded<NewEntry>()
  const watchedGauge = accountMetrics.accountsWatched.series({})
  const refillingGauge = accountMetrics.accountsRefilling.series({})
  const unrecordedGauge = accountMetrics.accountsUnrecorded.series({})
  const bytesGauge = accountMetrics.accountLogBytes.series({})
  const epochsEnded = accountMetrics.accountEpochsEnded.series({})

  const watched: WatchedAccounts = makeWatched({
    ...options,
    log,
    source,
    now: () => monotonicTime(clock),
    isOwner: () => ownership.writable() !== undefined,
    isSpared: () => ownership.isSecondAlone(),
    recording: {
      push: (entry) => void Queue.offerUnsafe(pending, entry),
      interrupted: (user) => {
        epochsEnded.updateUnsafe(1, context)
        fork(Effect.logWarning("The event log of an account has a gap: a new epoch of the log begins", { user }))
      },
      fork
    }
  })
  const ownership = yield* makeOwnership({
    log,
    acquired: watched.startAll,
    ended: Effect.suspend(() => {
      watched.stopAll()
      return Effect.asVoid(Queue.clear(pending))
    }),
    exchange: (store, isOwner) => isOwner ? watched.takeWanted(store) : watched.request(store)
  })

  const isLive = (user: string): boolean =>
    ownership.role() === "reader"
      ? ownership.isUp() && watched.has(user) && log.since(user) !== undefined
      : watched.phase(user) === "live"
  const phase = (user: string): Phase =>
    isLive(user)
      ? "live"
      : watched.phase(user) ?? (ownership.role() === "reader" ? "subscribing" : "waiting")

  const unrecorded = (): number =>
    [...watched.users()].filter((user) => {
      const at = phase(user)
      return watched.isDue(user) && (at === "waiting" || at === "subscribing")
    }).length

  const publish = (): void => {
    const phases = Array.from(watched.users(), phase)
    watchedGauge.updateUnsafe(phases.length, context)
    refillingGauge.updateUnsafe(phases.filter((each) => each === "refilling").length, context)
    unrecordedGauge.updateUnsafe(unrecorded(), context)
    bytesGauge.updateUnsafe(log.retained, context)
  }

  const elect = Effect.andThen(
    ownership.elect,
    Effect.sync(() => {
      log.expire(clock.currentTimeMillisUnsafe())
      watched.tidy()
      publish()
    })
  )

  const repeat = (effect: Effect.Effect<void>, every: () => number) =>
    Effect.forkIn(Effect.forever(Effect.andThen(Effect.suspend(() => Effect.sleep(every())), effect)), scope)

  yield* elect
  watched.watchConfigured()
  yield* repeat(elect, () => electEvery(ownership.role()))
  yield* Effect.forkIn(Effect.forever(write(pending, log, ownership)), scope)
  if (ownership.backing !== "memory") yield* repeat(ownership.follow, () => pollEvery)
  // each step of the store has a timeout, so a store that hangs delays the end of the scope by at most a second
  yield* Scope.addFinalizer(scope, ownership.release)

  const events: AccountEvents = {
    log,
    backing: ownership.backing,
    isLogged: (topic: Topic) =>
      topic.user !== undefined && isLogged(topic) &&
      source.topicOf(topic.name, topic.user)?.key === topic.key,
    watch: watched.watch,
    catchUp: ownership.catchUp,
    isLive,
    isRecording: (user) => watched.phase(user) === "live",
    interrupt: watched.interrupt,
    status: () => ({
      backing: ownership.backing,
      isUp: ownership.isUp(),
      role: ownership.role(),
      head: log.head,
      accounts: Array.from(watched.users(), (user) => ({ user, phase: phase(user) })),
      unrecorded: unrecorded()
    })
  }
  return events
})
