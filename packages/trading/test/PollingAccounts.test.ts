import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { run, twenty } from "./pollingAccounts.ts"

describe("two accounts that poll every 2 s", () => {
  it.effect("get the state of the moment each time: they use less than flows back", () =>
    Effect.gen(function*() {
      const { account, refused, requests } = yield* run({ ...twenty, accounts: 2, every: 2000 })
      assert.deepStrictEqual([refused, account], [[], { reads: 120, p99: 0, oldest: 0 }])
      assert.strictEqual(requests, 90 * (2 * 5 + 2))
    }))
})
