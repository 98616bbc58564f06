/**
 * Which package may import which, written once, and compared with everything that repeats it: the package.json files, the
 * project references, what the lint rules really report, and what a module that declares a service really loads.
 *
 * Run it with `npm run arrows`.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

interface Package {
  /** The packages of this repository that it may import. */
  readonly arrows: ReadonlyArray<string>
  /** What it takes from npm besides `effect`: code that only computes. */
  readonly codecs?: ReadonlyArray<string>
  /** What it takes from npm besides `effect`: code that does I/O. No module that declares a service may load it. */
  readonly drivers?: ReadonlyArray<string>
  /** Modules that import nothing but `effect` and `domain`, because every caller and every mock imports them. */
  readonly contracts?: ReadonlyArray<string>
}

const table: Readonly<Record<string, Package>> = {
  domain: { arrows: [] },
  signing: { arrows: ["domain"], codecs: ["@noble/curves", "@noble/hashes", "hash-wasm", "secp256k1", "viem"] },
  upstream: { arrows: ["domain"], drivers: ["undici"] },
  // the driver of SQLite is Node's own module
  archive: { arrows: ["domain"], codecs: ["hyparquet", "hyparquet-writer"] },
  trading: { arrows: ["archive", "domain", "signing", "upstream"], contracts: ["Exchange", "Info", "TradingEvm"] },
  tokens: { arrows: ["domain", "upstream"], drivers: ["undici"], contracts: ["TokenChain"] },
  layer2: { arrows: ["domain", "upstream"], contracts: ["Layer2"] },
  callers: { arrows: ["domain"], codecs: ["@noble/hashes"] },
  api: { arrows: ["domain"] },
  client: { arrows: ["api", "domain"] },
  // a page in a browser, which the server carries as it was built
  console: { arrows: ["api", "client", "domain"], codecs: ["@preact/signals", "lightweight-charts", "preact"] },
  sandbox: {
    arrows: ["archive", "domain", "layer2", "signing", "tokens", "trading", "upstream"],
    codecs: [
      "@ethereumjs/block",
      "@ethereumjs/common",
      "@ethereumjs/evm",
      "@ethereumjs/tx",
      "@ethereumjs/util",
      "@ethereumjs/vm",
      "viem"
    ]
  },
  server: {
    arrows: ["api", "archive", "callers", "domain", "layer2", "sandbox", "signing", "tokens", "trading", "upstream"],
    drivers: ["@effect/platform-node", "@effect/sql-pg", "redis"]
  },
  cli: {
    arrows: ["archive", "callers", "client", "domain", "layer2", "server", "signing", "trading"],
    drivers: ["@effect/platform-node"]
  },
  // the program that people install: one file, bundled from the others
  trigate: { arrows: ["cli"] },
  // what tests share: no package may import it
  testing: {
    arrows: ["callers", "client", "domain", "sandbox", "server", "signing", "upstream"],
    codecs: ["@noble/curves"],
    drivers: ["@effect/platform-node"]
  }
}

/** The packages that run on Node and may load every driver: programs, and what tests share. */
const programs: ReadonlySet<string> = new Set(["server", "cli", "trigate", "testing"])

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

const effectModules = ["effect/Effect", "effect/http/HttpClient"]

const specifiers = [
  "effect",
  "effect/http-api",
  ...effectModules,
  "node:fs",
  "../../domain/src/Hex.ts",
  ...Object.values(table).flatMap(fromNpm),
  "@effect/platform-node/NodeRuntime",
  "@effect/sql-pg/PgClient",
  ...Object.keys(table).flatMap((name) => [`@trigate/${name}/Module`, `@trigate/${name}/internal/module`])
]

/** Files to plant, each with the specifiers that it may import. */
const plants = (): ReadonlyMap<string, ReadonlySet<string>> => {
  const files = new Map<string, ReadonlySet<string>>()
  const contract = [...effectModules, "@trigate/domain/Module"]
  for (const [name, { arrows, codecs = [], contracts = [] }] of Object.entries(table)) {
    const allowed = [...effectModules, ...codecs, ...arrows.map((arrow) => `@trigate/${arrow}/Module`)]
    const node = programs.has(name) ? ["node:fs", "@effect/platform-node/NodeRuntime"] : []
    if (name === "server") node.push("@effect/sql-pg/PgClient")
    files.set(`packages/${name}/src/Planted.ts`, new Set([...allowed, ...node]))
    for (const module of contracts) files.set(`packages/${name}/src/${module}.ts`, new Set(contract))
  }
  files.set("packages/upstream/src/PlantedUndici.ts", new Set([...contract, "undici", "node:fs"]))
  files.set("packages/archive/src/PlantedSqlite.ts", new Set([...contract, "hyparquet", "hyparquet-writer", "node:fs"]))
  return files.set(
    "packages/tokens/src/PlantedUndici.ts",
    new Set([...contract, "@trigate/upstream/Module", "undici", "node:fs"])
  )
}

/** Lint reports every import that the table forbids and none that it allows: a pattern that matches nothing is silent. */
const checkLint = (): void => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "arrows-"))
  const expected = new Set<string>()
  for (const [file, allowed] of plants()) {
    fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true })
    fs.writeFileSync(path.join(folder, file), specifiers.map((name) => `import "${name}"\n`).join(""))
    for (const name of specifiers) if (!allowed.has(name)) expected.add(`${file} importing ${name}`)
  }
  fs.mkdirSync(path.join(folder, "scripts"))
  for (const file of [".oxlintrc.json", "scripts/lint-rules.ts"]) {
    fs.copyFileSync(path.join(root, file), path.join(folder, file))
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
    if (!/no-restricted-imports|no-nodejs-modules/u.test(String(diagnostic["code"]))) continue
    const line = Number(record(record(list(diagnostic["labels"])[0])["span"])["line"])
    reported.add(`${String(diagnostic["filename"])} importing ${String(specifiers[line - 1])}`)
  }
  for (const claim of expected.difference(reported)) failures.push(`.oxlintrc.json lets pass ${claim}`)
  for (const claim of reported.difference(expected)) failures.push(`.oxlintrc.json refuses ${claim}`)
}

/** The import declarations that survive compilation: `import type` does not load anything. */
const importsOf = (file: string): ReadonlyArray<string> =>
  [...fs.readFileSync(file, "utf8").matchAll(/^(?:import|export)\s(?!type\s)(?:[^"]*?\sfrom\s)?"([^"]+)"/gmu)]
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
