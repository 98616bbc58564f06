/**
 * The ownership of the event log: of the replicas that share an event store, one writes the log at a time.
 *
 * The owner renews its lease every second. The other replicas read the log. If the store is unreachable for longer than
 * {@link failoverAfter}, the process continues with its own log in a new epoch, until the store is reachable again. The
 * last owner then acquires the lease before the others try, because it has the subscriptions at the venue.
 */
import { millisBetween, type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
import type { ResumePosition } from "@trigate/domain/unstable/streams/Subscription"
import * as SharedStore from "@trigate/stores/unstable/SharedStore"
import { RowSet } from "@trigate/upstream/unstable/streams/Topic"
import { metrics } from "@trigate/upstream/unstable/Upstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Semaphore from "effect/Semaphore"
import * as EventStore from "../../accounts/AccountEvents.ts"
import type { EventLog, NewEntry, Role } from "../../accounts/AccountEvents.ts"

type Store = EventStore.EventStore["Service"]

/** The dependencies of the election of the event log's owner. */
export interface OwnershipOptions {
  readonly log: EventLog
  /** Called when this process begins to write an event log. */
  readonly acquired: () => void
  /** Ends the recordings of accounts, and drops entries that are not written yet. */
  readonly ended: Effect.Effect<void>
  /**
   * Exchanges, with other replicas, the requests to watch accounts: the owner of the event log receives requests, and
   * every other replica sends its own.
   */
  readonly exchange: (store: Store, isOwner: boolean) => Effect.Effect<void, EventStore.EventStoreUnavailable>
}

/** An event store, and the fencing token with which this process writes it. */
export interface FencedStore {
  readonly store: Store
  readonly token: number
}

/** Milliseconds for which the event store must be unreachable before the process continues with its own log. */
export const failoverAfter = 3000

/**
 * Milliseconds for which the store must be reachable again before a process that did not own the log tries to acquire
 * the lease. The owner tries once a second, and reconnects within 2 seconds after an outage in which a process
 * continued with its own log.
 */
const ownerFirst = { reader: 1500, alone: 4000 }

/** Returns whether no entry is missing between a sequence number and the given entries. */
const isConsecutive = (seq: number, entries: ReadonlyArray<EventStore.Entry>): boolean => {
  let last = seq
  return entries.every((entry) => {
    const isNext = entry.seq - EventStore.span(entry) === last
    last = entry.seq
    return isNext
  })
}

/** Makes the election of the event log's owner among the replicas that share the event store of the context. */
export const makeOwnership = Effect.fnUntraced(function*({ acquired, ended, exchange, log }: OwnershipOptions) {
  const primary = yield* EventStore.EventStore
  const fallback = yield* EventStore.makeMemory
  const clock = yield* Clock.Clock
  const context = yield* Effect.context()
  const lease = SharedStore.makeLease(primary, yield* EventStore.makeName)
  const degraded = metrics.sharedStateDegraded.series({ use: "account-events" })
  let store = primary
  /** The fencing token of this process; `undefined` while the process does not own the event log. */
  let token: number | undefined
  let downSince: MonotonicTime | undefined
  /** When the store became reachable again, while this process still continues with its own log. */
  let backSince: MonotonicTime | undefined

  const now = () => monotonicTime(clock)

  const noteDown = (since: MonotonicTime): void => {
    if (downSince !== undefined) return
    downSince = since
    degraded.updateUnsafe(1, context)
  }

  const noteUp = (): void => {
    if (downSince === undefined) return
    downSince = undefined
    degraded.updateUnsafe(0, context)
  }

  // the metric exists also before the first outage
  degraded.updateUnsafe(0, context)
  const one = yield* Semaphore.make(1)

  /** Reads from the event store the entries that this process's copy of the log does not contain. */
  const synchronise: Effect.Effect<void, EventStore.EventStoreUnavailable> = one.withPermits(1)(Effect.gen(function*() {
    const { epoch, seq } = log.head
    let tail = yield* store.readAfter(seq)
    // the next owner of a store that lost its data begins a log
    if (tail.epoch === "") return
    if (tail.epoch === epoch && tail.start <= seq) {
      for (;;) {
        // entries that the reader missed may have been dropped, not only the oldest ones of all accounts
        if (!isConsecutive(log.head.seq, tail.entries)) break
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
  }))

  const lose = Effect.suspend(() => {
    token = undefined
    return ended
  })

  /** Begins to write to an event store. */
  const own = Effect.fnUntraced(function*(next: FencedStore) {
    yield* lose
    store = next.store
    yield* synchronise
    token = next.token
    acquired()
  })

  /**
   * Continues with this process's own log in a new epoch. Callers that resume are notified that events may be missing,
   * because positions in the old epoch are no longer valid.
   */
  const failOver = (since: MonotonicTime) => {
    noteDown(since)
    backSince = undefined
    if (store === fallback || millisBetween(downSince ?? since, now()) < failoverAfter) return Effect.void
    return Effect.andThen(
      Effect.logWarning(
        "The store of the account events is unreachable: this process continues with its own event log"
      ),
      Effect.orDie(own({ store: fallback, token: 1 }))
    )
  }

  /** Returns whether this process still leaves the lease to the last owner. Fails while the log cannot be read. */
  const isOwnerFirst = Effect.suspend(() =>
    Effect.map(primary.readAfter(log.head.seq), () => {
      backSince ??= now()
      return lease.isElsewhere() && millisBetween(backSince, now()) < ownerFirst[store === primary ? "reader" : "alone"]
    })
  )

  const election = Effect.gen(function*() {
    if ((store !== primary || downSince !== undefined) && (yield* isOwnerFirst)) return
    // releases the old lease, so that the next one has a new token: the store then refuses a late write that this
    // process sent before it continued with its own log
    if (store !== primary) yield* lease.release
    const found = yield* lease.renew
    backSince = undefined
    if (found === undefined) {
      if (token !== undefined) yield* lose
      store = primary
      // `follow` reads more often; here, a log that cannot be read counts as an unreachable store
      yield* synchronise
    } else if (token !== found || store !== primary) yield* own({ store: primary, token: found })
    noteUp()
    if (primary.backing !== "memory") yield* exchange(primary, found !== undefined)
  })

  const isReader = () => token === undefined && store === primary && primary.backing !== "memory"

  return {
    backing: primary.backing,
    isUp: (): boolean => downSince === undefined,
    /** Returns whether the store is unreachable, and another replica was the last owner of the log. */
    isSecondAlone: (): boolean => lease.isElsewhere() && store !== primary,
    role: (): Role => store !== primary ? "alone" : token === undefined ? "reader" : "writer",
    /** Returns the store that this process writes; `undefined` while it does not have the right to write the event log. */
    writable: (): FencedStore | undefined => token === undefined ? undefined : { store, token },
    /**
     * Reports that a step in the event store failed. The argument is the time at which the step began.
     */
    noteDown,
    /** Stops writing, because another replica owns the event log. */
    lose,
    /** Renews this process's lease of the event log, or tries to acquire the lease. */
    elect: Effect.suspend(() => {
      const since = now()
      return election.pipe(Effect.catch(() => failOver(since)))
    }),
    /** Reads the entries that the owner of the event log has appended. */
    follow: Effect.suspend(() =>
      isReader() ? Effect.andThen(Effect.ignore(synchronise), Effect.sync(() => log.forgetDropped())) : Effect.void
    ),
    /**
     * Reads the entries that the owner of the event log has appended, if this process's copy does not reach the given
     * position.
     */
    catchUp: (position: ResumePosition): Effect.Effect<void> =>
      log.covers(position) || !isReader() ? Effect.void : Effect.ignore(synchronise),
    /** Ends this process's lease of the event log, so that another replica can acquire the lease immediately. */
    release: Effect.ignore(lease.release)
  }
})

/** The election of the event log's owner among the replicas that share an event store. */
export type LogOwnership = Effect.Success<ReturnType<typeof makeOwnership>>

/**
 * Returns the entries without the rows that the log or an earlier entry contains. Rows repeat if a connection is lost
 * soon after it was opened: the connection's first snapshot and the query of missed events both return rows that were
 * logged before.
 */
export const withoutRepeats = (log: EventLog, entries: ReadonlyArray<NewEntry>): ReadonlyArray<NewEntry> => {
  const seen = new Map<string, RowSet>()
  return entries.flatMap((entry) => {
    const { kind, name, user } = entry
    if (kind === "begin" || kind === "end") return [entry]
    const key = `${user} ${name}`
    const earlier = seen.get(key) ?? new RowSet()
    seen.set(key, earlier)
    const rows = earlier.unseen(log.unseen(user, name, entry.rows, kind === "refill"))
    for (const row of rows) earlier.add(row)
    return rows.length === 0 ? [] : [{ ...entry, rows }]
  })
}

/** The maximum number of entries that one write drops beyond the number of entries that it appends. */
const mostDropped = 1000

/** Milliseconds between two attempts to write. */
const retryWriteAfter = 250

/** Writes the pending entries while this process holds the lease (the right to write to the event log). */
export const write = Effect.fnUntraced(
  function*(pending: Queue.Queue<NewEntry>, log: EventLog, ownership: LogOwnership) {
    const entries = withoutRepeats(log, yield* Queue.takeAll(pending))
    if (entries.length === 0) return
    // more than the number of appended entries, because some may be left from before
    const dropped = log.takeDropped(entries.length + mostDropped)
    const attempt: Effect.Effect<void> = Effect.suspend(() => {
      const writable = ownership.writable()
      // a process without the lease drops the entries, because their recording has ended
      if (writable === undefined) return Effect.void
      const isCurrent = () => {
        const now = ownership.writable()
        return now?.token === writable.token && now.store === writable.store
      }
      return Effect.flatMap(
        Effect.map(Clock.Clock, monotonicTime),
        (since) =>
          Effect.matchEffect(writable.store.append(writable.token, log.head.seq, entries, dropped), {
            onSuccess: ({ at, epoch, seq }) => {
              if (epoch !== log.head.epoch) return ownership.lose
              let next = seq - EventStore.totalSpan(entries)
              for (const entry of entries) {
                next += EventStore.span(entry)
                log.append({ ...entry, seq: next, at })
              }
              return Effect.void
            },
            onFailure: (error) => {
              if (error._tag === "LeaseLost") return ownership.lose
              ownership.noteDown(since)
              return Effect.delay(Effect.suspend(() => isCurrent() ? attempt : Effect.void), retryWriteAfter)
            }
          })
      )
    })
    yield* attempt
  }
)
