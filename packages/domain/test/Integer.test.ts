import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { Uint64 } from "@trigate/domain/encoding/Encoding"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

const read = (text: string) => Result.flatMap(Json.parse(text), Schema.decodeUnknownResult(Uint64))

describe("Uint64", () => {
  it.each<readonly [text: string, value: bigint]>([
    ["0", 0n],
    ["-0", 0n],
    ["1", 1n],
    ["9007199254740991", 2n ** 53n - 1n],
    ["9007199254740992", 2n ** 53n],
    ["9007199254740993", 2n ** 53n + 1n],
    ["18446744073709551614", 2n ** 64n - 2n],
    ["18446744073709551615", 2n ** 64n - 1n]
  ])("%s is read digit for digit", (text, value) => {
    assert.strictEqual(Result.getOrThrow(read(text)), value)
  })

  it.each([
    "-1",
    "-9007199254740993",
    "18446744073709551616",
    "1208925819614629174706176",
    "1.5",
    "1e20",
    "9007199254740993.0",
    "\"1\"",
    "null",
    "true",
    "[1]"
  ])("%s is refused", (text) => {
    assert.isTrue(Result.isFailure(read(text)))
  })

  it("does not take a double that has lost its last digit", () => {
    assert.isTrue(Result.isFailure(Schema.decodeUnknownResult(Uint64)(2 ** 53)))
  })

  it.effect.prop("is written digit for digit", { value: Schema.toType(Uint64) }, ({ value }) =>
    Effect.gen(function*() {
      const wire = yield* Schema.encodeEffect(Uint64)(value)
      assert.strictEqual(typeof wire, value < 2n ** 53n ? "number" : "bigint")
      assert.strictEqual(Json.stringify(wire), value.toString())
    }))
})
