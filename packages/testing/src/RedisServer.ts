/**
 * A real Redis server for one test. It listens on a free port, and stops when the scope closes. It writes data to the
 * disk only if the test requests it.
 */
import * as Effect from "effect/Effect"
import type { ChildProcess } from "node:child_process"
import { spawn, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { freePort } from "./GatewayProcess.ts"
import { canRun } from "./Requirement.ts"

/** Whether `redis-server` is installed. */
export const isInstalled = canRun(
  "tests against Redis",
  spawnSync("redis-server", ["--version"]).status === 0 ? undefined : "redis-server is not installed"
)

export interface RedisServer {
  readonly url: string
  /** Kills the process, as in a crash. */
  readonly kill: Effect.Effect<void>
  /** Suspends the process without closing its connections, so that the server appears to hang. */
  readonly freeze: Effect.Effect<void>
  readonly thaw: Effect.Effect<void>
  /** Starts an empty server on the same port, after `kill`. */
  readonly restart: Effect.Effect<void>
  /** Writes the server's data to the disk. */
  readonly save: Effect.Effect<void>
  /** Starts a server on the same port with the data that were last saved. */
  readonly restore: Effect.Effect<void>
}

const start = (port: number, directory: string) =>
  Effect.callback<ChildProcess>((resume) => {
    const options = ["--port", String(port), "--bind", "127.0.0.1", "--dir", directory]
    const server = spawn("redis-server", [...options, "--save", "", "--appendonly", "no"])
    let printed = ""
    server.once("exit", () => resume(Effect.die(new Error(`Redis did not start:\n${printed}`))))
    server.stdout.on("data", (chunk: Buffer) => {
      printed += chunk.toString("utf8")
      if (printed.includes("Ready to accept connections")) resume(Effect.succeed(server))
    })
  })

const end = (server: ChildProcess) =>
  Effect.callback<void>((resume) => {
    if (server.exitCode !== null || server.signalCode !== null) return resume(Effect.void)
    server.once("exit", () => resume(Effect.void))
    return void server.kill("SIGKILL")
  })

export const redisServer = Effect.gen(function*() {
  const port = yield* freePort
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "redis-"))),
    (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
  )
  const restore = Effect.map(start(port, directory), (started) => {
    server = started
  })
  let server = yield* start(port, directory)
  yield* Effect.addFinalizer(() => Effect.suspend(() => end(server)))
  const signal = (name: NodeJS.Signals) => Effect.sync(() => void server.kill(name))
  const redis: RedisServer = {
    url: `redis://127.0.0.1:${port}`,
    kill: Effect.suspend(() => end(server)),
    freeze: signal("SIGSTOP"),
    thaw: signal("SIGCONT"),
    restart: Effect.suspend(() => {
      Fs.rmSync(Path.join(directory, "dump.rdb"), { force: true })
      return restore
    }),
    save: Effect.sync(() => {
      const { status, stderr } = spawnSync("redis-cli", ["-p", String(port), "save"], { encoding: "utf8" })
      if (status !== 0) throw new Error(stderr)
    }),
    restore
  }
  return redis
})
