import { assert, describe, it } from "@effect/vitest"
import { Signature } from "@trigate/domain/actions/Action"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

const read = Schema.decodeUnknownResult(Signature)
const part = `0x${"1f".repeat(32)}`

describe("Signature", () => {
  it.each([27, 28, 0, 1])("takes v %i", (v) => {
    assert.deepStrictEqual<unknown>(Result.getOrThrow(read({ r: part, s: part, v })), { r: part, s: part, v })
  })

  it.each([2, 26, 29, -1, 27.5, "27", null, undefined])("refuses v %j", (v) => {
    assert.isTrue(Result.isFailure(read({ r: part, s: part, v })))
  })

  it.each(["0x0", "0x1", `0x${"a".repeat(63)}`, `0x${"F".repeat(64)}`])(
    "takes a part of 1 to 64 digits: %s",
    (short) => {
      assert.deepStrictEqual<unknown>(Result.getOrThrow(read({ r: short, s: part, v: 27 })), {
        r: short,
        s: part,
        v: 27
      })
      assert.isTrue(Result.isSuccess(read({ r: part, s: short, v: 27 })))
    }
  )

  it.each(["", "0x", "1f", `0x${"a".repeat(65)}`, "0xzz", " 0x1", 1, null])("refuses a part %j", (wrong) => {
    assert.isTrue(Result.isFailure(read({ r: wrong, s: part, v: 27 })))
    assert.isTrue(Result.isFailure(read({ r: part, s: wrong, v: 27 })))
  })

  it.each(["r", "s", "v"])("must have %s", (field) => {
    const { [field]: _absent, ...rest }: { readonly [field: string]: unknown } = { r: part, s: part, v: 27 }
    assert.isTrue(Result.isFailure(read(rest)))
  })

  it.effect.prop("is written as it was read", { signature: Signature }, ({ signature }) =>
    Effect.gen(function*() {
      const wire = yield* Schema.encodeEffect(Signature)(signature)
      assert.deepStrictEqual<unknown>(wire, signature)
      assert.deepStrictEqual(yield* Schema.decodeEffect(Signature)(wire), signature)
    }))
})
