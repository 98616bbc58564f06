/** `trigate sandbox`: a gateway with simulated chains in memory, for trying and testing a bot. */
import { grouped, sandboxFlag, settings } from "@trigate/server/settings/Settings"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as ExitCode from "../ExitCode.ts"
import * as Report from "../Report.ts"
import { files, given, settingFlag, settingSources } from "./ServeCommand.ts"

const own = grouped.flatMap(({ group, members }) => group === "Sandbox" ? members : [])

const listening = ["host", "port", "adminPort"] as const

const flags = {
  ...Object.fromEntries(own.map(([name, setting]) => [name, settingFlag(setting, sandboxFlag(setting.flag))])),
  ...Object.fromEntries(listening.map((name) => [name, settingFlag(settings[name])]))
}

const titles = new Map([
  [sandboxFlag(own[0]?.[1].flag ?? ""), "Sandbox"],
  [settings.host.flag, settings.host.group]
])

/** `trigate sandbox`. */
export const command = Command.make(
  "sandbox",
  { ...files, flags },
  ({ config, environmentFile, flags }) =>
    Effect.gen(function*() {
      const sources = { flags: given(flags), ...settingSources({ config, environmentFile }), withoutAddresses: true }
      // imported only when this command runs: the other commands start faster without the server
      const { serve } = yield* Effect.promise(() => import("@trigate/server/process/Serve"))
      yield* ExitCode.endByInterruption
      return yield* serve(sources)
    })
).pipe(
  Command.withDescription(
    "Serve in-memory chains until a signal ends the process: a venue that executes signed orders and responds with the real venue's messages, with prices from a seed or " +
      "from recordings, and with optional faults. Upstream URLs in the environment and in files are ignored. All " +
      "other settings of trigate serve apply"
  ),
  Command.withShortDescription("Serve a venue in memory, for tests of bots"),
  Command.annotate(Report.FlagTitles, titles),
  Command.withExamples([
    { command: "trigate sandbox --port 9000 --seed monday" },
    { command: "trigate sandbox --prices BTC:1m=btc.csv --speed 60" },
    { command: "trigate sandbox --lost-replies 0.05 --latency 200ms", description: "Lose a twentieth of all replies" }
  ])
)
