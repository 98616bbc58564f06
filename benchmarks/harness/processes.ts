/** Processes that are measured: pinned to a core, asked for their processor time and memory, ended with the suite. */
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { pinning } from "./machine.ts"

export interface Server {
  readonly name: string
  /** Where it listens, without a trailing slash. */
  readonly url: string
  readonly pid: number
}

export interface Command {
  readonly name: string
  readonly program: string
  readonly args: ReadonlyArray<string>
  readonly env?: { readonly [name: string]: string }
  readonly core: "peer" | "load"
}

const running = new Set<ChildProcess>()

const folders = new Set<string>()

let ending = false

process.on("exit", () => {
  for (const child of running) child.kill("SIGTERM")
  for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true })
})
process.on("SIGINT", () => process.exit(130))
process.on("SIGTERM", () => process.exit(143))

/** Ends every process that was started and waits until it has: only then nobody uses the folders any more. */
export const stopAll = async (): Promise<void> => {
  ending = true
  await Promise.all([...running].map((child) =>
    new Promise((resolve) => {
      child.on("close", resolve)
      child.kill("SIGTERM")
    })
  ))
}

/** A folder for files that are gone with the suite. */
export const scratch = (): string => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "bench-"))
  folders.add(folder)
  return folder
}

/** Ends one process before the suite ends. */
export const stop = ({ pid }: Server): Promise<void> =>
  new Promise((resolve) => {
    const child = [...running].find((each) => each.pid === pid)
    if (child === undefined) return resolve()
    child.removeAllListeners("close")
    child.on("close", () => {
      running.delete(child)
      resolve()
    })
    child.kill("SIGTERM")
  })

/** Starts a program on its core, with nothing of this environment but the path. */
export const start = ({ args, core, env, name, program }: Command): ChildProcess => {
  if (process.platform !== "linux") throw new Error("Processor time and memory are read from /proc: this needs Linux")
  const [file, ...rest] = pinning === undefined
    ? [program, ...args]
    : ["taskset", "-c", pinning[core], program, ...args]
  const child = spawn(file ?? program, rest, {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  running.add(child)
  child.on("close", () => running.delete(child))
  child.on("error", (error) => {
    throw new Error(`${name} does not start`, { cause: error })
  })
  return child
}

const listening = /listens on (?<url>http:\/\/[^\s/]+)/u

/** Starts a server and waits until it says where it listens. */
export const serve = (command: Command): Promise<Server> =>
  new Promise((resolve, reject) => {
    const child = start(command)
    let printed = ""
    const read = (chunk: Buffer) => {
      printed = (printed + chunk.toString("utf8")).slice(-10_000)
      const url = listening.exec(printed)?.groups?.["url"]
      if (url !== undefined && child.pid !== undefined) resolve({ name: command.name, url, pid: child.pid })
    }
    child.stdout?.on("data", read)
    child.stderr?.on("data", read)
    child.on("close", (code) => {
      if (ending) return
      const error = new Error(`${command.name} ended (${code}):\n${printed}`)
      reject(error)
      // whoever waits for its answers would never learn why there are none
      setImmediate(() => {
        throw error
      })
    })
  })

/** Runs a program to its end and gives back what it wrote. */
export const outputOf = (command: Command): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = start(command)
    let stdout = ""
    let stderr = ""
    child.stdout?.on("data", (chunk: Buffer) => (stdout += chunk.toString("utf8")))
    child.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString("utf8")))
    child.on("close", (code) =>
      code === 0 ? resolve(stdout) : reject(new Error(`${command.name} failed (${code}):\n${stdout}${stderr}`)))
  })

const familyOf = (pid: number): ReadonlyArray<number> => {
  const children = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim()
  return [pid, ...(children === "" ? [] : children.split(" ").flatMap((child) => familyOf(Number(child))))]
}

// clock ticks of /proc are hundredths of a second on every Linux that Node runs on
const ticksPerSecond = 100

/** Seconds of processor time, in user and system mode, of a process, all its threads and its living children. */
export const cpuSecondsOf = ({ pid }: Server): number =>
  familyOf(pid).reduce((sum, member) => {
    // the name in the second field may hold blanks; what follows its bracket does not
    const fields = fs.readFileSync(`/proc/${member}/stat`, "utf8").replace(/^.*\) /u, "").split(" ")
    return sum + (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
  }, 0)

const mibOf = ({ pid }: Server, field: "VmRSS" | "VmHWM"): number =>
  Number(new RegExp(`^${field}:\\s+([0-9]+) kB`, "mu").exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024

/** Resident memory in MiB. */
export const residentMiB = (server: Server): number => mibOf(server, "VmRSS")

/** Forgets the peak of resident memory; from now on the kernel keeps a new one, of which no sampling misses any. */
export const resetPeak = ({ pid }: Server): void => fs.writeFileSync(`/proc/${pid}/clear_refs`, "5")

/** The most resident memory since the last {@link resetPeak}, in MiB. */
export const peakMiB = (server: Server): number => mibOf(server, "VmHWM")

export const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))
