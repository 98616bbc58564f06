/**
 * Tries the packages as a team outside would: packs them, installs them in an empty folder beside another patch version of
 * Effect, and there imports, compiles, tests and bundles them.
 *
 * `npm run packages` runs it. Each step says what it found; the first that fails ends it.
 */
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core"
import { GatewayApi } from "@trigate/api/GatewayApi"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as Effect from "effect/Effect"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as zlib from "node:zlib"
import { publint } from "publint"
import { read as readDocument } from "../../test/guides/blocks.ts"
import type { Place } from "../../test/guides/run.ts"
import { run as runDocument } from "../../test/guides/run.ts"
import { equal, run, runBeside, step } from "../steps.ts"
import { backend } from "./backend.ts"
import * as Browser from "./browser.ts"
import { isProgram, libraries, manifestOf, modulesOf, published, root, versionOf } from "./manifest.ts"

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "trigate-packages-"))
const app = path.join(folder, "app")
const modules = path.join(app, "node_modules")

const quiet = ["--loglevel=error", "--no-audit", "--no-fund"]

const npm = (args: ReadonlyArray<string>, cwd: string): string => run("npm", [...quiet, ...args], cwd)

/** The tarball of a package, which `npm run tarballs` leaves in the checkout. */
const tarballOf = (from: string): string => {
  const { name, version } = manifestOf(from)
  return path.join(root, "tarballs", `${name.replace("@", "").replace("/", "-")}-${version}.tgz`)
}

/** Makes a tarball of the installed Effect under the version number of a later patch. */
const packLaterEffect = (): string => {
  const copy = path.join(folder, "effect")
  fs.cpSync(path.join(root, "node_modules/effect"), copy, { recursive: true })
  fs.rmSync(path.join(copy, "node_modules"), { recursive: true, force: true })
  const file = path.join(copy, "package.json")
  const text = fs.readFileSync(file, "utf8")
  const later = versionOf(copy).replace(/\d+$/u, (patch) => String(Number(patch) + 1))
  fs.writeFileSync(file, text.replace(/"version": "[^"]+"/u, `"version": "${later}"`))
  // npm also reads one that is not compressed, and compressing takes ten times as long as the rest
  const tarball = path.join(folder, "effect.tar")
  run("tar", ["-cf", tarball, "--transform", "s,^effect,package,", "effect"], folder)
  return tarball
}

const installed = (name: string): string => versionOf(path.join(root, "node_modules", name))

const packAll = (): string => {
  const packed = Object.fromEntries(
    [...published.values()].map((from) => [manifestOf(from).name, `file:${tarballOf(from)}`])
  )
  fs.cpSync(path.join(import.meta.dirname, "consumer"), app, { recursive: true })
  const tools = ["@effect/vitest", "vitest", "@types/node", "typescript", "esbuild", "vite"]
  fs.writeFileSync(
    path.join(app, "package.json"),
    JSON.stringify({
      name: "consumer",
      private: true,
      type: "module",
      dependencies: {
        ...packed,
        effect: `file:${packLaterEffect()}`,
        "@effect/platform-node": installed("@effect/platform-node")
      },
      devDependencies: {
        ...Object.fromEntries(tools.map((name) => [name, installed(name)])),
        "typescript-5": "npm:typescript@5.9.3"
      },
      allowScripts: { esbuild: true }
    })
  )
  return `${published.size} packages`
}

const install = Effect.map(
  Effect.suspend(() => runBeside("npm", [...quiet, "install"], app)),
  () => `${published.size} packages beside effect ${versionOf(path.join(modules, "effect"))}`
)

const oneEffect = (): string => {
  const copies = fs.globSync("**/node_modules/effect/package.json", { cwd: app })
  equal("copies of effect", copies, ["node_modules/effect/package.json"])
  return "one copy"
}

const specifiers = libraries.flatMap(([name, from]) =>
  modulesOf(from).filter((module) => !isProgram(path.join(from, "src", `${module}.ts`)))
    .map((module) => module === "index" ? `@trigate/${name}` : `@trigate/${name}/${module}`)
)

/** What `npm run release` does, short of uploading. A version that is out already cannot go out again, which is no fault. */
const publish = Effect.gen(function*() {
  for (const from of published.values()) {
    yield* Effect.catchDefect(
      runBeside("npm", ["publish", "--dry-run", tarballOf(from)], root),
      (cause) => String(cause).includes("previously published") ? Effect.void : Effect.die(cause)
    )
  }
  return `${published.size} packages, as a dry run`
})

const importAll = (): string => {
  fs.writeFileSync(path.join(app, "all.mjs"), `${specifiers.map((name) => `await import("${name}")`).join("\n")}\n`)
  run(process.execPath, ["all.mjs"], app)
  return `${specifiers.length} modules`
}

// the commands of the packages, and the tools that are on the path of whoever reads them
const place: Place = {
  parent: path.join(app, "documents"),
  binaries: path.join(root, "node_modules/.bin"),
  vitestConfig: "export default {}\n"
}

/** The READMEs, and the guide to embedding: each block run with the packed packages. */
const documents = [
  "README.md",
  ...fs.globSync("packages/*/README.md", { cwd: root }).toSorted(),
  "docs/guides/embed.md"
]
  .map((file) => readDocument(file, fs.readFileSync(path.join(root, file), "utf8")))

/** The modules of the documents, written where the compiler finds them. */
const writeBlocks = (): ReadonlyArray<string> =>
  documents.flatMap(({ path: document, programs }) => {
    const folder = `blocks/${document.replaceAll(/[^a-z0-9]+/giu, "-")}`
    fs.mkdirSync(path.join(app, folder), { recursive: true })
    return programs.filter(({ language }) => language === "ts").map(({ file, text }) => {
      fs.writeFileSync(path.join(app, folder, file), text)
      return `${folder}/${file}`
    })
  })

/** The programs of the folder `consumer`. */
const programs = [
  "bars.ts",
  "effect.ts",
  "order.ts",
  "orders.ts",
  "page.ts",
  "promise.ts",
  "swapped.test.ts"
]

const compilers = ["typescript", "typescript-5"]
const resolutions = [["nodenext", "nodenext"], ["esnext", "bundler"]] as const

const compile = Effect.gen(function*() {
  const lines = specifiers.map((name, index) => `export * as m${index} from "${name}"`)
  fs.writeFileSync(path.join(app, "all.ts"), `${lines.join("\n")}\n`)
  const blocks = writeBlocks()
  for (const compiler of compilers) {
    for (const [module, moduleResolution] of resolutions) {
      const options = { module, moduleResolution, target: "es2022", lib: ["es2023", "dom", "dom.iterable"] }
      const project = path.join(app, `tsconfig.${compiler}.${moduleResolution}.json`)
      fs.writeFileSync(
        project,
        JSON.stringify({
          compilerOptions: {
            ...options,
            strict: true,
            noEmit: true,
            skipLibCheck: false,
            allowImportingTsExtensions: true,
            types: ["node"]
          },
          files: ["all.ts", ...programs, ...blocks]
        })
      )
      yield* runBeside(process.execPath, [path.join(modules, compiler, "bin/tsc"), "-p", project], app)
    }
  }
  const versions = compilers.map((name) => versionOf(path.join(modules, name)))
  return `TypeScript ${versions.join(" and ")}, nodenext and bundler, without skipLibCheck`
})

/** Resolutions that cannot load packages without CommonJS. */
const olderResolutions = new Set(["node10", "node16-cjs"])

// in this process: each program would load the compiler again
const lint = Effect.gen(function*() {
  for (const from of published.values()) {
    const bytes = new Uint8Array(fs.readFileSync(tarballOf(from)))
    const { messages } = yield* Effect.promise(() =>
      publint({ pack: { tarball: bytes.buffer }, level: "suggestion", strict: true })
    )
    equal(`what publint finds in ${from}`, messages, [])
    const found = yield* Effect.promise(() => checkPackage(createPackageFromTarballData(bytes)))
    const problems = found.types === false ? [] : found.problems
    equal(
      `what attw finds in ${from}`,
      problems.filter((problem) => !("resolutionKind" in problem && olderResolutions.has(problem.resolutionKind))),
      []
    )
  }
  return "publint and attw find nothing"
})

const decodeReport = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ numPassedTests: Schema.Int })))

const test = Effect.gen(function*() {
  yield* runBeside(
    process.execPath,
    [path.join(modules, "vitest/vitest.mjs"), "run", "swapped.test.ts", "--reporter=json", "--outputFile=run.json"],
    app
  )
  const { numPassedTests } = decodeReport(fs.readFileSync(path.join(app, "run.json"), "utf8"))
  equal("tests", numPassedTests, 3)
  return `${numPassedTests} tests with swapped layers`
})

const readDocuments = (gateway: string) =>
  Effect.gen(function*() {
    equal("what is wrong with the blocks", documents.flatMap(({ faults }) => faults), [])
    const wrong = yield* Effect.forEach(documents, (document) => runDocument(document, { sandbox: gateway }, place))
    equal("blocks that do not do what they show", wrong.flat(), [])
    return `${documents.flatMap(({ programs }) => programs).length} blocks of ${documents.length} documents`
  })

/** Bundles a module with esbuild as its documentation shows, without further options. */
const bundle = (module: string): string => {
  const target = path.join(app, "esbuild", module.replace(/\.ts$/u, ".js"))
  run(path.join(modules, ".bin/esbuild"), [module, "--bundle", "--minify", "--format=esm", `--outfile=${target}`], app)
  return target
}

const bundlers = {
  esbuild: () => {
    bundle("page.ts")
    fs.writeFileSync(
      path.join(app, "esbuild/index.html"),
      `<!doctype html><script type="module" src="page.js"></script>`
    )
    return path.join(app, "esbuild")
  },
  vite: () => {
    fs.writeFileSync(path.join(app, "index.html"), `<!doctype html><script type="module" src="/page.ts"></script>`)
    run(path.join(modules, ".bin/vite"), ["build", "--outDir", "vite", "--target", "es2022", "--logLevel", "warn"], app)
    return path.join(app, "vite")
  }
}

/** The modules that a program imports, and how many of them are ours. */
const importsOf = (file: string): readonly [all: number, ours: number] => {
  const names = [...fs.readFileSync(path.join(app, file), "utf8").matchAll(/^import .* from "([^"]+)"$/gmu)]
    .map((match) => match[1])
  return [names.length, names.filter((name) => name?.startsWith("@trigate/")).length]
}

/** What a program of few imports prints, over undici and then over Effect's fetch client. */
const embed = (gateway: string): string => {
  equal("the imports that read bars", importsOf("bars.ts"), [2, 1])
  equal("the imports that place an order", importsOf("order.ts"), [3, 2])
  equal("the imports of a bot with promises", importsOf("promise.ts"), [1, 1])
  const printed = (file: string) => run(process.execPath, [file, gateway], app).trim().split("\n")
  equal("the bars", printed("bars.ts"), ["bars", "bars"])
  equal("the orders", printed("order.ts"), ["Resting", "Resting"])
  const bot = ["Filled response", "0.05 ETH"]
  equal("the bot with promises", printed("promise.ts"), bot)
  equal("the bot with Effect", printed("effect.ts"), bot)
  return "bars in 2 imports, a signed order in 3 from 2 packages, over undici and over fetch; a bot in 1 import"
}

/**
 * Kilobytes that a page of five calls may load, zipped: with the imports of single modules that the documentation shows, and
 * with imports from the entry module, whose modules esbuild loads whole. Effect's HTTP client and schemas alone are 42 of them.
 */
const mostOfPage = { modules: 60, entry: 83 }

const pageSize = (): string => {
  const page = fs.readFileSync(path.join(app, "page.ts"), "utf8")
  const entry = page.replaceAll(
    /import \* as (\w+) from "@trigate\/client\/\w+"/gu,
    "import { $1 } from \"@trigate/client\""
  )
  fs.writeFileSync(path.join(app, "entry.ts"), entry)
  const gzippedKilobytes = (module: string) =>
    zlib.gzipSync(fs.readFileSync(bundle(module)), { level: 9 }).length / 1000
  const sizes = { modules: gzippedKilobytes("page.ts"), entry: gzippedKilobytes("entry.ts") }
  const document = fs.readFileSync(path.join(root, "docs/performance.md"), "utf8")
  if (!document.includes(`fails above ${mostOfPage.modules} kB`) || !document.includes(`or ${mostOfPage.entry} kB`)) {
    throw new Error("docs/performance.md states other maxima")
  }
  if (sizes.modules > mostOfPage.modules || sizes.entry > mostOfPage.entry) {
    throw new Error(`The page of five calls has ${sizes.modules} kB, from the entry module ${sizes.entry} kB`)
  }
  return `${sizes.modules.toFixed(1)} kB gzipped of the page of five calls, ${
    sizes.entry.toFixed(1)
  } kB from the entry module`
}

const inBrowser = (gateway: string) =>
  Effect.gen(function*() {
    const chromium = Browser.find()
    if (chromium === undefined) return "skipped, because there is no chromium on this machine"
    for (const [name, bundle] of Object.entries(bundlers)) {
      equal(
        `the page of ${name}`,
        yield* Browser.titleOf(chromium, bundle(), `?gateway=${gateway}`),
        "UnknownAsset bigint TRIG pending ActionRejected"
      )
    }
    return `bundles of ${Object.keys(bundlers).join(" and ")} read from a gateway, in ${path.basename(chromium)}`
  })

const program = path.join(folder, "program")
const trigate = path.join(program, "node_modules/.bin/trigate")

/** What somebody gets who installs nothing but the program. */
const installProgram = (): string => {
  fs.mkdirSync(program)
  fs.writeFileSync(path.join(program, "package.json"), "{}")
  npm(["install", tarballOf(path.join(root, "packages/trigate"))], program)
  const version = versionOf(path.join(root, "packages/trigate"))
  // the contract says it as well: in /openapi.json, in traces and in trigate_build_info
  equal("the version of the contract", OpenApi.fromApi(GatewayApi).info.version, version)
  equal("trigate --version", npm(["exec", "--", "trigate", "--version"], program).trim(), `trigate v${version}`)
  return `trigate ${version}`
}

const candles = (gateway: string): string => {
  const args = ["info", "candles", "BTC", "1d", "--from", "3d", "--out", "csv", "--gateway", gateway]
  const lines = npm(["exec", "--", "trigate", ...args], program).trim().split("\n")
  equal("the head of the candles", lines[0], "open_time,close_time,open,high,low,close,volume,trades")
  return `trigate serve answers trigate info candles: ${lines.length - 1} bars`
}

/** The page of the console, and the script that it loads, as the installed program serves them. */
const consolePage = async (gateway: string): Promise<string> => {
  const page = await fetch(gateway)
  const script = /<script[^>]+src="\.\/(?<path>[^"]+)"/u.exec(await page.text())?.groups?.["path"] ?? ""
  const code = await fetch(`${gateway}/${script}`)
  equal("the console", [page.status, code.status, code.headers.get("content-type")], [
    200,
    200,
    "text/javascript; charset=utf-8"
  ])
  return `the page and its script, ${(await code.arrayBuffer()).byteLength} bytes`
}

/** An old Node is told in one line, if this machine has one. */
const oldNode = (): string => {
  const old = ["/usr/bin/node", "/usr/local/bin/node"].find((node) =>
    fs.existsSync(node) && Number(/^v(\d+)/u.exec(run(node, ["--version"], program))?.[1]) < 22
  )
  if (old === undefined) return "skipped, because this machine has no Node below 22"
  const { status, stderr } = spawnSync(old, [fs.realpathSync(trigate)], { encoding: "utf8" })
  equal("exit code", status, 1)
  equal("lines", stderr.trim().split("\n").length, 1)
  return stderr.trim()
}

/** Prints what a step found, once it ends. */
const steps = <R>(title: string, check: Effect.Effect<string, never, R>): Effect.Effect<void, never, R> =>
  Effect.map(check, (found) => step(title, () => found))

const tryAll = Effect.gen(function*() {
  step("tarballs", () => `${npm(["run", "-s", "tarballs"], root).trim().split("\n").length - 1} in the folder tarballs`)
  step("program", installProgram)
  step("old node", oldNode)
  const gateway = yield* gatewayProcess({ TRIGATE_CORS_ORIGINS: "*" }, { program: fs.realpathSync(trigate) })
  step("serve", () => candles(gateway.url))
  yield* steps("console", Effect.promise(() => consolePage(gateway.url)))
  step("pack", packAll)
  // the steps of a row need each other, and the rows do not
  const installed = Effect.gen(function*() {
    yield* steps("install", install)
    step("effect", oneEffect)
    step("import", importAll)
  })
  yield* Effect.all([installed, Effect.andThen(steps("lint", lint), steps("publish", publish))], { concurrency: 2 })
  const used = Effect.gen(function*() {
    yield* steps("test", test)
    step("size", pageSize)
    yield* steps("documents", readDocuments(gateway.url))
    yield* steps("browser", inBrowser(gateway.url))
    // the documents show the ids of the first orders
    step("embed", () => embed(gateway.url))
  })
  const compiled = Effect.andThen(
    steps("compile", compile),
    steps("backend", backend(path.join(folder, "backend"), gateway.url))
  )
  yield* Effect.all([used, compiled], { concurrency: 2 })
})

// 60 000 files: nothing waits for their end
const clean = Effect.sync(() => spawn("rm", ["-rf", folder], { detached: true, stdio: "ignore" }).unref())

await Effect.runPromise(Effect.ensuring(Effect.scoped(tryAll), clean))
