/**
 * Every module of `@trigate/server` that needs no optional peer, as a namespace.
 *
 * Written by `npm run docs:generate`. Code that starts often imports the modules themselves, such as
 * `@trigate/server/…`: Node then loads only those.
 */

/** The chains behind the gateway: live if any upstream address is configured, else the sandbox. They are never mixed. */
export * as Chains from "./Chains.ts"

/** All routes of the gateway over the five chain services, for the bundled server and for a server of your own. */
export * as Gateway from "./Gateway.ts"

/** The bundled gateway: the routes over the configured chains, on Node's HTTP server. */
export * as GatewayServer from "./GatewayServer.ts"

/** What `/health/ready` says: how each chain is served, which does not change, and whether the stores can be reached. */
export * as GatewayStatus from "./GatewayStatus.ts"

/** The checks of `trigate serve --check`: whether each address and store of the settings responds, and on which chain it is. */
export * as Check from "./process/Check.ts"

/** What the connections of a server may take: how many there are, how many one address has, and how long one stands still. */
export * as Connections from "./process/Connections.ts"

/** Graceful shutdown: counts the requests in flight, and waits for them to finish. */
export * as Drain from "./process/Drain.ts"

/** How busy the process is. While its event loop lags, or the memory for requests in flight is spent, new work is refused. */
export * as Load from "./process/Load.ts"

/** The log on standard output: what the program says, and the access log, in lines of one shape. */
export * as Log from "./process/Log.ts"

/** The metrics of a gateway: name, kind, labels and meaning of each. */
export * as Metrics from "./process/Metrics.ts"

/** Node's HTTP server: bounds on its input and memory, and a response to every request. */
export * as NodeServer from "./process/NodeServer.ts"

/** Requests that a client sends before it has the responses to earlier ones on the same connection (RFC 9112, section 9.3.2). */
export * as Pipelining from "./process/Pipelining.ts"

/** Metrics of the process and its subsystems. They are read at each scrape, so that no request pays for them. */
export * as ProcessMetrics from "./process/ProcessMetrics.ts"

/** Serves a gateway: reads its settings, listens, prints where, and continues until it is interrupted. */
export * as Serve from "./process/Serve.ts"

/** Exports traces, metrics and the program's log to an OpenTelemetry collector over OTLP/HTTP. */
export * as Telemetry from "./process/Telemetry.ts"

/** The access log: a line on standard output for each request. */
export * as AccessLog from "./requests/AccessLog.ts"

/** CORS (Fetch standard): lets the pages of configured origins read the gateway's responses, and detects foreign pages. */
export * as Cors from "./requests/Cors.ts"

/** The fast lane: from Node's request to Node's response without Effect's HTTP adapter and router. */
export * as FastLane from "./requests/FastLane.ts"

/** The hosts that a gateway serves. */
export * as Hosts from "./requests/Hosts.ts"

/** A request as the routes read it, whether it comes through Effect's HTTP adapter or straight from Node's server. */
export * as IncomingRequest from "./requests/IncomingRequest.ts"

/** The last requests of a gateway, for the pages that watch. */
export * as LiveRequests from "./requests/LiveRequests.ts"

/** Wraps each request of the gateway's routes, and requests below its path that match no route. */
export * as Observe from "./requests/Observe.ts"

/** Writes problem documents (RFC 9457), with the members that clients of the chains' own servers read. */
export * as ProblemResponse from "./requests/ProblemResponse.ts"

/** Reads the bodies of requests. */
export * as RequestBody from "./requests/RequestBody.ts"

/** The caller of a request: identified by its key, otherwise by its address. */
export * as RequestCaller from "./requests/RequestCaller.ts"

/** The metrics of requests, by route, status, operation and caller group. */
export * as RequestMetrics from "./requests/RequestMetrics.ts"

/** What the gateway records about a request on its way; at its end the record becomes metrics, a span and a line of the access log. */
export * as RequestRecord from "./requests/RequestRecord.ts"

/** The span of a request, named after its route. Nothing here runs unless the program has a tracer. */
export * as RequestSpan from "./requests/RequestSpan.ts"

/** Writes responses that HttpApiBuilder does not encode: relayed upstream responses and JSON texts. */
export * as ResponseBody from "./requests/ResponseBody.ts"

/** The routes of the operator: its action log and the outcomes in it, its callers and their requests. */
export * as AdminRoutes from "./routes/AdminRoutes.ts"

/** The routes of candle history: what there is, and the bars of a series as a file. */
export * as CandleRoutes from "./routes/CandleRoutes.ts"

/** `GET /`: the console, a page about this gateway that loads nothing from anywhere else. */
export * as ConsolePage from "./routes/ConsolePage.ts"

/** `GET /docs` and `GET /openapi.json`: the API reference, in one page that loads nothing from the internet. */
export * as DocsPage from "./routes/DocsPage.ts"

/** The routes whose responses are encoded from values: `POST /exchange/inspect`, token data, health and metrics. */
export * as HttpApiRoutes from "./routes/HttpApiRoutes.ts"

/** The answer to a request that no route takes: 404, or 405 with the allowed methods where only the method is wrong. */
export * as NotFoundRoutes from "./routes/NotFoundRoutes.ts"

/** The routes that relay a body or a query and are not JSON-RPC: `POST /exchange`, `POST /info` and the token chain's REST. */
export * as RelayRoutes from "./routes/RelayRoutes.ts"

/** The JSON-RPC routes: `POST /evm`, `POST /l2` and `POST /api/v2/jsonRPC`, each derived from its table of operations. */
export * as RpcRoutes from "./routes/RpcRoutes.ts"

/** The routes that control the sandbox's venue. They are beside the admin routes, and for the same callers. */
export * as SandboxRoutes from "./routes/SandboxRoutes.ts"

/** A page that is the same for everyone, made and compressed once. */
export * as StaticPage from "./routes/StaticPage.ts"

/** The settings of a gateway: the name, the accepted text, the default and the documentation of each. */
export * as Settings from "./settings/Settings.ts"

/** Reads the settings of a gateway: a flag beats the environment, which beats the file `trigate.config.{json,yaml,toml}`. */
export * as SettingsSources from "./settings/SettingsSources.ts"

/** The settings of OpenTelemetry, under the names and with the defaults of its specification. */
export * as TelemetrySettings from "./settings/TelemetrySettings.ts"

/** Where a gateway keeps its action log, by its settings: the same for the gateway that writes it and the tool that reads it. */
export * as ActionLogStore from "./stores/ActionLogStore.ts"

/** Where a gateway keeps candle history, by its settings: beside the action log, and without a database in memory. */
export * as ArchiveStore from "./stores/ArchiveStore.ts"

/** The audit log as lines of JSON, in a file or on standard output. */
export * as AuditLogWriter from "./stores/AuditLogWriter.ts"

/** Where a gateway keeps the keys of its callers, by its settings: the same for the gateway and for the tool that makes them. */
export * as CallerStore from "./stores/CallerStore.ts"

/** `Quotas` that all processes with the same Redis and prefix count together: one script for each request. */
export * as QuotasRedis from "./stores/QuotasRedis.ts"

/** `Quotas` that several processes count together in a store: one question for each request. */
export * as QuotasShared from "./stores/QuotasShared.ts"

/** `Quotas` that all processes with the same Postgres database count together: one statement for each request. */
export * as QuotasSql from "./stores/QuotasSql.ts"

/** Which of several replicas on one Postgres records: the one that Effect's cluster elects. */
export * as RecorderElection from "./stores/RecorderElection.ts"

/** The recorded prices that a sandbox plays: bars of files, and of the candle archive. */
export * as SandboxPrices from "./stores/SandboxPrices.ts"

/** The Redis that replicas share. It connects in the background, so that a gateway starts and works without it. */
export * as SharedRedis from "./stores/SharedRedis.ts"

/** One stream of Server-Sent Events of a caller: frames as `/ws` has them, with the positions at which the stream can be resumed. */
export * as EventStream from "./streams/EventStream.ts"

/** The outgoing frames of one WebSocket. */
export * as Outbox from "./streams/Outbox.ts"

/** One WebSocket of a caller that speaks JSON-RPC: calls are served as over HTTP, subscriptions come from the chain's feed. */
export * as RpcSession from "./streams/RpcSession.ts"

/** One WebSocket of a caller: reads its frames and responds as the venue does. */
export * as Session from "./streams/Session.ts"

/** The WebSockets of all callers of a gateway. They outlive a change of settings, and end with the gateway. */
export * as Sessions from "./streams/Sessions.ts"

/** One WebSocket of a caller, of either protocol: its limits, and how it ends. */
export * as SocketSession from "./streams/SocketSession.ts"

/** WebSockets to upstreams over the package `ws`, which pauses its socket while its messages are not read. */
export * as SocketTransportWs from "./streams/SocketTransportWs.ts"

/** The metrics of streams. Frames are counted in plain numbers, which go into the registry once a second. */
export * as StreamMetrics from "./streams/StreamMetrics.ts"

/** The method `post` of the WebSocket: queries and signed actions, on the way that `POST /info` and `POST /exchange` take. */
export * as StreamPosts from "./streams/StreamPosts.ts"

/** The routes `GET /ws` and `GET /streams`, also behind a key: who may open a stream is decided before it begins. */
export * as StreamRoutes from "./streams/StreamRoutes.ts"

/** The settings of the WebSockets of callers. */
export * as StreamSettings from "./streams/StreamSettings.ts"

/** The routes of transactions and jetton transfers as Server-Sent Events, also behind a key. */
export * as TransactionRoutes from "./streams/TransactionRoutes.ts"

/** Frames of a WebSocket as a server writes them (RFC 6455, section 5.2): unmasked and whole. */
export * as WebSocketFrame from "./streams/WebSocketFrame.ts"
