/** The bundled gateway as a program: reads the command line and the settings, serves, ends with the signal. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Cause from "effect/Cause"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import * as Banner from "./Banner.ts"
import * as Chains from "./Chains.ts"
import * as GatewayServer from "./GatewayServer.ts"
import * as Help from "./Help.ts"
import * as JournalSettings from "./JournalSettings.ts"
import * as NodeServer from "./NodeServer.ts"
import * as Settings from "./Settings.ts"

/** What keeps the gateway from starting, in one line. */
class StartError extends Schema.TaggedError<StartError>()("StartError", { message: Schema.String }) {}

const announce = Effect.fnUntraced(function*(settings: Settings.Settings) {
  const { address } = yield* HttpServer
  const { system, user } = process.cpuUsage()
  yield* Console.log(Banner.text(Chains.statusOf(settings), {
    url: formatAddress(address),
    elapsed: process.uptime() * 1000,
    cpu: (system + user) / 1000,
    journal: Option.match(JournalSettings.placeOf(settings), { onNone: () => "memory", onSome: ({ kind }) => kind })
  }))
})

const serve = Effect.gen(function*() {
  const names = Object.keys(process.env)
  yield* Settings.refuseUnknown(names)
  const settings = yield* Settings.load
  yield* Effect.forEach(Settings.withoutEffect(names), (name) => Console.error(`trigate: ${name} has no effect yet`))
  const server = GatewayServer.layer(settings)
  return yield* Effect.mapError(
    Layer.launch(Layer.effectDiscard(announce(settings)).pipe(Layer.provide(server))),
    (error) => new StartError({ message: NodeServer.faultOf(error, settings.TRIGATE_HOST, settings.TRIGATE_PORT) })
  )
})

const program = Effect.gen(function*() {
  const args = process.argv.slice(2)
  const unknown = args.find((arg) => arg !== "--help" && arg !== "-h")
  if (unknown !== undefined) {
    return yield* new StartError({ message: `${unknown} is not an option; see npm start -- --help` })
  }
  return yield* args.length > 0 ? Console.log(Help.text) : serve
})

program.pipe(
  Effect.tapError((error) => Console.error(`trigate: ${error.message}`)),
  Effect.provide(Logger.layer([Logger.consoleJson])),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    // a signal is how a server ends, not a failure
    teardown: (exit, onExit) =>
      Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)
  })
)
