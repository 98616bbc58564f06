/**
 * Every module of `@trigate/upstream` that needs no optional peer, as a namespace.
 *
 * Written by `npm run docs:generate`. Code that starts often imports the modules themselves, such as
 * `@trigate/upstream/…`: Node then loads only those.
 */

/**
 * Sends the JSON-RPC reads of one caller's batch as one batch to each upstream, and cheap reads of different callers together where the
 * upstream takes that; see {@link SharedBatches}.
 */
export * as Batching from "./Batching.ts"

/** The nodes of an EVM chain as a backend: reads in batches where their caller sent them so, transactions at most once. */
export * as EvmUpstream from "./EvmUpstream.ts"

/** The only path to upstreams: every call of a declared operation passes through here, step by step. */
export * as Pipeline from "./Pipeline.ts"

/** Sends the cheap reads of different callers that arrive in one turn of the event loop as one JSON-RPC batch. */
export * as SharedBatches from "./SharedBatches.ts"

/** Asks a store that replicas share, within a deadline. While the store is unreachable, each replica continues alone. */
export * as SharedState from "./SharedState.ts"

/** Where a kind of upstream is: its label, and its addresses in order of preference. */
export * as Upstream from "./Upstream.ts"

/** Metrics of calls to upstreams, cached responses and rate limits. */
export * as UpstreamMetrics from "./UpstreamMetrics.ts"

/** The settings of what reaches upstreams: addresses, rate limits and deadlines. */
export * as UpstreamSettings from "./UpstreamSettings.ts"

/** The state of an address: trusted, suspect, ejected, deferred or on a wrong chain, with its gauge and counters. */
export * as AddressState from "./attempts/AddressState.ts"

/** Sends a call at most once. */
export * as AtMostOnce from "./attempts/AtMostOnce.ts"

/** One attempt: one request to one address, within the rate limit, counted, and reported to outlier detection. */
export * as Attempt from "./attempts/Attempt.ts"

/** The metrics of attempts, by upstream, operation and outcome. */
export * as AttemptMetrics from "./attempts/AttemptMetrics.ts"

/**
 * Makes attempts until a read succeeds: at one address after the other, at the same one again a little later, at a
 * second one beside a slow one.
 */
export * as Attempts from "./attempts/Attempts.ts"

/** Finds the addresses of an EVM upstream that are on another chain than the rest. */
export * as ChainCheck from "./attempts/ChainCheck.ts"

/** Outlier detection: which addresses of an upstream a call should go to. */
export * as OutlierDetection from "./attempts/OutlierDetection.ts"

/** The probe of an address: a cheap call that every healthy address of its upstream serves, independent of callers. */
export * as Probe from "./attempts/Probe.ts"

/** The spans of a call: one for the call of an operation, and below it one for each of its attempts. */
export * as Spans from "./attempts/Spans.ts"

/** Versions of the state of accounts: a response that was read before an action changed an account is not served after it. */
export * as AccountVersions from "./cache/AccountVersions.ts"

/** `AccountVersions` that all processes with the same Redis and prefix share. */
export * as AccountVersionsRedis from "./cache/AccountVersionsRedis.ts"

/** Cached responses of this process, bounded by bytes; the least recently used one is evicted first. */
export * as CacheStore from "./cache/CacheStore.ts"

/** Serves reads without a call upstream: from a cached response, otherwise from an equal call in flight. */
export * as ResponseCache from "./cache/ResponseCache.ts"

/** The cached responses that the replicas of a gateway share: one Redis key each, expiring when the response is of no use. */
export * as ResponseCacheRedis from "./cache/ResponseCacheRedis.ts"

/** Coalesces calls: a caller with a call equal to one in flight shares its response. */
export * as SingleFlight from "./cache/SingleFlight.ts"

/** What a subscription gets before the notifications that follow: the blocks or the logs since a block of its caller's choice. */
export * as CatchUp from "./evm/CatchUp.ts"

/** The subscriptions of all callers to one EVM chain, from one follower of its heads. It runs while there are subscriptions. */
export * as EvmFeed from "./evm/EvmFeed.ts"

/** The distinct subscriptions to one chain, each with its callers, and the notifications that are sent to them. */
export * as FeedTopics from "./evm/FeedTopics.ts"

/** Where the filters of `eth_newFilter` and its kin are stored: in this process, or in a Redis that the replicas of a gateway share. */
export * as FilterStore from "./evm/FilterStore.ts"

/**
 * `eth_newFilter` and its kin, by the gateway: a filter is a position in the chain, from which the reads of blocks and logs find what
 * is new. Any node can answer the next poll, and after a reorganisation the logs that are gone come again with `removed: true`.
 */
export * as Filters from "./evm/Filters.ts"

/** What the gateway derives from the reads of an EVM node: logs of any range, filters and subscriptions. */
export * as GatewayReads from "./evm/GatewayReads.ts"

/** The newest blocks of a chain as a node's heads show them: without a gap, and with their reorganisations. */
export * as HeadChain from "./evm/HeadChain.ts"

/**
 * Where the heads of a chain come from: the node's own subscription where it has a WebSocket, polling within its budget where it has
 * HTTP only, or while its subscription is silent.
 */
export * as HeadSource from "./evm/HeadSource.ts"

/** What the bloom filter of a block's logs says of a selection (yellow paper, 4.3.1). */
export * as LogBloom from "./evm/LogBloom.ts"

/** The logs of a chain's newest blocks for its subscriptions. */
export * as LogDelivery from "./evm/LogDelivery.ts"

/** `eth_getLogs` of any range: split by what the nodes serve, read in parallel, joined in order. */
export * as LogSearch from "./evm/LogSearch.ts"

/** The reads of a node's blocks that the gateway makes for logs, filters and heads. */
export * as NodeReads from "./evm/NodeReads.ts"

/** Enforces one limit: a call starts when there is room, and waits in a fair queue otherwise. */
export * as FairQueue from "./limits/FairQueue.ts"

/** How holders share something limited: weight in a window, subscriptions, users, messages. */
export * as FairShare from "./limits/FairShare.ts"

/** Paces the refreshes of cached responses at the rate at which a rate limit flows back. */
export * as Pacer from "./limits/Pacer.ts"

/** Keeps each upstream's rate limit: weight a minute of the official API, request units a second of a node's plan. */
export * as RateLimiter from "./limits/RateLimiter.ts"

/** `RateLimiter` whose limits are shared by all processes with the same Redis and prefix. */
export * as RateLimiterRedis from "./limits/RateLimiterRedis.ts"

/** The use of a rate limit: by all calls together, and by each caller. */
export * as RateWindow from "./limits/RateWindow.ts"

/**
 * Shares the subscriptions of many callers: one upstream subscription for each distinct topic, on as few connections as the
 * upstream's limits and its frames allow.
 */
export * as Hub from "./streams/Hub.ts"

/** One persistent connection to an upstream: reconnected after a loss, and watched while it is quiet. */
export * as Link from "./streams/Link.ts"

/** The place of a caller in the hub, and where its frames go. */
export * as Seat from "./streams/Seat.ts"

/** How a stream reaches an upstream: WebSockets that carry texts. */
export * as SocketTransport from "./streams/SocketTransport.ts"

/** What the hub counts, by the names of topics. */
export * as StreamCounts from "./streams/StreamCounts.ts"

/** What an upstream allows its streams, as budgets that are spent before the upstream refuses. */
export * as StreamLimits from "./streams/StreamLimits.ts"

/** The metrics of streams from upstreams. */
export * as StreamMetrics from "./streams/StreamMetrics.ts"

/** The settings of streams from upstreams: what the venue allows an IP address, and how callers share it. */
export * as StreamSettings from "./streams/StreamSettings.ts"

/** What the hub knows of a subscription, whatever the chain. */
export * as Topic from "./streams/Topic.ts"

/** Takes the endpoint key of an address out of what its server writes, however it spells the key. */
export * as Concealment from "./transport/Concealment.ts"

/** The transport: sends the bytes of one HTTP request, and says on failure whether any byte may have reached the peer. */
export * as HttpTransport from "./transport/HttpTransport.ts"

/** The transport over any Effect `HttpClient`: for embedding, and for tests that replace the client. */
export * as HttpTransportHttpClient from "./transport/HttpTransportHttpClient.ts"

/** The transport over undici's dispatcher, the fastest HTTP client of Node, with a pool of connections per origin. */
export * as HttpTransportUndici from "./transport/HttpTransportUndici.ts"

/** A response as received from an address: without the endpoint key of the address, and with its `Retry-After` in seconds. */
export * as ReceivedResponse from "./transport/ReceivedResponse.ts"

/** The transport in one layer: over Effect's fetch client, or over undici, which only the program that asks for it loads. */
export * as TransportLayers from "./transport/TransportLayers.ts"
