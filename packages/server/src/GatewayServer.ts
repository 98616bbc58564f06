/** The bundled gateway: the routes over the configured chains, on Node's HTTP server. */
import * as NodeStdio from "@effect/platform-node/NodeStdio"
import type { Settings } from "@trigate/domain/Settings"
import * as Effect from "effect/Effect"
import { constTrue } from "effect/Function"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as CallerKeys from "./CallerKeys.ts"
import * as Chains from "./Chains.ts"
import * as Gateway from "./Gateway.ts"
import * as GatewayStatus from "./GatewayStatus.ts"
import * as NodeServer from "./NodeServer.ts"
import * as Observe from "./Observe.ts"
import * as RequestFacts from "./RequestFacts.ts"

const maxDrainWait = "20 seconds"

// built last, so that its finalizer runs first: the server has to listen while requests finish
const drainOnClose = Layer.effectDiscard(
  Effect.flatMap(Observe.Drain, (drain) => Effect.addFinalizer(() => drain.drain(maxDrainWait)))
)

/**
 * The gateway of some settings, listening.
 *
 * Its scope closes gracefully: readiness turns first, then the requests in flight finish, then the socket closes.
 */
export const layer = (settings: Settings) => {
  const observed = Observe.layer({
    sandbox: GatewayStatus.isSandbox(settings),
    ...(Option.isSome(settings.corsOrigins) ? { origins: settings.corsOrigins.value } : {})
  })
  const routes = Layer.merge(Gateway.layer(), observed)
  const served = HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }).pipe(
    Layer.provide(Chains.layer(settings)),
    Layer.provide(Layer.succeed(Gateway.RelayOptions, {
      anyInfo: settings.relayInfo,
      methods: settings.relayMethods,
      maxBatch: settings.batchLimit
    })),
    Layer.provide(CallerKeys.layerOpen)
  )
  const surroundings = Layer.mergeAll(
    Observe.layerDrain,
    settings.accessLog
      ? Layer.provide(RequestFacts.layerAccessLog, NodeStdio.layer) :
      RequestFacts.layerAccessLogOff,
    Layer.succeed(GatewayStatus.GatewayStatus, GatewayStatus.statusOf(settings)),
    // requests have spans of our own, which hold no URL
    Layer.succeed(HttpMiddleware.TracerDisabledWhen, constTrue),
    NodeServer.layer({ host: settings.host, port: settings.port })
  )
  return drainOnClose.pipe(Layer.provideMerge(served), Layer.provideMerge(surroundings))
}
