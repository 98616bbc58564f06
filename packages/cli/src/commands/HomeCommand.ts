/** `trigate` without a command: the state of the local gateway, and what to do next. */
import * as Health from "@trigate/client/Health"
import { printable } from "@trigate/domain/encoding/Encoding"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import { trader } from "@trigate/domain/unstable/Sandbox"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Output from "../Output.ts"

/** A command line, and its purpose. */
type Step = readonly [commandLine: string, does: string]

const inSandbox: ReadonlyArray<Step> = [
  ["trigate watch book BTC", "the live order book"],
  [`trigate positions ${trader.address}`, "the sandbox's trader: balances, positions, orders"],
  [`TRIGATE_PRIVATE_KEY=${trader.privateKey} trigate order buy 0.01 BTC`, "a paper order; everyone has this key"]
]

const live: ReadonlyArray<Step> = [
  ["trigate status", "chains, upstreams, remaining weight, action log"],
  ["trigate watch mids", "live prices of all coins"],
  ["trigate positions ADDRESS", "your balances, positions and open orders"]
]

const withoutGateway: ReadonlyArray<Step> = [
  ["trigate sandbox", "start a venue in memory: paper orders, no account, no money"],
  ["trigate serve --help", "list every setting of a gateway to the real chains"],
  ["trigate status --gateway URL", "query a gateway on another machine"]
]

const stepLines = (width: number, steps: ReadonlyArray<Step>): ReadonlyArray<string> => {
  const names = Math.max(...steps.map(([commandLine]) => commandLine.length))
  const side = steps.map(([commandLine, does]) => `  ${commandLine.padEnd(names)}  ${does}`)
  return side.every((text) => text.length <= width)
    ? side
    : steps.flatMap(([commandLine, does]) => [`  ${commandLine}`, `      ${does}`])
}

const states = {
  ready: "ready",
  draining: "shutting down",
  full: "refuses signed actions, because its action log is full",
  "without-keys": "refuses all callers, because it cannot read their keys"
} as const

/** `trigate` without a subcommand. Succeeds in every state of the gateway. */
export const command = Command.make("trigate", {}, () =>
  Effect.gen(function*() {
    const access = yield* GatewayAccess.connect
    const { says, steps } = yield* Effect.match(GatewayAccess.over(access, Health.ready()), {
      onFailure: (error) => ({ says: [unwrapReason(error).message], steps: withoutGateway }),
      onSuccess: ({ network, sandbox, status }) => ({
        says: [
          `The gateway at ${access.origin}: ${states[status]}, ` +
          (sandbox ? "a sandbox (nothing here is real)" : `in front of ${network}`),
          `Console: ${access.origin}/  API: ${access.origin}/docs`
        ],
        steps: sandbox ? inSandbox : live
      })
    })
    const width = yield* Output.terminalWidth
    const lines = [
      ...says.map(printable),
      "",
      "Next:",
      ...stepLines(width, steps),
      "",
      "All commands: trigate --help"
    ]
    yield* Console.log(lines.join("\n"))
  })).pipe(GatewayAccess.options)
