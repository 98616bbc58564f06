/**
 * All routes of the gateway, for the bundled server and for embedding servers. The routes call the services of the
 * chains.
 *
 * Provide `layer` with the services of the chains (live, memory or sandbox) and with `layerDefaults`, and serve its
 * `HttpRouter`. `NodeServer.layer` is the HTTP server of the bundled gateway, with its connection limits.
 */
import { ChainsApi } from "@trigate/api/GatewayApi"
import type { Readiness } from "@trigate/api/unstable/HealthApi"
import * as CallerKeys from "@trigate/callers/CallerKeys"
import * as Quotas from "@trigate/callers/Quotas"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import type { unhandled } from "effect/Types"
import { GatewayStatus } from "./Chains.ts"
import * as Load from "./process/Load.ts"
import * as MetricHistory from "./process/Metrics.ts"
import * as FastLane from "./requests/Listener.ts"
import * as Observe from "./requests/Observe.ts"
import * as ProblemResponse from "./requests/Request.ts"
import * as AdminRoutes from "./routes/AdminRoutes.ts"
import * as DocsPage from "./routes/DocsPage.ts"
import * as HttpApiRoutes from "./routes/HttpApiRoutes.ts"
import * as NotFoundRoutes from "./routes/NotFoundRoutes.ts"
import * as RelayEndpoints from "./routes/Relay.ts"
import * as ConsolePage from "./routes/StaticPage.ts"
import * as Sessions from "./streams/Sessions.ts"

/** The options of the routes in an embedding server: their path prefix, which routes exist, and the allowed origins. */
export interface Mount {
  /** The prefix of all paths, such as `/gateway`. Default: empty. */
  readonly prefix?: `/${string}`
  /** Whether `/` serves the console. Default: false. */
  readonly console?: boolean
  /** Whether `/docs` and `/openapi.json` exist. Default: true. */
  readonly docs?: boolean
  /**
   * Whether `/health/live`, `/health/ready` and `/metrics` exist. Default: true.
   *
   * If the value is `short`, `/metrics` does not exist, and `/health/ready` reports only the status, the network and
   * whether the gateway serves the sandbox. If an admin listener exists, the callers' listener uses `short`.
   */
  readonly health?: boolean | "short"
  /**
   * The server's entrance to the fast lane, which serves requests without Effect's router: see `FastLane`. Default:
   * none. Not available with a prefix.
   *
   * Requests on the fast lane bypass middleware that the embedding server puts around these routes, such as an access
   * check.
   */
  readonly fastLane?: FastLane.Entrance | undefined
  /**
   * The `Host` values that are accepted in addition to loopback hosts. By default, a server on a public address accepts
   * any host, and a server on a loopback address accepts only loopback hosts.
   */
  readonly hosts?: Observe.Hosts | undefined
  /**
   * The origins whose pages are allowed to read responses, and to send actions, transactions and messages. Default:
   * none.
   */
  readonly origins?: Observe.Origins | undefined
  /**
   * The operations that are relayed in addition to the documented ones. Default: `/info` queries of any type, no
   * additional JSON-RPC methods, and batches of at most 100 calls.
   */
  readonly relay?: RelayEndpoints.Options
}

/** Authorizes requests before a route handles them. */
const guarded = (serve: AdminRoutes.Administering, handled: Effect.Effect<HttpServerResponse, unhandled>) =>
  Effect.flatMap(HttpServerRequest, (request) =>
    Effect.matchEffect(serve(request, Effect.void), {
      onFailure: (error) => ProblemResponse.answerProblem(error, ""),
      onSuccess: () => handled
    }))

/**
 * Observes (counts, logs and traces) each request to the router of the context. Also responds to requests that match no
 * route of the server.
 */
const layerObserved = (
  { fastLane, ...options }: Observe.Options & { readonly fastLane: FastLane.Entrance | undefined }
) =>
  HttpRouter.middleware(Effect.gen(function*() {
    const router = yield* HttpRouter.HttpRouter
    const observed = yield* Observe.make(options)
    if (fastLane !== undefined) fastLane.lane = yield* FastLane.make(observed)
    yield* router.addGlobalMiddleware(observed.server)
    return (handled: Effect.Effect<HttpServerResponse, unhandled>) =>
      observed.route(NotFoundRoutes.requireCanonical(handled))
  })).layer

/** Requires a key whose scope contains `admin` for the routes of the context. */
const layerGuarded = () =>
  HttpRouter.middleware(
    Effect.map(
      AdminRoutes.guarding,
      (serve) => (handled: Effect.Effect<HttpServerResponse, unhandled>) => guarded(serve, handled)
    )
  ).layer

/** Adds a path prefix to the routes of the context's router. The handlers do not see the prefix. */
const layerPrefixed = (prefix: string) =>
  Layer.effect(HttpRouter.HttpRouter, Effect.map(HttpRouter.HttpRouter, (router) => router.prefixed(prefix)))

const before = (prefix: string): string => prefix.replace(/\/+$/u, "")

/** Adds the bundled server's middleware around the routes of one gateway. */
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
  const laned = Layer.provide(observed, FastLane.layerFastLane)
  // a route layer contains services; if it were memoized, two gateways would share them
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
const ofSandbox = NotFoundRoutes.methodsByPath(AdminRoutes.SandboxApi)

const mountRoutes = (mount: Mount) =>
  Layer.mergeAll(
    HttpApiRoutes.layer,
    HttpApiRoutes.layerCandles,
    RelayEndpoints.layer(mount.relay ?? RelayEndpoints.relayDefaults),
    healthRoutes(mount).routes
  )

/** The static pages, which contain no data of the running gateway. */
const pageRoutes = (mount: Mount) =>
  Layer.merge(
    mount.docs === false
      ? Layer.empty
      : DocsPage.layer({ health: mount.health !== false, prefix: before(mount.prefix ?? "/") }),
    mount.console === true ? ConsolePage.layer : Layer.empty
  )

const mountMethods = (mount: Mount): NotFoundRoutes.Methods => ({ ...ofChains, ...healthRoutes(mount).methods })

/**
 * The routes of the API, its OpenAPI document and its reference page, with the bundled server's middleware.
 *
 * Each request gets an ID, and is counted, logged and traced by the name of its route, without its URL. The number of
 * requests that wait on one connection is limited. A request is refused if its host is not accepted or its origin is
 * not allowed. A request below the prefix that matches no route gets a 404. Routes of the embedding server are not
 * affected. The operator's routes are not included: see {@link layerWithAdmin}.
 *
 * Two gateways on one server need different prefixes. Each gateway has its own services.
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

/** The options of all routes, including the operator's routes, and whether the routes require a key. */
export interface AdminMount extends Omit<Mount, "fastLane"> {
  /** Whether every route except the pages requires a key whose scope contains `admin`. Default: false. */
  readonly isGuarded?: boolean
  /** The sandbox that the routes control. Default: none. */
  readonly sandbox?: AdminRoutes.Controlled | undefined
}

/**
 * The routes of {@link layer} and the operator's routes. If clients other than the operator can reach the server, set
 * `isGuarded`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerWithAdmin = (mount: AdminMount = {}) => {
  const { sandbox } = mount
  const routes = Layer.mergeAll(
    mountRoutes(mount),
    AdminRoutes.layer,
    sandbox === undefined ? Layer.empty : AdminRoutes.layerSandbox(sandbox)
  )
  return surrounded(
    Layer.merge(mount.isGuarded === true ? Layer.provide(routes, layerGuarded()) : routes, pageRoutes(mount)),
    mount,
    { ...mountMethods(mount), ...ofAdmin, ...(sandbox === undefined ? {} : ofSandbox) }
  )
}

/** The facts that `/health/ready` reports on an embedding server. */
export interface Defaults {
  /** Whether the services belong to a sandbox. */
  readonly sandbox: boolean
  /** The venue's network. Default: mainnet. */
  readonly network?: "mainnet" | "testnet"
  /** The mode of each chain. Default: `/health/ready` omits the modes. */
  readonly chains?: Readiness["chains"]
}

/**
 * The services that the routes need in addition to the services of the chains.
 *
 * Requests need no key. `/health/ready` reports the options given here, and fails while the gateway shuts down
 * (`Drain`). If you provide `GatewayStatus.layerStoreReadiness` and an action log, `/health/ready` also reports the
 * stores. To write an access log, provide `AccessLog.layer`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerDefaults = (
  { chains, network = "mainnet", sandbox }: Defaults
): Layer.Layer<
  | CallerKeys.CallerKeys
  | NonceSource.NonceSource
  | Quotas.Quotas
  | GatewayStatus
  | Load.Load
  | Load.Drain
  | Observe.AccessLog
  | Observe.LiveRequests
  | MetricHistory.MetricHistory
  | Sessions.Sessions
> => {
  return Layer.mergeAll(
    CallerKeys.layerOpen,
    Quotas.layerMemory,
    NonceSource.layerMemory(),
    Load.layerDrain,
    Load.layer(Load.defaults),
    Observe.layerOff,
    Observe.layerLiveRequests,
    MetricHistory.layerHistory,
    Sessions.layerNone(),
    Layer.succeed(GatewayStatus, { sandbox, network, ...(chains === undefined ? {} : { chains }) })
  )
}
