/** The steps of a check: programs that are run to their end, and values that have to be equal. The first fault ends the check. */
import * as Effect from "effect/Effect"
import { execFile, spawnSync } from "node:child_process"
import type { SpawnSyncOptions } from "node:child_process"
import * as path from "node:path"

const failure = (command: string, args: ReadonlyArray<string>, ending: string, output: string): Error =>
  new Error(`${[path.basename(command), ...args].join(" ")} ends with ${ending}\n${output}`)

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
  throw failure(command, args, String(status ?? error), `${stdout}\n${stderr}`)
}

/** Runs a program to its end while other fibers run theirs; its output is shown if it fails. */
export const runBeside = (command: string, args: ReadonlyArray<string>, cwd: string): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const child = execFile(command, [...args], { cwd, maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      resume(
        error === null
          ? Effect.succeed(stdout)
          : Effect.die(failure(command, args, String(error.code ?? error.signal), `${stdout}\n${stderr}`))
      )
    })
    return Effect.sync(() => child.kill())
  })

/** Fails if two values are not the same as JSON. */
export const equal = (what: string, actual: unknown, expected: unknown): void => {
  const [found, wanted] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (found !== wanted) throw new Error(`${what}: expected ${wanted}, found ${found}`)
}

/** Says what a step found. */
export const step = (title: string, run: () => string): void => console.log(`${title}: ${run()}`)
