/** The distinct subscriptions to one chain, the callers of each subscription, and the delivery of notifications. */
import { Overloaded } from "@trigate/domain/errors/CallerError"
import { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import type { EvmFrame, EvmSink, Interest } from "@trigate/domain/evm/EvmSubscriptions"
import { selectionIn } from "@trigate/domain/evm/LogMatch"
import type { LogSelection } from "@trigate/domain/evm/LogMatch"
import * as JsonRpc from "@trigate/domain/operations/JsonRpc"
import * as SecureRandom from "effect/crypto/SecureRandom"

/** A subscription that callers share. */
export interface FeedTopic<out Wanted extends Interest = Interest> {
  readonly key: string
  readonly id: string
  readonly interest: Wanted
  readonly selection: LogSelection
  readonly sinks: Set<EvmSink>
  /** The number of the block after which the notifications of the subscription begin. */
  since: bigint
  /** New results, which wait until older results have been sent; `undefined` if new results are sent immediately. */
  waiting: Array<string> | undefined
}

/** The type and parameters of a subscription of one kind, such as `newHeads` or `logs`. */
export type InterestIn<Kind extends Interest["kind"]> = Extract<Interest, { readonly kind: Kind }>

/** The subscriptions to one chain. */
export interface FeedTopics {
  readonly ofKind: <Kind extends Interest["kind"]>(kind: Kind) => ReadonlyArray<FeedTopic<InterestIn<Kind>>>
  readonly size: () => number
  /**
   * Adds a caller to a shared subscription with an equal interest (type and parameters), or makes a new one. If the
   * caller is already in that subscription, adds the caller to a second subscription with its own ID.
   */
  readonly join: (interest: Interest, sink: EvmSink, since: bigint) => FeedTopic
  readonly leave: (topic: FeedTopic, sink: EvmSink) => void
  /** Sends a result to the callers of a subscription, after all earlier results. */
  readonly emit: (topic: FeedTopic, result: string) => void
  /** Sends older results, and then the new results that waited for them. */
  readonly release: (topic: FeedTopic, older: ReadonlyArray<string>) => void
  /** Ends a subscription with a JSON-RPC error object. */
  readonly fail: (topic: FeedTopic, error: string) => void
  /** Ends the subscriptions of one kind, because blocks from `first` on were missed or replaced. */
  readonly lose: (kind: Interest["kind"], first: bigint) => void
  /** Flushes the connections to which results were sent since the last flush. */
  readonly flush: () => void
}

/** Maximum number of new results of a subscription that wait for past ones to be sent. */
const mostWaiting = 10_000

/** Makes a random ID of a subscription or filter. */
export const newId = (): string =>
  `0x${[...SecureRandom.randomBytesUnsafe(16)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`

/**
 * Returns the name under which callers share equal subscriptions. Returns `undefined` for a subscription that is not
 * shared: one that begins at a block chosen by its caller, or that reports positions.
 */
const sharedName = (interest: Interest): string | undefined => {
  if ("fromBlock" in interest && interest.fromBlock !== undefined) return undefined
  if (interest.kind !== "logs") return interest.kind
  return interest.hasPositions === true ? undefined : `logs ${JSON.stringify(interest.filter).toLowerCase()}`
}

/** Makes an empty set of subscriptions to the chain of an upstream. */
export const make = (upstream: string): FeedTopics => {
  const topics = new Map<string, FeedTopic>()
  let touched = new Set<EvmSink>()

  const send = ({ id, sinks }: FeedTopic, member: "error" | "result", text: string): void => {
    const frame: EvmFrame = {
      text: `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${id}","${member}":${text}}}`,
      wire: undefined
    }
    for (const sink of sinks) {
      sink.deliver(frame)
      touched.add(sink)
    }
  }

  const fail: FeedTopics["fail"] = (topic, error) => {
    send(topic, "error", error)
    topic.sinks.clear()
    topics.delete(topic.key)
  }

  const isKind = <Kind extends Interest["kind"]>(topic: FeedTopic, kind: Kind): topic is FeedTopic<InterestIn<Kind>> =>
    topic.interest.kind === kind

  const findKey = (name: string, sink: EvmSink): string => {
    let variant = 0
    while (topics.get(`${name}#${variant}`)?.sinks.has(sink) === true) variant++
    return `${name}#${variant}`
  }

  const ofKind: FeedTopics["ofKind"] = (kind) => [...topics.values()].filter((topic) => isKind(topic, kind))

  return {
    ofKind,
    size: () => topics.size,
    join: (interest, sink, since) => {
      const name = sharedName(interest)
      const id = newId()
      const key = name === undefined ? id : findKey(name, sink)
      const topic: FeedTopic = topics.get(key) ?? {
        key,
        id,
        interest,
        selection: selectionIn(interest.kind === "logs" ? interest.filter : {}),
        sinks: new Set(),
        since,
        waiting: undefined
      }
      topics.set(key, topic)
      topic.sinks.add(sink)
      return topic
    },
    leave: (topic, sink) => {
      topic.sinks.delete(sink)
      if (topic.sinks.size === 0) topics.delete(topic.key)
    },
    emit: (topic, result) => {
      if (topic.waiting === undefined) send(topic, "result", result)
      else if (topic.waiting.push(result) > mostWaiting) {
        const detail = `More than ${mostWaiting} notifications wait for older ones: subscribe again`
        fail(topic, JsonRpc.errorObject(new Overloaded({ retryAfter: 1, detail })))
      }
    },
    release: (topic, older) => {
      const { waiting = [] } = topic
      topic.waiting = undefined
      for (const result of [...older, ...waiting]) send(topic, "result", result)
    },
    fail,
    lose: (kind, first) => {
      const detail = `Blocks from ${first} on were missed or replaced: subscribe again with fromBlock 0x${
        first.toString(16)
      }`
      const error = JsonRpc.errorObject(new UpstreamUnavailable({ upstream, attempts: 1, detail }))
      for (const topic of ofKind(kind)) fail(topic, error)
    },
    flush: () => {
      const sinks = touched
      touched = new Set()
      for (const sink of sinks) sink.flush()
    }
  }
}
