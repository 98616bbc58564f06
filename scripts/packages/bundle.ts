/**
 * Bundles the program `trigate` of the checkout into a folder, for tests: `node scripts/packages/bundle.ts <folder>`. It takes
 * seconds; `build.ts` builds what is published, by the same options.
 */
import type { BuildOptions } from "esbuild"
import { buildSync, transformSync } from "esbuild"
import * as fs from "node:fs"
import * as path from "node:path"

const root = path.resolve(import.meta.dirname, "../..")
const program = path.join(root, "packages/trigate")

/**
 * How the program is bundled: `program.js` with all that a start takes, and beside it what is loaded on first use, such as the
 * worker thread with the virtual machine of the sandbox's token chain. The native curve cannot be bundled.
 */
export const options: BuildOptions = {
  entryPoints: {
    program: path.join(program, "src/program.ts"),
    TokenWorker: path.join(root, "packages/sandbox/src/tokens/TokenWorker.ts")
  },
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node22",
  legalComments: "none",
  external: ["secp256k1"],
  alias: { "node:http": path.join(import.meta.dirname, "http.cts") },
  splitting: true,
  chunkNames: "[name]-[hash]",
  // CommonJS in the bundle asks for modules of Node, and for its folder
  banner: {
    js: "import{createRequire as requireHere}from'node:module';const require=requireHere(import.meta.url)," +
      "__dirname=import.meta.dirname,__filename=import.meta.filename;"
  }
}

if (import.meta.main) {
  const folder = process.argv[2] ?? ""
  const dist = path.join(folder, "dist")
  // most of the time goes into libraries that few tests load
  const external = ["secp256k1", "@ton/*", "@ethereumjs/*", "redis", "@redis/*"]
  buildSync({ ...options, external, outdir: dist })
  const { code } = transformSync(fs.readFileSync(path.join(program, "src/trigate.ts"), "utf8"), { loader: "ts" })
  fs.writeFileSync(path.join(dist, "trigate.js"), code.replace("./program.ts", "./program.js"), { mode: 0o755 })
  fs.copyFileSync(path.join(program, "package.json"), path.join(folder, "package.json"))
  // what the program looks for beside itself
  fs.symlinkSync(path.join(root, "packages/server/console"), path.join(folder, "console"))
  fs.symlinkSync(path.join(root, "node_modules"), path.join(folder, "node_modules"))
}
