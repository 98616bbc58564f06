/** Checks the unit: what systemd itself finds, where it is installed, and the gateway's settings. */
import { maxDrainWait } from "@trigate/server/requests/Listener"
import * as Duration from "effect/Duration"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseEnv } from "node:util"
import { root } from "../packages/manifest.ts"
import { equal, run } from "../steps.ts"
import type { Image } from "./dockerfile.ts"
import { example, settings } from "./started.ts"

const unit = path.join(root, "deploy/systemd/trigate.service")

/** The most exposure, in tenths, that `systemd-analyze security` may find. */
const mostExposure = 20

/** The directives of the unit, each with its values in order. */
const directives = (): ReadonlyMap<string, ReadonlyArray<string>> => {
  const pairs = fs.readFileSync(unit, "utf8").split("\n").flatMap((line) => {
    const { name, value } = /^(?<name>\w+)=(?<value>.*)$/u.exec(line)?.groups ?? {}
    return name === undefined || value === undefined ? [] : [{ name, value }]
  })
  return new Map(
    Object.entries(Object.groupBy(pairs, ({ name }) => name)).map((
      [name, found = []]
    ) => [name, found.map(({ value }) => value)])
  )
}

/** What systemd finds in the unit; where Node is elsewhere than on most machines, it would miss it. */
const analysed = (scratch: string): string => {
  if (spawnSync("systemd-analyze", ["--version"]).status !== 0) return "no systemd on this machine to verify it"
  const copy = path.join(scratch, path.basename(unit))
  fs.writeFileSync(copy, fs.readFileSync(unit, "utf8").replace("=/usr/bin/node ", `=${process.execPath} `))
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", copy], { encoding: "utf8" })
  // a directive that systemd does not know is only a warning
  equal("systemd-analyze verify", { status, found: stderr.trim() }, { status: 0, found: "" })
  const text = run("systemd-analyze", ["security", "--offline=yes", `--threshold=${mostExposure}`, copy], scratch)
  return `systemd finds no fault, and an exposure of ${
    /level for \S+: (?<level>[0-9.]+)/u.exec(text)?.groups?.["level"]
  }`
}

/** Checks `deploy/systemd`. The program is where the image has it. */
export const check = async (image: Image, scratch: string): Promise<string> => {
  const found = directives()
  const value = (name: string): string => found.get(name)?.join(" ") ?? ""
  const [node = "", program = "", ...args] = value("ExecStart").replace("${CREDENTIALS_DIRECTORY}", "/credentials")
    .split(" ")
  equal("the program", [path.basename(node), program], image.entrypoint)
  const credentials = (found.get("LoadCredential") ?? []).map((credential) => credential.split(":")[0] ?? "")
  await settings({
    environment: { ...parseEnv((found.get("Environment") ?? []).join("\n")) },
    args,
    files: new Map(credentials.map((name) => [`/credentials/${name}`, path.join(root, example)]))
  })
  equal("the working folder", value("WorkingDirectory"), "/etc/trigate")
  const least = 2 * Duration.toSeconds(maxDrainWait)
  if (Number(value("TimeoutStopSec")) < least) throw new Error(`TimeoutStopSec is less than ${least} seconds`)
  return analysed(scratch)
}
