/**
 * Every public module of `@trigate/simulation` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/simulation/…`: Node then loads only those.
 */

/**
 * A simulated replica of a gateway: its real routes, sessions and services on a node, over a simulated network and the
 * stores that the replicas share.
 */
export * as Gateway from "./Gateway.ts"

/** Serves an HTTP app of Effect, with its WebSockets, at an address of a simulated network. */
export * as HttpServing from "./HttpServing.ts"

/**
 * A simulated network between the nodes of a simulation: HTTP requests and WebSockets with delays, lost connections and
 * silence.
 */
export * as Network from "./Network.ts"

/**
 * Scenarios under plans of faults: runs a scenario for many seeds, and reduces the plan of a run that failed to the
 * faults that make it fail.
 */
export * as Plan from "./Plan.ts"

/**
 * Runs Effect programs deterministically: a seed determines the order in which fibers run, every random number and all
 * simulated times.
 */
export * as Simulation from "./Simulation.ts"

/** A simulated server of stores, such as a Redis or a Postgres: its latency, its outages and lost confirmations. */
export * as StoreServer from "./StoreServer.ts"

/** A simulated venue: the sandbox's venue as a node of a network, with a record of every action that arrives. */
export * as Venue from "./Venue.ts"

/** Simulated stores that replicas share. */
export * as Access from "./stores/Access.ts"

/**
 * The log of account events that replicas share, in a simulated Redis or Postgres: what the scripts of `EventStoreRedis`
 * and the statements of `EventStoreSql` do, in TypeScript.
 */
export * as EventLogs from "./stores/EventLogs.ts"

/** The documents of guards that replicas share, in a simulated Redis. */
export * as GuardDocuments from "./stores/GuardDocuments.ts"

/**
 * The action log that replicas share, in a simulated Postgres: what the statements of `ActionLogSql` do, in TypeScript.
 * The conditions and the policy are those of production.
 */
export * as PostgresActionLog from "./stores/PostgresActionLog.ts"

/**
 * The action log that replicas share, in a simulated Redis: what the scripts of `ActionLogRedis` do, in TypeScript. The
 * conditions and the policy are those of production; bodies stay in the memory of each process.
 */
export * as RedisActionLog from "./stores/RedisActionLog.ts"

/**
 * The responses and the account versions that replicas share, in a simulated Redis: what the commands of `ResponseCache`
 * and the scripts of `AccountVersions` do, in TypeScript.
 */
export * as RedisCache from "./stores/RedisCache.ts"

/** The rate limits that replicas share, in a simulated Redis: what the scripts of `RateLimiterRedis` do, in TypeScript. */
export * as RedisRateLimits from "./stores/RedisRateLimits.ts"

/** The use of the stream limits that replicas report, in a simulated Redis or Postgres. */
export * as StreamUse from "./stores/StreamUse.ts"
