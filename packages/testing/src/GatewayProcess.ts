/** Starts the bundled gateway as a process. Tests can read the output of the process and send signals to it. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { randomInt } from "node:crypto"
import * as Net from "node:net"
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

/**
 * A free port of 127.0.0.1.
 *
 * The port is below the range of ephemeral ports, so that no other test gets the port before the server of this test
 * listens on it.
 */
export const freePort: Effect.Effect<number> = Effect.callback((resume) => {
  const port = randomInt(10_000, 32_000)
  const probe = Net.createServer()
  probe.once("error", () => resume(freePort))
  probe.listen(port, "127.0.0.1", () => probe.close(() => resume(Effect.succeed(port))))
})

/** The number of connections, by result. */
export interface Polled {
  /** Number of connections that were refused while the port was closed. */
  readonly refused: number
  /** Number of responses, by HTTP status. */
  readonly byStatus: { readonly [status: string]: number }
  /** Number of connections that were accepted, and closed without a response. */
  readonly unanswered: number
}

export interface PortPoll {
  /** Waits for 20 more responses, stops opening connections, and waits until every open connection is closed. */
  readonly end: Effect.Effect<Polled>
  readonly stop: () => void
}

const polling = (port: number, requests: ReadonlyArray<string>): PortPoll => {
  const open = new Set<Net.Socket>()
  const byStatus: Record<string, number> = {}
  const counts = { made: 0, refused: 0, responses: 0, unanswered: 0 }
  let changed = Promise.withResolvers<void>()
  const connect = () => {
    const request = requests[counts.made++ % requests.length] ?? ""
    let text = ""
    let isAccepted = false
    const socket = Net.connect({ host: "127.0.0.1", port, noDelay: true }, () => {
      isAccepted = true
      socket.write(request)
    })
    open.add(socket)
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1")
    })
    socket.on("error", () => {})
    socket.on("close", () => {
      open.delete(socket)
      const status = /^HTTP\/1\.1 (?<status>\d{3}) /u.exec(text)?.groups?.["status"]
      if (status === undefined) counts[isAccepted ? "unanswered" : "refused"] += 1
      else {
        counts.responses += 1
        byStatus[status] = (byStatus[status] ?? 0) + 1
      }
      changed.resolve()
      changed = Promise.withResolvers()
    })
  }
  const timer = setInterval(connect, 5)
  const until = (isOver: () => boolean) =>
    Effect.promise(async () => {
      while (!isOver()) await changed.promise
    })
  const stop = () => clearInterval(timer)
  return {
    stop,
    end: Effect.gen(function*() {
      const wanted = counts.responses + 20
      yield* until(() => counts.responses >= wanted)
      stop()
      yield* until(() => open.size === 0)
      return { refused: counts.refused, byStatus, unanswered: counts.unanswered }
    })
  }
}

/**
 * Opens a connection every 5 milliseconds until the scope closes. Sends the requests in turn, one on each connection.
 */
export const portPoll = (port: number, requests: ReadonlyArray<string>) =>
  Effect.acquireRelease(Effect.sync(() => polling(port, requests)), ({ stop }) => Effect.sync(stop))

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
