/**
 * Every module of `@trigate/upstream` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/upstream/…`: Node then loads only those.
 */

/** Sends JSON-RPC reads as batches: the reads of one caller's batch, and cheap reads of different callers. */
export * as Batching from "./Batching.ts"

/**
 * The only path to upstreams: every call of a declared operation passes through this pipeline. Also the backend of an
 * EVM chain over the chain's nodes.
 */
export * as Pipeline from "./Pipeline.ts"

/**
 * Access to a store that replicas share, with a deadline. While the store is unreachable, each replica continues
 * without it.
 */
export * as SharedState from "./SharedState.ts"

/** Upstreams and the addresses to which their calls are sent, with the settings and the metrics of these calls. */
export * as Upstream from "./Upstream.ts"

/**
 * The attempts of a call. A read fails over, retries with backoff and hedges until an attempt succeeds; a signed action
 * is sent at most once.
 */
export * as Attempts from "./attempts/Attempts.ts"

/** Outlier detection: selects the addresses of an upstream to which calls are sent. */
export * as OutlierDetection from "./attempts/OutlierDetection.ts"

/**
 * Caches and coalesces reads: serves a read from a cached response, from an equal call in flight, or from upstream.
 * Replicas can share responses and the versions of accounts through Redis.
 */
export * as ResponseCache from "./cache/ResponseCache.ts"

/**
 * The subscriptions of all callers to one EVM chain, and the methods that the gateway derives from a node's reads. One
 * task follows the chain's head for all callers.
 */
export * as EvmFeed from "./evm/EvmFeed.ts"

/**
 * `eth_newFilter` and similar methods, implemented by the gateway, and the distinct subscriptions to a chain with their
 * callers.
 */
export * as Filters from "./evm/Filters.ts"

/**
 * The newest blocks (heads) of a chain, without gaps: their source, a subscription or polling, and the detection of
 * reorganizations.
 */
export * as Heads from "./evm/Heads.ts"

/**
 * `eth_getLogs` for any range and filter. The query is split into parts that the nodes serve; the parts are read at the
 * same time and joined.
 */
export * as LogSearch from "./evm/LogSearch.ts"

/**
 * Enforces the rate limit of each upstream: a call starts if there is capacity; otherwise it waits in a fair queue.
 * Refreshes of cached responses are paced.
 */
export * as RateLimiter from "./limits/RateLimiter.ts"

/** `RateLimiter` whose limits are shared by all processes with the same Redis and key prefix. */
export * as RateLimiterRedis from "./limits/RateLimiterRedis.ts"

/** The use of a rate limit in a sliding window: in total, and by caller. */
export * as RateWindow from "./limits/RateWindow.ts"

/** Shares upstream subscriptions between callers. There is one upstream subscription for each distinct topic. */
export * as Hub from "./streams/Hub.ts"

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

/**
 * The transport of streams: WebSockets with text messages, and connections that reconnect after a loss and ping while
 * they are idle.
 */
export * as SocketTransport from "./streams/SocketTransport.ts"

/** The settings and metrics of streams from upstreams, and the upstream's limits, which the gateway enforces itself. */
export * as StreamSettings from "./streams/StreamSettings.ts"

/**
 * Chain-independent subscriptions (topics), as the stream hub handles them: their callers, their latest rows, and the
 * decision which rows are new.
 */
export * as Topic from "./streams/Topic.ts"

/**
 * The transport: sends one HTTP request. On failure, it reports whether any byte may have reached the peer. Responses
 * are without the endpoint key of their address.
 */
export * as HttpTransport from "./transport/HttpTransport.ts"

/** The transport over undici's dispatcher, the fastest HTTP client of Node, with a pool of connections per origin. */
export * as HttpTransportUndici from "./transport/HttpTransportUndici.ts"
