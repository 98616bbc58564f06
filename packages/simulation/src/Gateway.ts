/**
 * A simulated replica of a gateway: its real routes, sessions and services on a node, over a simulated network and the
 * stores that the replicas share.
 */
import * as CallerKeys from "@trigate/callers/CallerKeys"
import * as Quotas from "@trigate/callers/Quotas"
import type { Policies } from "@trigate/domain/actions/Policy"
import * as FilterStore from "@trigate/evm/unstable/Filters"
import * as GatewayServer from "@trigate/server/GatewayServer"
import * as Listener from "@trigate/server/requests/Listener"
import * as SettingsSources from "@trigate/server/settings/SettingsSources"
import * as Chains from "@trigate/server/unstable/Chains"
import * as LiveChains from "@trigate/server/unstable/LiveChains"
import * as Load from "@trigate/server/unstable/process/Load"
import * as MetricHistory from "@trigate/server/unstable/process/Metrics"
import * as Observe from "@trigate/server/unstable/requests/Observe"
import * as Sessions from "@trigate/server/unstable/streams/Sessions"
import * as NonceSource from "@trigate/signing/NonceSource"
import { MetadataFetch } from "@trigate/tokens/TokenChain"
import { SharedTransactions } from "@trigate/tokens/transactions/Transactions"
import * as AccountEvents from "@trigate/trading/accounts/AccountEvents"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import type { GuardStore } from "@trigate/trading/guard/GuardStore"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as ReplicaUse from "@trigate/upstream/streams/ReplicaUse"
import { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import { HttpTransport } from "@trigate/upstream/transport/HttpTransport"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { constTrue } from "effect/Function"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as HttpServing from "./HttpServing.ts"
import type { Network } from "./Network.ts"
import type * as Simulation from "./Simulation.ts"

/** The stores of a replica. Replicas share those that are made over one simulated store. */
export interface Stores {
  readonly actionLog: Layer.Layer<ActionLog.ActionLog>
  readonly events: Layer.Layer<AccountEvents.EventStore>
  readonly replicaUse: Layer.Layer<ReplicaUse.ReplicaUse>
  readonly cache: Layer.Layer<ResponseCache.ResponseCache>
  readonly rateLimits: LiveChains.RateLimits
  /** The store of guards. Default: a guard keeps its state in its process. */
  readonly guard?: Layer.Layer<GuardStore>
}

/** Makes stores in the memory of one replica, which are lost when it is killed. */
export const memoryStores = (): Stores => ({
  actionLog: ActionLogMemory.layer(),
  events: AccountEvents.layerMemory(),
  replicaUse: ReplicaUse.layerMemory,
  cache: ResponseCache.layer(),
  rateLimits: (settings, windows) => RateLimiter.layerMemory(RateLimiter.toLimits(settings), windows)
})

/** The options of a replica. */
export interface Options {
  readonly network: Network
  readonly node: Simulation.Node
  /** The address of the replica, such as `http://gateway-1`. */
  readonly address: string
  readonly stores: Stores
  /** The settings, by environment variable. `TRIGATE_TRADING_API_URL` is the address of the venue. */
  readonly environment: { readonly [name: string]: string }
  /** The policies by which signed actions are judged. Default: none. */
  readonly policies?: Policies
}

const persistent = ({ network, node, stores }: Options, noted: LiveChains.Noted) =>
  Layer.mergeAll(
    Layer.provide(ActionLog.layerNoting(noted), stores.actionLog),
    stores.events,
    stores.replicaUse,
    Layer.succeed(HttpTransport, network.http(node)),
    Layer.succeed(SocketTransport, network.sockets(node)),
    Layer.succeed(MetadataFetch, { fetch: () => Effect.succeedNone }),
    stores.cache,
    stores.guard ?? Layer.empty,
    FilterStore.layerMemory(),
    SharedTransactions.layer()
  )

/** The services around the routes that the bundled server provides, too. */
const surroundings = Layer.mergeAll(
  CallerKeys.layerOpen,
  Quotas.layerMemory,
  NonceSource.layerMemory(),
  Load.layerDrain,
  Load.layer(Load.defaults),
  Observe.layerLiveRequests,
  MetricHistory.layerHistory,
  Sessions.layerCurrent(),
  Layer.succeed(HttpMiddleware.TracerDisabledWhen, constTrue),
  HttpServer.layerServices
)

/**
 * Serves a replica at its address until the scope closes. Run it on the node of the replica. Closing the scope drains the
 * replica, as SIGTERM does.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { ActionBuilder, Signer } from "@trigate/signing"
 * import * as Gateway from "@trigate/simulation/Gateway"
 * import * as Network from "@trigate/simulation/Network"
 * import * as Simulation from "@trigate/simulation/Simulation"
 * import * as Venue from "@trigate/simulation/Venue"
 * import { ActionLogMemory, Exchange, Trading } from "@trigate/trading"
 * import { Pipeline } from "@trigate/upstream"
 * import { Clock, Effect, Exit, Fiber, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 * const orders = [{ asset: 1, side: "buy", priceInQuote: "1100.5", sizeInBase: "0.2" }] as const
 *
 * const place = Effect.gen(function*() {
 *   const { submit } = yield* Exchange.Exchange
 *   const nonce = yield* Clock.currentTimeMillis
 *   return yield* submit(yield* ActionBuilder.placeOrders({ orders }, { nonce }))
 * })
 *
 * const program = Effect.gen(function*() {
 *   const { node } = yield* Simulation.Simulation
 *   const network = yield* Network.make()
 *   const venue = yield* Venue.make({ network })
 *
 *   const replica = node("gateway")
 *   const gateway = Gateway.make({
 *     network,
 *     node: replica,
 *     address: "http://gateway",
 *     stores: Gateway.memoryStores(),
 *     environment: { TRIGATE_TRADING_API_URL: "http://venue" }
 *   })
 *   replica.start(Effect.scoped(Effect.andThen(gateway, Effect.never)))
 *   yield* Effect.sleep("1 second")
 *
 *   const bot = node("bot")
 *   const services = Trading.layerNoDeps({ network: "mainnet", addresses: { api: ["http://gateway"] } }).pipe(
 *     Layer.provide([ActionLogMemory.layer(), Pipeline.layer()]),
 *     Layer.provide(network.layer(bot)),
 *     Layer.provideMerge(Signer.layerPrivateKey(key))
 *   )
 *   const { entries: [entry] } = yield* Fiber.join(bot.start(Effect.provide(place, services)))
 *   return `${entry?._tag}, ${venue.arrivals.filter(({ path }) => path === "/exchange").length} arrival`
 * })
 *
 * await Effect.runPromise(Venue.load)
 * const { exit } = Simulation.run(program)
 * console.log(Exit.isSuccess(exit) ? exit.value : exit.cause)
 * ```
 * ```text
 * Resting, 1 arrival
 * ```
 */
export const make = Effect.fnUntraced(function*(options: Options) {
  const { address, environment, network, node, stores } = options
  const loaded = yield* SettingsSources.load.pipe(
    Effect.provideService(
      ConfigProvider.ConfigProvider,
      ConfigProvider.fromUnknown({ TRIGATE_ACCESS_LOG: "off", TRIGATE_HOSTS: "*", ...environment })
    )
  )
  const settings = options.policies === undefined ? loaded : { ...loaded, policies: options.policies }
  const inForce = new Chains.SettingsInForce(settings)
  const noted = { familiar: new Set<string>(), nonces: new ActionLog.UsedNonces() }
  const chains = Layer.effect(Chains.Chains, LiveChains.make(inForce, noted, stores.rateLimits)).pipe(
    Layer.provide(persistent(options, noted))
  )
  const services = yield* Layer.build(Layer.provideMerge(chains, Layer.fresh(surroundings))).pipe(
    // no event loop is measured
    Effect.provideService(Load.EventLoopLag, () => Effect.never)
  )
  const routes = yield* Effect.provideContext(
    GatewayServer.makeRoutes(inForce, { fastLane: false, pages: false }),
    services
  )
  network.serve(address, HttpServing.make(node, Effect.provideContext(routes.handle, services)))
  yield* Effect.addFinalizer(() => {
    network.close(address)
    const { drain } = Context.get(services, Load.Drain)
    return Effect.all([drain(Listener.maxDrainWait), routes.sessions.drain(settings.streamDrain)], {
      concurrency: "unbounded",
      discard: true
    })
  })
})
