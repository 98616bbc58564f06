/**
 * Builds each package into its folder `build`, as it is published: JavaScript that bundlers can shake, declarations, source maps,
 * the sources that the maps name, and a manifest whose `exports` lead there.
 *
 * `npm run build` runs it. The manifests of the checkout lead to the sources, so that nothing has to be built to run them
 * (docs/decisions/0025-packages-are-built-to-be-published.md).
 */
import { transformSync } from "@babel/core"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { bundle } from "./bundle.ts"
import type { Manifest } from "./manifest.ts"
import { manifestOf, published, root, versionOf } from "./manifest.ts"
import * as Pure from "./pure.ts"

const run = (program: string, args: ReadonlyArray<string>, failure: string): void => {
  const { status } = spawnSync(path.join(root, "node_modules/.bin", program), args, { cwd: root, stdio: "inherit" })
  if (status !== 0) throw new Error(failure)
}

const compile = (): void => {
  const projects = [...published.values()].map((folder) => path.relative(root, folder))
  run("tsc", ["-b", ...projects], "The sources do not compile")
  run("vite", ["build", "--config", "packages/console/vite.config.ts"], "The console does not build")
}

/** The console as it was built, which the server looks for beside its modules. */
const consoleFiles = path.join(root, "packages/server/console")

/** Marks the calls of a module's top level as pure: a bundler drops a schema or a service that nothing uses. */
const annotate = (folder: string, module: string): void => {
  const compiled = path.join(folder, "dist", module)
  const target = path.join(folder, "build/dist", module)
  const result = transformSync(fs.readFileSync(`${compiled}.js`, "utf8"), {
    filename: `${compiled}.js`,
    babelrc: false,
    configFile: false,
    plugins: [Pure.plugin],
    sourceMaps: true
  })
  if (result?.code == null) throw new Error(`${compiled}.js could not be read`)
  fs.mkdirSync(path.dirname(target), { recursive: true })
  fs.writeFileSync(`${target}.js`, `${result.code}\n//# sourceMappingURL=${path.basename(module)}.js.map\n`)
  fs.writeFileSync(`${target}.js.map`, JSON.stringify({ ...result.map, file: `${path.basename(module)}.js` }))
}

/** The compiler leaves `.ts` in the imports of declarations, where nobody else expects it; `.js` is as long, so the map holds. */
const declare = (folder: string, module: string): void => {
  const text = fs.readFileSync(path.join(folder, "dist", `${module}.d.ts`), "utf8")
  fs.writeFileSync(
    path.join(folder, "build/dist", `${module}.d.ts`),
    text.replaceAll(/(?<=(?:from |import\(|import )"\.{1,2}\/[^"]+\.)ts(?=")/gu, "js")
  )
  fs.copyFileSync(
    path.join(folder, "dist", `${module}.d.ts.map`),
    path.join(folder, "build/dist", `${module}.d.ts.map`)
  )
}

const builtPath = (source: string): string => source.replace(/^\.\/src\/(.+)\.ts$/u, "./dist/$1.js")

const builtExport = (target: string | null): unknown =>
  target === null || !target.startsWith("./src/")
    ? target
    : { types: builtPath(target).replace(/\.js$/u, ".d.ts"), default: builtPath(target) }

/** The manifest as it is published: `publishConfig` names this folder, and only the tests need the `devDependencies`. */
const builtManifest = ({ devDependencies: __, exports = {}, publishConfig: _, ...rest }: Manifest) => ({
  ...rest,
  exports: Object.fromEntries(Object.entries(exports).map(([name, target]) => [name, builtExport(target)])),
  publishConfig: { access: "public", provenance: true }
})

const write = (folder: string, manifest: unknown): void => {
  for (const file of [path.join(folder, "README.md"), path.join(folder, "CHANGELOG.md"), path.join(root, "LICENSE")]) {
    fs.copyFileSync(file, path.join(folder, "build", path.basename(file)))
  }
  fs.writeFileSync(path.join(folder, "build/package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`)
}

const buildLibrary = (folder: string, manifest: Manifest): void => {
  fs.cpSync(path.join(folder, "src"), path.join(folder, "build/src"), { recursive: true })
  for (const file of fs.globSync("**/*.ts", { cwd: path.join(folder, "src"), exclude: ["**/*.d.ts"] })) {
    const module = file.replace(/\.ts$/u, "")
    annotate(folder, module)
    declare(folder, module)
  }
  const carries = path.dirname(consoleFiles) === folder
  if (carries) fs.cpSync(consoleFiles, path.join(folder, "build/console"), { recursive: true })
  write(folder, { ...builtManifest(manifest), files: ["dist", "src", ...(carries ? ["console"] : [])] })
}

/** The licences of what a bundle holds: they ask to be passed on with every copy. */
const noticesOf = (inputs: ReadonlyArray<string>): string => {
  const folders = new Set(inputs.flatMap((input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/u.exec(input)?.[0] ?? []))
  return [...folders].toSorted().map((folder) => {
    const [file] = fs.globSync("{LICENSE,LICENCE,license}*", { cwd: path.join(root, folder) })
    const text = file === undefined
      ? "Its package holds no text of its licence.\n"
      : fs.readFileSync(path.join(root, folder, file), "utf8")
    return `${folder.replace(/^.*node_modules\//u, "")} ${versionOf(path.join(root, folder))}\n\n${text}`
  }).join(`\n${"-".repeat(80)}\n\n`)
}

/**
 * The program as one file with everything that it starts with, so that it installs quickly and starts without a search for
 * modules. What it loads on first use, such as the virtual machine of the sandbox's token chain, is in files beside it.
 *
 * Beside it is the launcher, which runs on a Node that could not read the file. The native curve cannot be bundled.
 */
const buildProgram = async (folder: string, manifest: Manifest): Promise<void> => {
  const built = path.join(folder, "build/dist")
  const modules = await bundle(built, { external: [], minify: true })
  const launcher = fs.readFileSync(path.join(folder, "dist/trigate.js"), "utf8")
  fs.writeFileSync(path.join(built, "trigate.js"), launcher.replace(/^\/\/# sourceMappingURL=.*\n?/mu, ""))
  fs.writeFileSync(path.join(folder, "build/THIRD-PARTY-NOTICES.txt"), noticesOf(modules))
  fs.cpSync(consoleFiles, path.join(folder, "build/console"), { recursive: true })
  const { dependencies: _, peerDependencies: __, ...rest } = builtManifest(manifest)
  write(folder, {
    ...rest,
    bin: { trigate: "./dist/trigate.js" },
    files: ["console", "dist", "THIRD-PARTY-NOTICES.txt"]
  })
}

const build = async (folder: string): Promise<void> => {
  fs.rmSync(path.join(folder, "build"), { recursive: true, force: true })
  const manifest = manifestOf(folder)
  if (manifest.bin === undefined) buildLibrary(folder, manifest)
  else await buildProgram(folder, manifest)
}

compile()
for (const folder of published.values()) await build(folder)
console.log(`built ${published.size} packages`)
