/** `trigate serve`: the gateway, with a flag for each setting. */
import { settings } from "@trigate/domain/Settings"
import type { Setting } from "@trigate/domain/Settings"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as ExitCode from "./ExitCode.ts"

const flagOf = ({ env, flag, meaning, takes, unset }: Setting<unknown>) =>
  Flag.String(flag).pipe(
    Flag.withMetavar("value"),
    Flag.withDescription(`${meaning} - ${takes} (else ${env}, default ${unset})`),
    Flag.optional
  )

const flags = Object.fromEntries(Object.entries(settings).map(([name, setting]) => [name, flagOf(setting)]))

const file = (name: string, meaning: string) =>
  Flag.String(name).pipe(Flag.withMetavar("file"), Flag.withDescription(meaning), Flag.optional)

const given = (texts: { readonly [name: string]: Option.Option<string> }) =>
  Object.fromEntries(Object.entries(texts).flatMap(([name, text]) => Option.isSome(text) ? [[name, text.value]] : []))

/** `trigate serve`. */
export const command = Command.make("serve", {
  config: file("config", "Settings file; else trigate.config.json, .yaml or .toml of this folder, if there is one"),
  environmentFile: file("env-file", "File of NAME=value lines for what the environment does not set"),
  flags
}, ({ config, environmentFile, flags }) =>
  Effect.gen(function*() {
    // imported on use: the other commands start faster without the server
    const { serve } = yield* Effect.promise(() => import("@trigate/server/Serve"))
    yield* ExitCode.endByInterruption
    return yield* serve({
      flags: given(flags),
      environmentFile: Option.getOrUndefined(environmentFile),
      file: Option.getOrUndefined(config)
    })
  })).pipe(
    Command.withDescription(
      "Serve the gateway until a signal ends it. Each setting is a flag, an environment variable or a member of the settings " +
        "file, in this order of precedence. Without upstream addresses the sandbox answers"
    ),
    Command.withShortDescription("Serve the gateway"),
    Command.withExamples([
      { command: "trigate serve --port 9000" },
      { command: "TRIGATE_LAYER2_URL=https://node.example/KEY trigate serve --read-deadline 5s" }
    ])
  )
