/** Prints the confusion tables of the inspector, and writes them into `docs/inspector.md`. Run it with `npm run inspect:table`. */
import { kinds } from "@trigate/signing/inspection/SigningMistake"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { breaks } from "./breaks.ts"
import { anyFormLine, broken, merged, pairedActions, pairRows, rotated, rowOf, table } from "./confusion.ts"
import { kindTable } from "./kindTable.ts"
import { shaped } from "./shapes.ts"
import { pairs, pairsOfAnyForm, single } from "./slips.ts"

const file = path.resolve(import.meta.dirname, "../../docs/inspector.md")

const printed = await Effect.runPromise(Effect.gen(function*() {
  const sound = yield* broken
  const singles = yield* Effect.forEach([...breaks, ...single, ...shaped], (each) => rowOf(each, sound))
  const twos = yield* Effect.forEach(pairs, (each, at) => rowOf(each, rotated(sound, at), undefined, pairedActions))
  const rare = yield* Effect.forEach(pairsOfAnyForm, (each, at) => rowOf(each, rotated(sound, at), undefined, 1))
  return {
    singles: table(singles),
    twos: table(pairRows(merged(twos)), "Two at once, in"),
    rare: anyFormLine(rare)
  }
}))
console.log(`${printed.singles}\n\n${printed.twos}\n\n${printed.rare}`)
const document = fs.readFileSync(file, "utf8")
fs.writeFileSync(
  file,
  document.replace(/\| What was done[^]*?\n\| All [^\n]*/u, printed.singles)
    .replace(/\| Two at once, in[^]*?\n\| All [^\n]*/u, printed.twos)
    .replace(/^Pairs of any form: .*$/mu, printed.rare)
    .replace(/\| Name [^]*?\n\n/u, `${kindTable(kinds)}\n\n`)
)
