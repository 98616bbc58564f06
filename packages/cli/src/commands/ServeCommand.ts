/**
 * `trigate serve` and `trigate sandbox`: the gateway, with a flag for each setting, or with simulated chains in memory.
 */
import type { Setting } from "@trigate/domain/unstable/Setting"
import type { Finding } from "@trigate/server/unstable/process/Check"
import { grouped, sandboxFlag, settings } from "@trigate/server/unstable/settings/Settings"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Report from "../Report.ts"

/** At least one check of `serve --check` failed. */
export class CheckFailed extends Schema.TaggedError<CheckFailed>()("CheckFailed", {
  faulty: Schema.Int,
  all: Schema.Int
}) {
  override get message() {
    return `${this.faulty} of ${this.all} checks failed`
  }
}

const describe = ({ env, meaning, takes, unset }: Setting<unknown>): string => {
  const sentences = `${meaning.slice(0, 1).toUpperCase()}${meaning.slice(1)}. Takes ${takes}`
  return `${sentences} [env: ${env}] [default: ${unset.replace(/^unset: /u, "")}]`.replaceAll("`", "")
}

/** Declares the flag of a setting. The flag's name is `name`; by default, the setting's own flag name. */
export const settingFlag = (setting: Setting<unknown>, name = setting.flag) =>
  Flag.String(name).pipe(
    Flag.withMetavar("value"),
    Flag.withDescription(describe(setting)),
    Flag.optional
  )

const flags = Object.fromEntries(
  grouped.flatMap(({ members }) => members.map(([name, setting]) => [name, settingFlag(setting)]))
)

const titles = new Map(
  grouped.flatMap(({ group, members: [first] }) => first === undefined ? [] : [[first[1].flag, group]])
)

const file = (name: string, meaning: string) =>
  Flag.String(name).pipe(Flag.withMetavar("file"), Flag.withDescription(meaning), Flag.optional)

/** The flags for settings files. */
export const files = {
  config: file("config", "Settings file (default: trigate.config.json, .yaml or .toml in this folder, if it exists)"),
  environmentFile: file("env-file", "File of NAME=value lines, for variables that the environment does not set")
}

/** The values of the flags in {@link files}. */
export type Files = { readonly [Name in keyof typeof files]: Option.Option<string> }

/** Returns the settings files that the flags name. */
export const settingSources = ({ config, environmentFile }: Files) => ({
  environmentFile: Option.getOrUndefined(environmentFile),
  file: Option.getOrUndefined(config)
})

/** Returns the texts of the flags that are set. */
export const given = (texts: { readonly [name: string]: Option.Option<string> }) =>
  Object.fromEntries(Object.entries(texts).flatMap(([name, text]) => Option.isSome(text) ? [[name, text.value]] : []))

/** Prints the results of the checks. Fails if one of the checks failed. */
const report = Effect.fnUntraced(function*(findings: ReadonlyArray<Finding>) {
  const Output = yield* Effect.promise(() => import("../Output.ts"))
  const rows = findings.map(({ detail, name, state }) => [name, state, detail])
  yield* Console.log(Output.rows([Output.left("What"), Output.left("State"), Output.left("Detail")], rows))
  const faulty = findings.filter(({ isSound }) => !isSound).length
  if (faulty > 0) return yield* new CheckFailed({ faulty, all: findings.length })
})

/** `trigate serve`. */
export const command = Command.make("serve", {
  ...files,
  check: Flag.Boolean("check").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Check the settings, probe each configured address and each store once, and exit")
  ),
  flags
}, ({ check, config, environmentFile, flags }) =>
  Effect.gen(function*() {
    const sources = { flags: given(flags), ...settingSources({ config, environmentFile }) }
    // imported only when this command runs: the other commands start faster without the server
    if (check) {
      const { findings } = yield* Effect.promise(() => import("@trigate/server/unstable/process/Check"))
      return yield* Effect.flatMap(findings(sources), report)
    }
    const { serve } = yield* Effect.promise(() => import("@trigate/server/unstable/process/Serve"))
    yield* Report.endByInterruption
    return yield* serve(sources)
  })).pipe(
    Command.withDescription(
      "Serve the gateway until a signal ends it. Each setting is a flag, an environment variable or a member of the settings " +
        "file, in this order of precedence. Without upstream URLs, it serves the sandbox"
    ),
    Command.withShortDescription("Serve the gateway"),
    Command.annotate(Report.FlagTitles, titles),
    Command.withExamples([
      { command: "trigate serve --port 9000" },
      { command: "trigate serve --check --config trigate.config.yaml" },
      { command: "TRIGATE_LAYER2_URL=https://node.example/KEY trigate serve --read-deadline 5s" }
    ])
  )

const own = grouped.flatMap(({ group, members }) => group === "Sandbox" ? members : [])

const listening = ["host", "port", "adminPort"] as const

const sandboxFlags = {
  ...Object.fromEntries(own.map(([name, setting]) => [name, settingFlag(setting, sandboxFlag(setting.flag))])),
  ...Object.fromEntries(listening.map((name) => [name, settingFlag(settings[name])]))
}

const sandboxTitles = new Map([
  [sandboxFlag(own[0]?.[1].flag ?? ""), "Sandbox"],
  [settings.host.flag, settings.host.group]
])

/** `trigate sandbox`. */
export const sandboxCommand = Command.make(
  "sandbox",
  { ...files, flags: sandboxFlags },
  ({ config, environmentFile, flags }) =>
    Effect.gen(function*() {
      const sources = { flags: given(flags), ...settingSources({ config, environmentFile }), withoutAddresses: true }
      // imported only when this command runs: the other commands start faster without the server
      const { serve } = yield* Effect.promise(() => import("@trigate/server/unstable/process/Serve"))
      yield* Report.endByInterruption
      return yield* serve(sources)
    })
).pipe(
  Command.withDescription(
    "Serve in-memory chains until a signal ends the process: a venue that executes signed orders and responds with the real venue's messages, with prices from a seed or " +
      "from recordings, and with optional faults. Upstream URLs in the environment and in files are ignored. All " +
      "other settings of trigate serve apply"
  ),
  Command.withShortDescription("Serve a venue in memory, for tests of bots"),
  Command.annotate(Report.FlagTitles, sandboxTitles),
  Command.withExamples([
    { command: "trigate sandbox --port 9000 --seed monday" },
    { command: "trigate sandbox --prices BTC:1m=btc.csv --speed 60" },
    { command: "trigate sandbox --lost-replies 0.05 --latency 200ms", description: "Lose a twentieth of all replies" }
  ])
)
