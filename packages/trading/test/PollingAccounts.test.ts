import { assert, describe, it } from "@effect/vitest"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import { run } from "./pollingAccounts.ts"

const twenty = { accounts: 20, every: 300, warmUp: 60, seconds: 120 } as const

describe("twenty accounts that poll books, prices and their state every 0.3 s for two minutes", () => {
  const figures = [
    ["one address", false, 1102, { p99: 1605, oldest: 1770 }, { p99: 4095, oldest: 4500 }],
    ["an address each", true, 1100, { p99: 1545, oldest: 1665 }, { p99: 4050, oldest: 4500 }]
  ] as const
  for (const [from, apart, weight, market, account] of sample("callers' addresses", figures, 1)) {
    it.effect(`from ${from} are refused nothing, and keep within the limit`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* run({ ...twenty, apart }), {
          refused: [],
          requests: 1560,
          // the most in any minute, that of the beginning included
          weight,
          market: { reads: 40_000, ...market },
          account: { reads: 8000, ...account }
        })
      }))
  }
})

describe("two accounts that poll every 2 s", () => {
  it.effect("get the state of the moment each time: they use less than flows back", () =>
    Effect.gen(function*() {
      const { account, refused, requests } = yield* run({ ...twenty, accounts: 2, every: 2000 })
      assert.deepStrictEqual([refused, account], [[], { reads: 120, p99: 0, oldest: 0 }])
      assert.strictEqual(requests, 90 * (2 * 5 + 2))
    }))
})
