/**
 * Every module of `@trigate/server` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/server/…`: Node then loads only those.
 */

/**
 * The chains behind the gateway, live or simulated, and the content of `/health/ready`: the mode and the readiness of
 * each.
 */
export * as Chains from "./Chains.ts"

/**
 * All routes of the gateway, for the bundled server and for embedding servers. The routes call the services of the
 * chains.
 */
export * as Gateway from "./Gateway.ts"

/** The bundled gateway: the routes over the configured chains, on Node's HTTP server. */
export * as GatewayServer from "./GatewayServer.ts"

/** The chains over the network, with the stores that the settings select. */
export * as LiveChains from "./LiveChains.ts"

/** The simulated chains of the sandbox. */
export * as SandboxChains from "./SandboxChains.ts"

/**
 * The checks of `trigate serve --check`: whether each configured upstream URL and store responds, and to which chain
 * each URL belongs.
 */
export * as Check from "./process/Check.ts"

/**
 * The load of the process. While the event loop lags, or the memory for requests in flight is exhausted, new work is
 * refused. At shutdown, requests in flight finish first.
 */
export * as Load from "./process/Load.ts"

/**
 * The metrics of a gateway: name, kind, labels and meaning of each, those of the process and of streams, and their
 * samples of the last hour.
 */
export * as Metrics from "./process/Metrics.ts"

/**
 * Runs a gateway: reads its settings, listens, prints its URL, and serves until it is interrupted. Also the log on
 * standard output.
 */
export * as Serve from "./process/Serve.ts"

/** Exports traces, metrics and the program's log to an OpenTelemetry collector over OTLP/HTTP. */
export * as Telemetry from "./process/Telemetry.ts"

/** Determines the caller of a request: by its key, or without a key by the client's address. */
export * as Callers from "./requests/Callers.ts"

/**
 * Node's HTTP server, with limits on its connections, input and memory, and the fast lane, which serves relayed
 * requests directly.
 */
export * as Listener from "./requests/Listener.ts"

/**
 * Observes each request of the gateway's routes: its metrics, its span, its line of the access log, its `Host` and its
 * origin.
 */
export * as Observe from "./requests/Observe.ts"

/** A request: as the routes receive it, its body, its record, and its response. */
export * as Request from "./requests/Request.ts"

/**
 * The operator's routes: the action log, the outcomes of actions, the keys of callers, the latest requests, and the
 * controls of the sandbox's venue.
 */
export * as AdminRoutes from "./routes/AdminRoutes.ts"

/** `GET /docs` and `GET /openapi.json`: the API reference, in one page that loads nothing from the internet. */
export * as DocsPage from "./routes/DocsPage.ts"

/**
 * The routes whose responses the gateway encodes instead of relaying them: `POST /exchange/inspect`, token data,
 * health, metrics and candle history.
 */
export * as HttpApiRoutes from "./routes/HttpApiRoutes.ts"

/**
 * Responds to requests that match no route: 404, or 405 with the allowed HTTP methods if only the method is wrong. Also
 * determines the canonical form of a path.
 */
export * as NotFoundRoutes from "./routes/NotFoundRoutes.ts"

/**
 * The routes whose requests and responses are relayed: `POST /exchange`, `POST /info` and the token chain's REST API,
 * and the endpoints of all relaying routes.
 */
export * as Relay from "./routes/Relay.ts"

/** The JSON-RPC routes: `POST /evm`, `POST /l2` and `POST /api/v2/jsonRPC`, each derived from its table of operations. */
export * as Rpc from "./routes/Rpc.ts"

/** Static pages, made and compressed once, and the console at `GET /`. */
export * as StaticPage from "./routes/StaticPage.ts"

/** The settings of a gateway: the name, the accepted values, the default and the documentation of each. */
export * as Settings from "./settings/Settings.ts"

/**
 * Reads the settings of a gateway from flags, the environment, and the file `trigate.config.{json,yaml,toml}`, and
 * lists those in effect with their sources.
 */
export * as SettingsSources from "./settings/SettingsSources.ts"

/** Selects where candle history is stored: in the action log's database if one is configured, otherwise in memory. */
export * as ArchiveStore from "./stores/ArchiveStore.ts"

/** Writes the audit log as lines of JSON, to a file or to standard output. */
export * as AuditLogWriter from "./stores/AuditLogWriter.ts"

/** `Quotas` that several processes share through a store, and through Redis. Each request costs one query. */
export * as QuotasShared from "./stores/QuotasShared.ts"

/** `Quotas` that all processes with the same Postgres database share. Each request runs one statement. */
export * as QuotasSql from "./stores/QuotasSql.ts"

/** Elects the candle recorder among the replicas that share a Postgres database, with Effect's cluster. */
export * as RecorderElection from "./stores/RecorderElection.ts"

/** Reads the recorded prices that a sandbox replays: bars from files and from the candle archive. */
export * as SandboxPrices from "./stores/SandboxPrices.ts"

/** Selects from the settings where a gateway stores the action log, callers' keys and what replicas share. */
export * as Stores from "./stores/Stores.ts"

/** A caller's connection with its protocol: the venue's WebSocket protocol, JSON-RPC, or a stream of Server-Sent Events. */
export * as Session from "./streams/Session.ts"

/**
 * The WebSockets and event streams of all callers of a gateway. They persist across changes of settings, and end with
 * the gateway.
 */
export * as Sessions from "./streams/Sessions.ts"

/** Serves the requests that callers send as messages of a socket, with the limits, quotas and metrics of HTTP requests. */
export * as SocketRequests from "./streams/SocketRequests.ts"

/** A caller's WebSocket, independent of its protocol: its outgoing frames, its limits, and how it ends. */
export * as SocketSession from "./streams/SocketSession.ts"

/** The routes of streams: `GET /ws`, `GET /streams`, and the streams of transactions and jetton transfers. */
export * as StreamRoutes from "./streams/StreamRoutes.ts"
