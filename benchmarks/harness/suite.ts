/** One suite: runs, prints its rows, and hands what it measured to the run that started it. */
import { execFileSync } from "node:child_process"
import * as os from "node:os"
import { pinning } from "./machine.ts"
import { stopAll } from "./processes.ts"
import type { Row, SuiteResult } from "./results.ts"
import { besideOther } from "./rounds.ts"

export type Measured = Pick<SuiteResult, "rows"> & Partial<Pick<SuiteResult, "tables" | "samples" | "notes">>

/** A number with as many digits as it deserves. */
export const digits = (value: number): string => Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2)

/** A row as it is printed. */
export const line = ({ aim, beside, interval, met, title, unit, value, values }: Row): string => {
  if (interval !== undefined) {
    const [low, high] = interval.map(digits)
    return `${title}: ${value.toFixed(3)} of ${beside} (${low} to ${high} over ${values.length} rounds)`
  }
  const range = values.length > 1 ? ` (${digits(Math.min(...values))} to ${digits(Math.max(...values))})` : ""
  const verdict = met === undefined ? "" : `, aim ${aim}: ${met ? "met" : "NOT met"}`
  return `${title}, ${beside}: ${digits(value)} ${unit}${range}${verdict}`
}

/** Runs a suite in this process, which ends with it. */
export const run = async (suite: string, measure: () => Promise<Measured>): Promise<never> => {
  const loadBefore = os.loadavg()[0] ?? 0
  // a suite that makes the load itself runs where load runs, beside no peer
  if (pinning !== undefined) execFileSync("taskset", ["-a", "-p", "-c", pinning.load, String(process.pid)])
  const began = performance.now()
  const { notes = [], rows: ownRows, samples = {}, tables = [] } = await measure()
  const rows = [...ownRows, ...tables.flatMap(besideOther)]
  console.log()
  for (const row of rows) console.log(line(row))
  for (const note of notes) console.log(`note: ${note}`)
  const result: SuiteResult = {
    suite,
    seconds: Math.round((performance.now() - began) / 1000),
    loadBefore,
    rows,
    tables,
    samples,
    notes
  }
  // no channel when the suite is run by itself
  if (process.send !== undefined) {
    await new Promise((resolve) => process.send?.(result, undefined, undefined, resolve))
  }
  await stopAll()
  process.exit()
}
