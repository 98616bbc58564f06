/**
 * The bundled gateway: the routes over the configured chains, on Node's HTTP server.
 *
 * Its settings can change while it serves. The routes of the new settings are built beside those of the old ones, over what
 * stays (`Chains`), and take the requests that come from then on. The old ones end with their last request.
 */
import * as NodeStdio from "@effect/platform-node/NodeStdio"
import { CallerKeys } from "@trigate/callers/CallerKeys"
import type { Settings } from "@trigate/domain/Settings"
import { settings as declared } from "@trigate/domain/Settings"
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
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Struct from "effect/Struct"
import * as AuditLogWriter from "./AuditLogWriter.ts"
import * as CallerStore from "./CallerStore.ts"
import * as Chains from "./Chains.ts"
import * as Gateway from "./Gateway.ts"
import * as GatewayStatus from "./GatewayStatus.ts"
import * as Hosts from "./Hosts.ts"
import * as NodeServer from "./NodeServer.ts"
import * as Observe from "./Observe.ts"
import { TrustedProxies } from "./RequestCaller.ts"
import * as RequestFacts from "./RequestFacts.ts"
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

/** The routes of some settings, and what happens around each request. */
const routes = (settings: Settings, chains: Chains.Chains["Service"], keys: CallerKeys["Service"]) =>
  Gateway.layer({
    // it shows what only the operator should see
    console: Hosts.isOwnMachine(settings.host),
    ...(Option.isSome(settings.hosts) ? { hosts: settings.hosts.value } : {}),
    ...(Option.isSome(settings.corsOrigins) ? { origins: settings.corsOrigins.value } : {})
  }).pipe(
    Layer.provide(chains.layerOf(settings)),
    Layer.provide(Layer.succeed(Gateway.RelayOptions, {
      anyInfo: settings.relayInfo,
      methods: settings.relayMethods,
      maxBatch: settings.batchLimit
    })),
    Layer.provide(Layer.succeed(CallerKeys, keys)),
    Layer.provide(Layer.succeed(TrustedProxies, settings.trustedProxies)),
    Layer.provide(Layer.succeed(GatewayStatus.GatewayStatus, GatewayStatus.statusOf(settings))),
    Layer.provide(
      settings.accessLog
        ? Layer.provide(RequestFacts.layerAccessLog, NodeStdio.layer) :
        RequestFacts.layerAccessLogOff
    )
  )

/** What the routes of all settings are built in. */
type Surroundings = Observe.Drain | FileSystem | Generator | HttpPlatform | Path | Scope.Scope

const make = Effect.fnUntraced(function*(first: Settings) {
  const chains = yield* Chains.Chains
  const keys = yield* CallerKeys
  const drain = yield* Observe.Drain
  const context = yield* Effect.context<Surroundings>()
  const scope = Context.get(context, Scope.Scope)
  const one = yield* Semaphore.make(1)

  const build = Effect.fnUntraced(function*(settings: Settings) {
    const own = yield* Scope.fork(scope)
    const handle = yield* HttpRouter.toHttpEffect(routes(settings, chains, keys)).pipe(Scope.provide(own))
    return { handle, own, settings }
  }, Effect.provideContext(context))

  let now = yield* build(first)
  const handle = yield* Ref.make(now.handle)
  yield* HttpServer.serveEffect(Effect.flatten(Ref.get(handle)))
  // added last, so that it runs first: the server has to listen while requests finish
  yield* Effect.addFinalizer(() => drain.drain(NodeServer.maxDrainWait))

  const replace = Effect.fnUntraced(function*(settings: Settings) {
    const next = yield* build(settings)
    const old = now
    now = next
    yield* Ref.set(handle, next.handle)
    yield* Effect.forkIn(Effect.andThen(drain.current, Scope.close(old.own, Exit.void)), scope)
  })

  return Reload.of({
    reload: Effect.fnUntraced(function*(wanted) {
      const refusal = isOther(now.settings, wanted)
      if (refusal !== undefined) return yield* refusal
      const change = changeOf(now.settings, wanted)
      if (change.applied.length > 0) yield* replace({ ...wanted, ...Struct.pick(now.settings, fixed) })
      return change
    }, one.withPermits(1))
  })
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
    Layer.effect(Reload, make(settings)).pipe(
      Layer.provide(Chains.layer(settings)),
      Layer.provide(CallerStore.layer(place)),
      Layer.provideMerge(Layer.mergeAll(
        AuditLogWriter.layer(settings.auditLog),
        Observe.layerDrain,
        // requests have spans of our own, which hold no URL
        Layer.succeed(HttpMiddleware.TracerDisabledWhen, constTrue),
        NodeServer.layer({ host: settings.host, port: settings.port })
      ))
    )))
