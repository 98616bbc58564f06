import { assert, describe, it } from "@effect/vitest"
import { DecimalString } from "@trigate/domain/candles/Candle"
import * as Schema from "effect/Schema"

describe("a decimal number of the venue", () => {
  it("has at most 200 characters, because comparing a million digits blocks the event loop", () => {
    const is = Schema.is(DecimalString)
    const digits = "9".repeat(200)
    assert.deepStrictEqual(
      ["0", "-1.5", digits].map((text) => is(text)),
      [true, true, true]
    )
    assert.deepStrictEqual(
      [`${digits}9`, `0.${digits}9`, "1e999999", "Infinity", ""].map((text) => is(text)),
      [false, false, false, false, false]
    )
  })
})
