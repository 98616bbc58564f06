/**
 * Bundles the program `trigate` of the checkout into a folder, for tests: `node scripts/packages/bundle.ts <folder>`. It takes
 * seconds; `build.ts` builds what is published, by the same function.
 */
import { transformSync } from "esbuild"
import * as fs from "node:fs"
import * as path from "node:path"
import type { ChunkingContext } from "rolldown"
import { rolldown } from "rolldown"

const root = path.resolve(import.meta.dirname, "../..")
const program = path.join(root, "packages/trigate")

/**
 * What a start loads, as two chunks: the compiler of schemas, which has to run before any schema is made, and the rest. Node takes
 * a millisecond to find and link a file, and a bundler that shares modules among entries makes seventy files of them.
 */
const chunks = {
  schema: ["node_modules/effect/dist/schema/SchemaJITCompiler/enable.js"],
  start: [
    "packages/cli/src/Program.ts",
    "packages/server/src/process/Serve.ts",
    "packages/upstream/src/transport/HttpTransportUndici.ts"
  ]
}

/** Makes the function that tells whether some modules import a module, at once or through others. */
const importedBy = (modules: ReadonlyArray<string>) => {
  const reached = new Set<string>()
  const reach = (id: string, context: ChunkingContext): void => {
    if (reached.has(id)) return
    reached.add(id)
    for (const imported of context.getModuleInfo(id)?.importedIds ?? []) reach(imported, context)
  }
  return (id: string, context: ChunkingContext): boolean => {
    if (reached.size === 0) { for (const module of modules) reach(path.join(root, module), context) }
    return reached.has(id)
  }
}

/** Which modules stay outside, and whether names are shortened. */
interface Options {
  readonly external: ReadonlyArray<string | RegExp>
  readonly minify: boolean
}

/**
 * Bundles the program, and beside it what is loaded on first use, such as the worker thread with the virtual machine of the
 * sandbox's token chain. Returns the modules of the bundle. The native curve cannot be bundled.
 */
export const bundle = async (folder: string, { external, minify }: Options): Promise<ReadonlyArray<string>> => {
  const build = await rolldown({
    input: {
      program: path.join(program, "src/program.ts"),
      TokenWorker: path.join(root, "packages/sandbox/src/tokens/TokenWorker.ts")
    },
    cwd: root,
    platform: "node",
    external: ["secp256k1", ...external],
    transform: { target: "node22" },
    preserveEntrySignatures: false,
    logLevel: "warn",
    checks: { ineffectiveDynamicImport: false },
    plugins: [{
      name: "http",
      resolveId: (id) => id === "node:http" ? path.join(import.meta.dirname, "http.cts") : null
    }]
  })
  const { output } = await build.write({
    dir: folder,
    format: "esm",
    minify,
    comments: false,
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: Object.entries(chunks).map(([name, modules], index) => {
        const isImported = importedBy(modules)
        return { name: (id, context) => isImported(id, context) ? name : null, debugName: name, priority: -index }
      })
    }
  })
  await build.close()
  return output.flatMap((file) => file.type === "chunk" ? file.moduleIds : []).map((id) => path.relative(root, id))
}

if (import.meta.main) {
  const folder = process.argv[2] ?? ""
  const dist = path.join(folder, "dist")
  // most of the time goes into libraries that few tests load
  await bundle(dist, { external: [/^@ton\//u, /^@ethereumjs\//u, "redis", /^@redis\//u], minify: false })
  const { code } = transformSync(fs.readFileSync(path.join(program, "src/trigate.ts"), "utf8"), { loader: "ts" })
  fs.writeFileSync(path.join(dist, "trigate.js"), code.replace("./program.ts", "./program.js"), { mode: 0o755 })
  fs.copyFileSync(path.join(program, "package.json"), path.join(folder, "package.json"))
  // what the program looks for beside itself
  fs.symlinkSync(path.join(root, "packages/server/console"), path.join(folder, "console"))
  fs.symlinkSync(path.join(root, "node_modules"), path.join(folder, "node_modules"))
}
