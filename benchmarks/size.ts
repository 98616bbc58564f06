/** What a page loads for a call, what the program weighs, and how long it takes until it is ready. */
import { buildSync } from "esbuild"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import * as zlib from "node:zlib"
import { root } from "./harness/machine.ts"
import { plan } from "./harness/plan.ts"
import { scratch, start } from "./harness/processes.ts"
import type { Row } from "./harness/results.ts"
import { median } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const oneCall = `
import * as Connection from "@trigate/client/Connection"
import * as Evm from "@trigate/client/Evm"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
const gateway = Connection.layer({ baseUrl: "" }).pipe(Layer.provide(FetchHttpClient.layer))
document.title = String(await Effect.runPromise(Effect.provide(Evm.gasPrice(), gateway)))
`

const fiveCalls = fs.readFileSync(path.join(root, "scripts/packages/consumer/page.ts"), "utf8")

const zippedKB = (bytes: Uint8Array): number => zlib.gzipSync(bytes, { level: 9 }).length / 1000

/** What a page has to load, with the package as it is published. */
const pageKB = (contents: string): number => {
  const { outputFiles } = buildSync({
    stdin: { contents, resolveDir: root, loader: "ts" },
    alias: Object.fromEntries(
      ["api", "client", "domain"].flatMap((name) =>
        ["/unstable", ""].map((of) => [`@trigate/${name}${of}`, path.join(root, "packages", name, "build/dist")])
      )
    ),
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    write: false
  })
  return zippedKB(outputFiles[0]?.contents ?? new Uint8Array())
}

// with the environment of whoever measures: it says which registry npm asks
const npm = (cwd: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("npm", ["--loglevel=error", "--no-audit", "--no-fund", ...args], { cwd, encoding: "utf8" }).trim()

/** Installs the program as its users do. */
const install = (): string => {
  const folder = scratch()
  fs.writeFileSync(path.join(folder, "package.json"), "{}")
  const packed = npm(folder, "pack", "--ignore-scripts", path.join(root, "packages/trigate/build"))
  npm(folder, "install", "--omit=dev", `./${packed}`)
  return path.join(folder, "node_modules")
}

const megabytesOf = (folder: string): number =>
  fs.readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { name, parentPath }) => sum + fs.statSync(path.join(parentPath, name)).size, 0) / 1e6

const ready = /\((?<millis>[0-9]+) ms of processor time\)/u

/** Seconds of processor time of a start, as the program prints them, once it has ended. */
const startOf = (modules: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = start({
      name: "trigate",
      core: "peer",
      program: process.execPath,
      args: [path.join(modules, "trigate/dist/trigate.js"), "serve"],
      env: { TRIGATE_PORT: "0" }
    })
    let printed = ""
    child.stdout?.on("data", (chunk: Buffer) => {
      printed += chunk.toString("utf8")
      if (ready.test(printed)) child.kill("SIGTERM")
    })
    child.on("close", () => {
      const millis = Number(ready.exec(printed)?.groups?.["millis"])
      if (millis > 0) resolve(millis / 1000)
      else reject(new Error(`trigate did not say when it was ready:\n${printed}`))
    })
  })

const atMost = (title: string, beside: string, unit: string, values: ReadonlyArray<number>, aim: number): Row => {
  const value = median(values)
  return { title, beside, unit, value, values, aim: `<= ${aim} ${unit}`, met: value <= aim }
}

await run("size", async () => {
  const modules = install()
  const installed = megabytesOf(modules)
  // this one leaves the compiled code behind that the others begin with
  const first = await startOf(modules)
  const starts: Array<number> = []
  for (let round = 0; round < plan.rounds; round++) starts.push(await startOf(modules))
  const program = path.join(root, "packages/trigate/build/dist")
  // the compiled virtual machine of the sandbox's token chain is loaded at its first message
  const zipped = fs.readdirSync(program)
    .filter((name) => name.endsWith(".js"))
    .map((name) => fs.readFileSync(path.join(program, name)))
    .filter((bytes) => !bytes.includes("EmulatorEmscriptenWasm"))
    .reduce((sum, bytes) => sum + zippedKB(bytes), 0)
  const one = pageKB(oneCall)
  return {
    rows: [
      { title: "page with one call", beside: "gzip, esbuild", unit: "kB", value: one, values: [one] },
      atMost("page with five calls", "gzip, esbuild", "kB", [pageKB(fiveCalls)], 60),
      atMost("program", "gzip, without the token machine", "MB", [zipped / 1000], 2),
      atMost("installed program, ready", "processor time of a warm start", "s", starts, 0.5),
      atMost("installed program, node_modules", "files, without a cache", "MB", [installed], 60)
    ],
    notes: [`the first start, which has no compiled code yet, took ${first.toFixed(2)} s of processor time`]
  }
})
