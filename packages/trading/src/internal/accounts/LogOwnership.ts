/**
 * Elects the replica that writes the event log, and maintains this process's copy of the log.
 *
 * The owner renews its lease every second. The other replicas read the log. If the store is unreachable for longer than
 * {@link failoverAfter}, the process continues with its own log in a new epoch, until the store is reachable again. The
 * last owner then acquires the lease before the others try, because it has the subscriptions at the venue.
 */
import type { ResumePosition } from "@trigate/domain/streams/ResumePosition"
import { metrics } from "@trigate/upstream/UpstreamMetrics"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Role } from "../../accounts/AccountEvents.ts"
import type { EventLog } from "../../accounts/EventLog.ts"
import * as EventStore from "../../accounts/EventStore.ts"

type Store = EventStore.EventStore["Service"]

/** The dependencies of the election of the event log's owner. */
export interface Options {
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

/** The right to write to an event store. */
export interface Lease {
  readonly store: Store
  readonly token: number
}

/** Milliseconds for which the event store must be unreachable before the process continues with its own log. */
export const failoverAfter = 3000

/**
 * Milliseconds for which the store must be reachable again before a process that did not own the log tries to acquire
 * the lease. The owner reconnects within 2 seconds, and tries once a second.
 */
const ownerFirst = 4000

/** Makes the election of the event log's owner among the replicas that share the event store of the context. */
export const make = Effect.fnUntraced(function*({ acquired, ended, exchange, log }: Options) {
  const primary = yield* EventStore.EventStore
  const fallback = yield* EventStore.makeMemory
  const clock = yield* Clock.Clock
  const context = yield* Effect.context()
  const name = yield* EventStore.makeName
  const degraded = metrics.sharedStateDegraded.series({ use: "account-events" })
  let store = primary
  /** The fencing token of this process; `undefined` while the process does not own the event log. */
  let token: number | undefined
  /** The last fencing token that this process received from the primary store. */
  let leased: number | undefined
  let downSince: number | undefined
  /** When the store became reachable again, while this process still continues with its own log. */
  let backSince: number | undefined
  /** Whether another replica owned the log when the store was last reachable. */
  let isSecond = false

  const now = () => clock.currentTimeMillisUnsafe()

  const noteDown = (since: number): void => {
    if (downSince !== undefined) return
    downSince = since
    degraded.updateUnsafe(1, context)
  }

  const noteUp = (): void => {
    if (downSince === undefined) return
    downSince = undefined
    degraded.updateUnsafe(0, context)
  }

  const one = yield* Semaphore.make(1)

  /** Reads from the event store the entries that this process's copy of the log does not contain. */
  const synchronise: Effect.Effect<void, EventStore.EventStoreUnavailable> = one.withPermits(1)(Effect.gen(function*() {
    const { epoch, seq } = log.head
    let tail = yield* store.readAfter(seq)
    // the next owner of a store that lost its data begins a log
    if (tail.epoch === "") return
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
  }))

  const lose = Effect.suspend(() => {
    token = undefined
    return ended
  })

  /** Begins to write to an event store. */
  const own = Effect.fnUntraced(function*(next: Lease) {
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
  const failOver = (since: number) => {
    noteDown(since)
    backSince = undefined
    if (store === fallback || now() - (downSince ?? since) < failoverAfter) return Effect.void
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
      return isSecond && now() - backSince < ownerFirst
    })
  )

  const election = Effect.gen(function*() {
    if (store !== primary && (yield* isOwnerFirst)) return
    // releases the old lease, so that the next one has a new token: the store then refuses a late write that this
    // process sent before it continued with its own log
    if (store !== primary && leased !== undefined) yield* primary.release(leased)
    const found = yield* primary.lease(name)
    leased = found
    backSince = undefined
    isSecond = found === undefined
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
    isSecondAlone: (): boolean => isSecond && store !== primary,
    role: (): Role => store !== primary ? "alone" : token === undefined ? "reader" : "writer",
    /** Returns the right to write the event log; `undefined` while this process does not have this right. */
    lease: (): Lease | undefined => token === undefined ? undefined : { store, token },
    /**
     * Reports that a step in the event store failed. The argument is the time, in milliseconds, at which the step
     * began.
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
    follow: Effect.suspend(() => isReader() ? Effect.ignore(synchronise) : Effect.void),
    /**
     * Reads the entries that the owner of the event log has appended, if this process's copy does not reach the given
     * position.
     */
    catchUp: (position: ResumePosition): Effect.Effect<void> =>
      log.covers(position) || !isReader() ? Effect.void : Effect.ignore(synchronise),
    /** Ends this process's lease of the event log, so that another replica can acquire the lease immediately. */
    release: Effect.suspend(() => leased === undefined ? Effect.void : Effect.ignore(primary.release(leased)))
  }
})

/** The election of the event log's owner among the replicas that share an event store. */
export type LogOwnership = Effect.Success<ReturnType<typeof make>>
