/** Starts the bundled gateway as a process. Tests can read the output of the process and send signals to it. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { bundledProgram } from "./Bundle.ts"

/** A `trigate serve` process that might not listen yet. */
export interface StartedProcess {
  /** Returns everything that the process has written so far: first to standard output, then to standard error. */
  readonly printed: () => string
  /** Returns the parsed JSON lines that the process has written to standard output. */
  readonly lines: () => ReadonlyArray<unknown>
  /** The process ID; `undefined` if the process could not be started. */
  readonly pid: number | undefined
  readonly signal: (name: "SIGTERM" | "SIGINT" | "SIGKILL" | "SIGSTOP" | "SIGCONT") => void
  /** Resolves when the process ends, with its exit code. */
  readonly ended: Promise<number | null>
  /** Resolves when the gateway listens, with its URL. Rejects if the process ends first. */
  readonly url: Promise<string>
}

export interface GatewayProcess extends Omit<StartedProcess, "url"> {
  readonly url: string
}

const listening = /listens on (?<url>http:\/\/\S+)/u

/** Options of the process. */
export interface Options {
  /** Path of the program to run. Default: the program `trigate` of this repository, as one bundled file. */
  readonly program?: string
  /** Arguments after `trigate serve`. */
  readonly args?: ReadonlyArray<string>
  /** The working directory of the process. Default: the working directory of the test process. */
  readonly folder?: string
  /** The user and the group of the process. Default: those of the test process. */
  readonly user?: { readonly uid: number; readonly gid: number }
  /** Maximum size of each file that the process writes, in KiB. */
  readonly maxFileKilobytes?: number
}

const makeCommand = (
  { args = [], maxFileKilobytes, program = bundledProgram() }: Options
): readonly [command: string, args: ReadonlyArray<string>] => {
  const command = [program, "serve", ...args]
  return maxFileKilobytes === undefined
    ? [process.execPath, command]
    : ["bash", ["-c", `ulimit -f ${maxFileKilobytes}; exec "$0" "$@"`, process.execPath, ...command]]
}

/** Starts `trigate serve` with the given environment; the process is killed when the scope closes. */
export const startedProcess = (environment: { readonly [name: string]: string }, options: Options = {}) =>
  Effect.acquireRelease(
    Effect.sync((): StartedProcess => {
      const child = spawn(...makeCommand(options), {
        cwd: options.folder,
        ...options.user,
        env: { PATH: process.env["PATH"], TRIGATE_PORT: "0", ...environment },
        stdio: ["ignore", "pipe", "pipe"]
      })
      let stdout = ""
      let stderr = ""
      const url = Promise.withResolvers<string>()
      child.stderr.on("data", (chunk: Buffer) => {
        stderr += chunk.toString("utf8")
      })
      child.stdout.on("data", (chunk: Buffer) => {
        stdout += chunk.toString("utf8")
        const found = listening.exec(stdout)?.groups?.["url"]
        if (found !== undefined) url.resolve(found)
      })
      child.on(
        "close",
        () => url.reject(new Error(`The gateway ended before it listened:\n${stdout}${stderr}`))
      )
      url.promise.catch(() => {})
      return {
        printed: () => stdout + stderr,
        lines: () => stdout.split("\n").filter((line) => line.startsWith("{")).map((line): unknown => JSON.parse(line)),
        pid: child.pid,
        signal: (name) => child.kill(name),
        ended: new Promise((resolve) => child.on("close", resolve)),
        url: url.promise
      }
    }),
    ({ signal }) => Effect.sync(() => signal("SIGKILL"))
  )

/**
 * Starts `trigate serve` with the given environment and waits until it listens; the process is killed when the scope
 * closes.
 */
export const gatewayProcess = (environment: { readonly [name: string]: string }, options: Options = {}) =>
  Effect.flatMap(
    startedProcess(environment, options),
    (started) => Effect.map(Effect.promise(() => started.url), (url): GatewayProcess => ({ ...started, url }))
  )
