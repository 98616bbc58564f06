/** Puts the mutant of `TRIGATE_MUTANT` into the code as Node loads it. */
import * as fs from "node:fs"
import { registerHooks } from "node:module"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { mutants } from "./mutants.ts"

const mutant = mutants[Number(process.env["TRIGATE_MUTANT"])]
if (mutant !== undefined) {
  const file = path.resolve(import.meta.dirname, "../..", mutant.file)
  const source = fs.readFileSync(file, "utf8")
  if (source.split(mutant.from).length !== 2) {
    console.error(`The mutant "${mutant.name}" does not match exactly one place of ${mutant.file}`)
    process.exit(2)
  }
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context)
      return url.startsWith("file:") && fileURLToPath(url) === file
        ? { ...loaded, source: source.replace(mutant.from, () => mutant.to) }
        : loaded
    }
  })
}
