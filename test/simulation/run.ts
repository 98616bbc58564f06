/**
 * Runs two replicas of a gateway under simulated faults, for many seeds: `npm run simulate`.
 *
 * A seed determines a run completely. For a seed that fails, prints the faults that are necessary for the failure, and a
 * timeline.
 */
import * as Plan from "@trigate/simulation/Plan"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { makeAccounts } from "./bots.ts"
import * as Deaths from "./deaths.ts"
import * as Guarded from "./guard.ts"
import { mutants } from "./mutants.ts"
import * as Once from "./once.ts"
import * as Replicas from "./scenario.ts"
import * as Streams from "./streams.ts"

const help = `npm run simulate [-- options]

Runs two replicas of a gateway, the stores that they share, a venue and its clients in one process, on simulated time and under
faults of a seed. Checks the promises of docs/reliability.md against the venue's own account.

  --seeds N      runs N seeds (default: 100), beginning at --from
  --from S       the first seed (default: one that the current commit determines)
  --seed S       runs one seed, and prints its faults and its timeline
  --minutes M    runs seeds until M minutes have passed
  --once         runs only the path of a signed action, which takes a few milliseconds a seed
  --guard        runs only replicas with policies for signed actions
  --streams      runs only the streams of accounts between two replicas, with faults that are dense
  --deaths       runs only replicas with dead man's switches, of which ten fire in each seed
  --mutants      instead, puts known faults into the code, one at a time, and counts the seeds that each needs to be found
  --mutant I     with --mutants: only the one with this number
  --help         this text
`

const { values } = parseArgs({
  options: {
    help: { type: "boolean" },
    seeds: { type: "string" },
    from: { type: "string" },
    seed: { type: "string" },
    minutes: { type: "string" },
    once: { type: "boolean" },
    guard: { type: "boolean" },
    deaths: { type: "boolean" },
    streams: { type: "boolean" },
    mutants: { type: "boolean" },
    mutant: { type: "string" }
  }
})
const fail = (message: string): never => {
  console.error(`simulate: ${message}`)
  process.exit(2)
}
const whole = (name: "seeds" | "from" | "seed" | "minutes" | "mutant"): number | undefined => {
  const text = values[name]
  if (text === undefined) return undefined
  return /^\d{1,10}$/u.test(text) ? Number(text) : fail(`--${name} takes a whole number, not ${text}`)
}
if (values.help === true) {
  console.log(help)
  process.exit()
}

const commit = spawnSync("git", ["rev-parse", "--short=8", "HEAD"], { cwd: import.meta.dirname, encoding: "utf8" })
const ofCommit = commit.status === 0 ? Number.parseInt(commit.stdout, 16) % 1_000_000 : 0

const showProgress = (text: string): void => {
  if (process.stderr.isTTY) process.stderr.write(`\r${text.slice(0, (process.stderr.columns ?? 80) - 1).padEnd(79)}`)
}

/** Runs the program itself with a mutant in the code; returns the number of runs until a seed failed. */
const findMutant = (index: number, most: number, from: number): number | undefined => {
  const scenario = mutants[index]?.scenario
  const child = spawnSync(process.execPath, [
    "--import",
    path.join(import.meta.dirname, "mutate.ts"),
    import.meta.filename,
    "--from",
    String(from),
    "--seeds",
    String(most),
    ...(scenario === undefined ? [] : [`--${scenario}`])
  ], {
    encoding: "utf8",
    env: { ...process.env, TRIGATE_MUTANT: String(index), TRIGATE_FIRST_FAILURE: "1" },
    maxBuffer: 1 << 28
  })
  if (child.status === 0) return undefined
  const runs = /^failed after (?<runs>\d+) runs: (?<why>.*)$/mu.exec(child.stdout)?.groups
  if (runs === undefined) {
    fail(`the mutant "${mutants[index]?.name}" broke the program:\n${child.stderr}${child.stdout}`)
  }
  console.log(`${String(runs?.["runs"]).padStart(5)}  ${mutants[index]?.name}\n       ${runs?.["why"]}`)
  return Number(runs?.["runs"])
}

const seeds = whole("seeds")
const from = whole("from") ?? ofCommit

if (values.mutants === true) {
  const only = whole("mutant")
  const most = seeds ?? 2000
  const missed = mutants.flatMap((mutant, index) =>
    (only ?? index) === index && findMutant(index, most, from) === undefined ? [mutant.name] : []
  )
  for (const name of missed) console.log(`not found in ${most} seeds: ${name}`)
  process.exit(missed.length === 0 ? 0 : 1)
}

const accounts = await Effect.runPromise(makeAccounts(["alice", "bob", "carol"]))

/** Runs what the options select. Returns whether every run passed. */
const simulate = <Fault>(scenario: Plan.Scenario<Fault>): boolean => {
  const one = whole("seed")
  if (one !== undefined) {
    const run = Plan.run(scenario, one)
    console.log(Plan.format(scenario, run, run.timeline.length))
    return run.violations.length === 0
  }

  // a run makes hundreds of errors, and nobody reads their stacks
  Error.stackTraceLimit = 0
  const isFirstOnly = process.env["TRIGATE_FIRST_FAILURE"] !== undefined
  const minutes = whole("minutes")
  const most = minutes === undefined ? seeds ?? 100 : Infinity
  const began = performance.now()
  const elapsed = () => (performance.now() - began) / 1000
  let done = 0
  let failed = 0
  const { failures, missed, ...totals } = Plan.campaign(
    scenario,
    (function*() {
      for (let seed = from; seed < from + most; seed++) yield seed
    })(),
    (run) => {
      done++
      if (run.violations.length > 0) {
        failed++
        if (isFirstOnly) {
          console.log(`failed after ${done} runs: ${run.violations[0]}`)
          return false
        }
        console.log(`seed ${run.seed} failed: ${run.violations[0]}`)
      }
      showProgress(`${done} seeds, ${failed} failed, ${(done / elapsed()).toFixed(1)} a second`)
      return minutes === undefined || elapsed() < minutes * 60
    }
  )
  showProgress("")
  if (isFirstOnly) return failures.length === 0
  const [first] = failures
  if (first !== undefined) console.log(`\n${Plan.format(scenario, Plan.shrink(scenario, first))}\n`)
  console.log(
    `${totals.runs} seeds from ${from}: ${failures.length} failed; ${
      (totals.elapsed / 60_000).toFixed(0)
    } minutes simulated in ${elapsed().toFixed(0)} s, ${totals.steps} steps`
  )
  const isComplete = totals.runs < 100 || missed.length === 0
  if (!isComplete) console.log(`never reached: ${missed.join(", ")}`)
  return failures.length === 0 && isComplete
}

const [first] = accounts
const isPassed = values.guard === true && first !== undefined
  ? simulate(Guarded.make(first))
  : values.deaths === true && first !== undefined
  ? simulate(Deaths.make(first))
  : values.streams === true
  ? simulate(Streams.make())
  : values.once === true
  ? simulate(Once.make(accounts.slice(0, 1)))
  : simulate(Replicas.make(accounts))
process.exit(isPassed ? 0 : 1)
