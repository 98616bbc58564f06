/** The steps of a check: programs that are run to their end, and values that have to be equal. The first fault ends the check. */
import { spawnSync } from "node:child_process"
import type { SpawnSyncOptions } from "node:child_process"
import * as path from "node:path"

/** Runs a program to its end, by default as this process; its output is shown if it fails. */
export const run = (
  command: string,
  args: ReadonlyArray<string>,
  cwd: string,
  as: Pick<SpawnSyncOptions, "env" | "gid" | "uid"> = {}
): string => {
  const { error, status, stderr, stdout } = spawnSync(command, args, {
    ...as,
    cwd,
    encoding: "utf8",
    maxBuffer: 2 ** 26
  })
  if (status === 0) return stdout
  throw new Error(
    `${[path.basename(command), ...args].join(" ")} ends with ${String(status ?? error)}\n${stdout}\n${stderr}`
  )
}

/** Fails if two values are not the same as JSON. */
export const equal = (what: string, actual: unknown, expected: unknown): void => {
  const [found, wanted] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (found !== wanted) throw new Error(`${what}: expected ${wanted}, found ${found}`)
}

/** Says what a step found. */
export const step = (title: string, run: () => string): void => console.log(`${title}: ${run()}`)
