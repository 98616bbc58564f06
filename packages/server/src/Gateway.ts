/**
 * All routes of the gateway over the five chain services, for the bundled server and for a server of your own.
 *
 * Provide `layer` with the five services (live, memory or sandbox) and with `layerDefaults`, and serve its `HttpRouter`.
 * `NodeServer.layer` is the HTTP server of the bundled gateway, with its bounds on what a connection may take.
 *
 * An endpoint that relays bytes is a route of the router itself, with the contract's method and path. HttpApiBuilder would
 * merge the context of its group into every request and then decode and encode nothing: 10 microseconds, a fifth of a whole
 * request.
 */
import { KeyedPath } from "@trigate/api/EndpointKey"
import { ChainsApi, GatewayApi } from "@trigate/api/GatewayApi"
import type { Readiness } from "@trigate/api/HealthApi"
import { endpointPaths } from "@trigate/api/TokensApi"
import * as CallerKeys from "@trigate/callers/CallerKeys"
import * as Quotas from "@trigate/callers/Quotas"
import { type CallError, unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as Continuation from "@trigate/domain/operations/Continuation"
import { decodeFaults, invalidRequest } from "@trigate/domain/operations/Operation"
import type { Surface } from "@trigate/domain/operations/Operation"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as ErrorReporter from "effect/ErrorReporter"
import * as Exit from "effect/Exit"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerError, RouteNotFound } from "effect/http/HttpServerError"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { unhandled } from "effect/Types"
import { GatewayStatus } from "./GatewayStatus.ts"
import * as Drain from "./process/Drain.ts"
import * as Load from "./process/Load.ts"
import * as AccessLog from "./requests/AccessLog.ts"
import type * as Cors from "./requests/Cors.ts"
import * as FastLane from "./requests/FastLane.ts"
import type * as Hosts from "./requests/Hosts.ts"
import { fromAdapter, sentTarget } from "./requests/IncomingRequest.ts"
import type { IncomingRequest } from "./requests/IncomingRequest.ts"
import * as LiveRequests from "./requests/LiveRequests.ts"
import * as Observe from "./requests/Observe.ts"
import * as ProblemResponse from "./requests/ProblemResponse.ts"
import * as RequestCaller from "./requests/RequestCaller.ts"
import * as RequestSpan from "./requests/RequestSpan.ts"
import * as AdminRoutes from "./routes/AdminRoutes.ts"
import * as CandleRoutes from "./routes/CandleRoutes.ts"
import * as ConsolePage from "./routes/ConsolePage.ts"
import * as DocsPage from "./routes/DocsPage.ts"
import * as HttpApiRoutes from "./routes/HttpApiRoutes.ts"
import * as NotFoundRoutes from "./routes/NotFoundRoutes.ts"
import * as RelayRoutes from "./routes/RelayRoutes.ts"
import * as RpcRoutes from "./routes/RpcRoutes.ts"
import * as SandboxRoutes from "./routes/SandboxRoutes.ts"
import * as Sessions from "./streams/Sessions.ts"
import * as StreamRoutes from "./streams/StreamRoutes.ts"
import * as TransactionRoutes from "./streams/TransactionRoutes.ts"

/** What a gateway relays besides the documented operations. */
export interface Options extends RpcRoutes.Options {
  /** Whether `/info` relays queries of any type. */
  readonly anyInfo: boolean
}

/** The defaults of the settings. */
const relayDefaults: Options = { anyInfo: true, methods: [], maxBatch: 100 }

type NameIn<Groups extends { readonly [group: string]: { readonly endpoints: object } }> = {
  [Group in keyof Groups & string]: `${Group}.${keyof Groups[Group]["endpoints"] & string}`
}[keyof Groups & string]

type RelayedName = Exclude<
  NameIn<typeof GatewayApi.groups>,
  | NameIn<typeof HttpApiRoutes.EncodedApi.groups>
  | NameIn<typeof HttpApiRoutes.HealthApi.groups>
  | NameIn<typeof AdminRoutes.AdminApi.groups>
  | NameIn<typeof SandboxRoutes.SandboxApi.groups>
  | NameIn<typeof CandleRoutes.CandlesApi.groups>
>

/** Handles a request on one of the surfaces. */
type Handle = (request: IncomingRequest, surface: Surface) => Effect.Effect<HttpServerResponse, CallError>

const endpointKey = HttpRouter.schemaPathParams(Schema.Struct(KeyedPath)).pipe(
  Effect.mapBoth({
    onFailure: (error) => invalidRequest(decodeFaults(error, ["path"])),
    onSuccess: ({ endpointKey }) => Redacted.make(endpointKey)
  })
)

type Handler = (request: IncomingRequest) => Effect.Effect<HttpServerResponse, CallError>

const relays = Effect.fnUntraced(function*(options: Options) {
  const { serve } = yield* RequestCaller.serving
  const exchange = yield* RelayRoutes.exchange
  const info = yield* RelayRoutes.info(options.anyInfo)
  const outcome = yield* RelayRoutes.outcome
  const evm = yield* RpcRoutes.evm(options)
  const layer2 = yield* RpcRoutes.layer2(options)
  const tokens = yield* RpcRoutes.tokens
  const tokenRest = yield* RelayRoutes.tokenRest
  const { events, rpc: rpcSocket, socket } = yield* StreamRoutes.make(options.anyInfo)
  const transactionRoutes = yield* TransactionRoutes.make
  const transactions: Handler = (request) => serve(request, transactionRoutes.transactions(request))
  const jettonTransfers: Handler = (request) => serve(request, transactionRoutes.jettonTransfers(request))
  const evmSocket = rpcSocket("trading", evm)
  const layer2Socket = rpcSocket("layer2", layer2)
  const relay = (handle: Handle): Handler => (request) =>
    serve(request, handle(request, request.keyInPath === undefined ? "gateway" : "node"))
  const rpc = ({ handle, refuse }: RpcRoutes.Route): Handler => (request) =>
    Continuation.match(relay(handle)(request), { onFailure: refuse, onSuccess: Exit.succeed })
  return new Map<string, Handler>(Object.entries<Handler>(
    {
      "exchange.submit": relay(exchange),
      "actions.outcome": relay(outcome),
      "actions.find": relay(outcome),
      "info.query": relay(info),
      "evm.rpc": rpc(evm),
      "layer2.rpc": rpc(layer2),
      "tokens.rpc": rpc(tokens),
      "tokens.rest": relay(tokenRest),
      "tokens.restPost": relay(tokenRest),
      "streams.socket": (request) => serve(request, socket(request)),
      "node.socket": (request) => serve(request, socket(request)),
      "evm.socket": (request) => serve(request, evmSocket(request)),
      "layer2.socket": (request) => serve(request, layer2Socket(request)),
      "node.evmSocket": (request) => serve(request, evmSocket(request)),
      "node.layer2Socket": (request) => serve(request, layer2Socket(request)),
      "node.rootSocket": (request) => serve(request, layer2Socket(request)),
      "streams.events": (request) => serve(request, events(request)),
      "node.events": (request) => serve(request, events(request)),
      "node.exchange": relay(exchange),
      "node.outcome": relay(outcome),
      "node.findOutcome": relay(outcome),
      "node.info": relay(info),
      "node.evm": rpc(evm),
      "node.tokenRpc": rpc(tokens),
      "node.tokenRest": relay(tokenRest),
      "node.tokenRestPost": relay(tokenRest),
      "tokens.transactions": transactions,
      "tokens.jettonTransfers": jettonTransfers,
      "node.transactions": transactions,
      "node.jettonTransfers": jettonTransfers,
      "node.layer2": rpc(layer2),
      "node.root": rpc(layer2)
    } satisfies { readonly [Name in RelayedName]: Handler }
  ))
})

/** A typed error becomes the answer. Any other cause is reported and fails on, as with HttpApiBuilder. */
const respondToError = (path: string) => (cause: Cause.Cause<CallError>) =>
  Result.match(Cause.findError(cause), {
    onSuccess: (error) => ProblemResponse.answerProblem(unwrapReason(error), path),
    onFailure: (fault) => Effect.andThen(ErrorReporter.report(fault), Effect.failCause(fault))
  })

/** The routes that relay, of which the lane has each `POST` too. */
const relayed = (options: Options) =>
  HttpRouter.addAll(Effect.gen(function*() {
    const handlers = yield* relays(options)
    const lane = yield* FastLane.FastLane
    const routes: Array<HttpRouter.Route> = []
    HttpApi.reflect(GatewayApi, {
      onGroup: () => {},
      onEndpoint: ({ endpoint, group }) => {
        const name = `${group.identifier}.${endpoint.identifier}`
        const handle = handlers.get(name)
        if (handle === undefined) return
        const problems = {
          onFailure: respondToError(endpoint.path),
          onSuccess: (response: HttpServerResponse) => Exit.succeed(response)
        }
        const isKeyed = endpoint.path.startsWith("/:endpointKey")
        const answer: FastLane.RequestHandler = (request) =>
          RequestSpan.named(name, Continuation.matchCause(handle(request), problems), endpoint.path)
        const adapted = Effect.flatMap(HttpServerRequest, (request) => {
          if (!isKeyed) return answer(fromAdapter(request))
          return Effect.matchCauseEffect(endpointKey, {
            onFailure: (cause) => RequestSpan.named(name, respondToError(endpoint.path)(cause), endpoint.path),
            onSuccess: (key) => answer(fromAdapter(request, key))
          })
        })
        for (const path of endpointPaths(endpoint)) {
          routes.push(HttpRouter.route(endpoint.method, `/${path.slice(1)}`, adapted))
          if (endpoint.method === "POST") FastLane.add(lane, path, answer)
        }
      }
    })
    return routes
  }))

/** Where the routes are, which of them, and who may read their responses; beside routes of one's own. */
export interface Mount {
  /** The path before all routes, such as `/gateway`; none when not given. */
  readonly prefix?: `/${string}`
  /** Whether `/` is the console; false when not given. */
  readonly console?: boolean
  /** Whether there are `/docs` and `/openapi.json`; true when not given. */
  readonly docs?: boolean
  /**
   * Whether there are `/health/live`, `/health/ready` and `/metrics`; true when not given.
   *
   * `short` is for callers where the rest has a listener of its own: no metrics, and of the readiness only its status, the
   * network and whether it is the sandbox.
   */
  readonly health?: boolean | "short"
  /**
   * Where the server of the routes finds their fast lane, see `FastLane`; none by default, and none below a prefix.
   *
   * Such requests bypass middleware of the embedding server around these routes, such as an access check.
   */
  readonly fastLane?: FastLane.Entrance
  /** The hosts that are served besides loopback hosts. Default: any on a public address, none on a loopback one. */
  readonly hosts?: Hosts.Hosts
  /** The origins whose pages may read responses, sign and send; none when not given. */
  readonly origins?: Cors.Origins
  /** The operations that are relayed besides the documented ones; the defaults of the settings when not given. */
  readonly relay?: Options
}

/** Returns the pattern of the targets of a route: each segment unchanged, then nothing or a query. */
const targetPattern = (path: string): RegExp =>
  new RegExp(`^${path.replace(/[.*+^$(){}|[\]\\]/gu, "\\$&").replace(/:[^/]+/gu, "[^/?#;]+")}(?:\\?|$)`, "u")

/** Whether a request names a page or a route without a key, where the router takes its first segment for a key. */
const lacksKey = ({ headers, url }: HttpServerRequest): boolean => {
  const path = url.split("?", 1)[0] ?? ""
  if (NotFoundRoutes.isDeclared(path)) return true
  // a GET of one segment is more likely a page that does not exist than a key, unless it opens a WebSocket
  return path.indexOf("/", 1) < 0 && headers["upgrade"]?.toLowerCase() !== "websocket"
}

/**
 * Lets a path be spelled in one way, and be read in one way.
 *
 * The router also takes other letter cases, doubled and trailing slashes, percent-encoded letters, and what follows a
 * semicolon. A rule of a proxy in front that matches `/metrics` would not hold for `/METRICS`. `/admin/actions` of a listener
 * without it is not `/actions` behind the key `admin`.
 */
const spelled = <E, R>(handled: Effect.Effect<HttpServerResponse, E, R>) => {
  let spelling: RegExp | undefined
  return Effect.withFiber<HttpServerResponse, E | HttpServerError, R>((fiber) => {
    const request = Context.getUnsafe(fiber.context, HttpServerRequest)
    const { route } = Context.getUnsafe(fiber.context, HttpRouter.RouteContext)
    spelling ??= targetPattern(route.path)
    const isKeyed = route.method === "GET" && route.path.includes("/:endpointKey")
    return spelling.test(Option.isNone(route.prefix) ? request.url : sentTarget(request)) &&
        !(isKeyed && lacksKey(request))
      ? handled
      : Effect.fail(new HttpServerError({ reason: new RouteNotFound({ request }) }))
  })
}

/** Lets those in who pass, before a route is handled. */
const guarded = (serve: AdminRoutes.Administering, handled: Effect.Effect<HttpServerResponse, unhandled>) =>
  Effect.flatMap(HttpServerRequest, (request) =>
    Effect.matchEffect(serve(request, Effect.void), {
      onFailure: (error) => ProblemResponse.answerProblem(error, ""),
      onSuccess: () => handled
    }))

/** Wraps each request of the context's routes; also responds to requests that match no route of the server. */
const layerObserved = (
  { fastLane, ...options }: Observe.Options & { readonly fastLane: FastLane.Entrance | undefined }
) =>
  HttpRouter.middleware(Effect.gen(function*() {
    const router = yield* HttpRouter.HttpRouter
    const observed = yield* Observe.make(options)
    if (fastLane !== undefined) fastLane.lane = yield* FastLane.make(observed)
    yield* router.addGlobalMiddleware(observed.server)
    return (handled: Effect.Effect<HttpServerResponse, unhandled>) => observed.route(spelled(handled))
  })).layer

/** Asks for a key whose scope names `admin`, for the routes of the context. */
const layerGuarded = () =>
  HttpRouter.middleware(
    Effect.map(
      AdminRoutes.guarding,
      (serve) => (handled: Effect.Effect<HttpServerResponse, unhandled>) => guarded(serve, handled)
    )
  ).layer

/** The router of the context, with a path before its routes. The handlers do not see the path. */
const layerPrefixed = (prefix: string) =>
  Layer.effect(HttpRouter.HttpRouter, Effect.map(HttpRouter.HttpRouter, (router) => router.prefixed(prefix)))

const before = (prefix: string): string => prefix.replace(/\/+$/u, "")

/** Puts all that the bundled server does around the routes of one gateway. */
const surrounded = <E, R>(
  routes: Layer.Layer<never, E, R>,
  { docs = true, fastLane, hosts, origins, prefix = "/" }: Mount,
  methods: NotFoundRoutes.Methods
) => {
  const path = before(prefix)
  const observed = Layer.provide(
    routes,
    layerObserved({ docs, fastLane: path === "" ? fastLane : undefined, hosts, methods, origins, prefix: path })
  )
  const laned = Layer.provide(observed, FastLane.layer)
  // the layers of routes hold services: memoised, two gateways would have those of one
  return Layer.fresh(path === "" ? laned : Layer.provide(laned, layerPrefixed(path)))
}

const detailed = { routes: HttpApiRoutes.layerHealth, methods: NotFoundRoutes.methodsByPath(HttpApiRoutes.HealthApi) }
const short = {
  routes: HttpApiRoutes.layerShortHealth,
  methods: NotFoundRoutes.methodsByPath(HttpApiRoutes.ShortHealthApi)
}
const none = { routes: Layer.empty, methods: {} }

const healthRoutes = ({ health = true }: Mount) => health === "short" ? short : health ? detailed : none

const ofChains = NotFoundRoutes.methodsByPath(ChainsApi)
const ofAdmin = NotFoundRoutes.methodsByPath(AdminRoutes.AdminApi)
const ofSandbox = NotFoundRoutes.methodsByPath(SandboxRoutes.SandboxApi)

const mountRoutes = (mount: Mount) =>
  Layer.mergeAll(
    HttpApiRoutes.layer,
    CandleRoutes.layer,
    relayed(mount.relay ?? relayDefaults),
    healthRoutes(mount).routes
  )

/** The pages, which are the same for everyone and hold nothing of this gateway. */
const pageRoutes = (mount: Mount) =>
  Layer.merge(
    mount.docs === false
      ? Layer.empty
      : DocsPage.layer({ health: mount.health !== false, prefix: before(mount.prefix ?? "/") }),
    mount.console === true ? ConsolePage.layer : Layer.empty
  )

const mountMethods = (mount: Mount): NotFoundRoutes.Methods => ({ ...ofChains, ...healthRoutes(mount).methods })

/**
 * The routes of the contract, its OpenAPI document and its reference page, with everything the bundled server does around them.
 *
 * Requests get an id, are counted, logged and traced without the caller's part of the URL, and are bounded on each
 * connection. Foreign hosts and foreign pages are kept out. Requests below the prefix that match no route get a 404. Routes
 * of the embedding server are not affected. The routes of the operator are not among them: see {@link layerWithAdmin}.
 *
 * Two gateways on one server have two prefixes, and each its own services.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { NodeHttpServer } from "@effect/platform-node"
 * import { Sandbox } from "@trigate/sandbox"
 * import * as Gateway from "@trigate/server/Gateway"
 * import { Layer } from "effect"
 * import { HttpRouter } from "effect/http"
 * import { createServer } from "node:http"
 *
 * // the routes of a gateway below a prefix, in a server of one's own
 * const gateway = Gateway.layer({ prefix: "/gateway" }).pipe(
 *   Layer.provide(Gateway.layerDefaults({ sandbox: true })),
 *   Layer.provide(Sandbox.layer())
 * )
 *
 * export const server = HttpRouter.serve(gateway).pipe(Layer.provide(NodeHttpServer.layer(createServer, { port: 8090 })))
 * ```
 */
export const layer = (mount: Mount = {}) =>
  surrounded(Layer.merge(mountRoutes(mount), pageRoutes(mount)), mount, mountMethods(mount))

/** Where the routes are, and whether strangers can reach them. */
export interface AdminMount extends Omit<Mount, "fastLane"> {
  /** Whether every route but the pages asks for a key whose scope names `admin`; false when not given. */
  readonly isGuarded?: boolean
  /** The sandbox that the routes control; none when not given. */
  readonly sandbox?: SandboxRoutes.Controlled | undefined
}

/**
 * The same with the routes of the operator: for a private or guarded server.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerWithAdmin = (mount: AdminMount = {}) => {
  const { sandbox } = mount
  const routes = Layer.mergeAll(
    mountRoutes(mount),
    AdminRoutes.layer,
    sandbox === undefined ? Layer.empty : SandboxRoutes.layer(sandbox)
  )
  return surrounded(
    Layer.merge(mount.isGuarded === true ? Layer.provide(routes, layerGuarded()) : routes, pageRoutes(mount)),
    mount,
    { ...mountMethods(mount), ...ofAdmin, ...(sandbox === undefined ? {} : ofSandbox) }
  )
}

/** What `/health/ready` says of a server of your own. */
export interface Defaults {
  /** Whether the services are those of the sandbox. */
  readonly sandbox: boolean
  /** The trading chain's network; mainnet when not given. */
  readonly network?: "mainnet" | "testnet"
  /** How each chain is served; not said when not given. */
  readonly chains?: Readiness["chains"]
}

/**
 * The services that the routes need besides the five of the chains.
 *
 * Access is open. `/health/ready` reports the services provided here, and fails once `Drain` drains. It reports the stores
 * if you provide `GatewayStatus.layerStoreReadiness` beside your action log. There is an access log only with `AccessLog.layer`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerDefaults = (
  { chains, network = "mainnet", sandbox }: Defaults
): Layer.Layer<
  | CallerKeys.CallerKeys
  | Quotas.Quotas
  | GatewayStatus
  | Load.Load
  | Drain.Drain
  | AccessLog.AccessLog
  | LiveRequests.LiveRequests
  | Sessions.Sessions
> => {
  return Layer.mergeAll(
    CallerKeys.layerOpen,
    Quotas.layerMemory,
    Drain.layer,
    Load.layer(Load.defaults),
    AccessLog.layerOff,
    LiveRequests.layer,
    Sessions.layerNone(),
    Layer.succeed(GatewayStatus, { sandbox, network, ...(chains === undefined ? {} : { chains }) })
  )
}
