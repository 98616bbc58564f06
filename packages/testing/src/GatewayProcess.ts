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

const main = new URL("../../server/src/main.ts", import.meta.url).pathname
const listening = /listens on (?<url>http:\/\/\S+)/u

/** Bounds on the process. */
export interface Limits {
  /** How large a file may become that it writes. */
  readonly maxFileKilobytes?: number
}

const commandOf = ({ maxFileKilobytes }: Limits): readonly [command: string, args: ReadonlyArray<string>] =>
  maxFileKilobytes === undefined
    ? [process.execPath, [main]]
    : ["bash", ["-c", `ulimit -f ${maxFileKilobytes}; exec "$0" "$1"`, process.execPath, main]]

/** Starts `main.ts` under the given environment and waits until it listens; it is killed with the scope. */
export const gatewayProcess = (environment: { readonly [name: string]: string }, limits: Limits = {}) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly kill: () => void; readonly running: GatewayProcess }>((resume) => {
        const child = spawn(...commandOf(limits), {
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
