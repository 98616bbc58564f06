import { assert, describe, it } from "@effect/vitest"
import { Problem, problemType, RetryAfter } from "@trigate/domain/errors/Problem"
import * as ErrorReporter from "effect/ErrorReporter"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

describe("Problem", () => {
  it.each([
    ["NonceMismatch", "urn:trigate:problem:nonce-mismatch"],
    ["Unauthorized", "urn:trigate:problem:unauthorized"],
    ["UnavailableOnNode", "urn:trigate:problem:unavailable-on-node"]
  ])("the type of %s is %s", (tag, type) => {
    assert.strictEqual(problemType(tag), type)
  })

  class Sample extends Problem<Sample>()(
    "Sample",
    { group: "fix-setup", status: 418, title: "A sample" },
    { size: Schema.Int }
  ) {}
  const decode = Schema.decodeUnknownResult(Sample)
  const written = {
    detail: "too big",
    _tag: "Sample",
    size: 3,
    type: "urn:trigate:problem:sample",
    status: 418,
    title: "A sample"
  } as const

  it("is written with the constant members of its class", () => {
    const sample = new Sample({ size: 3, detail: "too big" })
    assert.strictEqual(JSON.stringify(Result.getOrThrow(Schema.encodeResult(Sample)(sample))), JSON.stringify(written))
  })

  it("has its detail as message, else the title of its class", () => {
    assert.strictEqual(new Sample({ size: 3, detail: "too big" }).message, "too big")
    assert.strictEqual(new Sample({ size: 3 }).message, "A sample")
  })

  it("reads back as its class, also where a proxy has changed or dropped what the class says anyway", () => {
    for (
      const body of [written, { ...written, status: 502, title: "Bad Gateway" }, { ...written, status: undefined }]
    ) {
      const sample = Result.getOrThrow(decode(body))
      assert.instanceOf(sample, Sample)
      assert.deepStrictEqual(Result.getOrThrow(Schema.encodeResult(Sample)(sample)), written)
      assert.strictEqual(sample.group, "fix-setup")
    }
    assert.strictEqual(Result.getOrThrow(decode({ ...written, detail: 7 })).message, "A sample")
  })

  it("is no problem of another type or tag", () => {
    for (const other of [{ ...written, type: "about:blank" }, { ...written, _tag: "Other" }]) {
      assert.isTrue(Result.isFailure(decode(other)))
    }
  })

  it("is reported as a fault of the program only from status 500 on", () => {
    class Fault extends Problem<Fault>()("Fault", { group: "retry-later", status: 503, title: "A fault" }, {}) {}
    assert.isTrue(ErrorReporter.isIgnored(new Sample({ size: 3 })))
    assert.isFalse(ErrorReporter.isIgnored(new Fault({})))
  })

  it.each([[0, true], [60, true], [-1, false], [1.5, false], ["1", false]])(
    "a wait of %j seconds: %s",
    (wait, valid) => {
      assert.strictEqual(Result.isSuccess(Schema.decodeUnknownResult(RetryAfter)(wait)), valid)
    }
  )
})
