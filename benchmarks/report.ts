/**
 * Writes the figures of docs/performance.md, and the rounds of each suite beside the raw data, from a run:
 * `node benchmarks/report.ts [file]`, where the file is that of the last whole run when none is named.
 */
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import { table } from "../scripts/docs/markdown.ts"
import { type Row, Run, type SuiteResult, type Table } from "./harness/results.ts"
import { cells, columns } from "./harness/rounds.ts"
import { digits } from "./harness/suite.ts"

const document = path.join(import.meta.dirname, "../docs/performance.md")
const rounds = path.join(import.meta.dirname, "results/latest.md")
const file = process.argv[2] ?? path.join(import.meta.dirname, "results/latest.json")
const marks = { begin: "<!-- figures: `node benchmarks/report.ts` writes them -->", end: "<!-- end of figures -->" }

const spread = ({ beside, title, unit, value, values }: Row): ReadonlyArray<string> => [
  title,
  beside,
  `${digits(value)} ${unit}`,
  values.length > 1 ? `${digits(Math.min(...values))} to ${digits(Math.max(...values))} ${unit}` : ""
]

const list = (facts: { readonly [name: string]: string }): string =>
  Object.entries(facts).map(([name, value]) => `- ${name}: ${value}`).join("\n")

const figure = ({ aim = "", beside, met, title, unit, value }: Row): ReadonlyArray<string> => [
  title,
  beside,
  `${digits(value)} ${unit}`,
  aim,
  met === undefined ? "" : met ? "yes" : "no"
]

const rawTable = ({ series, title }: Table): string => `${title}:\n\n${table(columns, series.map(cells))}`

const raw = ({ loadBefore, notes, rows, samples, suite, tables }: SuiteResult): string =>
  [
    `## ${suite}`,
    `Load average of the machine before it: ${loadBefore.toFixed(1)}.`,
    ...(rows.length === 0 ? [] : [table(["Figure", "Compared with", "Median", "Rounds"], rows.map(spread))]),
    ...tables.map(rawTable),
    ...(Object.keys(samples).length === 0
      ? []
      : [
        list(Object.fromEntries(Object.entries(samples).map(([name, values]) => [name, values.map(digits).join(" ")])))
      ]),
    ...(notes.length === 0 ? [] : [notes.map((note) => `- ${note}`).join("\n")])
  ].join("\n\n")

const run = Schema.decodeUnknownSync(Schema.fromJsonString(Run))(fs.readFileSync(file, "utf8"))

const busiest = Math.max(...run.suites.map(({ loadBefore }) => loadBefore))

// half a core of other work is enough to blur what is measured
const isBusy = busiest > 0.5

/** The figures with an aim, those beside nginx, and those of actions; the others are listed with the rounds of their suite. */
const isShown = (suite: string) => ({ aim, beside }: Row): boolean =>
  aim !== undefined || beside.startsWith("nginx") || suite === "exchange"

const figures = [
  `Commit \`${run.commit.slice(0, 12)}\` of ${run.commitDate}${run.modified ? ", with changes" : ""}, measured on ${
    run.at.slice(0, 10)
  }.`,
  Object.entries({ ...run.machine, ...run.versions }).map(([name, value]) => `${name} ${value}`).join("; ") + ".",
  ...(isBusy
    ? [
      `**The machine was busy with other work** (load average up to ${
        busiest.toFixed(0)
      }): take ratios as rough and latencies as unknown until this is measured again.`
    ]
    : []),
  table(
    ["Figure", "Compared with", "Median", "Aim", "Met"],
    run.suites.flatMap(({ rows, suite }) => rows.filter(isShown(suite)).map(figure))
  )
].join("\n\n")

const text = fs.readFileSync(document, "utf8")
const [before, rest] = text.split(marks.begin)
const after = rest?.split(marks.end)[1]
if (before === undefined || after === undefined) throw new Error(`${document} has no marks for the figures`)
fs.writeFileSync(document, `${before}${marks.begin}\n\n${figures}\n\n${marks.end}${after}`)
const raws = ["# Rounds of each suite", "Written by `node benchmarks/report.ts`.", ...run.suites.map(raw)]
fs.writeFileSync(rounds, `${raws.join("\n\n")}\n`)
console.log(`${path.relative(process.cwd(), document)}: figures of ${path.relative(process.cwd(), file)}`)
