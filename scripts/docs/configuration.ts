/** docs/configuration.md: every setting. */
import { duration } from "@trigate/domain/unstable/Setting"
import { grouped } from "@trigate/server/unstable/settings/Settings"
import * as fs from "node:fs"
import * as path from "node:path"
import { root } from "../packages/manifest.ts"
import { code, document, table } from "./markdown.ts"

const exampleText = (kind: string): string => {
  const file = `docs/config/trigate.config.${kind}`
  return `\`trigate.config.${kind}\`:\n\n\`\`\`${kind}\n${fs.readFileSync(path.join(root, file), "utf8")}\`\`\``
}

/** The member of a settings file, which is named after the flag but for a few. */
const memberName = (flag: string): string => flag.replaceAll(/-(\w)/gu, (_, letter: string) => letter.toUpperCase())

/** The document. */
export const configurationText = document(
  "Configuration",
  "Each setting is an environment variable, a flag of `trigate serve` or a member of a [settings file](#settings-file). `TRIGATE_READ_DEADLINE`\n" +
    "is the flag `--read-deadline` and the member `readDeadline`; `OTEL_SERVICE_NAME` is `--otel-service-name` and `otelServiceName`.\n" +
    "The tables name the member only if its name differs from this rule. A flag overrides the environment, and the environment overrides the file. An empty value\n" +
    `counts as unset. A duration has a unit (${code("500ms")}, ${
      code("10 seconds")
    }); integers and numbers without a range are above zero.`,
  "The gateway does not start with an invalid value or an unknown flag, member or `TRIGATE_…` variable: it prints one line that\n" +
    "locates the mistake, never the value, and exits with code 2. Without any upstream address it serves the\n" +
    "[sandbox](decisions/0013-sandbox-or-live.md). Embedded services [read the same settings](guides/embed.md#from-the-configuration).",
  "## Settings",
  ...grouped.flatMap(({ group, members }) => [
    `### ${group}`,
    table(
      ["Variable", "Meaning", "Accepts", "Default", "Restart"],
      members.map(([name, { env, flag, meaning, needsRestart, takes, unset }]) => [
        name === memberName(flag) ? code(env) : `${code(env)}, member ${code(name)}`,
        meaning,
        takes.replace(duration, "a duration").replace(/^(an integer|a number) above zero$/u, "$1")
          .replace(/^an? (?=integer|number|duration|port|text)/u, ""),
        unset.replace(/^unset(?:: |$)/u, ""),
        needsRestart === true ? "✓" : ""
      ])
    )
  ]),
  "All processes of a machine can see flags: put addresses with endpoint keys into the environment or a file.",
  "## Settings file",
  "The gateway reads `trigate.config.json`, `trigate.config.yaml` or `trigate.config.toml` in its working folder, or the file of\n" +
    "`--config FILE`. Two of these files in one folder are refused. A list may be an array, and `on` and `off` may be `true` and `false`.",
  ...["json", "yaml", "toml"].map(exampleText),
  "## Environment file",
  "`--env-file FILE` reads `NAME=value` lines, in the format of Docker, systemd and `node --env-file`. The environment overrides the file.",
  "## Changing settings while the gateway serves",
  "On `SIGHUP` (`kill -HUP PID`, `systemctl reload`, `docker kill -s HUP`) the gateway reads its settings file and its environment\n" +
    "file again.",
  "- A setting marked under Restart keeps its value until a restart; the log names such settings if they changed.\n" +
    "- The gateway refuses all changes if a setting is invalid, or if they would change the network or switch between the sandbox and\n" +
    "  real chains. The log then reports the reason in one line, and the previous settings stay in effect.\n" +
    "- Otherwise the changes apply to new requests, and to later calls and reads of open sockets and event streams. Requests in flight end with\n" +
    "  the previous settings. Nonces, rate-limit windows, cached responses and ejected addresses are not lost.",
  "To check settings first, run [`trigate serve --check`](cli.md#a-gateway) with the same files\n" +
    "([decision 26](decisions/0026-settings-change-over-what-stays.md))."
)
