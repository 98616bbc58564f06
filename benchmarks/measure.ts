/** Two ways of doing one thing in one process, measured side by side. */
import { plan } from "./harness/plan.ts"
import type { Row } from "./harness/results.ts"
import { grouped, median } from "./harness/statistics.ts"

/** One way: what is done with the input at an index; inputs are all distinct. */
export interface Contestant {
  readonly name: string
  readonly run: (index: number) => unknown
}

export interface Comparison {
  readonly title: string
  /** How many times the rate of `theirs` `ours` should have. */
  readonly aim: number
  readonly inputs: number
  readonly ours: Contestant
  readonly theirs: Contestant
}

const rounds = 9

/** How many inputs are done before the clock is looked at. */
const batch = 20

/** Calls a second, over all inputs in turn for as long as a round lasts. */
const rate = async ({ run }: Contestant, inputs: number): Promise<number> => {
  const start = performance.now()
  let done = 0
  let elapsed = 0
  while (elapsed < plan.turnMillis) {
    for (let step = 0; step < batch; step++) {
      const result = run(done % inputs)
      // a way that is synchronous is not made to wait for the queue of promises
      if (result instanceof Promise) await result
      done++
    }
    elapsed = performance.now() - start
  }
  return done / elapsed * 1000
}

const shown = (value: number) => `${grouped(value)}/s`

/** The two take turns, so that a slow spell of the machine meets both; the first round of each warms up. */
export const compare = async ({ aim, inputs, ours, theirs, title }: Comparison): Promise<Row> => {
  const rates: { readonly ours: Array<number>; readonly theirs: Array<number> } = { ours: [], theirs: [] }
  for (let round = 0; round <= rounds; round++) {
    const pair = { ours: await rate(ours, inputs), theirs: await rate(theirs, inputs) }
    if (round > 0) {
      rates.ours.push(pair.ours)
      rates.theirs.push(pair.theirs)
    }
  }
  // of the ratios of each turn, not the ratio of two medians from different moments
  const ratios = rates.ours.map((rate, round) => rate / (rates.theirs[round] ?? rate))
  const ratio = median(ratios)
  console.log(title)
  console.log(`  ${ours.name}: ${shown(median(rates.ours))}`)
  console.log(`  ${theirs.name}: ${shown(median(rates.theirs))}`)
  return {
    title,
    beside: theirs.name,
    unit: "x",
    value: ratio,
    values: ratios,
    aim: `>= ${aim.toFixed(2)}`,
    met: ratio >= aim
  }
}
