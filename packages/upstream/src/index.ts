/**
 * Every module of `@trigate/upstream` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/upstream/…`: Node then loads only those.
 */

/** Sends the JSON-RPC reads of one caller's batch as one batch to each upstream. */
export * as Batching from "./Batching.ts"

/**
 * The backend of an EVM chain over the chain's nodes. Sends the reads of one caller's batch as a batch, and each
 * transaction at most once.
 */
export * as EvmUpstream from "./EvmUpstream.ts"

/** The only path to upstreams: every call of a declared operation passes through this pipeline. */
export * as Pipeline from "./Pipeline.ts"

/**
 * Access to a store that replicas share, with a deadline. While the store is unreachable, each replica continues
 * without it.
 */
export * as SharedState from "./SharedState.ts"

/** Upstreams and the addresses to which their calls are sent. */
export * as Upstream from "./Upstream.ts"

/** Metrics of calls to upstreams, cached responses and rate limits. */
export * as UpstreamMetrics from "./UpstreamMetrics.ts"

/** The settings of calls to upstreams: addresses, rate limits and deadlines. */
export * as UpstreamSettings from "./UpstreamSettings.ts"

/**
 * The state of an upstream's address: trusted, suspect, ejected, deferred or on a wrong chain. Also updates the metrics
 * of this state.
 */
export * as AddressState from "./attempts/AddressState.ts"

/** Sends a call at most once. */
export * as AtMostOnce from "./attempts/AtMostOnce.ts"

/** One attempt: a single request to one address, within the rate limit, with metrics, a span, and a report to outlier detection. */
export * as Attempt from "./attempts/Attempt.ts"

/**
 * Makes attempts until a read succeeds: fails over to other addresses, retries the same address with backoff, and
 * hedges slow attempts with a second address.
 */
export * as Attempts from "./attempts/Attempts.ts"

/** Finds the addresses of an EVM upstream that are on a wrong chain. */
export * as ChainCheck from "./attempts/ChainCheck.ts"

/** Outlier detection: selects the addresses of an upstream to which calls are sent. */
export * as OutlierDetection from "./attempts/OutlierDetection.ts"

/** The probe of an address: a cheap call that every healthy address of its upstream serves, independent of callers. */
export * as Probe from "./attempts/Probe.ts"

/** The spans of a call: one for the call of an operation, and a child span for each of its attempts. */
export * as Spans from "./attempts/Spans.ts"

/** Versions of account state, so that a response from before an action is not served after that action. */
export * as AccountVersions from "./cache/AccountVersions.ts"

/** `AccountVersions` that all processes with the same Redis and key prefix share. */
export * as AccountVersionsRedis from "./cache/AccountVersionsRedis.ts"

/** Cached responses of this process, limited in bytes; the least recently used one is evicted first. */
export * as CacheStore from "./cache/CacheStore.ts"

/** How old a response may be for the current caller. */
export * as Freshness from "./cache/Freshness.ts"

/** Caches and coalesces reads: serves a read from a cached response, from an equal call in flight, or from upstream. */
export * as ResponseCache from "./cache/ResponseCache.ts"

/** The cached responses that the replicas of a gateway share: one Redis key each, with an expiry. */
export * as ResponseCacheRedis from "./cache/ResponseCacheRedis.ts"

/** Coalesces calls: a call that equals a call in flight receives the response of that call. */
export * as SingleFlight from "./cache/SingleFlight.ts"

/**
 * Sends past blocks or logs to a new subscription, starting at a block that the caller chose. Sends new notifications
 * only afterwards.
 */
export * as CatchUp from "./evm/CatchUp.ts"

/**
 * The subscriptions of all callers to one EVM chain. One task follows the chain's newest block (its head) for all of
 * them, and runs while there are subscriptions.
 */
export * as EvmFeed from "./evm/EvmFeed.ts"

/** The distinct subscriptions to one chain, the callers of each subscription, and the delivery of notifications. */
export * as FeedTopics from "./evm/FeedTopics.ts"

/**
 * Storage of the filters of `eth_newFilter` and similar methods: in this process, or in a Redis that the replicas of a
 * gateway share.
 */
export * as FilterStore from "./evm/FilterStore.ts"

/**
 * `eth_newFilter` and similar methods, implemented by the gateway. A filter stores the last block that its client has
 * read, so any node can serve the next poll. After a reorg, removed logs are returned again with `removed: true`.
 */
export * as Filters from "./evm/Filters.ts"

/** The methods that the gateway derives from reads of an EVM node: logs of any range, filters and subscriptions. */
export * as GatewayReads from "./evm/GatewayReads.ts"

/**
 * Tracks the newest blocks of a chain without gaps, based on the newest block (head) that a node reports. Detects
 * reorgs.
 */
export * as HeadChain from "./evm/HeadChain.ts"

/**
 * The source of a chain's newest block (head): a subscription to the node if the node has a WebSocket; otherwise
 * polling within the node's rate limit. While the subscription is silent, the source also polls.
 */
export * as HeadSource from "./evm/HeadSource.ts"

/** Tests whether a block's bloom filter can match a selection of logs (yellow paper, 4.3.1). */
export * as LogBloom from "./evm/LogBloom.ts"

/** Delivers the logs of a chain's newest blocks to the chain's subscriptions. */
export * as LogDelivery from "./evm/LogDelivery.ts"

/** Splits a query of logs into smaller queries, by blocks, by addresses and by topics, and joins their logs. */
export * as LogParts from "./evm/LogParts.ts"

/**
 * `eth_getLogs` for any range and filter. The query is split into parts that the nodes serve. The parts are read in
 * parallel, and their logs are joined in order.
 */
export * as LogSearch from "./evm/LogSearch.ts"

/** Reads of blocks that the gateway itself needs to search logs, to serve filters, and to follow new blocks. */
export * as NodeReads from "./evm/NodeReads.ts"

/** Enforces one rate limit: a call starts if there is capacity; otherwise it waits in a fair queue. */
export * as FairQueue from "./limits/FairQueue.ts"

/** Paces the refreshes of cached responses at the refill rate of a rate limit. */
export * as Pacer from "./limits/Pacer.ts"

/**
 * Enforces the rate limit of each upstream: weight per minute for the official API, request units per second for a
 * node's plan.
 */
export * as RateLimiter from "./limits/RateLimiter.ts"

/** `RateLimiter` whose limits are shared by all processes with the same Redis and key prefix. */
export * as RateLimiterRedis from "./limits/RateLimiterRedis.ts"

/** The use of a rate limit in a sliding window: in total, and by caller. */
export * as RateWindow from "./limits/RateWindow.ts"

/**
 * Shares upstream subscriptions between callers. There is one upstream subscription for each distinct topic (type and
 * parameters). The subscriptions use as few connections as the upstream's limits and the format of its frames permit.
 */
export * as Hub from "./streams/Hub.ts"

/** A persistent connection to an upstream: reconnects after a loss, and pings while it is idle. */
export * as Link from "./streams/Link.ts"

/**
 * How much of an upstream's stream limits all replicas use together. The limits apply to an IP address, which the
 * replicas share, and each replica has its own connections.
 */
export * as ReplicaUse from "./streams/ReplicaUse.ts"

/**
 * `ReplicaUse` through a Redis that the replicas share. Each replica stores its use of the stream limits in one Redis
 * hash. A single script stores the use of one replica and returns the use of the others.
 */
export * as ReplicaUseRedis from "./streams/ReplicaUseRedis.ts"

/**
 * `ReplicaUse` through a Postgres that the replicas share. Each replica stores its use of the stream limits in one row.
 * A single statement stores the use of one replica and returns the use of the others.
 */
export * as ReplicaUseSql from "./streams/ReplicaUseSql.ts"

/** Decides which rows of a frame are new. Snapshots, replays and queries repeat rows that a connection already sent. */
export * as RowSet from "./streams/RowSet.ts"

/** A caller's seat in the stream hub (the subscriptions of one connection), and the destination of their frames. */
export * as Seat from "./streams/Seat.ts"

/** The transport of streams: WebSockets with text messages. */
export * as SocketTransport from "./streams/SocketTransport.ts"

/** The counters of a stream hub, by topic name. */
export * as StreamCounts from "./streams/StreamCounts.ts"

/** The upstream's limits on streams. The gateway enforces them itself, before the upstream would refuse a request. */
export * as StreamLimits from "./streams/StreamLimits.ts"

/** The metrics of streams from upstreams. */
export * as StreamMetrics from "./streams/StreamMetrics.ts"

/** The settings of streams from upstreams: the venue's limits for an IP address, and how callers share them. */
export * as StreamSettings from "./streams/StreamSettings.ts"

/** Chain-independent subscriptions, as the stream hub handles them. */
export * as Topic from "./streams/Topic.ts"

/**
 * Removes the endpoint key (the secret in the path of an address) from the responses of the server at that address,
 * also if the key is escaped.
 */
export * as Concealment from "./transport/Concealment.ts"

/** The transport: sends one HTTP request. On failure, it reports whether any byte may have reached the peer. */
export * as HttpTransport from "./transport/HttpTransport.ts"

/** The transport over any Effect `HttpClient`: for embedding, and for tests that replace the client. */
export * as HttpTransportHttpClient from "./transport/HttpTransportHttpClient.ts"

/** The transport over undici's dispatcher, the fastest HTTP client of Node, with a pool of connections per origin. */
export * as HttpTransportUndici from "./transport/HttpTransportUndici.ts"

/**
 * A response as received from an address, but without the address's endpoint key, and with its `Retry-After` in
 * seconds.
 */
export * as ReceivedResponse from "./transport/ReceivedResponse.ts"

/** Layers of the transport: over Effect's fetch client, or over undici, which is loaded only if used. */
export * as TransportLayers from "./transport/TransportLayers.ts"
