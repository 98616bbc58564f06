/**
 * Prints the confusion tables of the inspector, and writes them into `accuracy.md` beside this file and, by kind, into
 * `docs/inspector.md`. Run it with `npm run inspect:table`.
 */
import { kinds } from "@trigate/signing/unstable/inspection/SigningMistake"
import type { Kind } from "@trigate/signing/unstable/inspection/SigningMistake"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as markdown from "../../scripts/docs/markdown.ts"
import {
  anyFormLine,
  bodiesOf,
  broken,
  commonRows,
  merged,
  pairedActions,
  pairRows,
  rareRows,
  rotated,
  rowOf,
  singleRow,
  table
} from "./confusion.ts"
import type { Row } from "./confusion.ts"
import { pairs, pairsOfAnyForm } from "./signingMistakes.ts"

const recognised: { readonly [By in Kind["by"]]: string } = {
  body: "body",
  search: "search",
  signature: "signature",
  signers: "signer"
}

/** One row for each kind. */
const kindTable = (kinds: { readonly [name: string]: Kind }): string =>
  markdown.table(
    ["Name", "What a program did", "Found"],
    Object.entries(kinds).map(([name, { by, made }]) => [`\`${name}\``, made, recognised[by]])
  )

const file = path.resolve(import.meta.dirname, "../../docs/inspector.md")

const printed = await Effect.runPromise(Effect.gen(function*() {
  const sound = yield* broken
  const singles = yield* Effect.forEach([...commonRows, ...rareRows], (row) => singleRow(row, sound))
  const twos = yield* Effect.forEach(pairs, (each, at) => rowOf(each, rotated(sound, at), undefined, pairedActions))
  const rare = yield* Effect.forEach(pairsOfAnyForm, (each, at) => rowOf(each, rotated(sound, at), undefined, 1))
  return {
    rows: singles,
    pairs: twos,
    singles: table(singles),
    twos: table(pairRows(merged(twos)), "Two at once, in"),
    rare: anyFormLine(rare)
  }
}))
const totals = (rows: ReadonlyArray<Row>) =>
  `${rows.reduce((sum, { exact }) => sum + exact, 0)} of ${bodiesOf(rows)} bodies exactly`
const accuracy = `${printed.singles}\n\n${printed.twos}\n\n${printed.rare}`
console.log(accuracy)
fs.writeFileSync(
  path.join(import.meta.dirname, "accuracy.md"),
  `# How the inspector names each mistake\n\nWritten by \`npm run inspect:table\`.\n\n${accuracy}\n`
)
fs.writeFileSync(
  file,
  fs.readFileSync(file, "utf8")
    .replace(/\| Name [^]*?\n\n/u, `${kindTable(kinds)}\n\n`)
    .replace(/^One mistake: .*$/mu, `One mistake: ${totals(printed.rows)}.`)
    .replace(/^Two mistakes: .*$/mu, `Two mistakes: ${totals(printed.pairs)}.`)
    .replace(/^Two mistakes of any form: .*$/mu, printed.rare)
)
