/** A real Postgres of one test file: in a directory of its own, on a free port, gone with the scope. */
import * as Effect from "effect/Effect"
import type { ChildProcess } from "node:child_process"
import { spawn, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { oncePerRun } from "./OncePerRun.ts"
import { freePort } from "./PortPoll.ts"

const userId = (flag: "-u" | "-g") => Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout)

// it refuses to run as root
const isRoot = process.getuid?.() === 0
const owner = isRoot ? { uid: userId("-u"), gid: userId("-g") } : {}

/** Whether this machine has a Postgres that this user can start; tests that need one say so where it has none. */
export const isInstalled = spawnSync("postgres", ["--version"]).status === 0 &&
  spawnSync("initdb", ["--version"]).status === 0 && (!isRoot || (owner.uid ?? 0) > 0)

if (!isInstalled) {
  console.log("Not run here: tests against Postgres, because its programs are not on the path")
}

export interface PostgresServer {
  readonly url: string
  /** Ends the process as a crash does. */
  readonly kill: Effect.Effect<void>
  /** Starts it again on the same files. */
  readonly restart: Effect.Effect<void>
  /** Stops it without closing a connection: from outside it hangs. */
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
    // ends the backends as well, at once and without a checkpoint: the next start recovers
    return void server.kill("SIGQUIT")
  })

const backendPids = (server: ChildProcess): ReadonlyArray<number> =>
  spawnSync("pgrep", ["-P", String(server.pid)], { encoding: "utf8" }).stdout.split("\n").filter(Boolean).map(Number)

/** The files of an empty server. Making them takes more than a second, and copying them a twentieth of it. */
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
