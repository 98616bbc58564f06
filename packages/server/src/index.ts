/**
 * Every public module of `@trigate/server` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/server/…`: Node then loads only those.
 */

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
