import { assert, describe, it } from "@effect/vitest"
import * as Hex from "@trigate/domain/encoding/Encoding"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

const digits = (count: number) => `0x${"aB".repeat(count / 2)}${count % 2 === 1 ? "c" : ""}`

/** Which numbers of digits each takes. */
const lengths: ReadonlyArray<
  readonly [name: string, schema: Schema.ConstraintCodec<string, string>, valid: Array<number>, invalid: Array<number>]
> = [
  ["Address", Hex.Address, [40], [0, 1, 38, 39, 41, 42, 64]],
  ["Hash", Hex.Hash, [64], [0, 1, 40, 63, 65, 66]],
  ["Data", Hex.Data, [0, 2, 64, 4096], [1, 3, 65]],
  ["StorageSlot", Hex.StorageSlot, [1, 2, 63, 64], [0, 65]]
]

describe.each(lengths)("%s", (_name, schema, valid, invalid) => {
  const read = Schema.decodeUnknownResult(schema)

  it.each(valid)("takes %i digits and keeps their letter case", (count) => {
    assert.deepStrictEqual(Result.getOrThrow(read(digits(count))), digits(count))
  })

  it.each(invalid)("refuses %i digits", (count) => {
    assert.isTrue(Result.isFailure(read(digits(count))))
  })

  const good = digits(valid.at(-1) ?? 0)

  it.each<readonly [name: string, value: unknown]>([
    ["no prefix", good.slice(2)],
    ["a prefix in upper case", `0X${good.slice(2)}`],
    ["a character that is no digit", `${good.slice(0, -1)}g`],
    ["a space before", ` ${good}`],
    ["a line end after", `${good}\n`],
    ["a number", 1],
    ["null", null]
  ])("refuses %s", (_fault, value) => {
    assert.isTrue(Result.isFailure(read(value)))
  })
})

const readQuantity = Schema.decodeUnknownResult(Hex.Quantity)

describe("Quantity", () => {
  it.each<readonly [wire: string, value: bigint, written: string]>([
    ["0x0", 0n, "0x0"],
    ["0x00", 0n, "0x0"],
    ["0x1", 1n, "0x1"],
    ["0x0001", 1n, "0x1"],
    ["0xFF", 255n, "0xff"],
    ["0x20000000000001", 2n ** 53n + 1n, "0x20000000000001"],
    [`0x${"f".repeat(64)}`, 2n ** 256n - 1n, `0x${"f".repeat(64)}`]
  ])("%s is %i, written %s", (wire, value, written) => {
    assert.strictEqual(Result.getOrThrow(readQuantity(wire)), value)
    assert.strictEqual(Schema.encodeSync(Hex.Quantity)(value), written)
  })

  it.each(["", "0x", "1", "-0x1", "0x-1", "0x1.0", "0xg", " 0x1", "0X1", `0x1${"0".repeat(64)}`, 1, 1n, null])(
    "refuses %s",
    (wire) => {
      assert.isTrue(Result.isFailure(readQuantity(wire)))
    }
  )

  it.each([-1n, 2n ** 256n])("does not write %s", (value) => {
    assert.isTrue(Result.isFailure(Schema.encodeResult(Hex.Quantity)(value)))
  })

  it.effect.prop(
    "comes back from its spelling",
    { value: Schema.toType(Hex.Quantity) },
    ({ value }) =>
      Effect.gen(function*() {
        const wire = yield* Schema.encodeEffect(Hex.Quantity)(value)
        assert.match(wire, /^0x(?:0|[1-9a-f][0-9a-f]*)$/u)
        assert.strictEqual(yield* Schema.decodeEffect(Hex.Quantity)(wire), value)
      })
  )
})
