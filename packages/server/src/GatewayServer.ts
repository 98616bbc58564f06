/**
 * The bundled gateway: the routes over the configured chains, on Node's HTTP server.
 *
 * Its settings can change while it serves. The routes of the new settings are built beside those of the old ones, over what
 * stays (`Chains`), and take the requests that come from then on. The old ones end with their last request.
 */
import * as NodeStdio from "@effect/platform-node/NodeStdio"
import { CallerKeys } from "@trigate/callers/CallerKeys"
import { Quotas } from "@trigate/callers/Quotas"
import type { Settings } from "@trigate/domain/Settings"
import { settings as declared } from "@trigate/domain/Settings"
import { ActionLog } from "@trigate/trading/ActionLog"
import * as RateLimiter from "@trigate/upstream/RateLimiter"
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
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { Path } from "effect/Path"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Struct from "effect/Struct"
import * as AuditLogWriter from "./AuditLogWriter.ts"
import * as CallerStore from "./CallerStore.ts"
import * as Chains from "./Chains.ts"
import * as FastLane from "./FastLane.ts"
import * as Gateway from "./Gateway.ts"
import * as GatewayStatus from "./GatewayStatus.ts"
import * as Hosts from "./Hosts.ts"
import * as Load from "./Load.ts"
import * as NodeServer from "./NodeServer.ts"
import * as Observe from "./Observe.ts"
import { TrustedProxies } from "./RequestCaller.ts"
import * as RequestFacts from "./RequestFacts.ts"
import * as RequestTail from "./RequestTail.ts"
import { SettingsError } from "./Settings.ts"

/** What became of new settings; the names are those of the environment. */
export interface Change {
  readonly applied: ReadonlyArray<string>
  /** Settings that changed and keep their old values until the gateway starts again. */
  readonly needsRestart: ReadonlyArray<string>
}

/** Changes the settings of a gateway while it serves. */
export class Reload extends Context.Service<Reload, {
  /**
   * Serves the requests from now on by other settings; those in flight end by the settings with which they began.
   *
   * Fails with `SettingsError`, and changes nothing, where the settings are those of another gateway: of another network, or
   * of the sandbox instead of real chains.
   */
  readonly reload: (settings: Settings) => Effect.Effect<Change, SettingsError>
}>()("@trigate/server/GatewayServer/Reload") {}

const names = Struct.keys(declared)

const fixed = names.filter((name) => declared[name].needsRestart === true)

const changeOf = (old: Settings, wanted: Settings): Change => {
  const changed = names.filter((name) => !Equal.equals(old[name], wanted[name]))
  const envOf = (name: typeof names[number]) => declared[name].env
  return {
    applied: changed.filter((name) => !fixed.includes(name)).map(envOf),
    needsRestart: changed.filter((name) => fixed.includes(name)).map(envOf)
  }
}

const isOther = (old: Settings, wanted: Settings): SettingsError | undefined => {
  if (old.network !== wanted.network) {
    const { env } = declared.network
    return new SettingsError({ setting: env, message: `${env} changed: another network takes a gateway of its own` })
  }
  return GatewayStatus.isSandbox(old) === GatewayStatus.isSandbox(wanted)
    ? undefined
    : new SettingsError({ setting: "", message: "The sandbox and real chains take a gateway each: start it again" })
}

/** Where whoever runs the gateway finds metrics, readiness in detail, the action log and the console. */
export class Admin extends Context.Service<Admin, {
  /** Scheme, host and port: those of the listener for callers where there is no other. */
  readonly url: string
  /** Whether the console and the action log are there: not on a listener for callers that others can reach. */
  readonly hasConsole: boolean
}>()("@trigate/server/GatewayServer/Admin") {}

/** Where the listener for callers is. */
export const placeOf = ({ host, port }: Settings): NodeServer.Place => ({
  host,
  port,
  names: { host: declared.host.env, port: declared.port.env }
})

/**
 * Where the admin listener is, and whether it asks for a key; nothing where there is none.
 *
 * Fails for an address that others can reach if there are no keys to ask for.
 */
export const adminPlaceOf = (
  settings: Settings
): Result.Result<NodeServer.Place & { readonly isGuarded: boolean } | undefined, SettingsError> => {
  const { adminPort } = settings
  if (Option.isNone(adminPort)) return Result.succeed(undefined)
  const names = { host: declared.adminHost.env, port: declared.adminPort.env }
  const isGuarded = !Hosts.isOwnMachine(settings.adminHost)
  return Result.flatMap(CallerStore.placeOf(settings), (keys) =>
    isGuarded && Option.isNone(keys)
      ? Result.fail(
        new SettingsError({
          setting: names.host,
          message: `others can reach ${settings.adminHost}: ${names.host} takes a loopback address unless ` +
            `${declared.callers.env} names keys, of which one has the class admin`
        })
      )
      : Result.succeed({ host: settings.adminHost, port: adminPort.value, names, isGuarded }))
}

/** What the routes of some settings need. */
const servicesOf = (
  settings: Settings,
  chains: Chains.Chains["Service"],
  keys: CallerKeys["Service"],
  quotas: Quotas["Service"]
) =>
  Layer.mergeAll(
    chains.layerOf(settings),
    Layer.succeed(ActionLog, chains.actionLog),
    Layer.succeed(RateLimiter.Windows, chains.windows),
    Layer.succeed(Gateway.RelayOptions, {
      anyInfo: settings.relayInfo,
      methods: settings.relayMethods,
      maxBatch: settings.batchLimit
    }),
    Layer.succeed(CallerKeys, keys),
    Layer.succeed(Quotas, quotas),
    Layer.succeed(TrustedProxies, settings.trustedProxies),
    Layer.succeed(GatewayStatus.GatewayStatus, GatewayStatus.statusOf(settings)),
    settings.accessLog
      ? Layer.provide(RequestFacts.layerAccessLog, NodeStdio.layer)
      : RequestFacts.layerAccessLogOff
  )

/** What the routes of all settings are built in. */
type Surroundings =
  | Load.Load
  | Observe.Drain
  | RequestTail.RequestTail
  | FileSystem
  | Generator
  | HttpPlatform
  | Path
  | Scope.Scope

const make = Effect.fnUntraced(function*(first: Settings) {
  const chains = yield* Chains.Chains
  const keys = yield* CallerKeys
  const quotas = yield* Quotas
  const drain = yield* Observe.Drain
  const place = yield* Effect.fromResult(adminPlaceOf(first))
  const isAlone = Hosts.isOwnMachine(first.host)
  const context = yield* Effect.context<Surroundings>()
  const scope = Context.get(context, Scope.Scope)
  const one = yield* Semaphore.make(1)

  const build = Effect.fnUntraced(function*(settings: Settings) {
    const own = yield* Scope.fork(scope)
    const services = Layer.succeedContext(
      yield* Layer.build(servicesOf(settings, chains, keys, quotas)).pipe(Scope.provide(own))
    )
    const fastLane: FastLane.Entrance = { lane: undefined }
    const mount = {
      fastLane,
      ...(Option.isSome(settings.hosts) ? { hosts: settings.hosts.value } : {}),
      ...(Option.isSome(settings.corsOrigins) ? { origins: settings.corsOrigins.value } : {})
    }
    const routes = place !== undefined
      ? Gateway.layer({ ...mount, health: "short" })
      // the console shows what only the operator should see
      : isAlone
      ? Gateway.layerWithAdmin({ ...mount, console: true })
      : Gateway.layer(mount)
    return {
      fastLane,
      handle: yield* HttpRouter.toHttpEffect(Layer.provide(routes, services)).pipe(Scope.provide(own)),
      admin: place === undefined
        ? undefined
        : yield* HttpRouter.toHttpEffect(
          Layer.provide(Gateway.layerWithAdmin({ console: true, isGuarded: place.isGuarded }), services)
        ).pipe(Scope.provide(own)),
      own,
      settings
    }
  }, Effect.provideContext(context))

  let now = yield* build(first)
  const handle = yield* Ref.make(now.handle)
  const server = yield* HttpServer.HttpServer
  const entrance = { ...now.fastLane }
  yield* FastLane.serve(Effect.flatten(Ref.get(handle)), entrance)
  let adminUrl = HttpServer.formatAddress(server.address)
  if (place !== undefined) {
    const listener = Context.get(
      yield* Effect.mapError(
        Layer.build(NodeServer.layer(place)),
        (error) => new SettingsError({ setting: place.names.port, message: NodeServer.faultOf(error, place) })
      ),
      HttpServer.HttpServer
    )
    adminUrl = HttpServer.formatAddress(listener.address)
    yield* Effect.provideService(
      HttpServer.serveEffect(Effect.suspend(() => now.admin ?? now.handle)),
      HttpServer.HttpServer,
      listener
    )
  }
  // added last, so that it runs first: the server has to listen while requests finish
  yield* Effect.addFinalizer(() => drain.drain(NodeServer.maxDrainWait))

  const replace = Effect.fnUntraced(function*(settings: Settings) {
    const next = yield* build(settings)
    const old = now
    now = next
    yield* Ref.set(handle, next.handle)
    entrance.lane = next.fastLane.lane
    yield* Effect.forkIn(Effect.andThen(drain.current, Scope.close(old.own, Exit.void)), scope)
  })

  const reload = Reload.of({
    reload: Effect.fnUntraced(function*(wanted) {
      const refusal = isOther(now.settings, wanted)
      if (refusal !== undefined) return yield* refusal
      const change = changeOf(now.settings, wanted)
      if (change.applied.length > 0) yield* replace({ ...wanted, ...Struct.pick(now.settings, fixed) })
      return change
    }, one.withPermits(1))
  })
  return Context.make(Reload, reload).pipe(
    Context.add(Admin, { url: adminUrl, hasConsole: place !== undefined || isAlone })
  )
})

/**
 * The gateway of some settings, listening.
 *
 * Fails with `SettingsError` where others can reach it and the settings do not say who may call. Its scope closes gracefully:
 * readiness turns first, then the requests in flight finish, then the socket closes.
 */
export const layer = (settings: Settings) =>
  // whether it may start comes before it listens
  Layer.unwrap(Effect.map(Effect.fromResult(CallerStore.placeOf(settings)), (place) =>
    Layer.effectContext(make(settings)).pipe(
      Layer.provide(Chains.layer(settings)),
      Layer.provide(CallerStore.layer(place)),
      Layer.provideMerge(Layer.mergeAll(
        AuditLogWriter.layer(settings.auditLog),
        Observe.layerDrain,
        RequestTail.layer,
        Load.layer({ maxLag: settings.maxLag, memory: settings.memoryInFlight }),
        // requests have spans of our own, which hold no URL
        Layer.succeed(HttpMiddleware.TracerDisabledWhen, constTrue),
        NodeServer.layer({
          host: settings.host,
          port: settings.port,
          maxConnections: settings.maxConnections,
          trustedProxies: settings.trustedProxies
        })
      ))
    )))
