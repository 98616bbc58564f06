/** Runs the programs of a document in a folder of their own, against a gateway. */
import * as Effect from "effect/Effect"
import { spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { Document, Program } from "./blocks.ts"
import { oneProcess } from "./oneProcess.ts"
import type { Ended } from "./verdict.ts"
import * as AttemptResult from "./verdict.ts"

/** The repository. */
export const root = path.resolve(import.meta.dirname, "../..")

/** Where the packages are installed that the programs import. */
export interface Place {
  /** Holds the folders in which programs run, so that modules find the packages. */
  readonly parent: string
  /** The commands of the packages. */
  readonly binaries: string
  /** The module that configures vitest where the programs run. */
  readonly vitestConfig: string
  /** The command line as a module, where the programs of a document share a process; otherwise each has one of its own. */
  readonly shared?: string
}

/** The packages as they are in the repository. */
export const checkout: Place = {
  parent: path.join(import.meta.dirname, ".blocks"),
  binaries: path.join(root, "node_modules/.bin"),
  vitestConfig: `export { default } from ${JSON.stringify(path.join(root, "vitest.config.ts"))}\n`,
  shared: path.join(root, "packages/cli/src/Program.ts")
}

/** The same, with a process for each program, as for a reader. */
export const separate: Place = {
  parent: checkout.parent,
  binaries: checkout.binaries,
  vitestConfig: checkout.vitestConfig
}

/** A new folder, removed with the scope. */
export const folderIn = (parent: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      fs.mkdirSync(parent, { recursive: true })
      return fs.mkdtempSync(`${parent}/run-`)
    }),
    (made) => Effect.sync(() => fs.rmSync(made, { recursive: true }))
  )

/** The gateways that a document speaks of. */
export interface Gateways {
  /** The one at `localhost:8080`: with its sandbox. */
  readonly sandbox: string
  /** The one at `localhost:8081`: in front of the first, which stands for the venue; nothing where no document speaks of it. */
  readonly front?: string
}

/** A document speaks of gateways at their usual places; these listen elsewhere. */
const moved = (text: string, { front, sandbox }: Gateways): string =>
  text.replaceAll(/(?:http:\/\/)?(?:localhost|127\.0\.0\.1):(808[01])/gu, (found, port) => {
    const url = port === "8080" ? sandbox : front ?? found
    return found.startsWith("http") ? url : new URL(url).host
  })

/** Whether a document speaks of the second gateway. */
export const needsFront = ({ programs }: Document): boolean =>
  programs.some(({ excuse, text }) => excuse === undefined && text.includes("localhost:8081"))

const commandOf = (program: Program, cwd: string): readonly [file: string, ...args: ReadonlyArray<string>] => {
  if (program.language === "sh") {
    const streams = AttemptResult.showsErrors(program) ? "exec 2>&1\n" : ""
    return ["bash", "-euo", "pipefail", "-c", `${streams}${program.text}`]
  }
  return [process.execPath, path.join(cwd, program.file)]
}

const started = (
  [file, ...args]: readonly [file: string, ...args: ReadonlyArray<string>],
  cwd: string,
  env: { readonly [name: string]: string | undefined }
) =>
  Effect.callback<Ended>((resume) => {
    // a group of its own, so that what a block starts beside itself can be ended with it
    const child = spawn(file, args, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] })
    const printed = { stdout: "", stderr: "" }
    child.stdout.on("data", (chunk: Buffer) => {
      printed.stdout += chunk.toString("utf8")
    })
    child.stderr.on("data", (chunk: Buffer) => {
      printed.stderr += chunk.toString("utf8")
    })
    // whoever still writes to the output holds it open
    const closed = new Promise<void>((resolve) => child.once("close", () => resolve()))
    child.on("close", (code) => resume(Effect.succeed({ code, ...printed })))
    return Effect.suspend(() => {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL")
      return Effect.promise(() => closed)
    })
  })

/** Runs programs in a folder: modules and the commands of scripts in one process, if the place says so. */
const runnerIn = Effect.fnUntraced(function*(cwd: string, { sandbox }: Gateways, { binaries, shared }: Place) {
  const one = shared === undefined
    ? undefined
    : yield* oneProcess(yield* folderIn(path.join(os.tmpdir(), "trigate-guides")), binaries, shared)
  const env = {
    PATH: [...one === undefined ? [] : [one.commands], binaries, process.env["PATH"] ?? ""].join(":"),
    // an empty home: neither npm nor curl reads the settings of whoever runs the tests
    HOME: cwd,
    TRIGATE_GATEWAY_URL: sandbox,
    NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
    NO_COLOR: "1",
    npm_config_update_notifier: "false"
  }
  return (program: Program) =>
    one === undefined || program.language === "sh"
      ? started(commandOf(program, cwd), cwd, env)
      : Effect.promise(() => one.run({ args: [program.file], cwd, env }))
})

/**
 * Fills a new folder: with the examples, which a document may name, a curl that fails with an error status, and a vitest whose
 * project is the folder.
 */
const prepare = (cwd: string, { vitestConfig }: Place) => {
  fs.symlinkSync(path.join(root, "examples"), path.join(cwd, "examples"))
  fs.writeFileSync(path.join(cwd, ".curlrc"), "fail-with-body\n")
  fs.writeFileSync(path.join(cwd, "vitest.config.ts"), vitestConfig)
}

const isCurlInstalled = spawnSync("curl", ["--version"]).status === 0

const usesCurl = ({ language, text }: Program): boolean => language === "sh" && /\bcurl\b/u.test(text)

/** Runs what a document does not excuse, in its order; gives what is not as the document shows it. */
export const run = Effect.fn(function*(document: Document, gateways: Gateways, place: Place = checkout) {
  const cwd = yield* folderIn(place.parent)
  prepare(cwd, place)
  const runIn = yield* runnerIn(cwd, gateways, place)
  const wrong: Array<string> = []
  for (const found of document.programs) {
    const output = found.output === undefined
      ? undefined
      : { ...found.output, text: moved(found.output.text, gateways) }
    const program = { ...found, text: moved(found.text, gateways), output }
    if (program.language === "ts") fs.writeFileSync(path.join(cwd, program.file), program.text)
    if (program.excuse !== undefined || program.named) continue
    if (!isCurlInstalled && usesCurl(program)) {
      console.log(`not run: ${program.path}:${program.line} (no curl on this machine)`)
      continue
    }
    const verdict = AttemptResult.of(program, yield* runIn(program))
    if (verdict !== undefined) wrong.push(verdict)
  }
  return wrong
})
