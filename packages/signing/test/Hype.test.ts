import { assert, describe, it } from "@effect/vitest"
import * as Hype from "@trigate/signing/Decimal"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

describe("Hype.weiFromHype", () => {
  it("has eight decimal places", () => {
    const cases: ReadonlyArray<readonly [string, bigint]> = [
      ["0", 0n],
      ["1", 100_000_000n],
      ["1.5", 150_000_000n],
      ["0.00000001", 1n],
      ["0.1", 10_000_000n],
      ["007.250", 725_000_000n],
      ["1.500000000000", 150_000_000n],
      ["184467440737.09551615", 2n ** 64n - 1n]
    ]
    for (const [amount, wei] of cases) {
      assert.strictEqual(Result.getOrThrow(Hype.weiFromHype(amount)), wei, amount)
    }
  })

  it("refuses to round, to guess and to overflow", () => {
    const cases: ReadonlyArray<readonly [string, Hype.UnrepresentableHype["reason"]]> = [
      ["0.000000001", "tooPrecise"],
      ["1.123456789", "tooPrecise"],
      ["184467440737.09551616", "tooLarge"],
      ["9".repeat(30), "tooLarge"],
      ...["", ".", "1.", ".5", "-1", "+1", "1e8", "1,5", "1_000", " 1", "0x1", "NaN", "9".repeat(31), "1.5\n"].map((
        amount
      ) => [amount, "notDecimal"] as const)
    ]
    for (const [amount, reason] of cases) {
      const error = Result.getOrThrow(Result.flip(Hype.weiFromHype(amount)))
      assert.strictEqual(error.reason, reason, amount)
    }
  })

  it.effect.prop(
    "undoes hypeFromWei for any wei",
    { wei: Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: 0n, maximum: 2n ** 64n - 1n })) },
    ({ wei }) => Effect.sync(() => assert.strictEqual(Result.getOrThrow(Hype.weiFromHype(Hype.hypeFromWei(wei))), wei)),
    { arbitrary: { runs: 300 } }
  )

  it("is written without trailing zeros", () => {
    assert.deepStrictEqual([0n, 1n, 150_000_000n, 10n ** 10n].map(Hype.hypeFromWei), ["0", "0.00000001", "1.5", "100"])
  })
})
