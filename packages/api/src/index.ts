/**
 * Every module of `@trigate/api` that needs no optional peer, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/api/…`: Node then loads only those.
 */

/** `GET /actions/{id}`: the outcome of a signed action. */
export * as ActionsApi from "./ActionsApi.ts"

/** The operator's routes: the action log, callers' keys, rate-limit use, the latest requests. */
export * as AdminApi from "./AdminApi.ts"

/** `GET /candles`: the candle history that the gateway stores. */
export * as CandlesApi from "./CandlesApi.ts"

/** The key that identifies a caller on the node provider's surface: the first segment of the path. */
export * as EndpointKey from "./EndpointKey.ts"

/** Requests that the sandbox serves, for the reference page: its *Send* button works for each of them. */
export * as Examples from "./Examples.ts"

/** `POST /exchange`: signed actions, checked and relayed at most once. */
export * as ExchangeApi from "./ExchangeApi.ts"

/** The whole contract. The server, the client and the OpenAPI document are derived from it. */
export * as GatewayApi from "./GatewayApi.ts"

/** Liveness, readiness and metrics. */
export * as HealthApi from "./HealthApi.ts"

/** `POST /info`: queries of the trading chain. */
export * as InfoApi from "./InfoApi.ts"

/** The node provider's surface: the same routes behind the caller's own endpoint key, and the layer 2 at the key itself. */
export * as NodeApi from "./NodeApi.ts"

/** The paths of the gateway's own routes. The node provider's surface has the same ones behind an endpoint key. */
export * as Paths from "./Paths.ts"

/** The middleware of every group: maps typed errors, and requests that do not decode, to responses. */
export * as Problems from "./Problems.ts"

/** `POST /evm` and `POST /l2`: JSON-RPC of the trading chain's EVM and of an EVM layer 2. */
export * as RpcApi from "./RpcApi.ts"

/** The routes that control the sandbox's venue: its clock, prices, faults and accounts. */
export * as SandboxApi from "./SandboxApi.ts"

/** `GET /ws`: the venue's WebSocket, shared by all callers, and `GET /streams`: the same as Server-Sent Events. */
export * as StreamsApi from "./StreamsApi.ts"

/** The token chain: `GET /api/v2/getTokenData`, `POST /api/v2/jsonRPC` and `GET /api/v2/streams/…`. */
export * as TokensApi from "./TokensApi.ts"
