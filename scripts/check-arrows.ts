/**
 * Compares the table of `arrows.ts` with everything that repeats it: the package.json files, the project references, what lint
 * really reports, and what a module that declares a service really loads.
 *
 * Run it with `npm run arrows`.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { mayImport, type Package, programs, table } from "./arrows.ts"

const root = path.resolve(import.meta.dirname, "..")
const failures: Array<string> = []

const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? Object.fromEntries(Object.entries(value)) : {}

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

const readJson = (file: string): Readonly<Record<string, unknown>> =>
  record(JSON.parse(fs.readFileSync(path.join(root, file), "utf8")))

const fromNpm = ({ codecs = [], drivers = [] }: Package): ReadonlyArray<string> => [...codecs, ...drivers]

const compare = (where: string, expected: Iterable<string>, actual: Iterable<string>): void => {
  const want = new Set(expected)
  const have = new Set(actual)
  for (const name of want.difference(have)) failures.push(`${where}: ${name} is missing`)
  for (const name of have.difference(want)) failures.push(`${where}: ${name} is not in the table of check-arrows.ts`)
}

const checkReferences = (file: string, expected: ReadonlyArray<string>): void =>
  compare(
    file,
    expected,
    list(readJson(file)["references"]).map((reference) => path.basename(String(record(reference)["path"])))
  )

/**
 * The dependencies and references of each package are the table's.
 *
 * A manifest names ranges that begin with what the lock file installs: a program that embeds a package decides on the version, and
 * two copies of `effect` would not know each other's schemas.
 */
const checkManifests = (): void => {
  const names = Object.keys(table)
  compare("packages", names, fs.readdirSync(path.join(root, "packages")))
  checkReferences("tsconfig.json", [...names, "tsconfig.test.json"])
  checkReferences("tsconfig.test.json", names)
  const locked = record(readJson("package-lock.json")["packages"])
  for (const [name, entry] of Object.entries(table)) {
    checkReferences(`packages/${name}/tsconfig.json`, entry.arrows)
    const file = `packages/${name}/package.json`
    const manifest = readJson(file)
    const dependencies = { ...record(manifest["dependencies"]), ...record(manifest["peerDependencies"]) }
    const scoped = entry.arrows.map((arrow) => `@trigate/${arrow}`)
    compare(file, ["effect", ...fromNpm(entry), ...scoped], Object.keys(dependencies))
    for (const [dependency, range] of Object.entries(dependencies)) {
      const installed = scoped.includes(dependency)
        ? manifest["version"]
        : record(locked[`node_modules/${dependency}`])["version"]
      const expected = `^${String(installed)}`
      if (range !== expected) failures.push(`${file}: ${dependency} is ${String(range)} instead of ${expected}`)
    }
    for (const peer of ["effect", ...(entry.drivers ?? []).filter((driver) => driver !== "undici")]) {
      if (!(peer in record(manifest["peerDependencies"]))) failures.push(`${file}: ${peer} is not a peer`)
    }
  }
}

/** A file for each package, importing its own kind of module from each package, a barrel, an internal module and a driver. */
const plants: ReadonlyMap<string, ReadonlyArray<string>> = new Map(
  Object.entries(table).map(([name, { contracts = [] }]) => [`packages/${name}/src/${contracts[0] ?? "Planted"}.ts`, [
    "./Sibling.ts",
    `../../${name === "domain" ? "api" : "domain"}/src/Module.ts`,
    "effect",
    "effect/Effect",
    "node:fs",
    "undici",
    "viem",
    "@effect/platform-node/NodeRuntime",
    ...Object.keys(table).flatMap((target) => [
      `@trigate/${target}/Module`,
      `@trigate/${target}/folder/Module`,
      `@trigate/${target}/internal/module`
    ])
  ]])
)

/** The rule really runs: lint reports each planted import that the table forbids, and no other. */
const checkLint = (): void => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "arrows-"))
  const expected = new Set<string>()
  for (const [file, specifiers] of plants) {
    fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true })
    fs.writeFileSync(path.join(folder, file), specifiers.map((name) => `import "${name}"\n`).join(""))
    for (const name of specifiers) if (!mayImport(file, name)) expected.add(`${file} importing ${name}`)
  }
  for (const name of [".oxlintrc.json", "scripts"]) {
    fs.cpSync(path.join(root, name), path.join(folder, name), { recursive: true })
  }
  const oxlint = path.join(root, "node_modules/.bin/oxlint")
  const { stdout } = spawnSync(oxlint, ["--format=json", "packages"], {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024
  })
  fs.rmSync(folder, { recursive: true })
  const reported = new Set<string>()
  for (const diagnostic of list(record(JSON.parse(stdout))["diagnostics"]).map(record)) {
    if (!String(diagnostic["code"]).includes("arrows")) continue
    const file = String(diagnostic["filename"])
    const line = Number(record(record(list(diagnostic["labels"])[0])["span"])["line"])
    reported.add(`${file} importing ${String(plants.get(file)?.[line - 1])}`)
  }
  for (const claim of expected.difference(reported)) failures.push(`lint lets pass ${claim}`)
  for (const claim of reported.difference(expected)) failures.push(`lint refuses ${claim}`)
}

/** The import declarations that survive compilation: `import type` does not load anything. */
const importsOf = (file: string): ReadonlyArray<string> =>
  [...fs.readFileSync(file, "utf8").matchAll(/^(?:import|export(?=\s[*{]))\s(?!type\s)(?:[^"]*?\sfrom\s)?"([^"]+)"/gmu)]
    .flatMap((match) => match.slice(1))

const resolve = (specifier: string, from: string): string | undefined => {
  if (specifier.startsWith(".")) return path.resolve(path.dirname(from), specifier)
  const [, name, module] = /^@trigate\/([^/]+)\/(.+)$/u.exec(specifier) ?? []
  return name === undefined ? undefined : path.join(root, "packages", name, "src", `${String(module)}.ts`)
}

/** A module that declares a service loads no driver, however many modules lie between them. */
const checkServices = (): void => {
  const drivers = Object.values(table).flatMap((entry) => entry.drivers ?? [])
  const isDriver = (specifier: string): boolean =>
    specifier.startsWith("node:") || drivers.some((driver) => `${specifier}/`.startsWith(`${driver}/`))
  for (const name of Object.keys(table)) {
    if (programs.has(name)) continue
    for (const service of fs.globSync(path.join(root, "packages", name, "src/**/*.ts"))) {
      if (!fs.readFileSync(service, "utf8").includes("extends Context.Service<")) continue
      const reached = new Set([service])
      for (const file of reached) {
        for (const specifier of importsOf(file)) {
          const target = resolve(specifier, file)
          if (target !== undefined && fs.existsSync(target)) reached.add(target)
          if (!isDriver(specifier)) continue
          failures.push(
            `${path.relative(root, service)} declares a service and loads ${specifier} through ${
              path.relative(root, file)
            }`
          )
        }
      }
    }
  }
}

checkManifests()
checkLint()
checkServices()
for (const failure of failures) console.error(failure)
console.log(failures.length === 0 ? "arrows: all as in the table" : `arrows: ${failures.length} differences`)
process.exitCode = failures.length === 0 ? 0 : 1
