/**
 * The subscriptions of one connection (a subscriber) whose caller can resume them after the connection is lost. Events of
 * watched accounts are read from the event log and carry their log position. All other frames come from the hub, in
 * which callers share subscriptions.
 *
 * Before any frame, the sink is notified whether events were missed since the position that the caller sent. If events
 * may have been missed, the sink receives a new snapshot of each subscription.
 */
import type { ResumePosition, Resumption } from "@trigate/domain/unstable/streams/Subscription"
import { Frame, type Sink, type Subscriber, type Topic } from "@trigate/upstream/unstable/streams/Topic"
import type { AccountEvents, Entry } from "../accounts/AccountEvents.ts"
import { unavailable } from "../internal/accounts/AccountRecorder.ts"

/** The destination of the frames of a caller that can resume. */
export interface ResumableSink extends Omit<Sink, "deliver" | "interrupted"> {
  /** Receives a frame, and the frame's position if the frame is an event of the log. */
  readonly deliver: (frame: Frame, position?: ResumePosition) => void
  /**
   * Reports, before any frame, whether all events since the requested position will be sent. If some of these events
   * are missing, snapshots of the affected subscriptions will be sent instead.
   */
  readonly resumed: (resumption: Resumption) => void
}

/** The position from which a caller resumes, and its first subscriptions. */
export interface Start {
  /** The position of the last event that the caller received; `undefined` if the caller sent a malformed position. */
  readonly from: ResumePosition | undefined
  /** The subscriptions that the caller opens immediately. Absent if they are not all known when the caller joins. */
  readonly topics?: ReadonlyArray<Topic>
}

/** A caller's subscription to events of the log. */
interface Reading {
  readonly topic: Topic
  readonly user: string
  readonly unwatch: () => void
  /**
   * Whether the subscription has started: either with a snapshot, or after the position to resume from. A subscription
   * starts as soon as the log contains its account.
   */
  isLive: boolean
  /** Whether the caller received the acknowledgement of the subscription. */
  isAcknowledged: boolean
}

const frames = new WeakMap<Entry, Frame>()

/**
 * Takes a subscriber, which manages the subscriptions of one connection, for a caller. All callers share the frames that are
 * made from entries of the event log.
 */
export const join = (
  { events, join: joinHub }: {
    readonly events: AccountEvents
    readonly join: (caller: string, sink: Sink) => Subscriber
  },
  caller: string,
  sink: ResumableSink,
  { from, topics = [] }: Start
): Subscriber => {
  const { log } = events
  const readings = new Map<string, Reading>()
  const hubSubscriber = joinHub(caller, {
    subscribed: (topic) => sink.subscribed(topic),
    refused: (topic, message, wasSubscribed) => sink.refused(topic, message, wasSubscribed),
    flush: () => sink.flush(),
    deliver: (frame) => sink.deliver(frame)
  })

  const isResumable = (topic: Topic): boolean => topic.delivery === "state" || events.isLogged(topic)
  const users = topics.flatMap((topic) => events.isLogged(topic) && topic.user !== undefined ? [topic.user] : [])
  /**
   * The number of requested topics that are in the event log. Missed events are replayed after the subscriptions to all
   * of these topics have started.
   */
  const expected = topics.filter(events.isLogged).length
  let backlog: Array<{ readonly entry: Entry; readonly topic: Topic }> = []
  /**
   * The position after which the caller receives all events. If events may have been missed, it is `undefined`, and the
   * sink is notified.
   */
  let resumed = from !== undefined && topics.every(isResumable) && log.covers(from, users) ? from : undefined
  sink.resumed({ recovered: resumed !== undefined, ...resumed ?? log.head })

  const startOver = (): void => sink.resumed({ recovered: false, ...log.head })

  /** Notifies the caller that a subscription could not be resumed after all. */
  const withdraw = (): void => {
    if (resumed === undefined) return
    resumed = undefined
    startOver()
  }

  /** Returns the frame of an entry. All readers of the entry share one frame. */
  const frameFor = (entry: Entry, topic: Topic): Frame => {
    const known = frames.get(entry)
    if (known !== undefined) return known
    const frame = new Frame(topic.rows?.write(entry.rows, entry.kind === "refill" ? "refill" : "stream") ?? "", topic)
    frames.set(entry, frame)
    return frame
  }

  const deliver = (entry: Entry, topic: Topic): void =>
    sink.deliver(frameFor(entry, topic), { epoch: log.head.epoch, seq: entry.seq })

  const snapshot = ({ topic, user }: Reading): void => {
    const { rows } = topic
    if (rows === undefined || topic.delivery !== "snapshot") return
    sink.deliver(new Frame(rows.write(log.newest(user, topic.name, rows.replayed), "snapshot"), topic), log.head)
  }

  const acknowledge = (reading: Reading): void => {
    if (!reading.isAcknowledged) sink.subscribed(reading.topic)
    reading.isAcknowledged = true
    reading.isLive = true
  }

  const begin = (reading: Reading): void => {
    acknowledge(reading)
    snapshot(reading)
  }

  /** Starts a subscription: after the position to resume from, or with a snapshot. */
  const start = (reading: Reading): void => {
    const { topic, user } = reading
    const since = log.since(user)
    if (resumed !== undefined && (since === undefined || resumed.seq < since)) withdraw()
    if (since === undefined) return
    if (resumed === undefined) return begin(reading)
    acknowledge(reading)
    for (const entry of log.after(resumed.seq, user, topic.name)) backlog.push({ entry, topic })
    if (readings.size >= expected) replay()
  }

  /**
   * Delivers missed events of all subscriptions in the order of the log, so that a caller that disconnects can resume
   * from the last event that it received.
   */
  const replay = (): void => {
    for (const { entry, topic } of backlog.toSorted((a, b) => a.entry.seq - b.entry.seq)) deliver(entry, topic)
    backlog = []
  }

  /** Ends a subscription whose account cannot be watched. */
  const refuse = ({ isAcknowledged, topic }: Reading, message: string): void => {
    end(topic.key)
    sink.refused(topic, message, isAcknowledged)
    sink.flush()
  }

  const unlisten = log.listen({
    appended: (entry) => {
      let isConcerned = false
      let isTold = false
      for (const reading of readings.values()) {
        if (reading.user !== entry.user) continue
        if (entry.kind === "end") refuse(reading, unavailable(entry.user))
        else if (entry.kind === "begin") {
          if (reading.isAcknowledged && !isTold) {
            startOver()
            isTold = true
          }
          begin(reading)
        } else if (reading.isLive && entry.kind !== "past" && reading.topic.name === entry.name) {
          deliver(entry, reading.topic)
        } else continue
        isConcerned = true
      }
      if (isConcerned) sink.flush()
    },
    replaced: () => {
      resumed = undefined
      for (const reading of readings.values()) reading.isLive = false
      const begun = [...readings.values()].filter(({ user }) => log.since(user) !== undefined)
      // the events of any other account are complete from the beginning of its log, so its caller is notified then
      if (begun.length > 0 || readings.size === 0) startOver()
      for (const reading of begun) begin(reading)
      sink.flush()
    }
  })

  const end = (key: string): boolean => {
    const reading = readings.get(key)
    readings.delete(key)
    reading?.unwatch()
    return reading !== undefined
  }

  return {
    topics: function*() {
      yield* hubSubscriber.topics()
      for (const { topic } of readings.values()) yield topic
    },
    size: () => hubSubscriber.size() + readings.size,
    has: (topic) => readings.has(topic.key) || hubSubscriber.has(topic),
    subscribe: (topic) => {
      if (!isResumable(topic)) withdraw()
      if (!events.isLogged(topic) || topic.user === undefined) return hubSubscriber.subscribe(topic)
      const { user } = topic
      let unwatch = (): void => {}
      const reading: Reading = { topic, user, unwatch: () => unwatch(), isLive: false, isAcknowledged: false }
      readings.set(topic.key, reading)
      unwatch = events.watch(user, { caller, refused: (message) => refuse(reading, message) })
      if (readings.get(topic.key) !== reading) return unwatch()
      start(reading)
      sink.flush()
    },
    unsubscribe: (topic) => end(topic.key) || hubSubscriber.unsubscribe(topic),
    leave: () => {
      unlisten()
      for (const key of readings.keys()) end(key)
      hubSubscriber.leave()
    }
  }
}
