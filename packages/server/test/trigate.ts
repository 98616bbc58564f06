/** The command line `trigate` as a process, under the given environment alone. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import type { Ended } from "./program.ts"

const cli = new URL("../../cli/src/main.ts", import.meta.url).pathname

export const trigate = (args: ReadonlyArray<string>, environment: { readonly [name: string]: string } = {}) =>
  Effect.callback<Ended>((resume) => {
    const child = spawn(process.execPath, [cli, ...args], {
      env: { PATH: process.env["PATH"], ...environment },
      stdio: ["ignore", "pipe", "pipe"]
    })
    const printed = { stdout: "", stderr: "" }
    child.stdout.on("data", (chunk: Buffer) => {
      printed.stdout += chunk.toString("utf8")
    })
    child.stderr.on("data", (chunk: Buffer) => {
      printed.stderr += chunk.toString("utf8")
    })
    child.on("close", (code) => resume(Effect.succeed({ code, ...printed })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })
