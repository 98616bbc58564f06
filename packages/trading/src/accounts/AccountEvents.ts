/**
 * The event log of watched accounts: fills, order updates, funding, ledger updates (including liquidations) and TWAP
 * slices, numbered without gaps.
 *
 * An account is watched while a caller reads its events, or if a setting names it. The replica that owns the log
 * subscribes at the venue and appends received events.
 *
 * If the log already contains the account, the replica buffers new events, queries the missed ones, merges both by the
 * venue's own keys, and then releases them. If the result may be incomplete, a new epoch of the account begins, so that
 * no caller resumes across the gap.
 */
import * as Subscriptions from "@trigate/domain/streams/Subscriptions"
import type { Seat, Sink } from "@trigate/upstream/streams/Seat"
import type { Frame, Topic } from "@trigate/upstream/streams/Topic"
import { metrics as upstreamMetrics } from "@trigate/upstream/UpstreamMetrics"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { metrics } from "./AccountMetrics.ts"
import { EventLog } from "./EventLog.ts"
import * as EventStore from "./EventStore.ts"
import type { NewEntry, StoreAway } from "./EventStore.ts"

/** The subscriptions whose rows are logged. */
export const logged = Subscriptions.table.filter(({ isLogged }) => isLogged === true)

/** Returns whether the rows of a watched account's topic are logged. */
const isLogged = ({ name }: Topic): boolean => logged.some((declaration) => declaration.name === name)

/** Receives the complete states of watched accounts. */
export interface StateObserver {
  /** The subscriptions of each watched account whose frames contain a complete state. */
  readonly names: ReadonlyArray<string>
  readonly received: (user: string, frame: Frame) => void
  /** Reports that no more states of an account will follow, and that its log may be incomplete from now on. */
  readonly ended: (user: string) => void
}

/** The accounts to log, and the bounds of the log. */
export interface Options {
  /** Accounts in lower case that are always watched. */
  readonly accounts?: ReadonlyArray<string>
  readonly bounds?: EventStore.Bounds
  readonly states?: StateObserver | undefined
  /** The maximum number of accounts that one caller may watch. Default: unlimited. */
  readonly usersOfCaller?: number
}

/** The source of the recorder's frames. */
export interface Source {
  readonly join: (caller: string, sink: Sink) => Seat
  /** Returns the topic of a subscription by its name, for a user. */
  readonly topicOf: (name: string, user: string) => Topic | undefined
  /** Returns the error message for a caller that would exceed its limit of accounts. */
  readonly refusal: (limit: number) => string
}

/** A caller that reads the events of an account. */
export interface Watcher {
  /** The name of the caller, for its limit of accounts. */
  readonly caller: string
  /** Reports that the account cannot be watched. No events will follow. */
  readonly refused: (message: string) => void
}

/**
 * The phase of a watched account: waiting for its subscriptions to be accepted, querying missed events, or complete.
 */
export type Phase = "subscribing" | "refilling" | "live"

/** The state of the log. */
export interface Status {
  readonly backing: EventStore.EventStore["Service"]["backing"]
  /** Whether the store is reachable. */
  readonly isUp: boolean
  /** Whether this process writes the log. */
  readonly isOwner: boolean
  readonly accounts: ReadonlyArray<{ readonly user: string; readonly phase: Phase }>
}

/** The event log of watched accounts. */
export interface AccountEvents {
  readonly log: EventLog
  /** Returns whether the log contains a topic's rows while the topic's account is watched. */
  readonly isLogged: (topic: Topic) => boolean
  /** Watches an account until the returned function is called, and for a grace period after that. */
  readonly watch: (user: string, watcher: Watcher) => () => void
  /** Returns whether the log of an account is complete and up to date in this process. */
  readonly isLive: (user: string) => boolean
  /** Returns whether this process records an account. */
  readonly isRecording: (user: string) => boolean
  /** Ends the epoch of an account because events are missing from its log. */
  readonly interrupt: (user: string) => void
  readonly status: () => Status
}

interface Watched {
  readonly user: string
  readonly topics: ReadonlyArray<Topic>
  readonly watchers: Set<Watcher>
  /** The time at which its last watcher left. */
  idleSince: number
  /** The time at which the owner was last asked to watch it. */
  wantedAt: number
  askedAt: number
  recording: Recording | undefined
}

/** The recording of an account by this process. */
interface Recording {
  readonly seat: Seat
  readonly ready: Set<string>
  /** The buffered events, until all subscriptions are accepted and the missed events have been queried. */
  waiting: Array<NewEntry> | undefined
  /** Whether the log already contains the account, so that missed events must be queried. */
  readonly isKnown: boolean
  /** Whether entries were lost while they were buffered. */
  isBroken: boolean
  phase: Phase
}

/** Maximum number of entries that wait for the store. */
const mostPending = 10_000

/** Milliseconds without the store after which the process continues with its own log. */
const awayAfter = 3000

/** Milliseconds between two reads of the log by a replica that does not own it. */
const pollEvery = 200

/** Milliseconds between two requests to the owner to continue watching an account. */
const wantEvery = 20_000

/** Milliseconds after which watchers are refused if an account could not be watched. */
const refuseAfter = 20_000

/** Milliseconds by which clocks may differ. */
const clockMargin = 5000

/** The number of latest rows with which new rows are compared to detect duplicates. */
const mostCompared = 5000

const recorder = (user: string): string => `account ${user}`

const refillMark = /,"isRefill":true\}$/u

/** Makes the log over a store. Its fibers end with the scope. */
export const make = Effect.fnUntraced(function*(source: Source, options: Options = {}) {
  const primary = yield* EventStore.EventStore
  const fallback = yield* EventStore.makeMemory
  const clock = yield* Clock.Clock
  const scope = yield* Scope.Scope
  const context = yield* Effect.context()
  const fork = Effect.runForkWith(context)
  const name = yield* EventStore.makeName
  const log = new EventLog(options.bounds ?? EventStore.defaultBounds)
  const pending = yield* Queue.unbounded<NewEntry>()
  const watched = new Map<string, Watched>()
  const configured = new Set(options.accounts)
  const away = upstreamMetrics.sharedStateDegraded.series({ use: "account-events" })
  const watchedGauge = metrics.accountsWatched.series({})
  const refillingGauge = metrics.accountsRefilling.series({})
  const epochsEnded = metrics.accountEpochsEnded.series({})
  let store = primary
  /** The fencing token of this process; undefined while it does not own the log. */
  let token: number | undefined
  /** The last fencing token that this process had for the primary store. */
  let leased: number | undefined
  let awaySince: number | undefined
  let polledAt = 0

  const now = () => clock.currentTimeMillisUnsafe()
  const background = (effect: Effect.Effect<void>) => void Fiber.runIn(fork(effect), scope)
  const isUp = () => awaySince === undefined

  // --- recording

  const push = (entry: NewEntry): void => void Queue.offerUnsafe(pending, entry)

  const begin = (user: string): void => push({ kind: "begin", user, name: "", rows: [] })

  /** Returns the rows of a buffered entry that are not in the log, except those from before the log began. */
  const unseen = (user: string, entries: ReadonlyArray<NewEntry>): ReadonlyArray<NewEntry> => {
    const seen = new Map<string, { readonly ids: Set<string>; readonly newest: number }>()
    const found: Array<NewEntry> = []
    for (const entry of entries) {
      const known = log.newest(user, entry.name, mostCompared)
      const stream = seen.get(entry.name) ??
        { ids: new Set(known.map(({ id }) => id)), newest: known.at(-1)?.time ?? Number.NEGATIVE_INFINITY }
      seen.set(entry.name, stream)
      const rows = entry.rows.filter(({ id, time }) => time >= stream.newest && !stream.ids.has(id))
      for (const { id } of rows) stream.ids.add(id)
      if (rows.length > 0) found.push({ ...entry, rows })
    }
    return found
  }

  /**
   * Returns whether the log and the buffered rows of a topic overlap, which means that no row between them is missing.
   */
  const overlaps = (user: string, topic: Topic, waiting: ReadonlyArray<NewEntry>): boolean => {
    const newest = log.newest(user, topic.name, 1)[0]
    return topic.delivery === "snapshot" && newest !== undefined &&
      waiting.some(({ kind, name, rows }) =>
        kind === "past" && name === topic.name && rows.some(({ id }) => id === newest.id)
      )
  }

  /** Releases the buffered entries. */
  const release = (
    each: Watched,
    recording: Recording,
    refilled: ReadonlyArray<NewEntry>,
    isComplete: boolean
  ): void => {
    const waiting = recording.waiting ?? []
    recording.waiting = undefined
    recording.phase = "live"
    const entries = recording.isKnown
      ? unseen(each.user, [
        ...refilled,
        ...waiting.map((entry) => entry.kind === "past" ? { ...entry, kind: "refill" as const } : entry)
      ])
      : waiting
    for (const entry of entries) push(entry)
    if (recording.isKnown && isComplete && !recording.isBroken) return
    if (recording.isKnown) interrupted(each.user)
    begin(each.user)
  }

  const interrupted = (user: string): void => {
    epochsEnded.updateUnsafe(1, context)
    background(Effect.logWarning("The event log of an account has a gap: a new epoch of the log begins", { user }))
  }

  /** Queries the events missed since the end of the log, one query after another. */
  const refill = Effect.fnUntraced(function*(each: Watched, recording: Recording) {
    const entries: Array<NewEntry> = []
    const waiting = recording.waiting ?? []
    const plans = each.topics.filter((topic) => isLogged(topic) && !overlaps(each.user, topic, waiting))
      .toSorted((a, b) => (a.refill?.rank ?? 0) - (b.refill?.rank ?? 0))
    for (const { name, refill: plan, rows } of plans) {
      if (plan === undefined || rows === undefined) return { entries, isComplete: false }
      const since = (log.newest(each.user, name, 1)[0]?.time ?? log.begunAt(each.user) ?? now()) - clockMargin
      const loaded = yield* Effect.result(plan.load({ since, last: undefined, lost: { from: since, to: now() } }))
      if (Result.isFailure(loaded)) return { entries, isComplete: false }
      for (const text of loaded.success.texts) {
        const read = rows.read(text)
        if (read === undefined) continue
        const sorted = read.rows.filter(({ time }) => time >= since).toSorted((a, b) => a.time - b.time)
        entries.push({ kind: "refill", user: each.user, name, rows: sorted })
      }
    }
    return { entries, isComplete: true }
  })

  /** Continues once all subscriptions of an account are accepted and their initial snapshots have been received. */
  const ready = (each: Watched, recording: Recording): void => {
    if (recording.phase !== "subscribing") return
    if (!recording.isKnown) return release(each, recording, [], true)
    recording.phase = "refilling"
    background(
      Effect.map(refill(each, recording), ({ entries, isComplete }) => {
        if (each.recording === recording) release(each, recording, entries, isComplete)
      })
    )
  }

  const noteReady = (each: Watched, recording: Recording, topic: Topic): void => {
    if (!isLogged(topic)) return
    recording.ready.add(topic.key)
    if (each.topics.every((topic) => !isLogged(topic) || recording.ready.has(topic.key))) ready(each, recording)
  }

  const record = (each: Watched, recording: Recording, frame: Frame): void => {
    const { text, topic } = frame
    if (!isLogged(topic)) return options.states?.received(each.user, frame)
    const read = topic.rows?.read(text)
    if (read === undefined) return
    const kind = read.isSnapshot ? "past" : refillMark.test(text) ? "refill" : "event"
    const entry: NewEntry = {
      kind,
      user: each.user,
      name: topic.name,
      rows: read.rows.toSorted((a, b) => a.time - b.time)
    }
    // an empty snapshot is as conclusive as any other
    if (entry.rows.length > 0) {
      if (recording.waiting === undefined) push(entry)
      else if (recording.waiting.push(entry) > mostPending) recording.isBroken = true
    }
    if (read.isSnapshot) noteReady(each, recording, topic)
  }

  const startRecording = (each: Watched): void => {
    const sink: Sink = {
      subscribed: (topic) => {
        if (topic.delivery !== "snapshot") noteReady(each, recording, topic)
      },
      deliver: (frame) => record(each, recording, frame),
      refused: (topic, message) => {
        if (isLogged(topic)) refuse(each, message)
      },
      interrupted: (topic) => {
        if (!isLogged(topic)) return
        if (recording.waiting !== undefined) recording.isBroken = true
        else {
          interrupted(each.user)
          begin(each.user)
        }
      },
      flush: () => {}
    }
    const recording: Recording = {
      seat: source.join(recorder(each.user), sink),
      ready: new Set(),
      waiting: [],
      isKnown: log.since(each.user) !== undefined,
      isBroken: false,
      phase: "subscribing"
    }
    each.recording = recording
    for (const topic of each.topics) recording.seat.subscribe(topic)
  }

  const stopRecording = (each: Watched): void => {
    if (each.recording === undefined) return
    each.recording.seat.leave()
    each.recording = undefined
    options.states?.ended(each.user)
  }

  const stopAll = (): void => {
    for (const each of watched.values()) stopRecording(each)
  }

  /** Fails the watchers of an account that cannot be watched. */
  const refuse = (each: Watched, message: string): void => {
    stopRecording(each)
    watched.delete(each.user)
    for (const watcher of each.watchers) watcher.refused(message)
  }

  const entryFor = (user: string): Watched => {
    const known = watched.get(user)
    if (known !== undefined) return known
    const names = [...logged.map(({ name }) => name), ...options.states?.names ?? []]
    const each: Watched = {
      user,
      topics: names.flatMap((name) => source.topicOf(name, user) ?? []),
      watchers: new Set(),
      idleSince: now(),
      wantedAt: Number.NEGATIVE_INFINITY,
      askedAt: now(),
      recording: undefined
    }
    watched.set(user, each)
    if (token !== undefined) startRecording(each)
    return each
  }

  /** Returns the number of other accounts that a caller watches. */
  const usersBeside = (user: string, caller: string): number => {
    let count = 0
    for (const each of watched.values()) {
      if (each.user !== user && [...each.watchers].some((watcher) => watcher.caller === caller)) count++
    }
    return count
  }

  // --- the store

  /** Reads the entries of the store that are not in the local log. */
  const synchronise: Effect.Effect<void, StoreAway> = Effect.gen(function*() {
    const { epoch, seq } = log.head
    let tail = yield* store.readAfter(seq)
    if (tail.epoch === epoch && tail.start <= seq) {
      for (;;) {
        for (const entry of tail.entries) log.append(entry)
        if (tail.entries.length === 0 || log.head.seq >= tail.seq) return
        tail = yield* store.readAfter(log.head.seq)
      }
    }
    tail = yield* store.readAfter(0)
    const entries = [...tail.entries]
    while (entries.length > 0 && (entries.at(-1)?.seq ?? 0) < tail.seq) {
      const next = yield* store.readAfter(entries.at(-1)?.seq ?? 0)
      if (next.entries.length === 0) break
      entries.push(...next.entries)
    }
    log.replace({ ...tail, entries })
  })

  /** Starts to read from and write to another store. */
  const own = Effect.fnUntraced(function*(next: typeof store, fencing: number) {
    stopAll()
    yield* Queue.clear(pending)
    store = next
    yield* synchronise
    token = fencing
    for (const each of watched.values()) startRecording(each)
  })

  const lose = Effect.gen(function*() {
    token = undefined
    stopAll()
    yield* Queue.clear(pending)
  })

  const noteAway = (at: number): void => {
    if (awaySince === undefined) {
      awaySince = at
      away.updateUnsafe(1, context)
    }
  }

  const noteUp = (): void => {
    if (awaySince === undefined) return
    awaySince = undefined
    away.updateUnsafe(0, context)
  }

  /**
   * Continues with this process's own log in a new epoch. Callers that resume are notified that events may be missing.
   */
  const goOnAlone = Effect.suspend(() => {
    const at = now()
    noteAway(at)
    if (store === fallback || at - (awaySince ?? at) < awayAfter) return Effect.void
    return Effect.andThen(
      Effect.logWarning(
        "The store of the account events is unreachable: this process continues with its own event log"
      ),
      Effect.orDie(own(fallback, 1))
    )
  })

  const election = Effect.gen(function*() {
    // the new token makes the store refuse a write from before this process used its own log, however late that write
    // arrives
    if (store !== primary && leased !== undefined) yield* primary.release(leased)
    const found = yield* primary.lease(name)
    leased = found
    if (found === undefined) {
      if (token !== undefined) yield* lose
      if (store !== primary || log.head.epoch === "") {
        store = primary
        yield* synchronise
      }
    } else if (token !== found || store !== primary) yield* own(primary, found)
    noteUp()
    if (primary.backing === "memory") return
    if (found !== undefined) {
      for (const user of yield* primary.wanted) entryFor(user).wantedAt = now()
    } else {
      const at = now()
      for (const each of watched.values()) {
        if ((each.watchers.size > 0 || configured.has(each.user)) && at - each.wantedAt >= wantEvery) {
          yield* primary.want(each.user)
          each.wantedAt = at
        }
      }
    }
  })

  const following = Effect.suspend(() => {
    const at = now()
    if (token !== undefined || store !== primary || primary.backing === "memory" || at - polledAt < pollEvery) {
      return Effect.void
    }
    polledAt = at
    return synchronise
  })

  const tidy = Effect.sync(() => {
    const at = now()
    log.expire(at)
    for (const each of watched.values()) {
      if (each.watchers.size > 0 && log.since(each.user) === undefined && at - each.askedAt >= refuseAfter) {
        refuse(each, `The account ${each.user} cannot be watched at present: try again later`)
        continue
      }
      if (each.watchers.size > 0 || configured.has(each.user)) continue
      if (at - Math.max(each.idleSince, each.wantedAt) < EventStore.wantFor) continue
      stopRecording(each)
      watched.delete(each.user)
    }
    watchedGauge.updateUnsafe(watched.size, context)
    let refilling = 0
    for (const { recording } of watched.values()) if (recording?.phase === "refilling") refilling++
    refillingGauge.updateUnsafe(refilling, context)
  })

  /**
   * Removes refilled rows that are already in the log. A connection that is lost soon after it was opened is refilled
   * from an earlier time, so rows can repeat.
   */
  const withoutRepeats = (entries: ReadonlyArray<NewEntry>): ReadonlyArray<NewEntry> => {
    const found: Array<NewEntry> = []
    for (const entry of entries) {
      if (entry.kind !== "refill") {
        found.push(entry)
        continue
      }
      const { name, user } = entry
      const earlier = found.filter((other) => other.user === user && other.name === name).flatMap(({ rows }) => rows)
      const known = new Set([...log.newest(user, name, mostCompared), ...earlier].map(({ id }) => id))
      const rows = entry.rows.filter(({ id }) => !known.has(id))
      if (rows.length > 0) found.push({ ...entry, rows })
    }
    return found
  }

  /** Writes recorded entries in order. */
  const writing = Effect.gen(function*() {
    const entries = withoutRepeats(yield* Queue.takeAll(pending))
    if (entries.length === 0) return
    const attempt: Effect.Effect<void> = Effect.suspend(() => {
      const fencing = token
      // the entries of a recording that has ended are dropped
      if (fencing === undefined) return Effect.void
      const used = store
      return Effect.matchEffect(used.append(fencing, log.head.seq, entries), {
        onSuccess: ({ at, epoch, seq }) => {
          if (epoch !== log.head.epoch) return lose
          let next = seq - EventStore.totalSpan(entries)
          for (const entry of entries) {
            next += EventStore.span(entry)
            log.append({ ...entry, seq: next, at })
          }
          return Effect.void
        },
        onFailure: (error) =>
          error._tag === "LeaseLost"
            ? lose
            : Effect.andThen(
              Effect.sync(() => noteAway(now())),
              Effect.andThen(
                Effect.sleep("250 millis"),
                Effect.suspend(() => token === fencing && store === used ? attempt : Effect.void)
              )
            )
      })
    })
    yield* attempt
  })

  const everySecond = Effect.andThen(
    election.pipe(Effect.catch(() => goOnAlone)),
    tidy
  )

  yield* everySecond
  for (const user of configured) entryFor(user)
  yield* Effect.forkIn(Effect.forever(Effect.andThen(Effect.sleep("1 second"), everySecond)), scope)
  yield* Effect.forkIn(Effect.forever(writing), scope)
  if (primary.backing !== "memory") {
    yield* Effect.forkIn(
      Effect.forever(Effect.andThen(Effect.sleep(pollEvery), Effect.ignore(following))),
      scope
    )
  }
  // the store limits the wait: a store that hangs delays the end by at most a second
  yield* Scope.addFinalizer(
    scope,
    Effect.suspend(() => leased === undefined ? Effect.void : Effect.ignore(primary.release(leased)))
  )

  const events: AccountEvents = {
    log,
    isLogged: (topic) =>
      topic.user !== undefined && isLogged(topic) && source.topicOf(topic.name, topic.user)?.key === topic.key,
    watch: (user, watcher) => {
      const { usersOfCaller = Number.POSITIVE_INFINITY } = options
      if (usersBeside(user, watcher.caller) >= usersOfCaller) {
        watcher.refused(source.refusal(usersOfCaller))
        return () => {}
      }
      const each = entryFor(user)
      each.watchers.add(watcher)
      if (each.watchers.size === 1) each.askedAt = now()
      return () => {
        each.watchers.delete(watcher)
        if (each.watchers.size === 0) each.idleSince = now()
      }
    },
    isLive: (user) =>
      token === undefined
        ? isUp() && watched.has(user) && log.since(user) !== undefined
        : watched.get(user)?.recording?.phase === "live",
    isRecording: (user) => watched.get(user)?.recording?.phase === "live",
    interrupt: (user) => {
      if (watched.get(user)?.recording?.phase !== "live") return
      interrupted(user)
      begin(user)
    },
    status: () => ({
      backing: primary.backing,
      isUp: isUp(),
      isOwner: token !== undefined,
      accounts: Array.from(
        watched.values(),
        ({ recording, user }) => ({ user, phase: recording?.phase ?? "subscribing" })
      )
    })
  }
  return events
})
