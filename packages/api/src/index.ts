/**
 * Every module of `@trigate/api` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/api/…`: Node then loads only those.
 */

/** The operator's routes: the action log, callers' keys, the use of rate limits, and the latest requests. */
export * as AdminApi from "./AdminApi.ts"

/**
 * The endpoint key, which identifies a caller on the node routes (routes with URLs like those of a node provider). It
 * is the first segment of the path.
 */
export * as EndpointKey from "./EndpointKey.ts"

/** Example requests for the reference page. The sandbox serves all of them, so the *Send* button works for each. */
export * as Examples from "./Examples.ts"

/** The complete HTTP contract of the gateway. The server, the client and the OpenAPI document are derived from it. */
export * as GatewayApi from "./GatewayApi.ts"

/** Liveness, readiness and metrics. */
export * as HealthApi from "./HealthApi.ts"

/**
 * The node routes, with URLs like those of a node provider. A path consists of the caller's endpoint key and the path
 * of one of the gateway's own routes. The path that contains only the endpoint key serves JSON-RPC of the layer 2.
 */
export * as NodeApi from "./NodeApi.ts"

/** The paths of the gateway's own routes. The node routes have the same paths after an endpoint key. */
export * as Paths from "./Paths.ts"

/** The middleware of all route groups: converts typed errors, and requests that cannot be decoded, to responses. */
export * as Problems from "./Problems.ts"

/** `POST /evm` and `POST /l2`: JSON-RPC of the EVM chains; and the streams `GET /ws` and `GET /streams`. */
export * as RpcApi from "./RpcApi.ts"

/** The routes that control the sandbox's venue: its clock, prices, faults and accounts. */
export * as SandboxApi from "./SandboxApi.ts"

/** The token chain: `GET /api/v2/getTokenData`, `POST /api/v2/jsonRPC` and `GET /api/v2/streams/…`. */
export * as TokensApi from "./TokensApi.ts"

/** The trading chain: `POST /info`, `POST /exchange`, `GET /actions/{id}` and `GET /candles`. */
export * as TradingApi from "./TradingApi.ts"
