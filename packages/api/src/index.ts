/**
 * Every public module of `@trigate/api` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/api/…`: Node then loads only those.
 */

/** The complete HTTP contract of the gateway. The server, the client and the OpenAPI document are derived from it. */
export * as GatewayApi from "./GatewayApi.ts"

/** The paths of the gateway's own routes. The node routes have the same paths after an endpoint key. */
export * as Paths from "./Paths.ts"
