/** The bundled gateway as a program: prints the help or serves, until a signal ends it. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { settings } from "@trigate/domain/Settings"
import * as Cause from "effect/Cause"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Runtime from "effect/Runtime"
import * as Serve from "./Serve.ts"

const line = ({ env, meaning, takes, unset }: (typeof settings)[keyof typeof settings]): string =>
  `  ${env.padEnd(28)} ${meaning}\n${" ".repeat(31)}${takes} (default: ${unset})`

const help = `Trigate: one typed gateway for a trading chain, a token chain and an EVM layer 2.

Usage
  npm start                start the gateway; without any upstream address it serves the built-in sandbox
  npm start -- --help      print this text

Settings (environment variables)
${Object.values(settings).map(line).join("\n")}

Examples
  TRIGATE_PORT=9000 npm start
  TRIGATE_TRADING_API_URL=https://api.hyperliquid.xyz TRIGATE_LAYER2_URL=https://node.example/KEY npm start

On a running gateway: /docs is the reference, /openapi.json the contract, /health/ready the state of each chain.
`

const program = Effect.gen(function*() {
  const args = process.argv.slice(2)
  const unknown = args.find((arg) => arg !== "--help" && arg !== "-h")
  if (unknown !== undefined) {
    return yield* new Serve.StartError({ message: `${unknown} is not an option; see npm start -- --help` })
  }
  return yield* args.length > 0 ? Console.log(help) : Serve.serve
})

program.pipe(
  Effect.tapError((error) => Console.error(`trigate: ${error.message}`)),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    // a signal is how a server ends, not a failure
    teardown: (exit, onExit) =>
      Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)
  })
)
