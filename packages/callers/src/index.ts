/**
 * Every public module of `@trigate/callers` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/callers/…`: Node then loads only those.
 */

/** Authenticates the key of a request. Returns the caller and the scope of the key. */
export * as CallerKeys from "./CallerKeys.ts"

/** The store of a gateway's keys and their format: creates, lists, rotates and revokes keys. */
export * as KeyStore from "./KeyStore.ts"

/** `KeyStore` in a JSON file, for gateways without a database. */
export * as KeyStoreFile from "./KeyStoreFile.ts"

/** `KeyStore` in a SQL database, SQLite or Postgres, which replicas and the command line share. */
export * as KeyStoreSql from "./KeyStoreSql.ts"

/** The quota of a caller: requests per second, a burst, and concurrent requests. */
export * as Quotas from "./Quotas.ts"
