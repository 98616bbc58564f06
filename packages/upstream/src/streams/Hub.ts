/**
 * Shares the subscriptions of many callers: one upstream subscription for each distinct topic, on as few connections as the
 * upstream's limits and its frames allow.
 *
 * Frames pass from an upstream connection to the callers in plain calls of functions. Effects run where something waits: to
 * connect, to send within the budget of messages, to refill a hole.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Link from "./Link.ts"
import { SocketTransport } from "./SocketTransport.ts"
import type { SocketLost } from "./SocketTransport.ts"
import * as StreamLimits from "./StreamLimits.ts"
import { Frame } from "./Topic.ts"
import type { Row, StreamProtocol, Topic, TopicRefill } from "./Topic.ts"

/** Where the frames of one caller go. Its functions are called in the order of the upstream's frames. */
export interface Sink {
  /** The upstream has taken a subscription. Called once for each, before its first frame. */
  readonly subscribed: (topic: Topic) => void
  readonly deliver: (frame: Frame) => void
  /** A subscription was refused, or has ended. No frame of it follows. */
  readonly refused: (topic: Topic, message: string) => void
  /** All frames of one reading have been delivered. */
  readonly flush: () => void
}

/** The place of one caller's connection in the hub. */
export interface Seat {
  /** The keys of its subscriptions. */
  readonly keys: () => Iterable<string>
  readonly has: (topic: Topic) => boolean
  /** Subscribes. What becomes of it is said to the sink, at once or later. */
  readonly subscribe: (topic: Topic) => void
  /** Ends a subscription. Returns false, and does nothing, where there is none. */
  readonly unsubscribe: (topic: Topic) => boolean
  /** Ends all subscriptions. */
  readonly leave: () => void
}

/** What the hub is doing, for metrics and the console. */
export interface Status {
  readonly connections: number
  readonly subscriptions: number
  readonly users: number
  readonly seats: number
  readonly topics: ReadonlyArray<{
    readonly key: string
    readonly name: string
    readonly callers: number
    /** Milliseconds since its last frame; undefined where none has come. */
    readonly age: number | undefined
    readonly isLive: boolean
  }>
}

/** What the hub has counted since it was made. */
export interface Counts {
  /** Frames of the upstream, by the name of their topic. */
  readonly frames: Map<string, number>
  /** Frames that callers were given, by the name of their topic. */
  readonly deliveries: Map<string, number>
  /** Lost connections, by cause. */
  readonly reconnects: Map<string, number>
  /** Holes in a stream that could not be refilled, by the name of its topic. */
  readonly gaps: Map<string, number>
  /** Rows that came from a refill, by the name of their topic. */
  readonly refilled: Map<string, number>
  /** Frames of channels that nobody knows. */
  unknown: number
}

/** The shared subscriptions of one upstream. */
export interface Hub {
  /** Takes a seat for a connection of a caller. Callers share the limits fairly, by their names. */
  readonly join: (caller: string, sink: Sink) => Seat
  readonly status: () => Status
  readonly counts: Counts
}

/** Where the streams of an upstream are, and what they may take. */
export interface Options {
  /** Returns the addresses in order of preference, at each new connection. */
  readonly addresses: () => ReadonlyArray<Redacted.Redacted>
  readonly protocol: StreamProtocol
  readonly limits?: Partial<StreamLimits.Limits>
  /**
   * Users in lower case who come first, such as those whose actions were accepted here; up to three places are left free for
   * those of them who have none yet.
   */
  readonly familiar?: ReadonlySet<string>
}

/** A subscription at the upstream and those who share it. */
interface Live {
  readonly topic: Topic
  readonly key: string
  readonly link: UpstreamLink
  /** Who receives its frames. */
  readonly seats: Set<SeatState>
  /** Who asked for it before the upstream took it. */
  readonly waiting: Set<SeatState>
  /** `idle`: nothing was sent. `leaving`: the upstream has not said yet that it has ended. */
  phase: "idle" | "asked" | "taken" | "leaving"
  askedAt: number
  /** Whether it has proved on some connection that the upstream accepts it. */
  isProven: boolean
  /** Times that the upstream closed the connection while this was the only suspect. */
  strikes: number
  /** Whether the next frame is the first of its connection. */
  isFirst: boolean
  /** When it began to be live, and when its last frame came; undefined before that. */
  liveSince: number | undefined
  lastAt: number | undefined
  /** Usual milliseconds between two frames; 0 while unknown. */
  interval: number
  /** Times in turn that it was subscribed again because it was silent. */
  silences: number
  last: Frame | undefined
  rows: Array<Row>
  ids: Set<string>
  /** Rows of a refill that the upstream may still send. */
  refilled: Set<string>
  /** Frames that came during a refill. */
  held: Array<string> | undefined
  /** Whether the connection was lost again during a refill. */
  isRefilledAgain: boolean
  /** When its last caller left. */
  emptySince: number | undefined
}

interface UpstreamLink {
  readonly id: number
  readonly byRoute: Map<string, Live>
  /** Those that have to be tried alone, because one of them may be why the upstream closed the connection. */
  suspects: Array<Live>
  link: Link.Link | undefined
  fiber: Fiber.Fiber<unknown> | undefined
  isUp: boolean
}

interface SeatState {
  readonly caller: string
  readonly sink: Sink
  readonly lives: Map<string, Live>
  isDirty: boolean
}

const second = 1000

/** A subscription without a response is sent again after so many milliseconds. */
const responseWithin = 10 * second

/** After so many milliseconds no late frame of a subscription that was ended can arrive. */
const confirmationWithin = 30 * second

/** The venue closes a connection within 155 ms of a subscription that it does not take. */
const suspectFor = 2 * second

/** A suspect is refused after so many connections that were lost with it alone: before the upstream had taken it, and after. */
const mostStrikes = 2
const mostStrikesTaken = 5

/** A topic is silent after so many of its usual intervals, and at least so many milliseconds. */
const silentIntervals = 3
const silentAtLeast = 10 * second

/** Milliseconds by which clocks may differ, and blocks be late. */
const clockMargin = 5 * second

/** Rows by which duplicates are recognised, at least. */
const leastRows = 500

/** Places of users that are left free for familiar ones. */
const mostReserved = 3

/** Frames that wait for a refill. */
const mostHeld = 10_000

const countUp = (counts: Map<string, number>, name: string, by = 1): void => {
  counts.set(name, (counts.get(name) ?? 0) + by)
}

/** Makes the hub. It connects with the first subscription, and everything it does ends with the scope. */
export const make = Effect.fnUntraced(function*({ addresses, familiar, protocol, ...options }: Options) {
  const limits: StreamLimits.Limits = { ...StreamLimits.defaults, ...options.limits }
  const most = { subscriptions: limits.subscriptions, users: limits.users }
  const transport = yield* SocketTransport
  const clock = yield* Clock.Clock
  const scope = yield* Scope.Scope
  const fork = Effect.runForkWith(yield* Effect.context())
  const connectionBudget = yield* StreamLimits.makeMinuteBudget(limits.newConnections)
  const messageBudget = yield* StreamLimits.makeMinuteBudget(limits.messages)
  const grace = Duration.toMillis(limits.grace)

  const lives = new Map<string, Live>()
  const links = new Set<UpstreamLink>()
  const seats = new Set<SeatState>()
  /** Subscriptions of each caller, and of each of its users. */
  const callers = new Map<string, Map<Live, number>>()
  let dirty: Array<SeatState> = []
  let queued: Array<{ readonly rank: number; readonly loading: Effect.Effect<void> }> = []
  let isRefilling = false
  let lastLink = 0
  let lastSeat = 0

  const counts: Counts = {
    frames: new Map(),
    deliveries: new Map(),
    reconnects: new Map(),
    gaps: new Map(),
    refilled: new Map(),
    unknown: 0
  }

  const now = () => clock.currentTimeMillisUnsafe()

  const flush = (): void => {
    if (dirty.length === 0) return
    const touched = dirty
    dirty = []
    for (const seat of touched) {
      seat.isDirty = false
      seat.sink.flush()
    }
  }

  const touch = (seat: SeatState): void => {
    if (seat.isDirty) return
    seat.isDirty = true
    dirty.push(seat)
  }

  const deliverTo = (seat: SeatState, frame: Frame): void => {
    seat.sink.deliver(frame)
    touch(seat)
  }

  const deliver = (live: Live, frame: Frame): void => {
    countUp(counts.deliveries, live.topic.name, live.seats.size)
    for (const seat of live.seats) deliverTo(seat, frame)
  }

  /** Gives a caller what the upstream would have sent first. */
  const replay = (live: Live, seat: SeatState): void => {
    const { topic } = live
    if (topic.delivery === "state") {
      if (live.last !== undefined) deliverTo(seat, live.last)
      return
    }
    const { rows } = topic
    if (rows === undefined || rows.replayed === 0 || live.liveSince === undefined || live.lastAt === undefined) return
    const kind = topic.delivery === "snapshot" ? "snapshot" : "stream"
    if (kind === "stream" && live.rows.length === 0) return
    deliverTo(seat, new Frame(rows.write(live.rows.slice(-rows.replayed), kind), topic))
  }

  /** Tells those who wait that the upstream has taken their subscription. */
  const admit = (live: Live): void => {
    for (const seat of live.waiting) {
      seat.sink.subscribed(live.topic)
      touch(seat)
      live.seats.add(seat)
      if (live.lastAt !== undefined) replay(live, seat)
    }
    live.waiting.clear()
  }

  const detach = (live: Live, seat: SeatState): void => {
    seat.lives.delete(live.topic.key)
    live.seats.delete(seat)
    live.waiting.delete(seat)
    const own = callers.get(seat.caller)
    const shares = (own?.get(live) ?? 1) - 1
    if (shares > 0) own?.set(live, shares)
    else own?.delete(live)
    if (own?.size === 0) callers.delete(seat.caller)
    if (live.seats.size === 0 && live.waiting.size === 0) live.emptySince = now()
  }

  /** Forgets a topic; its route is free once the upstream cannot send frames of it any more. */
  const forget = (live: Live): void => {
    if (lives.get(live.key) === live) lives.delete(live.key)
    const { byRoute, suspects } = live.link
    if (byRoute.get(live.topic.route) === live) byRoute.delete(live.topic.route)
    live.link.suspects = suspects.filter((each) => each !== live)
  }

  const refuse = (live: Live, message: string): void => {
    for (const seat of [...live.seats, ...live.waiting]) {
      detach(live, seat)
      seat.sink.refused(live.topic, message)
      touch(seat)
    }
    forget(live)
  }

  const send = ({ isUp, link }: UpstreamLink, text: string, onSent?: () => void): void => {
    if (isUp) link?.send(text, onSent)
  }

  const ask = (live: Live): void => {
    if (!live.link.isUp) return
    live.phase = "asked"
    live.askedAt = now()
    live.isFirst = true
    // the message may have to wait
    send(live.link, live.topic.subscribe, () => {
      live.askedAt = now()
    })
  }

  const leaveUpstream = (live: Live): void => {
    if (lives.get(live.key) === live) lives.delete(live.key)
    if (live.phase === "idle" || !live.link.isUp) {
      forget(live)
      return
    }
    // late frames may still arrive: the route stays taken until the upstream has said that there are no more
    live.phase = "leaving"
    live.askedAt = now()
    send(live.link, live.topic.unsubscribe)
  }

  // --- frames of the upstream

  /** Notes rows, and returns those that callers have not seen. */
  const remember = (live: Live, rows: ReadonlyArray<Row>): ReadonlyArray<Row> => {
    const fresh = rows.filter(({ id }) => !live.ids.has(id))
    const keep = Math.max(leastRows, live.topic.rows?.replayed ?? 0)
    for (const row of fresh) {
      live.ids.add(row.id)
      live.rows.push(row)
    }
    while (live.rows.length > keep) {
      const oldest = live.rows.shift()
      if (oldest !== undefined) live.ids.delete(oldest.id)
    }
    return fresh
  }

  const gap = (live: Live, cause: string): void => {
    countUp(counts.gaps, live.topic.name)
    fork(Effect.logWarning("A stream has a hole that could not be refilled", { topic: live.topic.name, cause }))
  }

  /**
   * Delivers the rows of a frame.
   *
   * `stream` is the next frame of a connection, `overlap` one that may repeat what callers have seen, `refill` one that was read
   * by a query.
   */
  const receiveRows = (live: Live, text: string, kind: "stream" | "overlap" | "refill"): void => {
    const { rows: codec } = live.topic
    const read = codec?.read(text)
    if (codec === undefined || read === undefined) {
      deliver(live, new Frame(text, live.topic))
      return
    }
    const hadRows = live.rows.length > 0
    const wasLive = live.liveSince !== undefined
    const newest = live.rows.at(-1)
    // what is older than the newest row that was seen, and was not seen itself, happened before the subscription
    const sorted = inOrder(read.rows).filter(({ time }) =>
      kind !== "refill" || newest === undefined || time >= newest.time
    )
    const fresh = remember(live, sorted)
    // an update may repeat its id where the venue sends no snapshot: only what was missed is compared
    if (!wasLive || (kind === "stream" && codec.replayed === 0)) {
      const unseen = live.refilled.size === 0 ? sorted : sorted.filter(({ id }) => !live.refilled.delete(id))
      if (unseen.length === sorted.length) deliver(live, new Frame(text, live.topic))
      else if (unseen.length > 0) deliver(live, new Frame(codec.write(unseen, "stream"), live.topic))
      return
    }
    if (fresh.length === 0) return
    if (kind === "overlap" && hadRows && fresh.length === read.rows.length && live.topic.refill === undefined) {
      gap(live, "reconnect")
    }
    if (kind === "refill") {
      countUp(counts.refilled, live.topic.name, fresh.length)
      if (codec.replayed === 0) { for (const { id } of fresh) live.refilled.add(id) }
    }
    // a later snapshot is what was missed, for callers who have had the first
    deliver(
      live,
      new Frame(
        fresh.length === read.rows.length && !read.isSnapshot && kind !== "refill"
          ? text
          : codec.write(fresh, kind === "refill" ? kind : "stream"),
        live.topic
      )
    )
  }

  const receiveData = (live: Live, text: string, state: string | undefined, isHeld = false): void => {
    const at = now()
    const isFirst = live.isFirst
    live.isFirst = false
    if (live.lastAt !== undefined && !isFirst) {
      const passed = at - live.lastAt
      live.interval = live.interval === 0 ? passed : live.interval * 0.8 + passed * 0.2
    }
    live.isProven = true
    live.silences = 0
    if (live.topic.delivery === "state") {
      const frame = new Frame(text, live.topic, state === undefined ? live.key : `${live.key}#${state}`)
      live.last = frame
      deliver(live, frame)
    } else receiveRows(live, text, isFirst || isHeld ? "overlap" : "stream")
    live.lastAt = at
    live.liveSince ??= at
  }

  const onData = (link: UpstreamLink, route: string, text: string, state: string | undefined): void => {
    const live = link.byRoute.get(route)
    if (live === undefined || live.phase === "leaving") return
    countUp(counts.frames, live.topic.name)
    if (live.phase === "asked") taken(live)
    if (live.held === undefined) receiveData(live, text, state)
    else if (live.held.push(text) > mostHeld) {
      gap(live, "refill too slow")
      release(live)
    }
  }

  /** Lets the frames that waited for a refill through. */
  const release = (live: Live): void => {
    const held = live.held ?? []
    live.held = undefined
    for (const text of held) {
      const read = protocol.read(text)
      receiveData(live, text, read.kind === "data" ? read.state : undefined, true)
    }
  }

  const refill = (live: Live): void => {
    const { refill: plan } = live.topic
    if (plan === undefined || live.liveSince === undefined) return
    if (live.held !== undefined) {
      live.isRefilledAgain = true
      return
    }
    live.held = []
    load(live, plan, live.liveSince)
  }

  const load = (live: Live, plan: TopicRefill, liveSince: number): void => {
    const { rows } = live.topic
    const newest = live.rows.at(-1)
    const since = (newest === undefined ? liveSince : newest.time) - clockMargin
    const done = (texts: ReadonlyArray<string> | undefined): void => {
      if (live.held === undefined) return
      if (texts === undefined) gap(live, "refill failed")
      for (const text of texts ?? []) {
        if (rows === undefined) {
          const read = protocol.read(text)
          countUp(counts.refilled, live.topic.name)
          receiveData(live, text, read.kind === "data" ? read.state : undefined)
        } else receiveRows(live, text, "refill")
      }
      if (live.isRefilledAgain) {
        live.isRefilledAgain = false
        load(live, plan, liveSince)
      } else release(live)
      flush()
    }
    const loading = plan.load({ since, last: live.last?.text }).pipe(
      Effect.matchCause({ onFailure: () => done(undefined), onSuccess: done })
    )
    queued.push({ rank: plan.rank, loading })
    runQueued()
  }

  /** Refills run one after another, so that they leave the rate limit to callers. */
  const runQueued = (): void => {
    if (isRefilling) return
    const next = queued.toSorted((a, b) => a.rank - b.rank)[0]
    if (next === undefined) return
    queued = queued.filter((each) => each !== next)
    isRefilling = true
    const running = Effect.andThen(
      next.loading,
      Effect.sync(() => {
        isRefilling = false
        runQueued()
      })
    )
    Fiber.runIn(fork(running), scope)
  }

  /** The upstream has taken a topic. */
  const taken = (live: Live): void => {
    live.phase = "taken"
    const isAgain = live.liveSince !== undefined
    if (isAgain) {
      const { delivery, refill: plan, rows } = live.topic
      if (plan?.isPartial === true || (delivery === "events" && plan === undefined && (rows?.replayed ?? 0) === 0)) {
        gap(live, "reconnect")
      }
      refill(live)
    } // what has no first frame is live from now on
    else if (live.topic.delivery === "events" && (live.topic.rows?.replayed ?? 0) === 0) live.liveSince = now()
    admit(live)
  }

  const onTaken = (link: UpstreamLink, key: string): void => {
    for (const live of link.byRoute.values()) {
      if (live.topic.key === key && live.phase === "asked") taken(live)
    }
  }

  const onEnded = (link: UpstreamLink, key: string): void => {
    for (const live of link.byRoute.values()) {
      if (live.topic.key !== key || live.phase !== "leaving") continue
      if (live.seats.size + live.waiting.size > 0) ask(live)
      else forget(live)
    }
    closeIfEmpty(link)
  }

  /** The topic that a refusal without a key is about: the last one that was asked for. */
  const lastAsked = (link: UpstreamLink, isUser: boolean): Live | undefined => {
    let found: Live | undefined
    for (const live of link.byRoute.values()) {
      if (live.phase !== "asked" || (isUser && live.topic.user === undefined)) continue
      if (found === undefined || live.askedAt >= found.askedAt) found = live
    }
    return found
  }

  const onText = (link: UpstreamLink, text: string): void => {
    const read = protocol.read(text)
    switch (read.kind) {
      case "data":
        return onData(link, read.route, text, read.state)
      case "subscribed":
        return onTaken(link, read.key)
      case "unsubscribed":
        return onEnded(link, read.key)
      case "refused": {
        for (const live of link.byRoute.values()) {
          if (live.topic.key === read.key && live.phase === "asked") return refuse(live, read.message)
        }
        return
      }
      case "limit": {
        if (read.of === "messages") messageBudget.exhaust()
        else most[read.of] = Math.min(most[read.of], read.limit)
        const live = read.of === "messages" ? undefined : lastAsked(link, read.of === "users")
        return live === undefined ? undefined : refuse(live, read.message)
      }
      case "unknown":
        return onUnknown(link, text)
      case "noise":
        return
    }
  }

  /** Frames of an unknown channel go to all callers of the connection, unless they could be about another user. */
  const onUnknown = (link: UpstreamLink, text: string): void => {
    counts.unknown++
    const topics = [...link.byRoute.values()]
    if (topics.some(({ topic }) => topic.user !== undefined)) return
    const told = new Set<SeatState>()
    for (const live of topics) {
      for (const seat of live.seats) {
        if (told.has(seat)) continue
        told.add(seat)
        deliverTo(seat, new Frame(text, live.topic))
      }
    }
  }

  // --- connections

  const nextSuspect = (link: UpstreamLink): void => {
    const [suspect] = link.suspects
    if (suspect !== undefined && suspect.phase === "idle") ask(suspect)
  }

  const onUp = (link: UpstreamLink): void => {
    link.isUp = true
    for (const live of link.byRoute.values()) {
      if (!link.suspects.includes(live)) ask(live)
    }
    nextSuspect(link)
  }

  const onDown = (link: UpstreamLink, lost: SocketLost, wasOpen: boolean): void => {
    link.isUp = false
    if (!wasOpen) return
    countUp(counts.reconnects, lost.reason === "silent" || lost.reason === "stale" ? lost.reason : "closed")
    const at = now()
    const young = [...link.byRoute.values()].filter((live) =>
      !live.isProven && (live.phase === "asked" || live.phase === "taken") && at - live.askedAt < suspectFor
    )
    const [alone] = young
    // one that the upstream had taken is the cause less likely than a connection that is lost again and again
    const strikes = alone?.phase === "taken" ? mostStrikesTaken : mostStrikes
    for (const live of link.byRoute.values()) {
      if (live.phase === "leaving" && live.seats.size + live.waiting.size === 0) forget(live)
      live.phase = "idle"
      live.isFirst = true
      // a refill that is under way goes on; what waits for it belongs to the lost connection
    }
    if (lost.code === 1006 && lost.reason !== "silent" && lost.reason !== "stale" && young.length > 0) {
      const isCulprit = young.length === 1 && alone !== undefined && ++alone.strikes >= strikes
      if (isCulprit) refuse(alone, protocol.invalid(alone.topic))
      link.suspects = [...new Set([...isCulprit ? [] : young, ...link.suspects])]
    }
    closeIfEmpty(link)
    flush()
  }

  const closeIfEmpty = (link: UpstreamLink): void => {
    if (link.byRoute.size > 0) return
    links.delete(link)
    link.isUp = false
    link.fiber?.interruptUnsafe()
  }

  const openLink = (): UpstreamLink => {
    const opened: UpstreamLink = {
      id: ++lastLink,
      byRoute: new Map(),
      suspects: [],
      link: undefined,
      fiber: undefined,
      isUp: false
    }
    links.add(opened)
    const keeping = Effect.flatMap(
      Link.make({
        transport,
        addresses,
        ping: protocol.ping,
        connections: connectionBudget,
        messages: messageBudget,
        onUp: () => onUp(opened),
        onTexts: (texts) => {
          for (const text of texts) onText(opened, text)
          flush()
        },
        onDown: (lost, wasOpen) => onDown(opened, lost, wasOpen)
      }),
      (link) => {
        opened.link = link
        return link.run
      }
    )
    opened.fiber = Fiber.runIn(fork(keeping), scope)
    return opened
  }

  /** The connection that can carry a topic; undefined where there may not be another one. */
  const linkFor = ({ route }: Topic): UpstreamLink | undefined => {
    for (const link of links) {
      if (!link.byRoute.has(route)) return link
    }
    return links.size < limits.connections ? openLink() : undefined
  }

  // --- callers

  const usersOf = (all: Iterable<Live>): Set<string> => {
    const users = new Set<string>()
    for (const { topic } of all) if (topic.user !== undefined) users.add(topic.user)
    return users
  }

  /** Places that are left free for familiar users. */
  const reservedUsers = (users: ReadonlySet<string>): number => {
    let absent = 0
    for (const user of familiar ?? []) if (!users.has(user) && ++absent === mostReserved) break
    return absent
  }

  /** The refusal of a new topic of a caller; undefined where the limits have room for it. */
  const beyond = (caller: string, topic: Topic): string | undefined => {
    const own = callers.get(caller)
    const share = Math.floor(most.subscriptions / Math.max(1, callers.size + (own === undefined ? 1 : 0)))
    const left = most.subscriptions - lives.size
    // the last tenth is for callers who have less than their share
    if (left <= 0 || (left <= most.subscriptions / 10 && (own?.size ?? 0) >= share)) {
      return protocol.refusal("subscriptions", most.subscriptions)
    }
    if (topic.user === undefined) return undefined
    const users = usersOf(lives.values())
    if (!users.has(topic.user)) {
      const left = most.users - users.size
      if (left <= 0 || (familiar?.has(topic.user) === false && left <= reservedUsers(users))) {
        return protocol.refusal("users", most.users)
      }
    }
    const ownUsers = usersOf(own?.keys() ?? [])
    return !ownUsers.has(topic.user) && ownUsers.size >= limits.usersOfCaller
      ? protocol.refusal("users", limits.usersOfCaller)
      : undefined
  }

  const attach = (live: Live, seat: SeatState): void => {
    seat.lives.set(live.topic.key, live)
    const own = callers.get(seat.caller) ?? new Map<Live, number>()
    callers.set(seat.caller, own)
    own.set(live, (own.get(live) ?? 0) + 1)
    live.emptySince = undefined
    live.waiting.add(seat)
    if (live.phase === "taken") admit(live)
  }

  const start = (topic: Topic, key: string): Live | undefined => {
    const link = linkFor(topic)
    if (link === undefined) return undefined
    const live: Live = {
      topic,
      key,
      link,
      seats: new Set(),
      waiting: new Set(),
      phase: "idle",
      askedAt: 0,
      isProven: false,
      strikes: 0,
      isFirst: true,
      liveSince: undefined,
      lastAt: undefined,
      interval: 0,
      silences: 0,
      last: undefined,
      rows: [],
      ids: new Set(),
      refilled: new Set(),
      held: undefined,
      isRefilledAgain: false,
      emptySince: undefined
    }
    lives.set(key, live)
    link.byRoute.set(topic.route, live)
    return live
  }

  /** A topic whose end the upstream has not confirmed yet, and that is wanted again. */
  const leaving = (key: string): Live | undefined => {
    for (const { byRoute } of links) {
      for (const live of byRoute.values()) if (live.key === key && live.phase === "leaving") return live
    }
    return undefined
  }

  const subscribe = (seat: SeatState, seatId: number, topic: Topic): void => {
    const key = topic.isUnshared ? `${topic.key}#${seatId}` : topic.key
    const known = lives.get(key) ?? leaving(key)
    if (known !== undefined) {
      lives.set(key, known)
      attach(known, seat)
    } else {
      const refusal = beyond(seat.caller, topic)
      const live = refusal === undefined ? start(topic, key) : undefined
      if (live === undefined) {
        seat.sink.refused(topic, refusal ?? protocol.refusal("connections", limits.connections))
        touch(seat)
      } else {
        attach(live, seat)
        ask(live)
      }
    }
    flush()
  }

  // --- once a second: grace, silence, responses that do not come

  const resubscribe = (live: Live): void => {
    live.silences++
    live.lastAt = now()
    countUp(counts.reconnects, "stale")
    if (live.silences > 2) {
      live.silences = 0
      live.link.link?.drop("stale")
      return
    }
    send(live.link, live.topic.unsubscribe)
    ask(live)
  }

  const tick = Effect.sync(() => {
    const at = now()
    for (const live of lives.values()) {
      if (live.emptySince !== undefined && at - live.emptySince >= grace) {
        leaveUpstream(live)
        closeIfEmpty(live.link)
        continue
      }
      if (live.phase === "asked" && at - live.askedAt >= responseWithin && live.link.link?.isWaiting() === false) {
        ask(live)
      }
      if (live.phase === "taken" && !live.isProven && at - live.askedAt >= suspectFor) live.isProven = true
      if (
        live.topic.isSteady && live.phase === "taken" && live.lastAt !== undefined && live.interval > 0 &&
        at - live.lastAt > Math.max(silentAtLeast, silentIntervals * live.interval)
      ) resubscribe(live)
    }
    for (const link of links) {
      for (const live of link.byRoute.values()) {
        if (live.phase === "leaving" && at - live.askedAt >= confirmationWithin) onEnded(link, live.topic.key)
      }
      if (link.suspects.length === 0) continue
      link.suspects = link.suspects.filter(({ isProven }) => !isProven)
      nextSuspect(link)
    }
    flush()
  })
  yield* Effect.forkIn(Effect.forever(Effect.andThen(Effect.sleep("1 second"), tick)), scope)

  const hub: Hub = {
    counts,
    join: (caller, sink) => {
      const seatId = ++lastSeat
      const seat: SeatState = { caller, sink, lives: new Map(), isDirty: false }
      seats.add(seat)
      return {
        keys: () => seat.lives.keys(),
        has: ({ key }) => seat.lives.has(key),
        subscribe: (topic) => subscribe(seat, seatId, topic),
        unsubscribe: ({ key }) => {
          const live = seat.lives.get(key)
          if (live !== undefined) detach(live, seat)
          return live !== undefined
        },
        leave: () => {
          for (const live of seat.lives.values()) detach(live, seat)
          seats.delete(seat)
        }
      }
    },
    status: () => {
      const at = now()
      return {
        connections: [...links].filter(({ isUp }) => isUp).length,
        subscriptions: lives.size,
        users: usersOf(lives.values()).size,
        seats: seats.size,
        topics: [...lives.values()].map(({ key, lastAt, phase, seats, topic, waiting }) => ({
          key,
          name: topic.name,
          callers: seats.size + waiting.size,
          age: lastAt === undefined ? undefined : at - lastAt,
          isLive: phase === "taken"
        }))
      }
    }
  }
  return hub
})

/** Rows from the oldest on. */
const inOrder = (rows: ReadonlyArray<Row>): ReadonlyArray<Row> => {
  let isSorted = true
  for (let index = 1; index < rows.length; index++) {
    if ((rows[index]?.time ?? 0) < (rows[index - 1]?.time ?? 0)) isSorted = false
  }
  return isSorted ? rows : rows.toSorted((a, b) => a.time - b.time)
}
