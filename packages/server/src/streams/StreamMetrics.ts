/** The metrics of streams. Frames are counted in plain numbers and published to the registry once a second. */

import type { SharedStreams } from "@trigate/trading/streams/Streams"
import type { FeedStatus } from "@trigate/upstream/evm/EvmFeed"
import type * as Context from "effect/Context"
import type * as Metric from "effect/Metric"
import { metrics } from "../process/Metrics.ts"

type Series = (value: string) => Metric.Metric<number, unknown>

/** Makes a function that publishes the increase of each named count since the previous call. */
const growing = (series: Series, context: Context.Context<never>) => {
  const seen = new Map<string, number>()
  return (counts: ReadonlyMap<string, number>): void => {
    for (const [name, count] of counts) {
      const grown = count - (seen.get(name) ?? 0)
      if (grown === 0) continue
      seen.set(name, count)
      series(name).updateUnsafe(grown, context)
    }
  }
}

/** The metrics of one gateway's streams, in the registry of a context. */
export const make = (context: Context.Context<never>) => {
  const sockets = metrics.streamSockets.series({})
  const connections = metrics.streamConnections.series({})
  const subscriptions = metrics.streamSubscriptions.series({})
  const users = metrics.streamUsers.series({})
  const others = {
    connections: metrics.streamOtherReplicas.series({ limit: "connections" }),
    subscriptions: metrics.streamOtherReplicas.series({ limit: "subscriptions" }),
    users: metrics.streamOtherReplicas.series({ limit: "users" })
  }
  const opened = metrics.streamSocketsOpened.series({})
  const conflated = metrics.streamConflated.series({})
  const unknown = metrics.streamUnknownFrames.series({})
  const frames = growing((channel) => metrics.streamFrames.series({ channel }), context)
  const deliveries = growing((channel) => metrics.streamDeliveries.series({ channel }), context)
  const gaps = growing((channel) => metrics.streamGaps.series({ channel }), context)
  const refilled = growing((channel) => metrics.streamRefilled.series({ channel }), context)
  const collisions = growing((channel) => metrics.streamRowCollisions.series({ channel }), context)
  const reconnects = growing((cause) => metrics.streamReconnects.series({ cause }), context)
  const closed = growing((reason) => metrics.streamClosed.series({ reason }), context)
  const reorganisations = growing((chain) => metrics.evmReorganisations.series({ chain }), context)
  const polls = growing((chain) => metrics.evmPolls.series({ chain }), context)
  const logFailures = growing((chain) => metrics.evmLogFailures.series({ chain }), context)
  const followed = new Set<string>()
  const closings = new Map<string, number>()
  let unknownSeen = 0
  return {
    opened: () => opened.updateUnsafe(1, context),
    closed: (reason: string) => void closings.set(reason, (closings.get(reason) ?? 0) + 1),
    conflated: (count: number) => {
      if (count > 0) conflated.updateUnsafe(count, context)
    },
    /** Publishes the counts since the previous call. */
    publish: (
      streams: SharedStreams | undefined,
      open: number,
      feeds: ReadonlyArray<FeedStatus>
    ): void => {
      sockets.updateUnsafe(open, context)
      closed(closings)
      reorganisations(new Map(feeds.map((feed) => [feed.chain, feed.reorganisations])))
      polls(new Map(feeds.map((feed) => [feed.chain, feed.polls])))
      logFailures(new Map(feeds.map((feed) => [feed.chain, feed.logFailures])))
      for (const { age, chain, head, source, subscriptions } of feeds) {
        // a chain has no series before its first subscription
        if (source === "idle" && !followed.has(chain)) continue
        followed.add(chain)
        metrics.evmSubscriptions.series({ chain }).updateUnsafe(subscriptions, context)
        if (head !== undefined) metrics.evmHead.series({ chain }).updateUnsafe(head, context)
        metrics.evmHeadAge.series({ chain }).updateUnsafe((age ?? 0) / 1000, context)
      }
      if (streams === undefined) return
      const status = streams.status()
      connections.updateUnsafe(status.connections, context)
      subscriptions.updateUnsafe(status.subscriptions, context)
      users.updateUnsafe(status.users, context)
      others.connections.updateUnsafe(status.others.connections, context)
      others.subscriptions.updateUnsafe(status.others.subscriptions, context)
      others.users.updateUnsafe(status.others.users.length, context)
      frames(streams.counts.frames)
      deliveries(streams.counts.deliveries)
      gaps(streams.counts.gaps)
      refilled(streams.counts.refilled)
      collisions(streams.counts.collisions)
      reconnects(streams.counts.reconnects)
      if (streams.counts.unknown > unknownSeen) unknown.updateUnsafe(streams.counts.unknown - unknownSeen, context)
      unknownSeen = streams.counts.unknown
      const oldest = new Map<string, number>()
      for (const topic of status.topics) {
        if (topic.age !== undefined) oldest.set(topic.name, Math.max(oldest.get(topic.name) ?? 0, topic.age / 1000))
      }
      for (const [channel, seconds] of oldest) {
        metrics.streamAge.series({ channel }).updateUnsafe(seconds, context)
      }
    }
  }
}
