/**
 * Every public module of `@trigate/upstream` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/upstream/…`: Node then loads only those.
 */

/** The only path to upstreams: every call of a declared operation passes through this pipeline. */
export * as Pipeline from "./Pipeline.ts"

/** Outlier detection: selects the addresses of an upstream to which calls are sent. */
export * as OutlierDetection from "./attempts/OutlierDetection.ts"

/** The versions of accounts: each change of an account, such as an accepted action, gives it a new one. */
export * as AccountVersions from "./cache/AccountVersions.ts"

/**
 * Caches and coalesces reads: serves a read from a cached response, from an equal call in flight, or from upstream.
 * Replicas can share responses through Redis.
 */
export * as ResponseCache from "./cache/ResponseCache.ts"

/**
 * Enforces the rate limit of each upstream: a call starts if there is capacity; otherwise it waits in a fair queue.
 * Refreshes of cached responses are paced by a `Pacer`.
 */
export * as RateLimiter from "./limits/RateLimiter.ts"

/** `RateLimiter` whose limits are shared by all processes with the same Redis and key prefix. */
export * as RateLimiterRedis from "./limits/RateLimiterRedis.ts"

/**
 * How much of an upstream's stream limits all replicas use together. The limits apply to an IP address, which the
 * replicas share, and each replica has its own connections.
 */
export * as ReplicaUse from "./streams/ReplicaUse.ts"

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

/**
 * The transport: sends one HTTP request. On failure, it reports whether any byte may have reached the peer. Responses
 * are without the endpoint key of their address.
 */
export * as HttpTransport from "./transport/HttpTransport.ts"

/** The transport over undici's dispatcher, the fastest HTTP client of Node, with a pool of connections per origin. */
export * as HttpTransportUndici from "./transport/HttpTransportUndici.ts"
