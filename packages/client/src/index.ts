/**
 * Every module of `@trigate/client` that needs no optional peer, as a namespace.
 *
 * Written by `npm run docs:generate`. Code that starts often imports the modules themselves, such as
 * `@trigate/client/…`: Node then loads only those.
 */

/** The typed client of a gateway, derived from its contract and its operations. */
export * as GatewayClient from "./GatewayClient.ts"

/** Makes a client method from an endpoint of the contract and a declared operation, one maker for each protocol. */
export * as Methods from "./Methods.ts"

/** How the client reaches a gateway: any Effect `HttpClient`, whole answers, typed failures. */
export * as Transport from "./Transport.ts"
