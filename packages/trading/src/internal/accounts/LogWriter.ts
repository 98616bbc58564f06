/** Writes recorded account events to the event store and to this process's copy of the event log, in order. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { EventLog } from "../../accounts/EventLog.ts"
import * as EventStore from "../../accounts/EventStore.ts"
import type { NewEntry } from "../../accounts/EventStore.ts"
import type { LogOwnership } from "./LogOwnership.ts"
import * as MissedEvents from "./MissedEvents.ts"

/** Milliseconds between two attempts to write. */
const retryAfter = 250

/** Writes the pending entries while this process holds the lease (the right to write to the event log). */
export const write = Effect.fnUntraced(
  function*(pending: Queue.Queue<NewEntry>, log: EventLog, ownership: LogOwnership) {
    const entries = MissedEvents.withoutRepeats(log, yield* Queue.takeAll(pending))
    if (entries.length === 0) return
    const attempt: Effect.Effect<void> = Effect.suspend(() => {
      const lease = ownership.lease()
      // a process without the lease drops the entries, because their recording has ended
      if (lease === undefined) return Effect.void
      const isCurrent = () => {
        const now = ownership.lease()
        return now?.token === lease.token && now.store === lease.store
      }
      return Effect.flatMap(
        Clock.currentTimeMillis,
        (since) =>
          Effect.matchEffect(lease.store.append(lease.token, log.head.seq, entries), {
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
              return Effect.delay(Effect.suspend(() => isCurrent() ? attempt : Effect.void), retryAfter)
            }
          })
      )
    })
    yield* attempt
  }
)
