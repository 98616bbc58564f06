/** Serving: reads the settings, listens, says so, and goes on until it is interrupted. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as ActionLogSettings from "./ActionLogSettings.ts"
import * as Banner from "./Banner.ts"
import * as Chains from "./Chains.ts"
import * as GatewayServer from "./GatewayServer.ts"
import * as NodeServer from "./NodeServer.ts"
import * as Settings from "./Settings.ts"

/** What keeps the gateway from starting, in one line. */
export class StartError extends Schema.TaggedError<StartError>()("StartError", { message: Schema.String }) {}

const announce = Effect.fnUntraced(function*(settings: Effect.Success<typeof Settings.load>) {
  const { address } = yield* HttpServer
  const { system, user } = process.cpuUsage()
  yield* Console.log(Banner.text(Chains.statusOf(settings), {
    url: formatAddress(address),
    elapsed: process.uptime() * 1000,
    cpu: (system + user) / 1000,
    actionLog: ActionLogSettings.backingOf(settings)
  }))
})

/** The gateway of the environment. Fails with `SettingsError`, or with {@link StartError} where it cannot listen. */
export const serve = Effect.gen(function*() {
  yield* Settings.refuseUnknown(Object.keys(process.env))
  const settings = yield* Settings.load
  const server = GatewayServer.layer(settings)
  return yield* Effect.mapError(
    Layer.launch(Layer.effectDiscard(announce(settings)).pipe(Layer.provide(server))),
    (error) => new StartError({ message: NodeServer.faultOf(error, settings.host, settings.port) })
  )
}).pipe(Effect.provide(Logger.layer([Logger.consoleJson])))
