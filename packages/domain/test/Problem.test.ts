import { assert, describe, it } from "@effect/vitest"
import { declare, RetryAfter, tagged, typeOf } from "@trigate/domain/Problem"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

describe("Problem", () => {
  it.each([
    ["NonceMismatch", "urn:trigate:problem:nonce-mismatch"],
    ["Unauthorized", "urn:trigate:problem:unauthorized"],
    ["UnavailableOnNode", "urn:trigate:problem:unavailable-on-node"]
  ])("the type of %s is %s", (tag, type) => {
    assert.strictEqual(typeOf(tag), type)
  })

  it("declares the constant members", () => {
    assert.deepStrictEqual(declare("NonceMismatch", 422, "Nonce mismatch"), {
      type: "urn:trigate:problem:nonce-mismatch",
      status: 422,
      title: "Nonce mismatch"
    })
  })

  it("the tag needs not be given, and no other is taken", () => {
    const schema = Schema.Struct(tagged("NonceMismatch"))
    assert.deepStrictEqual(schema.make({}), { _tag: "NonceMismatch" })
    assert.isTrue(Result.isFailure(Schema.decodeUnknownResult(schema)({ _tag: "Other" })))
  })

  it.each([[0, true], [60, true], [-1, false], [1.5, false], ["1", false]])(
    "a wait of %j seconds: %s",
    (wait, valid) => {
      assert.strictEqual(Result.isSuccess(Schema.decodeUnknownResult(RetryAfter)(wait)), valid)
    }
  )
})
