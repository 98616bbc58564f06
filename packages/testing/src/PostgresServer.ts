/**
 * A real Postgres: a database on the server that all test files of a run share, or a separate server that a test can
 * kill.
 */
import * as Effect from "effect/Effect"
import type { ChildProcess } from "node:child_process"
import { spawn, spawnSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { freePort } from "./GatewayProcess.ts"
import { endWithRun, oncePerRun } from "./OncePerRun.ts"
import { canRun } from "./Requirement.ts"

const userId = (flag: "-u" | "-g") => Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout)

// Postgres refuses to run as root
const isRoot = process.getuid?.() === 0
const owner = isRoot ? { uid: userId("-u"), gid: userId("-g") } : {}

/** Whether Postgres is installed and this user can start it. */
export const isInstalled = canRun(
  "tests against Postgres",
  spawnSync("postgres", ["--version"]).status === 0 && spawnSync("initdb", ["--version"]).status === 0 &&
    (!isRoot || (owner.uid ?? 0) > 0)
    ? undefined
    : "the Postgres programs are not on the PATH"
)

export interface PostgresServer {
  readonly url: string
  /** Kills the process, as in a crash. */
  readonly kill: Effect.Effect<void>
  /** Restarts the server on the same files. */
  readonly restart: Effect.Effect<void>
  /** Suspends the process without closing its connections, so that the server appears to hang. */
  readonly freeze: Effect.Effect<void>
  readonly thaw: Effect.Effect<void>
}

const serverOptions = (port: number): ReadonlyArray<string> =>
  [
    ["-p", String(port)],
    ["-h", "127.0.0.1"],
    ["-k", ""],
    ...["logging_collector=off", "fsync=off", "max_connections=300"].map((setting) => ["-c", setting])
  ].flat()

const start = (directory: string, port: number) =>
  Effect.callback<ChildProcess>((resume) => {
    const options = ["-D", directory, ...serverOptions(port)]
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
    // SIGQUIT also ends the backends, immediately and without a checkpoint, so the next start has to recover
    return void server.kill("SIGQUIT")
  })

const backendPids = (server: ChildProcess): ReadonlyArray<number> =>
  spawnSync("pgrep", ["-P", String(server.pid)], { encoding: "utf8" }).stdout.split("\n").filter(Boolean).map(Number)

/** Runs an SQL statement with psql. Dies with psql's error output if the statement fails. */
const execute = (url: string, statement: string) =>
  Effect.callback<void>((resume) => {
    const psql = spawn("psql", ["-qX", "-c", statement, url], { stdio: ["ignore", "ignore", "pipe"] })
    let printed = ""
    psql.stderr.on("data", (chunk: Buffer) => {
      printed += chunk.toString("utf8")
    })
    psql.once("error", (error) => resume(Effect.die(error)))
    psql.once("close", (code) => resume(code === 0 ? Effect.void : Effect.die(new Error(printed))))
  })

/**
 * Returns the data directory of an empty server, to be copied. Creating such a directory takes more than a second; a
 * copy takes a twentieth of this time.
 */
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

const findPort =
  "const s = require('net').createServer().listen(0, '127.0.0.1', () => { console.log(s.address().port); s.close() })"

/**
 * Starts the server that the test files of this run share, if no other test process has started it yet. Returns the
 * server's port.
 */
const sharedServer = (): number => {
  const folder = oncePerRun("postgres-shared", (directory) => {
    const data = Path.join(directory, "data")
    const copied = spawnSync("cp", ["-a", emptyData(), data], { encoding: "utf8" })
    if (copied.status !== 0) throw new Error(copied.stderr)
    if (owner.uid !== undefined) Fs.chownSync(directory, owner.uid, owner.gid)
    const port = spawnSync(process.execPath, ["-e", findPort], { encoding: "utf8" }).stdout.trim()
    const log = Path.join(directory, "log")
    const options = serverOptions(Number(port)).map((option) => `'${option}'`).join(" ")
    const command = ["start", "--wait", "--silent", "-D", data, "-l", log, "-o", options]
    const started = spawnSync("pg_ctl", command, { ...owner, cwd: directory, encoding: "utf8", stdio: "ignore" })
    if (started.status !== 0) throw new Error(Fs.readFileSync(log, "utf8"))
    endWithRun(Number(Fs.readFileSync(Path.join(data, "postmaster.pid"), "utf8").split("\n")[0]))
    Fs.writeFileSync(Path.join(directory, "port"), port)
  })
  return Number(Fs.readFileSync(Path.join(folder, "port"), "utf8"))
}

/** Creates an empty database on the server that the test files of this run share, and returns its URL. */
export const postgresDatabase = Effect.gen(function*() {
  const base = `postgres://trigate@127.0.0.1:${yield* Effect.sync(sharedServer)}`
  const name = `test_${randomUUID().replaceAll("-", "")}`
  yield* execute(`${base}/postgres`, `CREATE DATABASE ${name}`)
  return { url: `${base}/${name}` }
})

/** Starts a separate server for one test. Tests that do not kill or freeze the server use {@link postgresDatabase}. */
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
  const url = `postgres://trigate@127.0.0.1:${port}/postgres`
  let server = yield* start(data, port)
  yield* Effect.addFinalizer(() => Effect.suspend(() => end(server)))
  const signal = (name: NodeJS.Signals) =>
    Effect.sync(() => {
      for (const pid of [...backendPids(server), server.pid ?? 0]) process.kill(pid, name)
    })
  const postgres: PostgresServer = {
    url,
    // writes a checkpoint first: without it, Postgres sometimes cannot recover unlogged tables that were created after
    // the previous checkpoint
    kill: Effect.andThen(execute(url, "CHECKPOINT"), Effect.suspend(() => end(server))),
    restart: Effect.map(start(data, port), (started) => {
      server = started
    }),
    freeze: signal("SIGSTOP"),
    thaw: signal("SIGCONT")
  }
  return postgres
})
