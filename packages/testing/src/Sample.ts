/**
 * Samples a large table of test cases: `npm test` runs only the sample, and `npm run test:slow` runs every row.
 *
 * The commit selects the sample, so that the runs of a table's history cover it. `TRIGATE_TEST_SEED` repeats or selects
 * another one. The run prints the seed.
 */
import * as Arr from "effect/Array"
import { createHash } from "node:crypto"

/** The seed of this run. */
export const seed = process.env["TEST_SEED"] ?? "trigate"

/** Whether to run every case. */
export const isExhaustive = process.env["TRIGATE_TEST_ROWS"] === "all"

/** Reduces the case count that is passed to a property test to a quarter, except in an exhaustive run. */
export const sampleRuns = (count: number): number => isExhaustive ? count : Math.ceil(count / 4)

const rank = (table: string, index: number): string =>
  createHash("sha1").update(`${seed} ${table} ${index}`).digest("hex")

const compareBy = <Entry>(orderOf: (entry: Entry) => string) => (one: Entry, other: Entry): number =>
  orderOf(one) < orderOf(other) ? -1 : 1

/** Returns the rows of a table in an order that depends on the seed, or unchanged in an exhaustive run. */
export const shuffle = <Row>(table: string, rows: ReadonlyArray<Row>): ReadonlyArray<Row> =>
  isExhaustive ? rows : rows.map((row, index) => ({ row, rank: rank(table, index) }))
    .toSorted(compareBy((entry) => entry.rank))
    .map(({ row }) => row)

/**
 * Returns up to `size` rows of a table; in an exhaustive run, returns all rows. The order of the table is preserved.
 * Selects one row of each group, then a second row of each group, and so on. If `size` is at least the number of
 * groups, the sample therefore contains a row of every group.
 */
export const sample = <Row>(
  table: string,
  rows: ReadonlyArray<Row>,
  size: number,
  groupOf: (row: Row) => string = () => ""
): ReadonlyArray<Row> => {
  if (isExhaustive || rows.length <= size) return rows
  const groups = Object.values(
    Arr.groupBy(shuffle(table, rows.map((row, index) => ({ row, index }))), ({ row }) => groupOf(row))
  )
  const taken = groups.flatMap((group) => group.map((entry, turn) => ({ ...entry, turn })))
    .toSorted((one, other) =>
      one.turn - other.turn || compareBy<number>((index) => rank(table, index))(one.index, other.index)
    )
    .slice(0, size)
  console.log(`${table}: ${size} of ${rows.length} rows, seed ${seed}; npm run test:slow runs all`)
  return taken.toSorted((one, other) => one.index - other.index).map(({ row }) => row)
}

/**
 * Samples a matrix: each row is tested in one of the columns, or in all columns in an exhaustive run. Returns a
 * function that returns the sampled rows of a column.
 */
export const samplePairs = <Column, Row>(
  table: string,
  columns: ReadonlyArray<Column>,
  rows: ReadonlyArray<Row>
): (column: Column) => ReadonlyArray<Row> => {
  const pairs = columns.flatMap((column) => rows.map((row, index) => ({ column, row, index })))
  const chosen = sample(table, pairs, rows.length, ({ index }) => String(index))
  return (wanted) => {
    const found = chosen.filter(({ column }) => column === wanted).map(({ row }) => row)
    // no column is left out
    return found.length > 0 ? found : shuffle(`${table} ${columns.indexOf(wanted)}`, rows).slice(0, 1)
  }
}
