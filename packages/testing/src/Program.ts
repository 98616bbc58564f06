/** Runs the programs of this repository until they end, and returns their exit code and output. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { bundledProgram } from "./Bundle.ts"

export interface Ended {
  /** The exit code; `null` if a signal ended the program. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program with only the given environment, until it ends. */
const run = (
  file: string,
  args: ReadonlyArray<string>,
  environment: { readonly [name: string]: string } = {}
): Effect.Effect<Ended> =>
  Effect.callback((resume) => {
    const child = spawn(process.execPath, [file, ...args], {
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

/** Runs the command line `trigate` with only the given environment. */
export const trigate = (args: ReadonlyArray<string>, environment: { readonly [name: string]: string } = {}) =>
  Effect.suspend(() => run(bundledProgram(), args, environment))

/** Runs the gateway (`trigate serve`) with only the given environment, until it ends. */
export const program = (args: ReadonlyArray<string>, environment: { readonly [name: string]: string } = {}) =>
  trigate(["serve", ...args], environment)
