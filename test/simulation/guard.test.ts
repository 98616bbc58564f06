/** The guard of two replicas on simulated time. `npm run simulate -- --guard` runs more seeds. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import * as Plan from "@trigate/simulation/Plan"
import { seed } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import { type Account, makeAccounts } from "./bots.ts"
import * as Deaths from "./deaths.ts"
import * as Guarded from "./guard.ts"

const first = Number.parseInt(seed.replace(/[^0-9a-f]/gu, "").slice(0, 6), 16) || 0

let accounts: ReadonlyArray<Account> = []
beforeAll(async () => {
  accounts = await Effect.runPromise(makeAccounts(["alice"]))
})

describe("the guard of two replicas", () => {
  it(`keeps an account within its limits under the faults of four seeds, from ${first}`, () => {
    const [account] = accounts
    assert(account !== undefined)
    const scenario = Guarded.make(account)
    const { failures: [failed] } = Plan.campaign(scenario, [0, 1, 2, 3].map((at) => first + at))
    if (failed !== undefined) assert.fail(Plan.format(scenario, Plan.shrink(scenario, failed)))
  })
})

describe("the dead man's switches of two replicas", () => {
  it(`send each action of ten dead programs once, in the two seeds from ${first}`, () => {
    const [account] = accounts
    assert(account !== undefined)
    const scenario = Deaths.make(account)
    const { failures: [failed] } = Plan.campaign(scenario, [first, first + 1])
    if (failed !== undefined) assert.fail(Plan.format(scenario, Plan.shrink(scenario, failed)))
  })
})
