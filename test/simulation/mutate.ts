/** Puts the mutant of `TRIGATE_MUTANT` into the code as Node loads it. */
import * as fs from "node:fs"
import { registerHooks } from "node:module"
import * as path from "node:path"
import { pathToFileURL } from "node:url"
import { mutants } from "./mutants.ts"

const mutant = mutants[Number(process.env["TRIGATE_MUTANT"])]
const edits = mutant === undefined ? [] : [mutant, ...(mutant.also === undefined ? [] : [mutant.also])]
const changed = new Map(edits.map(({ file, from, to }) => {
  const absolute = path.resolve(import.meta.dirname, "../..", file)
  const source = fs.readFileSync(absolute, "utf8")
  if (source.split(from).length !== 2) {
    console.error(`The mutant "${mutant?.name}" does not match exactly one place of ${file}`)
    process.exit(2)
  }
  return [pathToFileURL(absolute).href, source.replace(from, () => to)]
}))
registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context)
    const source = changed.get(url)
    return source === undefined ? loaded : { ...loaded, source }
  }
})
