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
import type { Manifest } from "./manifest.ts"
import { manifestOf, published, root } from "./manifest.ts"

const compile = (): void => {
  const projects = [...published.values()].map((folder) => path.relative(root, folder))
  const { status } = spawnSync(path.join(root, "node_modules/.bin/tsc"), ["-b", ...projects], {
    cwd: root,
    stdio: "inherit"
  })
  if (status !== 0) throw new Error("The sources do not compile")
}

/** Marks the calls of a module's top level as pure: a bundler drops a schema or a service that nothing uses. */
const annotate = (folder: string, module: string): void => {
  const compiled = path.join(folder, "dist", module)
  const target = path.join(folder, "build/dist", module)
  const result = transformSync(fs.readFileSync(`${compiled}.js`, "utf8"), {
    filename: `${compiled}.js`,
    babelrc: false,
    configFile: false,
    plugins: ["annotate-pure-calls"],
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

/** The manifest as it is published. */
export const builtManifest = ({ bin, exports = {}, publishConfig: _, ...rest }: Manifest): unknown => ({
  ...rest,
  files: ["dist", "src"],
  ...(bin === undefined
    ? {}
    : { bin: Object.fromEntries(Object.entries(bin).map(([name, at]) => [name, builtPath(at)])) }),
  exports: Object.fromEntries(Object.entries(exports).map(([name, target]) => [name, builtExport(target)])),
  publishConfig: { access: "public", provenance: true }
})

const build = (folder: string): void => {
  fs.rmSync(path.join(folder, "build"), { recursive: true, force: true })
  fs.cpSync(path.join(folder, "src"), path.join(folder, "build/src"), { recursive: true })
  for (const file of fs.globSync("**/*.ts", { cwd: path.join(folder, "src"), exclude: ["**/*.d.ts"] })) {
    const module = file.replace(/\.ts$/u, "")
    annotate(folder, module)
    declare(folder, module)
  }
  for (const [from, name] of [[folder, "README.md"], [root, "LICENSE"]] as const) {
    fs.copyFileSync(path.join(from, name), path.join(folder, "build", name))
  }
  fs.writeFileSync(
    path.join(folder, "build/package.json"),
    `${JSON.stringify(builtManifest(manifestOf(folder)), undefined, 2)}\n`
  )
}

compile()
for (const folder of published.values()) build(folder)
console.log(`built ${published.size} packages`)
