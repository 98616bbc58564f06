/** Breaks every action in every way that applies to it, and compares what the inspector says with what was done. */
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import type { Inspection } from "@trigate/domain/unstable/Inspection"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as Inspector from "@trigate/trading/Inspector"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as markdown from "../../scripts/docs/markdown.ts"
import type { Break, Broken } from "./breaks.ts"
import { breaks, soundOf } from "./breaks.ts"
import { rareSignings } from "./rareSignings.ts"
import type { Sample } from "./samples.ts"
import * as samples from "./samples.ts"
import { shaped } from "./shapes.ts"
import { single } from "./signingMistakes.ts"

/** How the cases of one break were told. */
export interface Row {
  readonly name: string
  readonly mistake: string
  readonly cases: number
  readonly exact: number
  readonly unnamed: number
  /** What was said instead, with its action. */
  readonly wrong: ReadonlyArray<string>
}

const judge = (
  { isPair = false, mistake, others = [], path }: Broken,
  { mistakes, verdict }: Inspection["diagnosis"]
): "exact" | "unnamed" | "wrong" => {
  const names = new Set(mistakes.map((each) => each.mistake))
  if (mistakes.length === 0 || (verdict === "unexplained" && (isPair || others.length === 0))) return "unnamed"
  const isThere = path === undefined || mistakes.some((each) => each.path.join(".") === path)
  const isNamed = isPair
    ? [mistake, ...others].every((name) => names.has(name))
    : [mistake, ...others].some((name) => names.has(name))
  return isNamed && [...names].every((name) => name === mistake || others.includes(name)) && isThere ? "exact" : "wrong"
}

/** The actions that are broken: every one of `@nktkas/hyperliquid` and of ccxt. */
export const broken: Effect.Effect<ReadonlyArray<Sample>> = Effect.map(
  Effect.all([Effect.promise(samples.ofPeer), Effect.promise(samples.ofCcxt)]),
  (all) => all.flat()
)

/** What the inspector says of the first actions that a break applies to, or of all; `told` is called for each. */
export const rowOf = Effect.fnUntraced(function*(
  { make, name }: Break,
  sound: ReadonlyArray<Sample>,
  told: (sample: Sample) => void = () => undefined,
  most: number = Infinity
): Effect.fn.Return<Row> {
  const engine = yield* Secp256k1.Secp256k1
  const inspector = Inspector.make(mainnet, { signers: [keys.agent.address] }, engine)
  const counts = { exact: 0, unnamed: 0, wrong: 0 }
  const wrong: Array<string> = []
  let mistake = ""
  for (const sample of sound) {
    if (counts.exact + counts.unnamed + counts.wrong === most) break
    const made = yield* Effect.promise(() => Promise.resolve(make(soundOf(sample.body))))
    if (made === undefined) continue
    told(sample)
    mistake = made.mistake
    const signer = made.signer ?? keys.trader.address
    const body = Utf8.encode(JSON.stringify(made.body))
    const seen = yield* Effect.result(inspector.inspect(body, `0x${signer.slice(2)}`))
    // what is no signed body is refused with the place of each fault
    const verdict = Result.isFailure(seen) ? "exact" : judge(made, seen.success.diagnosis)
    counts[verdict] += 1
    if (verdict === "wrong" && Result.isSuccess(seen)) wrong.push(`${sample.name}: ${seen.success.diagnosis.detail}`)
  }
  const cases = counts.exact + counts.unnamed + counts.wrong
  return { name, mistake, cases, exact: counts.exact, unnamed: counts.unnamed, wrong }
}, Effect.provide(Secp256k1.layer))

/** The bodies that were sampled in a table. */
export const bodiesOf = (rows: ReadonlyArray<Row>): number => rows.reduce((sum, { cases }) => sum + cases, 0)

/** The share of bodies of whose mistake nothing was said. */
export const unnamedShare = (rows: ReadonlyArray<Row>): number =>
  rows.reduce((sum, { unnamed }) => sum + unnamed, 0) / bodiesOf(rows)

/** Actions of each pair of mistakes in the whole table. */
export const pairedActions = 6

/** The actions from another place on for each row, so that a few of each row are different ones. */
export const rotated = (sound: ReadonlyArray<Sample>, row: number): ReadonlyArray<Sample> => {
  const from = row * 7 % sound.length
  return [...sound.slice(from), ...sound.slice(0, from)]
}

/** Actions of each rare signing in the whole table. */
const rareActions = 12

/** A row of one mistake; `at` is its place among the rare signings, absent for another mistake. */
export interface SingleRow {
  readonly each: Break
  readonly at?: number
}

/** The rows of one mistake that are tried on every action. */
export const commonRows: ReadonlyArray<SingleRow> = [...breaks, ...single, ...shaped].map((each) => ({ each }))

/** The rows of one mistake that are tried on some actions. */
export const rareRows: ReadonlyArray<SingleRow> = rareSignings.map((each, at) => ({ each, at }))

/** The whole row of one mistake. */
export const singleRow = (
  { at, each }: SingleRow,
  sound: ReadonlyArray<Sample>,
  told?: (sample: Sample) => void
): Effect.Effect<Row> =>
  at === undefined ? rowOf(each, sound, told) : rowOf(each, rotated(sound, at), told, rareActions)

/** Rows of pairs, which have no single name to be reported by. */
export const pairRows = (rows: ReadonlyArray<Row>): ReadonlyArray<Row> => rows.map((row) => ({ ...row, mistake: "" }))

/** Rows of the same name as one. */
export const merged = (rows: ReadonlyArray<Row>): ReadonlyArray<Row> => {
  const found = new Map<string, Row>()
  for (const row of rows) {
    const known = found.get(row.name)
    found.set(
      row.name,
      known === undefined ? row : {
        ...known,
        cases: known.cases + row.cases,
        exact: known.exact + row.exact,
        unnamed: known.unnamed + row.unnamed,
        wrong: [...known.wrong, ...row.wrong]
      }
    )
  }
  return [...found.values()]
}

/** The rows as a table in Markdown. */
export const table = (rows: ReadonlyArray<Row>, title = "What was done"): string => {
  const sum = (count: (row: Row) => number) => rows.reduce((total, row) => total + count(row), 0)
  return markdown.table([title, "Told as", "Bodies", "Exact", "Unnamed", "Wrong"], [
    ...rows.map(({ cases, exact, mistake, name, unnamed, wrong }) => [
      name,
      mistake === "" ? "" : `\`${mistake}\``,
      ...[cases, exact, unnamed, wrong.length].map(String)
    ]),
    [
      "All",
      "",
      ...[(row: Row) => row.cases, (row: Row) => row.exact, (row: Row) => row.unnamed, (row: Row) => row.wrong.length]
        .map((count) => String(sum(count)))
    ]
  ])
}

/** One sentence about pairs of any form, where a rare form counts as much as a usual one. */
export const anyFormLine = (rows: ReadonlyArray<Row>): string => {
  const wrong = rows.reduce((sum, row) => sum + row.wrong.length, 0)
  const share = (100 * unnamedShare(rows)).toFixed(1)
  return `Two mistakes of any form: ${bodiesOf(rows)} bodies, ${share} % unnamed, ${wrong} wrong.`
}
