import * as Plan from "@trigate/simulation/unstable/Plan"
import * as Effect from "effect/Effect"
import { makeAccounts } from "./bots.ts"
import { make } from "./scenario.ts"
const accounts = await Effect.runPromise(makeAccounts(["alice", "bob", "carol"]))
const scenario = make(accounts)
const [, , from = "0", to = "20"] = process.argv
const began = performance.now(); const cpu0 = process.cpuUsage()
const { failures, reached, missed, runs, steps, elapsed } = Plan.campaign(scenario, Array.from({ length: Number(to) - Number(from) }, (_, at) => Number(from) + at), (run) => { if (run.violations.length) console.log(run.seed, run.violations.slice(0,3)); return true })
console.log({ failures: failures.length, runs, steps, elapsed: elapsed / 60000, perSecond: runs / (performance.now() - began) * 1000, cpuMsPerRun: (process.cpuUsage().user - cpu0.user) / 1000 / runs, stepsPerRun: steps / runs, missed: missed.join(), reached: reached.size })
if (failures[0] && process.env.SHRINK) console.log(Plan.format(scenario, Plan.shrink(scenario, failures[0], 60), Number(process.env.LINES ?? 80)))
