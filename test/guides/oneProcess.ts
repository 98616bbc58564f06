/**
 * Runs the programs of one document one after another in one process, which `oneProcessMain.ts` is. Starting Node and loading the
 * packages takes most of a second, and the documents hold some two hundred programs.
 *
 * In the scripts of the document `node`, `trigate` and `npx` name a command of {@link OneProcess.commands}, which asks this
 * module over a socket. `npx` of anything else starts a process as it always does.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { fork } from "node:child_process"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import type { Ended } from "./verdict.ts"

/** A program, as a shell would start it. */
export interface Command {
  /** The module, then its arguments. */
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  readonly env: { readonly [name: string]: string | undefined }
}

export interface OneProcess {
  /** The folder with the commands `node`, `trigate` and `npx`. */
  readonly commands: string
  readonly run: (command: Command) => Promise<Ended>
}

const main = path.join(import.meta.dirname, "oneProcessMain.ts")

/** What a shell sets by itself. */
const ofShells = new Set(["_", "OLDPWD", "PWD", "SHLVL"])

const environmentOf = ({ env }: Command): string =>
  JSON.stringify(Object.keys(env).filter((name) => !ofShells.has(name)).toSorted().map((name) => [name, env[name]]))

/** Starts the process; a program has written what is before its mark on each stream. */
const started = (mark: string, command: Command) => {
  const child = fork(main, [mark], { execArgv: [], env: command.env, stdio: ["ignore", "pipe", "pipe", "ipc"] })
  const printed = { stdout: "", stderr: "" }
  let changed = () => {}
  const into = (stream: keyof typeof printed) => (chunk: string) => {
    printed[stream] += chunk
    changed()
  }
  child.stdout?.setEncoding("utf8").on("data", into("stdout"))
  child.stderr?.setEncoding("utf8").on("data", into("stderr"))
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve))
  const ends = (end: RegExp): Promise<Ended> =>
    new Promise((resolve) => {
      let isOver = false
      const take = (code: number | null, out: number, err: number) => {
        if (isOver) return
        isOver = true
        const ended = { code, stdout: printed.stdout.slice(0, out), stderr: printed.stderr.slice(0, err) }
        printed.stdout = ""
        printed.stderr = ""
        changed = () => {}
        resolve(ended)
      }
      changed = () => {
        const out = end.exec(printed.stdout)
        const err = end.exec(printed.stderr)
        if (out !== null && err !== null) take(Number(out.groups?.["code"]), out.index, err.index)
      }
      // a program that ends itself, or fails, ends the process
      void closed.then((code) => take(code, printed.stdout.length, printed.stderr.length))
    })
  return { child, ends, environment: environmentOf(command) }
}

const shim = (socket: string, kind: string): string =>
  `#!${process.execPath}
const { spawnSync } = require("node:child_process")
const args = process.argv.slice(2)
const socket = require("node:net").connect(${JSON.stringify(socket)})
let text = ""
socket.setEncoding("utf8").on("data", (chunk) => { text += chunk }).on("end", () => {
  const answer = JSON.parse(text)
  if (answer.real !== undefined) {
    process.exitCode = spawnSync(answer.real[0], answer.real.slice(1), { stdio: "inherit" }).status ?? 1
    return
  }
  process.stderr.write(answer.stderr)
  process.stdout.on("error", () => {}).write(answer.stdout)
  process.exitCode = answer.code ?? 1
})
socket.end(JSON.stringify({ kind: ${JSON.stringify(kind)}, args, cwd: process.cwd(), env: process.env }))
`

const decodeAsked = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({
    kind: Schema.String,
    args: Schema.Array(Schema.String),
    cwd: Schema.String,
    env: Schema.Record(Schema.String, Schema.String)
  }))
)
type Asked = ReturnType<typeof decodeAsked>

/** What a command of the scripts starts: a module, or a program in a process of its own. */
const meant = ({ args, kind }: Asked, binaries: string, cli: string) => {
  const [name = "", ...rest] = kind === "npx" ? args.slice(args[0] === "--" ? 1 : 0) : [kind, ...args]
  if (name === "trigate") return { args: [cli, ...rest] }
  if (name === "node" && rest[0]?.startsWith("-") === false) return { args: rest }
  if (name === "node") return { real: [process.execPath, ...rest] }
  // with the path of Node, which the first line of such a file looks for among the commands of this module
  return { real: [process.execPath, path.join(binaries, name), ...rest] }
}

/** A process for the programs of a document; it is killed with the scope. */
export const oneProcess = (folder: string, binaries: string, cli: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const mark = randomUUID()
      const end = new RegExp(`${mark} (?<code>\\d+)\\n`, "u")
      let last: ReturnType<typeof started> | undefined
      let queue: Promise<void> = Promise.resolve()
      const next = (command: Command): Promise<Ended> => {
        const { args, cwd } = command
        // modules keep what they read of the environment, so another one takes another process
        if (last?.child.exitCode !== null || last.environment !== environmentOf(command)) {
          last?.child.kill("SIGKILL")
          last = started(mark, command)
        }
        const ended = last.ends(end)
        last.child.send({ args, cwd })
        return ended
      }
      // in order: they share a folder, an environment and two streams
      const run = async (command: Command): Promise<Ended> => {
        const before = queue
        const { promise, resolve } = Promise.withResolvers<void>()
        queue = promise
        await before
        const ended = await next(command)
        resolve()
        return ended
      }
      const commands = path.join(folder, "commands")
      const socket = path.join(folder, "commands.sock")
      fs.mkdirSync(commands)
      for (const kind of ["node", "npx", "trigate"]) {
        fs.writeFileSync(path.join(commands, kind), shim(socket, kind), { mode: 0o755 })
      }
      const server = net.createServer({ allowHalfOpen: true }, (caller) => {
        let text = ""
        caller.setEncoding("utf8").on("error", () => {}).on("data", (chunk: string) => {
          text += chunk
        }).on("end", () => {
          const asked = decodeAsked(text)
          const { args, real } = { args: undefined, real: undefined, ...meant(asked, binaries, cli) }
          if (args === undefined) return caller.end(JSON.stringify({ real }))
          return void run({ ...asked, args }).then((ended) => caller.end(JSON.stringify(ended)))
        })
      })
      await new Promise<void>((resolve) => server.listen(socket, resolve))
      return { commands, run, stop: () => [server.close(), last?.child.kill("SIGKILL")] }
    }),
    ({ stop }) => Effect.sync(stop)
  )
