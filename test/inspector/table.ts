/** Prints the confusion table of the inspector, and writes it into `docs/inspector.md`. Run it with `npm run inspect:table`. */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { breaks } from "./breaks.ts"
import { broken, rowOf, table } from "./confusion.ts"

const file = path.resolve(import.meta.dirname, "../../docs/inspector.md")

const rows = await Effect.runPromise(
  Effect.flatMap(broken, (sound) => Effect.forEach(breaks, (each) => rowOf(each, sound)))
)
const printed = table(rows)
console.log(printed)
const document = fs.readFileSync(file, "utf8")
fs.writeFileSync(file, document.replace(/\| What was done[^]*\n\| All [^\n]*/u, printed))
