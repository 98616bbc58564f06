/** A real EVM node of one test: on a free port, with funded accounts, gone with the scope. */
import * as Requirement from "@trigate/testing/Requirement"
import * as Effect from "effect/Effect"
import type { ChildProcess } from "node:child_process"
import { spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import { forwarder } from "../compat/forwarder.ts"

const platform = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`

/** Where the package of this system keeps the program, which is installed where there is one; else the one on the path. */
const programOf = (): string => {
  try {
    return createRequire(import.meta.url).resolve(`@foundry-rs/anvil-${platform}/bin/anvil`)
  } catch {
    return "anvil"
  }
}

const program = programOf()

/** Whether this machine can run a node. */
export const canRun = Requirement.canRun(
  "tests against a real EVM node",
  spawnSync(program, ["--version"]).status === 0 ? undefined : `${program} does not start on ${platform}`
)

export interface Anvil {
  /** Answers JSON-RPC at this URL, and at no other path. */
  readonly url: string
  /** Ends the process as a crash does. */
  readonly kill: Effect.Effect<void>
  /** Holds the process: connections open and take what is sent, and nothing is answered until it goes on. */
  readonly pause: Effect.Effect<void>
  readonly goOn: Effect.Effect<void>
}

const listening = /Listening on (?<address>\S+:\d+)/u

interface Started {
  readonly child: ChildProcess
  readonly url: string
}

const start = (options: ReadonlyArray<string>) =>
  Effect.callback<Started>((resume) => {
    const child = spawn(program, ["--port", "0", ...options], { stdio: ["ignore", "pipe", "pipe"] })
    let printed = ""
    const read = (chunk: Buffer) => {
      printed += chunk.toString("utf8")
      const address = listening.exec(printed)?.groups?.["address"]
      if (address !== undefined) resume(Effect.succeed({ child, url: `http://${address}` }))
    }
    child.stdout.on("data", read)
    child.stderr.on("data", read)
    child.once("exit", () => resume(Effect.die(new Error(`The node ended before it listened:\n${printed}`))))
  })

const end = (child: ChildProcess) =>
  Effect.callback<void>((resume) => {
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
    return void child.kill("SIGKILL")
  })

/** Whether all threads of a process are stopped; where there is no /proc, that is not known. */
const isStopped = (pid: number | undefined): boolean => {
  const tasks = `/proc/${pid}/task`
  return !fs.existsSync(tasks) ||
    fs.readdirSync(tasks).every((task) => /\) T /u.test(fs.readFileSync(`${tasks}/${task}/stat`, "utf8")))
}

/** The URL of a node as one of the venue has it: it answers below `/evm`. */
export const withEvmPath = (node: Anvil) => Effect.map(forwarder(node.url, () => "/"), ({ url }) => url)

const nodeWith = (options: ReadonlyArray<string>) =>
  Effect.map(
    Effect.acquireRelease(start(options), ({ child }) => end(child)),
    ({ child, url }): Anvil => ({
      url,
      kill: end(child),
      // a busy machine stops the threads some time after the signal
      pause: Effect.andThen(
        Effect.sync(() => child.kill("SIGSTOP")),
        Effect.repeat(Effect.yieldNow, { until: () => isStopped(child.pid) })
      ),
      goOn: Effect.sync(() => void child.kill("SIGCONT"))
    })
  )

/** Starts a node (chain id 31337, a block per transaction); it ends with the scope. */
export const anvil = nodeWith([])

/** Starts a node that goes on from a block of another one, whose state it reads there. */
export const forkOf = (url: string, block: number) => nodeWith(["--fork-url", url, "--fork-block-number", `${block}`])
