/**
 * The tests that take long, with what they take: `npm test` draws from them by commit, `npm run test:slow` runs them all.
 *
 * As a program it writes the list from vitest's reports on all tests:
 * `npx vitest run --reporter=json --outputFile=report.json && node scripts/longTests.ts report.json`. Several reports show more
 * rows of the tables.
 */
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"

const root = path.join(import.meta.dirname, "..")
const file = path.join(import.meta.dirname, "longTests.json")

const List = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Number)))

/** For each file, the seconds of its long tests by name; a row of a table has those of the table. */
export const longTests = Schema.decodeSync(List)(fs.readFileSync(file, "utf8"))

/** The seconds from which a test is long. Shorter ones always run. */
const shortest = 0.1

/** The part of the runs in which a long test runs: half of them for the shortest, a fifteenth for the longest. */
const shareOf = (seconds: number): number => Math.max(1 / 15, 0.05 / seconds)

/** What rows of a table, and the runs of different seeds, call the same. */
const keyOf = (names: ReadonlyArray<string>): string =>
  names.join(" > ").replaceAll(/\b[0-9a-f]{7,}\b|\d+|\bdocs\/\S+/gu, "#")

const fraction = (text: string): number =>
  Number.parseInt(createHash("sha1").update(text).digest("hex").slice(0, 8), 16) / 2 ** 32

/**
 * Returns what a test takes if it is long. `names` are those of the groups around it and its own. A row that the list does
 * not have takes what others of its table take, or what the same test takes in another row of groups.
 */
export const secondsOf = (module: string, names: ReadonlyArray<string>): number | undefined => {
  const long = longTests[module]
  if (long === undefined) return undefined
  const elsewhere = ` > ${keyOf(names.slice(-1))}`
  return long[keyOf(names)] ?? long[keyOf(names.slice(0, -1))] ??
    Object.entries(long).find(([key]) => names.length > 1 && key.endsWith(elsewhere))?.[1]
}

/** Returns whether a long test runs under a seed. */
export const isDrawn = (seed: string, module: string, names: ReadonlyArray<string>, seconds: number): boolean =>
  fraction([seed, module, ...names].join(" ")) < shareOf(seconds)

/** What always runs: the simulation has a budget of its own, and the README is what everybody tries first. */
const isAlways = (module: string, name: string): boolean =>
  module.startsWith("test/simulation/") || name === "README.md"

const Report = Schema.fromJsonString(Schema.Struct({
  testResults: Schema.Array(Schema.Struct({
    name: Schema.String,
    assertionResults: Schema.Array(Schema.Struct({
      ancestorTitles: Schema.Array(Schema.String),
      title: Schema.String,
      duration: Schema.optionalKey(Schema.NullOr(Schema.Number))
    }))
  }))
}))

const round = (seconds: number): number => Math.round(seconds * 100) / 100

const list: Record<string, Record<string, number>> = {}

const add = (module: string, names: ReadonlyArray<string>, seconds: number): void => {
  if (seconds < shortest) return
  const long = list[module] ??= {}
  long[keyOf(names)] = Math.max(long[keyOf(names)] ?? 0, round(seconds))
}

const addReport = (report: string): void => {
  for (const { assertionResults, name } of Schema.decodeSync(Report)(report).testResults) {
    const module = path.relative(root, name)
    const tests = assertionResults
      .map(({ ancestorTitles, duration, title }) => ({ ancestorTitles, title, seconds: (duration ?? 0) / 1000 }))
      .filter(({ title }) => !isAlways(module, title))
    for (const { ancestorTitles, seconds, title } of tests) add(module, [...ancestorTitles, title], seconds)
    // the rows of a table that no run sampled take what the others take
    for (const rows of Object.values(Object.groupBy(tests, ({ ancestorTitles }) => keyOf(ancestorTitles)))) {
      if (rows === undefined || rows.length < 2) continue
      add(module, rows[0]?.ancestorTitles ?? [], Math.min(...rows.map(({ seconds }) => seconds)))
    }
  }
}

const sorted = <Value>(record: Readonly<Record<string, Value>>): Record<string, Value> =>
  Object.fromEntries(Object.entries(record).toSorted(([one], [other]) => one < other ? -1 : 1))

if (import.meta.main) {
  for (const report of process.argv.slice(2)) addReport(fs.readFileSync(report, "utf8"))
  const written = Object.fromEntries(Object.entries(sorted(list)).map(([module, long]) => [module, sorted(long)]))
  fs.writeFileSync(file, `${JSON.stringify(written, undefined, 2)}\n`)
  console.log(`${Object.values(list).flatMap((tests) => Object.keys(tests)).length} long tests`)
}
