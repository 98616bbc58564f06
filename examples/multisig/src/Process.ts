import { Effect } from "effect"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"

/** What a program of this folder prints; its whole environment is what is given and the search path. */
export const run = (
  program: "propose" | "approve" | "send",
  args: ReadonlyArray<string>,
  environment: { readonly [name: string]: string } = {}
): Effect.Effect<string, string> =>
  Effect.callback((resume) => {
    const child = execFile(
      process.execPath,
      [fileURLToPath(new URL(`${program}.ts`, import.meta.url)), ...args],
      { env: { PATH: process.env["PATH"], ...environment } },
      (error, stdout, stderr) =>
        resume(error === null ? Effect.succeed(stdout) : Effect.fail(`${program}: ${stderr}${stdout}`))
    )
    return Effect.sync(() => child.kill())
  })
