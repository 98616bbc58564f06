/** A real Postgres for one test file: in its own directory, on a free port, removed with the scope. */
import * as Effect from "effect/Effect"
import type { ChildProcess } from "node:child_process"
import { spawn, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { oncePerRun } from "./OncePerRun.ts"
import { freePort } from "./PortPoll.ts"

const userId = (flag: "-u" | "-g") => Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout)

// Postgres refuses to run as root
const isRoot = process.getuid?.() === 0
const owner = isRoot ? { uid: userId("-u"), gid: userId("-g") } : {}

/** Whether Postgres is installed and can be started by this user; tests that need it print a message if not. */
export const isInstalled = spawnSync("postgres", ["--version"]).status === 0 &&
  spawnSync("initdb", ["--version"]).status === 0 && (!isRoot || (owner.uid ?? 0) > 0)

if (!isInstalled) {
  console.log("Not run here: tests against Postgres, because its programs are not on the path")
}

export interface PostgresServer {
  readonly url: string
  /** Kills the process, as in a crash. */
  readonly kill: Effect.Effect<void>
  /** Restarts it on the same files. */
  readonly restart: Effect.Effect<void>
  /** Stops the process without closing connections, so that it appears to hang. */
  readonly freeze: Effect.Effect<void>
  readonly thaw: Effect.Effect<void>
}

const start = (directory: string, port: number) =>
  Effect.callback<ChildProcess>((resume) => {
    const options = [
      "-D",
      directory,
      "-p",
      String(port),
      "-h",
      "127.0.0.1",
      "-k",
      "",
      "-c",
      "logging_collector=off",
      "-c",
      "fsync=off"
    ]
    const server = spawn("postgres", options, { ...owner, cwd: directory, stdio: ["ignore", "ignore", "pipe"] })
    let printed = ""
    server.stderr.on("data", (chunk: Buffer) => {
      printed += chunk.toString("utf8")
      if (printed.includes("ready to accept connections")) resume(Effect.succeed(server))
    })
    server.once("exit", () => resume(Effect.die(new Error(`Postgres did not start:\n${printed}`))))
  })

const end = (server: ChildProcess) =>
  Effect.callback<void>((resume) => {
    if (server.exitCode !== null || server.signalCode !== null) return resume(Effect.void)
    server.once("exit", () => resume(Effect.void))
    server.kill("SIGCONT")
    // ends the backends too, at once and without a checkpoint: the next start recovers
    return void server.kill("SIGQUIT")
  })

const backendPids = (server: ChildProcess): ReadonlyArray<number> =>
  spawnSync("pgrep", ["-P", String(server.pid)], { encoding: "utf8" }).stdout.split("\n").filter(Boolean).map(Number)

/** Returns the data directory of an empty server. Creating one takes more than a second, copying it a twentieth of that. */
const emptyData = (): string =>
  Path.join(
    oncePerRun("postgres", (directory) => {
      if (owner.uid !== undefined) Fs.chownSync(directory, owner.uid, owner.gid)
      const data = Path.join(directory, "data")
      const options = ["-D", data, "-U", "trigate", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"]
      const { status, stderr } = spawnSync("initdb", options, { ...owner, cwd: directory, encoding: "utf8" })
      if (status !== 0) throw new Error(stderr)
    }),
    "data"
  )

export const postgresServer = Effect.gen(function*() {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "postgres-"))),
    (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
  )
  const data = Path.join(directory, "data")
  const copied = spawnSync("cp", ["-a", emptyData(), data], { encoding: "utf8" })
  if (copied.status !== 0) return yield* Effect.die(new Error(copied.stderr))
  if (owner.uid !== undefined) Fs.chownSync(directory, owner.uid, owner.gid)
  const port = yield* freePort
  let server = yield* start(data, port)
  yield* Effect.addFinalizer(() => Effect.suspend(() => end(server)))
  const signal = (name: NodeJS.Signals) =>
    Effect.sync(() => {
      for (const pid of [...backendPids(server), server.pid ?? 0]) process.kill(pid, name)
    })
  const postgres: PostgresServer = {
    url: `postgres://trigate@127.0.0.1:${port}/postgres`,
    kill: Effect.suspend(() => end(server)),
    restart: Effect.map(start(data, port), (started) => {
      server = started
    }),
    freeze: signal("SIGSTOP"),
    thaw: signal("SIGCONT")
  }
  return postgres
})
