/** Puts the tarballs of the built packages where `examples/backend`, or a copy of it, installs them from. */
import * as fs from "node:fs"
import * as path from "node:path"
import { run } from "../steps.ts"
import { libraries, manifestOf } from "./manifest.ts"

/** The example in some folder: each package that its manifest names gets its tarball. */
export const vendor = (example: string): string => {
  const into = path.join(example, "vendor")
  fs.rmSync(into, { recursive: true, force: true })
  fs.mkdirSync(into)
  const { dependencies = {} } = manifestOf(example)
  const named = libraries.filter(([, from]) => Object.hasOwn(dependencies, manifestOf(from).name))
  for (const [name, from] of named) {
    const args = ["pack", "--silent", "--ignore-scripts", "--pack-destination", into, path.join(from, "build")]
    const [packed = ""] = run("npm", args, into).trim().split("\n").slice(-1)
    // a name without the version: a release changes no line of the example
    fs.renameSync(path.join(into, packed), path.join(into, `trigate-${name}.tgz`))
  }
  return `${named.length} tarballs`
}

if (import.meta.main) console.log(vendor(process.cwd()))
