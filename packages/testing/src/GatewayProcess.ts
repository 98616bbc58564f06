/** The bundled gateway as a process of its own: what it prints, what it does on a signal. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"

export interface GatewayProcess {
  readonly url: string
  /** Everything that it has printed, on either stream. */
  readonly printed: () => string
  /** The JSON lines of its standard output. */
  readonly lines: () => ReadonlyArray<unknown>
  readonly signal: (name: "SIGTERM" | "SIGINT" | "SIGKILL") => void
  /** Its exit code, once it has ended. */
  readonly ended: Promise<number | null>
}

const main = new URL("../../trigate/src/trigate.ts", import.meta.url).pathname
const listening = /listens on (?<url>http:\/\/\S+)/u

/** How the process is started. */
export interface Options {
  /** The program; that of the checkout when not given. */
  readonly program?: string
  /** What follows `trigate serve`. */
  readonly args?: ReadonlyArray<string>
  /** Its working folder; that of the tests when not given. */
  readonly folder?: string
  /** As whom it runs; as the user of the tests when not given. */
  readonly user?: { readonly uid: number; readonly gid: number }
  /** How large a file may become that it writes. */
  readonly maxFileKilobytes?: number
}

const commandOf = (
  { args = [], maxFileKilobytes, program = main }: Options
): readonly [command: string, args: ReadonlyArray<string>] => {
  const command = [program, "serve", ...args]
  return maxFileKilobytes === undefined
    ? [process.execPath, command]
    : ["bash", ["-c", `ulimit -f ${maxFileKilobytes}; exec "$0" "$@"`, process.execPath, ...command]]
}

/** Starts `trigate serve` under the given environment and waits until it listens; it is killed with the scope. */
export const gatewayProcess = (environment: { readonly [name: string]: string }, options: Options = {}) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly kill: () => void; readonly running: GatewayProcess }>((resume) => {
        const child = spawn(...commandOf(options), {
          cwd: options.folder,
          ...options.user,
          env: { PATH: process.env["PATH"], TRIGATE_PORT: "0", ...environment },
          stdio: ["ignore", "pipe", "pipe"]
        })
        let stdout = ""
        let stderr = ""
        const ended = new Promise<number | null>((resolve) => child.on("close", resolve))
        child.stderr.on("data", (chunk: Buffer) => {
          stderr += chunk.toString("utf8")
        })
        child.on("close", () =>
          resume(Effect.die(new Error(`The gateway ended before it listened:\n${stdout}${stderr}`))))
        child.stdout.on("data", (chunk: Buffer) => {
          stdout += chunk.toString("utf8")
          const url = listening.exec(stdout)?.groups?.["url"]
          if (url === undefined) {
            return
          }
          resume(Effect.succeed({
            kill: () =>
              child.kill("SIGKILL"),
            running: {
              url,
              printed: () => stdout + stderr,
              lines: () =>
                stdout.split("\n").filter((line) => line.startsWith("{")).map((line): unknown => JSON.parse(line)),
              signal: (name) => child.kill(name),
              ended
            }
          }))
        })
      }),
      ({ kill }) => Effect.sync(kill)
    ),
    ({ running }) => running
  )
