import * as Plan from "@trigate/simulation/unstable/Plan"
import * as Effect from "effect/Effect"
import { makeAccounts } from "./bots.ts"
import { make } from "./scenario.ts"
const accounts = await Effect.runPromise(makeAccounts(["alice", "bob", "carol"]))
const scenario = make(accounts)
const only = new RegExp(process.argv[3] ?? ".")
const filtered = {
  ...scenario,
  run: (plan: any) =>
    Effect.map(scenario.run(plan), (f: any) => ({
      ...f,
      violations: f.violations.filter((v: string) => only.test(v))
    }))
}
const run = Plan.run(filtered as any, Number(process.argv[2]))
if (process.argv[5]) {
  console.log(run.timeline.join("\n"))
  process.exit()
}
console.log(run.violations, run.plan.map(scenario.describe as any))
if (run.violations.length) {
  const s = Plan.shrink(filtered as any, run, 40)
  console.log(
    Plan.format(scenario as any, s as any, Number(process.argv[4] ?? 50)).split("\n").map((l) => l.slice(0, 200)).join(
      "\n"
    )
  )
}
