import { assert, describe, it } from "@effect/vitest"
import * as Gas from "@trigate/domain/evm/EvmResources"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

describe("Gas", () => {
  it("prints wei exactly, without trailing zeros", () => {
    assert.strictEqual(Gas.formatGwei(1_000_000_000n), "1")
    assert.strictEqual(Gas.formatGwei(1_500_000_001n), "1.500000001")
    assert.strictEqual(Gas.formatGwei(0n), "0")
    assert.strictEqual(Gas.formatGwei(1n), "0.000000001")
    assert.strictEqual(Gas.formatEther(1n), "0.000000000000000001")
    assert.strictEqual(Gas.formatEther(2n ** 256n), `${2n ** 256n / 10n ** 18n}.${`${2n ** 256n}`.slice(-18)}`)
    assert.strictEqual(Gas.formatGwei(-1_500_000_000n), "-1.5")
    assert.strictEqual(Gas.formatGwei(100_000_000_000n), "100")
  })

  it("reads plain decimals, to the last wei", () => {
    assert.deepStrictEqual(Gas.parseGwei("1.5"), Option.some(1_500_000_000n))
    assert.deepStrictEqual(Gas.parseGwei("0.000000001"), Option.some(1n))
    assert.deepStrictEqual(Gas.parseGwei("7.0000000000000"), Option.some(7_000_000_000n))
    assert.deepStrictEqual(Gas.parseEther("90071992.547409919999999999"), Option.some(90071992547409919999999999n))
    assert.deepStrictEqual(Gas.parseEther("007"), Option.some(7n * 10n ** 18n))
  })

  it("refuses fractions of a wei and what is no plain decimal", () => {
    for (const text of ["0.0000000001", "", ".", "1.", ".5", "-1", "+1", "1e9", "0x1", " 1", "1 ", "1,5", "1.5.5"]) {
      assert.isTrue(Option.isNone(Gas.parseGwei(text)), text)
    }
  })

  it("multiplies price and limit", () => {
    assert.strictEqual(Gas.cost({ gasPrice: 2n ** 64n, gasLimit: 30_000_000n }), 2n ** 64n * 30_000_000n)
  })

  const Wei = Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: 0n, maximum: 2n ** 128n }))
  it.effect.prop("what is printed reads back", [Wei], ([wei]) =>
    Effect.sync(() => {
      assert.deepStrictEqual(Gas.parseGwei(Gas.formatGwei(wei)), Option.some(wei))
      assert.deepStrictEqual(Gas.parseEther(Gas.formatEther(wei)), Option.some(wei))
    }))
})
