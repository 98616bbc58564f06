/**
 * Every module of `@trigate/archive` that needs no optional peer, as a namespace.
 *
 * Written by `npm run docs:generate`. Code that starts often imports the modules themselves, such as
 * `@trigate/archive/…`: Node then loads only those.
 */

/** `SqlClient` over Node's own SQLite, with one connection: it is opened at its first use, and again after a fault. */
export * as SqliteClient from "./SqliteClient.ts"
