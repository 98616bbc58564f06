/**
 * Every public module of `@trigate/server` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/server/…`: Node then loads only those.
 */

/**
 * All routes of the gateway, for the bundled server and for embedding servers. The routes call the services of the
 * chains.
 */
export * as Gateway from "./Gateway.ts"

/** The bundled gateway: the routes over the configured chains, on Node's HTTP server. */
export * as GatewayServer from "./GatewayServer.ts"

/**
 * Node's HTTP server, with limits on its connections, input and memory, and the fast lane, which serves relayed
 * requests directly.
 */
export * as Listener from "./requests/Listener.ts"

/**
 * Reads the settings of a gateway from flags, the environment, and the file `trigate.config.{json,yaml,toml}`, and
 * lists those in effect with their sources.
 */
export * as SettingsSources from "./settings/SettingsSources.ts"
