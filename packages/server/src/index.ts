/**
 * Every module of `@trigate/server` that needs no optional peer dependency, as a namespace.
 *
 * Written by `npm run docs:generate`. To reduce startup time, import single modules, such as
 * `@trigate/server/…`: Node then loads only those.
 */

/**
 * The chains behind the gateway: live chains if any upstream URL is configured, otherwise the sandbox (simulated
 * chains), never both.
 */
export * as Chains from "./Chains.ts"

/**
 * All routes of the gateway, for the bundled server and for embedding servers. The routes call the services of the
 * chains.
 */
export * as Gateway from "./Gateway.ts"

/** The bundled gateway: the routes over the configured chains, on Node's HTTP server. */
export * as GatewayServer from "./GatewayServer.ts"

/**
 * The content of `/health/ready`: the mode of each chain (live, sandbox or not configured), and the readiness of the
 * stores.
 */
export * as GatewayStatus from "./GatewayStatus.ts"

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
 * Connection limits of a server: the number of connections in total and from one address, and the time without
 * progress.
 */
export * as Connections from "./process/Connections.ts"

/** Graceful shutdown: counts the requests in flight, and waits for them to finish. */
export * as Drain from "./process/Drain.ts"

/**
 * The load of the process. While the event loop lags, or the memory for requests in flight is exhausted, new work is
 * refused.
 */
export * as Load from "./process/Load.ts"

/** The log on standard output: program messages and the access log, whose lines have a common format. */
export * as Log from "./process/Log.ts"

/**
 * Samples of the gateway's main metrics: one every ten seconds for an hour, in memory, for the console's overview; and of
 * all metrics for a minute, so that the console can show the last minute as soon as it is opened.
 */
export * as MetricHistory from "./process/MetricHistory.ts"

/** The metrics of a gateway: name, kind, labels and meaning of each. */
export * as Metrics from "./process/Metrics.ts"

/** Node's HTTP server, with limits on its input and memory, and a response to every request. */
export * as NodeServer from "./process/NodeServer.ts"

/**
 * Limits HTTP pipelining: requests that a client sends before it received the responses to earlier ones on the same connection
 * (RFC 9112, section 9.3.2).
 */
export * as Pipelining from "./process/Pipelining.ts"

/** Metrics of the process and its subsystems, read at each scrape. They do not slow down requests. */
export * as ProcessMetrics from "./process/ProcessMetrics.ts"

/** Runs a gateway: reads its settings, listens, prints its URL, and serves until it is interrupted. */
export * as Serve from "./process/Serve.ts"

/** Exports traces, metrics and the program's log to an OpenTelemetry collector over OTLP/HTTP. */
export * as Telemetry from "./process/Telemetry.ts"

/** The access log: a line on standard output for each request. */
export * as AccessLog from "./requests/AccessLog.ts"

/** A caller's WebSocket after the handshake, from Effect's HTTP adapter or from the package `ws`. */
export * as CallerSocket from "./requests/CallerSocket.ts"

/** The canonical form of a request's path. */
export * as CanonicalPath from "./requests/CanonicalPath.ts"

/**
 * CORS (Fetch standard): allows pages of configured origins to read the gateway's responses, and detects pages of other
 * origins.
 */
export * as Cors from "./requests/Cors.ts"

/** The fast lane: serves requests directly on Node's server, bypassing Effect's HTTP adapter and router. */
export * as FastLane from "./requests/FastLane.ts"

/** Checks the `Host` of requests. */
export * as Hosts from "./requests/Hosts.ts"

/** A request as the routes receive it: from Effect's HTTP adapter, or directly from Node's server. */
export * as IncomingRequest from "./requests/IncomingRequest.ts"

/** The latest requests of a gateway, for the console's live view. */
export * as LiveRequests from "./requests/LiveRequests.ts"

/** Observes each request of the gateway's routes, and each request below the gateway's prefix that matches no route. */
export * as Observe from "./requests/Observe.ts"

/**
 * Encodes problem documents (RFC 9457), with the JSON fields in which clients of the venue and of the token chain
 * expect an error.
 */
export * as ProblemResponse from "./requests/ProblemResponse.ts"

/** Reads the bodies of requests. */
export * as RequestBody from "./requests/RequestBody.ts"

/** Determines the caller of a request: by its key, or without a key by the client's address. */
export * as RequestCaller from "./requests/RequestCaller.ts"

/** The record of a request. When the request ends, the record becomes metrics, a span and a line of the access log. */
export * as RequestRecord from "./requests/RequestRecord.ts"

/** The span of a request, named after its route. Without a tracer, no span is made. */
export * as RequestSpan from "./requests/RequestSpan.ts"

/** Makes responses that HttpApiBuilder does not encode: relayed upstream responses and JSON text. */
export * as ResponseBody from "./requests/ResponseBody.ts"

/** The operator's routes: the action log, the outcomes of actions, the keys of callers, and the latest requests. */
export * as AdminRoutes from "./routes/AdminRoutes.ts"

/** The routes of candle history: the list of series, and the bars of a series as a file. */
export * as CandleRoutes from "./routes/CandleRoutes.ts"

/** `GET /`: the console, a page about this gateway that loads nothing from other origins. */
export * as ConsolePage from "./routes/ConsolePage.ts"

/** `GET /docs` and `GET /openapi.json`: the API reference, in one page that loads nothing from the internet. */
export * as DocsPage from "./routes/DocsPage.ts"

/**
 * The routes whose responses the gateway encodes instead of relaying them: `POST /exchange/inspect`, token data, health
 * and metrics.
 */
export * as HttpApiRoutes from "./routes/HttpApiRoutes.ts"

/** Responds to requests that match no route: 404, or 405 with the allowed HTTP methods if only the method is wrong. */
export * as NotFoundRoutes from "./routes/NotFoundRoutes.ts"

/** The endpoints whose requests and responses are relayed. */
export * as RelayEndpoints from "./routes/RelayEndpoints.ts"

/** The relaying routes except JSON-RPC: `POST /exchange`, `POST /info` and the token chain's REST API. */
export * as RelayRoutes from "./routes/RelayRoutes.ts"

/** The JSON-RPC routes: `POST /evm`, `POST /l2` and `POST /api/v2/jsonRPC`, each derived from its table of operations. */
export * as RpcRoutes from "./routes/RpcRoutes.ts"

/** The routes that control the sandbox's venue, with the same authorization as the admin routes. */
export * as SandboxRoutes from "./routes/SandboxRoutes.ts"

/** A static page, made and compressed once. */
export * as StaticPage from "./routes/StaticPage.ts"

/**
 * Renders the API reference as one page of HTML: an introduction, every route with its types, and a form that sends a
 * request to the route.
 */
export * as ReferencePage from "./routes/reference/ReferencePage.ts"

/** The script of the reference page: sends requests, reads event streams and opens WebSockets, all to this gateway. */
export * as ReferenceScript from "./routes/reference/ReferenceScript.ts"

/** Renders JSON schemas as types in the notation of TypeScript, in HTML, and makes examples of them. */
export * as SchemaText from "./routes/reference/SchemaText.ts"

/** The settings of a running gateway as an operator reads them: value, source and meaning, without secrets. */
export * as EffectiveSettings from "./settings/EffectiveSettings.ts"

/** The settings of a gateway: the name, the accepted values, the default and the documentation of each. */
export * as Settings from "./settings/Settings.ts"

/**
 * Reads the settings of a gateway from flags, the environment, and the file `trigate.config.{json,yaml,toml}`, in this
 * order of precedence.
 */
export * as SettingsSources from "./settings/SettingsSources.ts"

/** The settings of OpenTelemetry, with the names and defaults of its specification. */
export * as TelemetrySettings from "./settings/TelemetrySettings.ts"

/**
 * Selects the action log's store from the settings: for the gateway that writes the log, and for the command `trigate
 * actions`.
 */
export * as ActionLogStore from "./stores/ActionLogStore.ts"

/** Selects where candle history is stored: in the action log's database if one is configured, otherwise in memory. */
export * as ArchiveStore from "./stores/ArchiveStore.ts"

/** Writes the audit log as lines of JSON, to a file or to standard output. */
export * as AuditLogWriter from "./stores/AuditLogWriter.ts"

/** Selects the store of callers' keys from the settings, for the gateway and for the tool that creates keys. */
export * as CallerStore from "./stores/CallerStore.ts"

/** `Quotas` that all processes with the same Redis and prefix share. Each request runs one script. */
export * as QuotasRedis from "./stores/QuotasRedis.ts"

/** `Quotas` that several processes share through a store. Each request costs one query. */
export * as QuotasShared from "./stores/QuotasShared.ts"

/** `Quotas` that all processes with the same Postgres database share. Each request runs one statement. */
export * as QuotasSql from "./stores/QuotasSql.ts"

/** Elects the candle recorder among the replicas that share a Postgres database, with Effect's cluster. */
export * as RecorderElection from "./stores/RecorderElection.ts"

/**
 * Selects the stores that replicas share from the settings: Redis if it is configured, otherwise Postgres, otherwise
 * the memory of the process.
 */
export * as ReplicaStores from "./stores/ReplicaStores.ts"

/** Reads the recorded prices that a sandbox replays: bars from files and from the candle archive. */
export * as SandboxPrices from "./stores/SandboxPrices.ts"

/**
 * The connection to the Redis that replicas share. It is made in the background, so that a gateway starts and works
 * while Redis is unreachable.
 */
export * as SharedRedis from "./stores/SharedRedis.ts"

/**
 * The open sockets and event streams of each caller, and the bytes that the caller can still send and receive in the
 * current second.
 */
export * as CallerUse from "./streams/CallerUse.ts"

/**
 * A stream of Server-Sent Events for one caller: sends the frames of `/ws`, with positions from which the client can
 * resume the stream.
 */
export * as EventStream from "./streams/EventStream.ts"

/** The outgoing frames of one WebSocket. */
export * as Outbox from "./streams/Outbox.ts"

/**
 * A caller's WebSocket with JSON-RPC. Calls are served as on the HTTP route. Subscriptions are served from the chain's
 * block feed.
 */
export * as RpcSession from "./streams/RpcSession.ts"

/** A caller's WebSocket with the venue's protocol: reads its frames and responds as the venue does. */
export * as Session from "./streams/Session.ts"

/** The periodic checks of open sockets and event streams: pings, progress, and the validity of keys. */
export * as SessionChecks from "./streams/SessionChecks.ts"

/** The WebSockets of all callers of a gateway. They persist across changes of settings, and end with the gateway. */
export * as Sessions from "./streams/Sessions.ts"

/**
 * Serves the requests that callers send as messages of a socket. The limits, quotas and metrics of HTTP requests apply
 * to these requests too.
 */
export * as SocketRequests from "./streams/SocketRequests.ts"

/** A caller's WebSocket, independent of its protocol: its limits, and how it ends. */
export * as SocketSession from "./streams/SocketSession.ts"

/**
 * WebSockets to upstreams over the package `ws`. The package stops reading from a connection while its messages are not
 * consumed.
 */
export * as SocketTransportWs from "./streams/SocketTransportWs.ts"

/** The metrics of streams. Frames are counted in plain numbers and published to the registry once a second. */
export * as StreamMetrics from "./streams/StreamMetrics.ts"

/** The options of streams, from the settings. */
export * as StreamOptions from "./streams/StreamOptions.ts"

/** The WebSocket method `post`: queries and signed actions, served like `POST /info` and `POST /exchange`. */
export * as StreamPosts from "./streams/StreamPosts.ts"

/**
 * The routes `GET /ws` and `GET /streams`. Their path can begin with an endpoint key (a caller's key). Authorizes a
 * stream before it begins.
 */
export * as StreamRoutes from "./streams/StreamRoutes.ts"

/** The settings of the WebSockets of callers. */
export * as StreamSettings from "./streams/StreamSettings.ts"

/**
 * The routes that stream transactions and jetton transfers as Server-Sent Events. Their path can begin with an endpoint
 * key (a caller's key).
 */
export * as TransactionRoutes from "./streams/TransactionRoutes.ts"

/** Frames of a WebSocket as a server writes them (RFC 6455, section 5.2): unmasked and not fragmented. */
export * as WebSocketFrame from "./streams/WebSocketFrame.ts"
