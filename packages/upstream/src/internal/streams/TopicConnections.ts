/** The upstream connections of topics. They are opened on demand; after a loss, their topics are subscribed again. */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Redacted from "effect/Redacted"
import * as Link from "../../streams/Link.ts"
import type { SocketLost, SocketTransport } from "../../streams/SocketTransport.ts"
import { countUp } from "../../streams/StreamCounts.ts"
import type { Counts } from "../../streams/StreamCounts.ts"
import type { MinuteBudget } from "../../streams/StreamLimits.ts"
import type { StreamProtocol, Topic } from "../../streams/Topic.ts"
import type { Deliveries } from "./Deliveries.ts"
import { isWanted } from "./SharedTopic.ts"
import type { SharedTopic, TopicConnection } from "./SharedTopic.ts"
import * as Suspects from "./Suspects.ts"
import type { TopicRegistry } from "./TopicRegistry.ts"

/** The upstream connections of a stream hub. */
export interface TopicConnections {
  readonly open: ReadonlySet<TopicConnection>
  /**
   * Returns a connection that can carry a topic; `undefined` if a further connection would exceed the limit of
   * connections.
   */
  readonly find: (topic: Topic) => TopicConnection | undefined
  /** Subscribes a topic at the upstream, as soon as its connection is open. */
  readonly ask: (shared: SharedTopic) => void
  /** Unsubscribes a topic at the upstream. */
  readonly leave: (shared: SharedTopic) => void
  /** Unsubscribes a topic and subscribes it again. */
  readonly askAgain: (shared: SharedTopic) => void
  /** Records that the upstream can no longer send frames of a topic. */
  readonly left: (shared: SharedTopic) => void
  /**
   * Subscribes the next topic that may have caused a loss (a suspect), and clears suspects that the upstream has
   * accepted.
   */
  readonly trySuspects: (connection: TopicConnection) => void
  readonly closeIfEmpty: (connection: TopicConnection) => void
}

/** The dependencies of upstream connections. */
export interface Options {
  readonly transport: SocketTransport["Service"]
  readonly addresses: () => ReadonlyArray<Redacted.Redacted>
  readonly protocol: StreamProtocol
  /** Returns how many further connections this process may open, given the number that it has. */
  readonly left: (open: number) => number
  /** Returns the number of connections of other replicas. */
  readonly others: () => number
  readonly newConnections: MinuteBudget
  readonly messages: MinuteBudget
  readonly counts: Counts
  readonly registry: TopicRegistry
  readonly deliveries: Deliveries
  readonly now: () => number
  /** Runs an effect in the background, and interrupts it when the stream hub ends. */
  readonly fork: (effect: Effect.Effect<never>) => Fiber.Fiber<never>
  readonly onText: (connection: TopicConnection, text: string) => void
}

/** The HTTP status with which an upstream refuses a further connection. */
const tooMany = 429

/** Makes the upstream connections of a stream hub. */
export const make = (options: Options): TopicConnections => {
  const { addresses, counts, deliveries, fork, messages, newConnections, now, protocol, registry, transport } = options
  const open = new Set<TopicConnection>()
  let lastId = 0

  const send = ({ isUp, link }: TopicConnection, text: string, onSent?: () => void): void => {
    if (isUp) link?.send(text, onSent)
  }

  const ask: TopicConnections["ask"] = (shared) => {
    if (!shared.connection.isUp) return
    shared.phase = "asked"
    shared.askedAt = now()
    shared.isFirst = true
    // the message may be delayed by the message limit
    send(shared.connection, shared.topic.subscribe, () => {
      shared.askedAt = now()
    })
  }

  const closeIfEmpty: TopicConnections["closeIfEmpty"] = (connection) => {
    if (connection.byRoute.size > 0) return
    open.delete(connection)
    connection.isUp = false
    connection.fiber?.interruptUnsafe()
  }

  const trySuspects: TopicConnections["trySuspects"] = (connection) => {
    for (const cleared of connection.suspects.filter(({ isProven }) => isProven)) {
      if (cleared.phase === "idle") ask(cleared)
    }
    connection.suspects = connection.suspects.filter(({ isProven }) => !isProven)
    const [suspect] = connection.suspects
    if (suspect?.phase === "idle") ask(suspect)
  }

  const onUp = (connection: TopicConnection): void => {
    connection.isUp = true
    for (const shared of connection.byRoute.values()) {
      if (!connection.suspects.includes(shared)) ask(shared)
    }
    trySuspects(connection)
  }

  /** Refuses the topics of a new connection if the upstream accepts no further connection. */
  const onRefused = (connection: TopicConnection): void => {
    const up = [...open].filter(({ isUp }) => isUp).length
    // if this is the only connection, the limit on new connections may be the reason, so the attempts continue
    if (up === 0 || connection.heardAt !== undefined) return
    for (const shared of connection.byRoute.values()) {
      registry.refuse(shared, protocol.refusal("connections", up + options.others()))
    }
    closeIfEmpty(connection)
    deliveries.flush()
  }

  const onDown = (connection: TopicConnection, lost: SocketLost, wasOpen: boolean): void => {
    connection.isUp = false
    if (!wasOpen) return lost.status === tooMany ? onRefused(connection) : undefined
    countUp(counts.reconnects, lost.reason === "silent" || lost.reason === "stale" ? lost.reason : "closed")
    const suspects = Suspects.young(connection, lost, now())
    const culprit = Suspects.culprit(suspects)
    for (const shared of connection.byRoute.values()) {
      if (shared.phase === "leaving" && !isWanted(shared)) registry.forget(shared)
      shared.phase = "idle"
      shared.lostAt = connection.heardAt
      shared.isFirst = true
    }
    if (culprit === undefined) Suspects.add(connection, suspects)
    else registry.refuse(culprit, protocol.invalid(culprit.topic), true)
    closeIfEmpty(connection)
    deliveries.flush()
  }

  const connect = (): TopicConnection => {
    const connection: TopicConnection = {
      id: ++lastId,
      byRoute: new Map(),
      suspects: [],
      link: undefined,
      fiber: undefined,
      isUp: false,
      heardAt: undefined
    }
    open.add(connection)
    const running = Effect.flatMap(
      Link.make({
        transport,
        addresses,
        ping: protocol.ping,
        connections: newConnections,
        messages,
        onUp: () => onUp(connection),
        onTexts: (texts) => {
          connection.heardAt = now()
          for (const text of texts) options.onText(connection, text)
          deliveries.flush()
        },
        onDown: (lost, wasOpen) => onDown(connection, lost, wasOpen)
      }),
      (link) => {
        connection.link = link
        return link.run
      }
    )
    connection.fiber = fork(running)
    return connection
  }

  return {
    open,
    ask,
    closeIfEmpty,
    trySuspects,
    find: ({ route }) => {
      for (const connection of open) if (!connection.byRoute.has(route)) return connection
      return options.left(open.size) > 0 ? connect() : undefined
    },
    leave: (shared) => {
      if (shared.phase === "idle" || !shared.connection.isUp) registry.forget(shared)
      else {
        // late frames may still arrive, so the route stays reserved until the upstream has confirmed the unsubscription
        shared.phase = "leaving"
        shared.askedAt = now()
        send(shared.connection, shared.topic.unsubscribe)
      }
      closeIfEmpty(shared.connection)
    },
    askAgain: (shared) => {
      send(shared.connection, shared.topic.unsubscribe)
      ask(shared)
    },
    left: (shared) => {
      if (isWanted(shared)) ask(shared)
      else registry.forget(shared)
      closeIfEmpty(shared.connection)
    }
  }
}
