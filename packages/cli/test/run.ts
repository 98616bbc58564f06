/** The command line in this process, and as a process of its own: what it prints on each stream, and its exit code. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as ExitCode from "@trigate/cli/Report"
import * as Trigate from "@trigate/cli/Trigate"
import * as Settings from "@trigate/server/settings/SettingsSources"
import { bundledProgram } from "@trigate/testing/Bundle"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Terminal from "effect/Terminal"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Surroundings {
  /** The whole environment. */
  readonly environment?: { readonly [name: string]: string }
  readonly stdin?: string
  /** What a person types at the terminal that standard input then is. */
  readonly typed?: string
  /** Whether standard error is a terminal. */
  readonly terminal?: boolean
  /** The width of the terminal that standard output is; 0 where it is not a terminal. */
  readonly columns?: number
  /** The height of that terminal. */
  readonly rows?: number
  /** Receives standard output so far, each time that a line is logged. */
  readonly onOutput?: (text: string) => void
}

/** The line that says which store or gateway a command uses. */
const targetLine = /^(?:actions|candles|keys): .*\n/mu

/** Runs a command line in this process, under the clock of the test; gives also the line that says what it works on. */
export const runFully = Effect.fnUntraced(function*(args: ReadonlyArray<string>, surroundings: Surroundings = {}) {
  const printed = { stdout: "", stderr: "" }
  const into = (stream: keyof typeof printed) => (...parts: ReadonlyArray<unknown>) => {
    printed[stream] += `${parts.join(" ")}\n`
    if (stream === "stdout") surroundings.onOutput?.(printed.stdout)
  }
  const sink = (stream: keyof typeof printed) => () =>
    Sink.forEach((chunk: string | Uint8Array) =>
      Effect.sync(() => {
        printed[stream] += typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk)
      })
    )
  const stdio = Stdio.layerTest({
    stdin: Stream.make(new TextEncoder().encode(surroundings.stdin ?? "")),
    stdout: sink("stdout"),
    stderr: sink("stderr"),
    stdinIsTerminal: Effect.succeed(surroundings.typed !== undefined),
    stderrIsTerminal: Effect.succeed(surroundings.terminal ?? false)
  })
  const context = yield* Layer.build(Layer.merge(NodeServices.layer, stdio))
  const terminal = Context.get(context, Terminal.Terminal)
  const exit = yield* Trigate.run(args).pipe(
    Effect.provideService(Terminal.Terminal, {
      ...terminal,
      columns: Effect.succeed(surroundings.columns ?? 0),
      rows: Effect.succeed(surroundings.rows ?? 0),
      display: (text) => Effect.sync(() => void (printed.stdout += text)),
      readLine: surroundings.typed === undefined ? terminal.readLine : Effect.succeed(surroundings.typed)
    }),
    Effect.provideService(Console.Console, {
      ...globalThis.console,
      log: into("stdout"),
      error: into("stderr")
    }),
    Effect.provideService(
      ConfigProvider.ConfigProvider,
      ConfigProvider.fromUnknown(surroundings.environment ?? {})
    ),
    Effect.provideService(Settings.ProcessEnvironment, surroundings.environment ?? {}),
    Effect.provide(Context.add(context, Stdio.Stdio, Context.get(yield* Layer.build(stdio), Stdio.Stdio))),
    Effect.exit
  )
  return { code: ExitCode.of(exit), ...printed } satisfies Ended
}, Effect.scoped)

/** {@link runFully} without the line that says which store or gateway the command uses. */
export const run = (args: ReadonlyArray<string>, surroundings: Surroundings = {}) =>
  Effect.map(runFully(args, surroundings), (ended) => ({ ...ended, stderr: ended.stderr.replace(targetLine, "") }))

/** The bin. */
export const main = (): string => bundledProgram()

export interface Running {
  /** Waits until it has printed a text, on either stream; gives all that it has printed. */
  readonly says: (text: string) => Effect.Effect<string>
  readonly signal: (name: "SIGINT" | "SIGTERM" | "SIGHUP") => void
  readonly ended: Effect.Effect<Ended>
}

const started = (file: string, args: ReadonlyArray<string>, environment: { readonly [name: string]: string }) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const child = spawn(file, args, {
          env: { PATH: `${path.dirname(process.execPath)}:${process.env["PATH"] ?? ""}`, ...environment },
          stdio: ["ignore", "pipe", "pipe"]
        })
        const printed = { stdout: "", stderr: "" }
        const listeners = new Set<() => void>()
        const into = (stream: keyof typeof printed) => (chunk: Buffer) => {
          printed[stream] += chunk.toString("utf8")
          for (const listener of listeners) listener()
        }
        child.stdout.on("data", into("stdout"))
        child.stderr.on("data", into("stderr"))
        const says = (text: string) =>
          Effect.callback<string>((resume) => {
            const look = () => {
              const all = printed.stdout + printed.stderr
              if (!all.includes(text)) return
              listeners.delete(look)
              resume(Effect.succeed(all))
            }
            listeners.add(look)
            look()
            void ended.then(() =>
              resume(Effect.die(new Error(`It ended before it printed ${text}:\n${printed.stdout}${printed.stderr}`)))
            )
          })
        const ended = new Promise<Ended>((resolve) => child.on("close", (code) => resolve({ code, ...printed })))
        const running: Running = {
          says,
          signal: (name) => child.kill(name),
          ended: Effect.promise(() => ended)
        }
        return { running, kill: () => child.kill("SIGKILL") }
      }),
      ({ kill }) => Effect.sync(kill)
    ),
    ({ running }) => running
  )

/** Starts the bin as a process; it is killed with the scope. */
export const start = (args: ReadonlyArray<string>, environment: { readonly [name: string]: string } = {}) =>
  Effect.suspend(() => started(main(), args, environment))

/** Runs a program to its end. */
export const command = (file: string, args: ReadonlyArray<string>, environment: { readonly [name: string]: string }) =>
  Effect.scoped(Effect.flatMap(started(file, args, environment), ({ ended }) => ended))

/** Runs the bin as a process to its end. */
export const spawned = (args: ReadonlyArray<string>, environment: { readonly [name: string]: string } = {}) =>
  Effect.suspend(() => command(main(), args, environment))

/** A folder that is removed with the scope. */
export const folder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "trigate-"))),
  (made) => Effect.sync(() => fs.rmSync(made, { recursive: true }))
)

/** A file with the content, in a folder that is removed with the scope. */
export const fileWith = (content: string) =>
  Effect.map(folder, (made) => {
    const file = path.join(made, "file")
    fs.writeFileSync(file, content, { mode: 0o600 })
    return file
  })

/** The start of every test: `TestClock` at a fixed instant, so that what a sandbox makes up is always the same. */
export const epoch = Date.UTC(2026, 0, 2, 3, 4, 5)
