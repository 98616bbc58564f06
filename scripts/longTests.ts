/**
 * The tests that take long, with what they take: `npm test` draws from them by commit, `npm run test:slow` runs them all.
 *
 * As a program it writes the list from vitest's report on all tests:
 * `npx vitest run --reporter=json --outputFile=report.json && node scripts/longTests.ts report.json`.
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
 * Returns what a test takes if it is long. `names` are those of the groups around it and its own; a new row of a table
 * takes what the table's other rows take.
 */
export const secondsOf = (module: string, names: ReadonlyArray<string>): number | undefined =>
  longTests[module]?.[keyOf(names)] ?? longTests[module]?.[keyOf(names.slice(0, -1))]

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

const listOf = (report: string): Record<string, Record<string, number>> => {
  const list: Record<string, Record<string, number>> = {}
  for (const { assertionResults, name } of Schema.decodeSync(Report)(report).testResults) {
    const module = path.relative(root, name)
    const tests = assertionResults
      .map(({ ancestorTitles, duration, title }) => ({ ancestorTitles, title, seconds: (duration ?? 0) / 1000 }))
      .filter(({ title }) => !isAlways(module, title))
    const long: Record<string, number> = {}
    const add = (names: ReadonlyArray<string>, seconds: number): void => {
      if (seconds < shortest) return
      long[keyOf(names)] = Math.max(long[keyOf(names)] ?? 0, round(seconds))
    }
    for (const { ancestorTitles, seconds, title } of tests) add([...ancestorTitles, title], seconds)
    // the rows of a table that this run did not sample take what the others take
    for (const rows of Object.values(Object.groupBy(tests, ({ ancestorTitles }) => keyOf(ancestorTitles)))) {
      const shortestRow = Math.min(...(rows ?? []).map(({ seconds }) => seconds))
      if (rows !== undefined && rows.length > 1) add(rows[0]?.ancestorTitles ?? [], shortestRow)
    }
    if (Object.keys(long).length > 0) list[module] = long
  }
  return list
}

if (import.meta.main) {
  const [report = ""] = process.argv.slice(2)
  const list = listOf(fs.readFileSync(report, "utf8"))
  const sorted = Object.fromEntries(Object.entries(list).toSorted(([one], [other]) => one < other ? -1 : 1))
  fs.writeFileSync(file, `${JSON.stringify(sorted, undefined, 2)}\n`)
  console.log(`${Object.values(sorted).flatMap((tests) => Object.keys(tests)).length} long tests`)
}
