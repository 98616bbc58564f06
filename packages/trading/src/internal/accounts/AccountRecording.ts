/**
 * Records the events of one account from the venue's frames.
 *
 * If the event log already contains the account, new events are buffered until the missed ones have been queried. The
 * missed and the new events are then merged and written to the log.
 */
import * as Subscriptions from "@trigate/domain/streams/Subscriptions"
import type { Seat, Sink } from "@trigate/upstream/streams/Seat"
import type { Frame, Topic } from "@trigate/upstream/streams/Topic"
import * as Effect from "effect/Effect"
import { mostPending } from "../../accounts/AccountEvents.ts"
import type { Phase, StateObserver } from "../../accounts/AccountEvents.ts"
import type { EventLog } from "../../accounts/EventLog.ts"
import type { NewEntry } from "../../accounts/EventStore.ts"
import * as MissedEvents from "./MissedEvents.ts"

/** The subscriptions whose rows are logged. */
export const logged = Subscriptions.table.filter(({ isLogged }) => isLogged === true)

/** Returns whether the rows of a topic are logged while the topic's account is watched. */
export const isLogged = ({ name }: Topic): boolean => logged.some((declaration) => declaration.name === name)

/** The dependencies of account recordings. */
export interface Options {
  readonly log: EventLog
  readonly join: (caller: string, sink: Sink) => Seat
  readonly states: StateObserver | undefined
  /** Writes an entry to the event log. */
  readonly push: (entry: NewEntry) => void
  /** Reports that events of an account are missing. */
  readonly interrupted: (user: string) => void
  /** Runs an effect in the background, and interrupts it when the event log ends. */
  readonly fork: (effect: Effect.Effect<void>) => void
}

/** The recording of an account by this process. */
export interface AccountRecording {
  readonly phase: () => Phase
  /** Subscribes at the venue. */
  readonly start: () => void
  /** Begins a new epoch of the account's log, because events are missing from the log. */
  readonly interrupt: () => void
  /** Ends the recording. Drops the buffered events. */
  readonly stop: () => void
}

const refillMark = /,"isRefill":true\}$/u

/** Makes the recording of an account. `refused` reports that the venue refused a subscription. */
export const make = (
  { fork, interrupted, join, log, push, states }: Options,
  user: string,
  topics: ReadonlyArray<Topic>,
  refused: (message: string) => void
): AccountRecording => {
  const recorded = topics.filter(isLogged)
  const ready = new Set<string>()
  /** Whether the event log already contains the account. If it does, missed events must be queried. */
  const isKnown = log.reachedAt(user) !== undefined
  /** The buffered events, until all subscriptions are accepted and the missed events have been queried. */
  let buffered: Array<NewEntry> | undefined = []
  /** Whether events were lost while other events were buffered. */
  let isBroken = false
  let phase: Phase = "subscribing"
  let isStopped = false

  const begin = (): void => push({ kind: "begin", user, name: "", rows: [] })

  const interrupt = (): void => {
    interrupted(user)
    begin()
  }

  /** Writes the refilled and the buffered entries to the event log. */
  const release = ({ entries: refilled, isComplete }: MissedEvents.MissedEvents): void => {
    const waiting = buffered ?? []
    buffered = undefined
    phase = "live"
    const entries = isKnown
      ? MissedEvents.sinceEnd(log, user, [
        ...refilled,
        ...waiting.map((entry) => entry.kind === "past" ? { ...entry, kind: "refill" as const } : entry)
      ])
      : waiting
    for (const entry of entries) push(entry)
    if (!isKnown) begin()
    else if (!isComplete || isBroken) interrupt()
  }

  /**
   * Called when the venue has accepted all subscriptions of an account and has sent their initial snapshots. Starts the
   * queries of missed events, if needed.
   */
  const accepted = (): void => {
    if (phase !== "subscribing") return
    if (!isKnown) return release({ entries: [], isComplete: true })
    phase = "refilling"
    fork(
      Effect.map(MissedEvents.load(log, user, recorded, buffered ?? []), (missed) => {
        if (!isStopped) release(missed)
      })
    )
  }

  const noteReady = (topic: Topic): void => {
    if (!isLogged(topic)) return
    ready.add(topic.key)
    if (recorded.every(({ key }) => ready.has(key))) accepted()
  }

  const record = (frame: Frame): void => {
    const { text, topic } = frame
    if (!isLogged(topic)) return states?.received(user, frame)
    const read = topic.rows?.read(text)
    if (read === undefined) return
    const kind = read.isSnapshot ? "past" : refillMark.test(text) ? "refill" : "event"
    const entry: NewEntry = { kind, user, name: topic.name, rows: read.rows.toSorted((a, b) => a.time - b.time) }
    // an empty snapshot is not logged, but it also shows that the subscription is ready
    if (entry.rows.length > 0) {
      if (buffered === undefined) push(entry)
      else if (buffered.push(entry) > mostPending) isBroken = true
    }
    if (read.isSnapshot) noteReady(topic)
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
      if (buffered === undefined) interrupt()
      else isBroken = true
    },
    flush: () => {}
  }
  const seat: Seat = join(`account ${user}`, sink)
  return {
    phase: () => phase,
    start: () => {
      for (const topic of topics) {
        // a refusal ends the recording at once
        if (isStopped) return
        seat.subscribe(topic)
      }
    },
    interrupt: () => {
      if (phase === "live") interrupt()
    },
    stop: () => {
      isStopped = true
      seat.leave()
      states?.ended(user)
    }
  }
}
