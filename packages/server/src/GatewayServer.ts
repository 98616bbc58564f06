/**
 * The bundled gateway: the routes over the configured chains, on Node's HTTP server.
 *
 * Its settings can change while it serves. On a change, new routes are built over the persistent state (`Chains`), and
 * serve all new requests. The old routes serve only the requests in flight, and are released after the last of them.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeStdio from "@effect/platform-node/NodeStdio"
import type { CallerKeys } from "@trigate/callers/CallerKeys"
import type { Quotas } from "@trigate/callers/Quotas"
import * as Policy from "@trigate/domain/actions/Policy"
import type { NonceSource } from "@trigate/signing/NonceSource"
import { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import * as DeadMansSwitch from "@trigate/trading/guard/DeadMansSwitch"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import type { FileSystem } from "effect/FileSystem"
import { constTrue } from "effect/Function"
import type { Generator } from "effect/http/Etag"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import type { HttpPlatform } from "effect/http/HttpPlatform"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import type { ServeError } from "effect/http/HttpServerError"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { Path } from "effect/Path"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Struct from "effect/Struct"
import * as Chains from "./Chains.ts"
import * as Gateway from "./Gateway.ts"
import * as LiveChains from "./LiveChains.ts"
import * as Load from "./process/Load.ts"
import * as MetricHistory from "./process/Metrics.ts"
import { TrustedProxies } from "./requests/Callers.ts"
import * as Listener from "./requests/Listener.ts"
import * as Observe from "./requests/Observe.ts"
import * as SandboxRoutes from "./routes/AdminRoutes.ts"
import { type Settings, settings as declared } from "./settings/Settings.ts"
import * as EffectiveSettings from "./settings/SettingsSources.ts"
import { SettingsError } from "./settings/SettingsSources.ts"
import * as AuditLogWriter from "./stores/AuditLogWriter.ts"
import * as CallerStore from "./stores/Stores.ts"
import * as Sessions from "./streams/Sessions.ts"

/** The changed settings, each named by its environment variable. */
export interface Change {
  readonly applied: ReadonlyArray<string>
  /** Settings that changed, but apply only after a restart. */
  readonly needsRestart: ReadonlyArray<string>
}

/**
 * Changes the settings of a gateway while it serves.
 *
 * @since 0.1.0
 * @category services
 */
export class Reload extends Context.Service<Reload, {
  /**
   * Applies settings to new requests; requests in flight complete with the old settings.
   *
   * Fails with `SettingsError`, and changes nothing, if the settings change the network, or switch between live chains
   * and the sandbox.
   */
  readonly reload: (settings: Settings) => Effect.Effect<Change, SettingsError>
}>()("@trigate/server/GatewayServer/Reload") {}

const names = Struct.keys(declared)

const fixed = names.filter((name) => declared[name].needsRestart === true)

const compareSettings = (old: Settings, wanted: Settings): Change => {
  const changed = names.filter((name) =>
    !Equal.equals(old[name], wanted[name]) || (name === "guard" && !Equal.equals(old.policies, wanted.policies))
  )
  const envName = (name: typeof names[number]) => declared[name].env
  return {
    applied: changed.filter((name) => !fixed.includes(name)).map(envName),
    needsRestart: changed.filter((name) => fixed.includes(name)).map(envName)
  }
}

const isOther = (old: Settings, wanted: Settings): SettingsError | undefined => {
  if (old.network !== wanted.network) {
    const { env } = declared.network
    return new SettingsError({ setting: env, message: `${env} changed: restart the gateway to serve another network` })
  }
  return Chains.isSandbox(old) === Chains.isSandbox(wanted)
    ? undefined
    : new SettingsError({
      setting: "",
      message: "The settings switch between the sandbox and live chains: restart the gateway to apply them"
    })
}

/**
 * The location of the operator's routes: metrics, detailed readiness, the action log and the console.
 *
 * @since 0.1.0
 * @category services
 */
export class Admin extends Context.Service<Admin, {
  /** Scheme, host and port of the admin listener, or of the callers' listener if `TRIGATE_ADMIN_PORT` is not set. */
  readonly url: string
  /**
   * Whether the console and the action log are served. They are not served on a callers' listener that other machines
   * can reach.
   */
  readonly hasConsole: boolean
}>()("@trigate/server/GatewayServer/Admin") {}

/** The gateway could not start; the message is one line. */
export class StartError extends Schema.TaggedError<StartError>()("StartError", { message: Schema.String }) {}

/** Returns the address of the callers' listener. */
const callersAddress = ({ host, port }: Settings): Listener.ListenAddress => ({
  host,
  port,
  settings: { host: declared.host, port: declared.port }
})

/** Provides the sandbox. Fails if the package `@trigate/sandbox` is not installed. */
const layerSandbox = (settings: Settings) =>
  Layer.unwrap(
    Effect.tryPromise({
      try: () => import("./SandboxChains.ts"),
      catch: () =>
        new StartError({
          message:
            "No upstream URL is set, and the sandbox does not load: set a TRIGATE_*_URL, or install @trigate/sandbox"
        })
    }).pipe(Effect.map(({ layer }) => layer(settings)))
  )

/** The address of the admin listener, and whether it requires a key. */
export interface AdminPlace extends Listener.ListenAddress {
  readonly isGuarded: boolean
}

/**
 * Returns the address of the admin listener; `undefined` if `TRIGATE_ADMIN_PORT` is not set.
 *
 * Fails if other machines can reach the address and no keys protect it.
 */
export const adminAddress = (
  settings: Settings
): Result.Result<AdminPlace | undefined, SettingsError> => {
  const { adminPort } = settings
  if (Option.isNone(adminPort)) return Result.succeed(undefined)
  const { env } = declared.adminHost
  const isGuarded = !Observe.isOwnMachine(settings.adminHost)
  return Result.flatMap(CallerStore.findLocation(settings), (keys) =>
    isGuarded && Option.isNone(keys)
      ? Result.fail(
        new SettingsError({
          setting: env,
          message: `other machines can reach ${settings.adminHost}: set ${env} to a loopback address, or set ` +
            `${declared.callers.env} so that keys are required, and create a key with the class admin`
        })
      )
      : Result.succeed({
        host: settings.adminHost,
        port: adminPort.value,
        settings: { host: declared.adminHost, port: declared.adminPort },
        isGuarded
      }))
}

/** Runs an effect. Fails with {@link StartError} if the effect cannot listen on an address. */
const orStartError = <A, R>(place: Listener.ListenAddress, effect: Effect.Effect<A, ServeError, R>) =>
  Effect.mapError(effect, (error) => new StartError({ message: Listener.describeListenError(error, place) }))

/** Listens on an address. Requests wait until the `HttpServer` in the returned context has a handler. */
const listen = (place: Listener.ListenAddress, bounds: Listener.Bounds = {}) =>
  orStartError(place, Layer.build(Listener.layer({ ...place, ...bounds })))

/** Returns the services of the routes that follow from the settings. */
const routeServices = (settings: Settings, chains: Chains.Chains["Service"]) =>
  Layer.mergeAll(
    chains.layerServices(settings),
    Layer.succeed(EffectiveSettings.EffectiveSettings, EffectiveSettings.list(settings)),
    Layer.succeed(TrustedProxies, settings.trustedProxies),
    Layer.succeed(Chains.GatewayStatus, Chains.makeStatus(settings)),
    settings.accessLog ? Layer.provide(Observe.layer, NodeStdio.layer) : Observe.layerOff
  )

/** The services that the routes need, and that persist across changes of the settings. */
type Surroundings =
  | CallerKeys
  | NonceSource
  | Quotas
  | Load.Load
  | Load.Drain
  | Observe.LiveRequests
  | MetricHistory.MetricHistory
  | FileSystem
  | Generator
  | HttpPlatform
  | Path
  | Scope.Scope

/** Returns the limits of callers' WebSockets. */
const sessionLimits = (settings: Settings): Sessions.Options => ({
  sockets: settings.streamCallerSockets,
  bytesIn: settings.streamCallerBytesIn,
  bytesOut: settings.streamCallerBytesOut,
  subscriptions: settings.streamPerSocket,
  messages: settings.streamCallerMessages,
  posts: settings.streamPosts,
  queue: { frames: settings.streamQueueFrames, bytes: settings.streamQueueBytes }
})

/** The options of {@link makeRoutes}. */
export interface RouteOptions {
  /** The address of the operator's routes, if they have a listener of their own. */
  readonly admin?: AdminPlace | undefined
  /** Whether a fast lane is made. */
  readonly fastLane: boolean
  /** Whether the console and the documentation are served. Default: true. */
  readonly pages?: boolean
}

/**
 * Makes the routes of a gateway over its chains, for a server that the caller provides.
 *
 * `replace` makes the routes anew with other settings. The old routes are released after the last of their requests.
 */
export const makeRoutes = Effect.fnUntraced(function*(
  inForce: Chains.SettingsInForce,
  { admin: place, fastLane: hasFastLane, pages = true }: RouteOptions
) {
  const first = inForce.current
  const chains = yield* Chains.Chains
  const drain = yield* Load.Drain
  const isAlone = Observe.isOwnMachine(first.host)
  const scope = yield* Scope.Scope
  const sandbox = chains.sandbox === undefined ? undefined : SandboxRoutes.controlled(chains.sandbox)
  const sessions = yield* Sessions.make(chains, {
    ...sessionLimits(first),
    isCut: () => sandbox?.state.faults.happens("droppedSockets") === true
  })
  const current = yield* Sessions.CurrentServices
  const switches = yield* DeadMansSwitch.make({
    relay: (call) => Effect.suspend(() => current.get()?.exchange.relay(call) ?? Effect.never),
    log: chains.actionLog,
    store: chains.guardStore,
    used: chains.usedNonces,
    isPresent: sessions.isConnected,
    audit: yield* AuditLogWriter.current
  })
  const context = (yield* Effect.context<Surroundings>()).pipe(
    Context.add(ActionLog, chains.actionLog),
    Context.add(DeadMansSwitch.DeadMansSwitch, switches),
    Context.add(RateLimiter.Windows, chains.windows),
    Context.add(Sessions.Sessions, sessions)
  )

  const build = Effect.fnUntraced(function*(settings: Settings) {
    const own = yield* Scope.fork(scope)
    const services = Layer.succeedContext(
      yield* Layer.build(routeServices(settings, chains)).pipe(Scope.provide(own))
    )
    const fastLane: Listener.Entrance = { lane: undefined }
    const mount = {
      docs: pages,
      relay: { anyInfo: settings.relayInfo, methods: settings.relayMethods, maxBatch: settings.batchLimit },
      fastLane: hasFastLane ? fastLane : undefined,
      hosts: Option.getOrUndefined(settings.hosts),
      origins: Option.getOrUndefined(settings.corsOrigins)
    }
    const routes = place !== undefined
      ? Gateway.layer({ ...mount, health: "short" })
      // the console shows the operator's data, so it is served here only if other machines cannot reach this listener
      : isAlone
      ? Gateway.layerWithAdmin({ ...mount, console: pages, sandbox })
      : Gateway.layer(mount)
    return {
      fastLane,
      handle: yield* HttpRouter.toHttpEffect(Layer.provide(routes, services)).pipe(Scope.provide(own)),
      admin: place === undefined
        ? undefined
        : yield* HttpRouter.toHttpEffect(
          Layer.provide(
            Gateway.layerWithAdmin({
              relay: mount.relay,
              console: true,
              isGuarded: place.isGuarded,
              sandbox
            }),
            services
          )
        ).pipe(Scope.provide(own)),
      own,
      settings
    }
  }, Effect.provideContext(context))

  let now = yield* build(first)
  const entrance = { ...now.fastLane }
  const replace = Effect.fnUntraced(function*(settings: Settings) {
    const next = yield* build(settings)
    const old = now
    now = next
    inForce.replace(settings)
    yield* chains.guard.replace(settings.policies ?? Policy.none)
    const foreign = Observe.foreignTo(Option.getOrUndefined(settings.corsOrigins))
    sessions.closeForeign((headers) => foreign(headers, headers["host"]) !== undefined)
    entrance.lane = next.fastLane.lane
    yield* Effect.forkIn(Effect.andThen(drain.current, Scope.close(old.own, Exit.void)), scope)
  })
  return {
    handle: Effect.suspend(() => now.handle),
    admin: Effect.suspend(() => now.admin ?? now.handle),
    entrance,
    sessions,
    settings: () => now.settings,
    replace
  }
})

const make = Effect.fnUntraced(function*(
  inForce: Chains.SettingsInForce,
  place: AdminPlace | undefined,
  hasFastLane: boolean
) {
  const first = inForce.current
  const drain = yield* Load.Drain
  const routes = yield* makeRoutes(inForce, { admin: place, fastLane: hasFastLane })
  const one = yield* Semaphore.make(1)
  // the listeners open last, so that connections find a complete gateway. The callers' listener opens first, so that
  // the admin listener responds only if both are open.
  const callers = yield* listen(callersAddress(first), {
    maxConnections: first.maxConnections,
    trustedProxies: first.trustedProxies
  })
  const admin = place === undefined ? undefined : yield* listen(place)
  yield* Effect.uninterruptible(Effect.gen(function*() {
    yield* Effect.provideContext(Listener.serve(routes.handle, routes.entrance), callers)
    if (admin !== undefined) {
      yield* Effect.provideContext(HttpServer.serveEffect(routes.admin), admin)
    }
    // finalizers run in reverse order: the servers must listen until the requests in flight have completed
    yield* Effect.addFinalizer(() =>
      Effect.all([drain.drain(Listener.maxDrainWait), routes.sessions.drain(first.streamDrain)], {
        concurrency: "unbounded",
        discard: true
      })
    )
  }))

  const reload = Reload.of({
    reload: Effect.fnUntraced(function*(wanted) {
      const settings = routes.settings()
      const refusal = isOther(settings, wanted)
      if (refusal !== undefined) return yield* refusal
      const change = compareSettings(settings, wanted)
      if (change.applied.length > 0) yield* routes.replace({ ...wanted, ...Struct.pick(settings, fixed) })
      return change
    }, one.withPermits(1))
  })
  const server = Context.get(callers, HttpServer.HttpServer)
  const { address } = admin === undefined ? server : Context.get(admin, HttpServer.HttpServer)
  return Context.make(Reload, reload).pipe(
    Context.add(HttpServer.HttpServer, server),
    Context.add(Admin, {
      url: HttpServer.formatAddress(address),
      hasConsole: place !== undefined || Observe.isOwnMachine(first.host)
    })
  )
})

/** Options of the bundled gateway. */
export interface Options {
  /**
   * Whether small requests and WebSocket handshakes bypass Effect's HTTP adapter: see `FastLane`. If false, all
   * requests use the adapter. Default: true.
   */
  readonly fastLane?: boolean
}

/**
 * Starts a gateway.
 *
 * Listens after everything else is ready. Fails with `SettingsError` if other machines can reach the gateway and the
 * settings do not configure who is allowed to call it. Fails with {@link StartError} if it cannot listen. Checks the
 * addresses before it opens a store, because the store might be in use by a gateway that already listens on these
 * addresses.
 *
 * When the layer's scope closes, readiness fails first, then the requests in flight complete, and then the socket
 * closes.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (settings: Settings, { fastLane = true }: Options = {}) =>
  Layer.unwrap(Effect.gen(function*() {
    const keys = yield* Effect.fromResult(CallerStore.findLocation(settings))
    const admin = yield* Effect.fromResult(adminAddress(settings))
    for (const place of [callersAddress(settings), ...admin === undefined ? [] : [admin]]) {
      yield* orStartError(place, Listener.checkAddress(place))
    }
    const inForce = new Chains.SettingsInForce(settings)
    return Layer.effectContext(make(inForce, admin, fastLane)).pipe(
      Layer.provide(Chains.isSandbox(settings) ? layerSandbox(settings) : LiveChains.layer(inForce)),
      Layer.provide(CallerStore.layerCallers(keys)),
      Layer.provideMerge(Layer.mergeAll(
        AuditLogWriter.layer(settings.auditLog),
        Sessions.layerCurrent(),
        Load.layerDrain,
        Observe.layerLiveRequests,
        MetricHistory.layerHistory,
        Load.layer({ maxLag: settings.maxLag, memory: settings.memoryInFlight }),
        // Effect's request spans are off: the gateway makes its own, which contain no URL
        Layer.succeed(HttpMiddleware.TracerDisabledWhen, constTrue),
        NodeHttpServer.layerHttpServices
      ))
    )
  }))
