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
