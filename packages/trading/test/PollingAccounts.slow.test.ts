import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { run, twenty } from "./pollingAccounts.ts"

describe("twenty accounts that poll books, prices and their state every 0.3 s for two minutes", () => {
  const figures = [
    ["one address", false, 1102, { p99: 1605, oldest: 1770 }, { p99: 4095, oldest: 4500 }],
    ["an address each", true, 1100, { p99: 1545, oldest: 1665 }, { p99: 4050, oldest: 4500 }]
  ] as const
  for (const [from, apart, weight, market, account] of figures) {
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
