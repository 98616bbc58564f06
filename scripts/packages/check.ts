/**
 * Tries the packages as a team outside would: packs them, installs them in an empty folder beside another patch version of
 * Effect, and there imports, compiles, tests and bundles them.
 *
 * `npm run packages` runs it. Each step says what it found; the first that fails ends it.
 */
import * as Schema from "effect/Schema"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { manifestOf, modulesOf, published, root, versionOf } from "./manifest.ts"

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "trigate-packages-"))
const app = path.join(folder, "app")
const modules = path.join(app, "node_modules")
const at = (name: string): string => path.join(root, "node_modules/.bin", name)

/** Runs a program to its end; its output is shown if it fails. */
const run = (command: string, args: ReadonlyArray<string>, cwd: string): string => {
  const { error, status, stderr, stdout } = spawnSync(command, args, { cwd, encoding: "utf8", maxBuffer: 2 ** 26 })
  if (status === 0) return stdout
  throw new Error(
    `${[path.basename(command), ...args].join(" ")} ends with ${String(status ?? error)}\n${stdout}\n${stderr}`
  )
}

const npm = (args: ReadonlyArray<string>, cwd: string): string =>
  run("npm", [...args, "--loglevel=error", "--no-audit", "--no-fund"], cwd)

const equal = (what: string, actual: unknown, expected: unknown): void => {
  const [found, wanted] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (found !== wanted) throw new Error(`${what}: expected ${wanted}, found ${found}`)
}

const step = (title: string, run: () => string): void => console.log(`${title}: ${run()}`)

const pack = (from: string): string => {
  const [name = ""] = npm(["pack", "--ignore-scripts", "--pack-destination", folder, from], folder).trim().split("\n")
    .slice(-1)
  return `file:${path.join(folder, name)}`
}

/** The installed Effect under the version number of a later patch. */
const laterEffect = (): string => {
  const copy = path.join(folder, "effect")
  fs.cpSync(path.join(root, "node_modules/effect"), copy, { recursive: true })
  fs.rmSync(path.join(copy, "node_modules"), { recursive: true, force: true })
  const file = path.join(copy, "package.json")
  const text = fs.readFileSync(file, "utf8")
  const later = versionOf(copy).replace(/\d+$/u, (patch) => String(Number(patch) + 1))
  fs.writeFileSync(file, text.replace(/"version": "[^"]+"/u, `"version": "${later}"`))
  return pack(copy)
}

const installed = (name: string): string => versionOf(path.join(root, "node_modules", name))

const install = (): string => {
  const packed = Object.fromEntries(
    [...published.values()].map((from) => [manifestOf(from).name, pack(path.join(from, "build"))])
  )
  fs.cpSync(path.join(import.meta.dirname, "consumer"), app, { recursive: true })
  const tools = ["@effect/vitest", "vitest", "@types/node", "typescript", "esbuild", "vite"]
  fs.writeFileSync(
    path.join(app, "package.json"),
    JSON.stringify({
      name: "consumer",
      private: true,
      type: "module",
      dependencies: { ...packed, effect: laterEffect(), "@effect/platform-node": installed("@effect/platform-node") },
      devDependencies: {
        ...Object.fromEntries(tools.map((name) => [name, installed(name)])),
        "typescript-5": "npm:typescript@5.9.3"
      },
      allowScripts: { esbuild: true }
    })
  )
  npm(["install"], app)
  return `${published.size} packages beside effect ${versionOf(path.join(modules, "effect"))}`
}

const oneEffect = (): string => {
  const copies = fs.globSync("**/node_modules/effect/package.json", { cwd: app })
  equal("copies of effect", copies, ["node_modules/effect/package.json"])
  return "one copy"
}

/** Programs run when they are imported. */
const isProgram = (module: string): boolean =>
  /\brunMain\(|^await import\(/mu.test(fs.readFileSync(`${module}.ts`, "utf8"))

const specifiers = [...published].flatMap(([name, from]) =>
  modulesOf(from).filter((module) => !isProgram(path.join(from, "src", module)))
    .map((module) => module === "index" ? `@trigate/${name}` : `@trigate/${name}/${module}`)
)

const importAll = (): string => {
  fs.writeFileSync(path.join(app, "all.mjs"), `${specifiers.map((name) => `await import("${name}")`).join("\n")}\n`)
  run(process.execPath, ["all.mjs"], app)
  return `${specifiers.length} modules`
}

const compilers = ["typescript", "typescript-5"]
const resolutions = [["nodenext", "nodenext"], ["esnext", "bundler"]] as const

const compile = (): string => {
  const lines = specifiers.map((name, index) => `export * as m${index} from "${name}"`)
  fs.writeFileSync(path.join(app, "all.ts"), `${lines.join("\n")}\n`)
  for (const compiler of compilers) {
    for (const [module, moduleResolution] of resolutions) {
      for (const skipLibCheck of [true, false]) {
        const options = { module, moduleResolution, target: "es2022", lib: ["es2023", "dom", "dom.iterable"] }
        fs.writeFileSync(
          path.join(app, "tsconfig.json"),
          JSON.stringify({
            compilerOptions: { ...options, strict: true, noEmit: true, skipLibCheck, types: ["node"] },
            files: ["all.ts", "page.ts", "swapped.test.ts"]
          })
        )
        run(process.execPath, [path.join(modules, compiler, "bin/tsc"), "-p", "."], app)
      }
    }
  }
  const versions = compilers.map((name) => versionOf(path.join(modules, name)))
  return `TypeScript ${versions.join(" and ")}, nodenext and bundler, with and without skipLibCheck`
}

const lint = (): string => {
  for (const [name, from] of published) {
    run(at("publint"), ["--level", "suggestion", "--strict", path.join(from, "build")], root)
    const tarball = fs.globSync(`trigate-${name}-*.tgz`, { cwd: folder }).map((file) => path.join(folder, file))
    run(at("attw"), ["--profile", "esm-only", "--no-emoji", ...tarball], root)
  }
  return "publint and attw find nothing"
}

const decodeReport = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ numPassedTests: Schema.Int })))

const test = (): string => {
  run(
    process.execPath,
    [path.join(modules, "vitest/vitest.mjs"), "run", "--reporter=json", "--outputFile=run.json"],
    app
  )
  const { numPassedTests } = decodeReport(fs.readFileSync(path.join(app, "run.json"), "utf8"))
  equal("tests", numPassedTests, 2)
  return `${numPassedTests} tests with swapped layers`
}

try {
  step("build", () => run(process.execPath, [path.join(import.meta.dirname, "build.ts")], root).trim())
  step("install", install)
  step("effect", oneEffect)
  step("lint", lint)
  step("import", importAll)
  step("compile", compile)
  step("test", test)
} finally {
  fs.rmSync(folder, { recursive: true, force: true })
}
