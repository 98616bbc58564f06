import { assert, describe, it } from "@effect/vitest"
import { Address, Uint64 } from "@trigate/domain/encoding/Encoding"
import { decodeValue, invalidRequest, parseRequest } from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const Body = Schema.Struct({
  nonce: Schema.Int,
  action: Schema.Struct({ validators: Schema.Array(Address), wei: Uint64 })
})

const validator = `0x${"ab".repeat(20)}`

describe("decodeValue", () => {
  it.effect("gives the domain value", () =>
    Effect.gen(function*() {
      const value = yield* decodeValue(Body)({ nonce: 1, action: { validators: [validator], wei: 2n ** 63n } })
      assert.deepStrictEqual<unknown>(value, { nonce: 1, action: { validators: [validator], wei: 2n ** 63n } })
    }))

  it.effect("tells all faults, each with its path", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(
        decodeValue(Body)({ nonce: "1", action: { validators: [validator, "0x12"], wei: -1 } })
      )
      assert.deepStrictEqual(error.errors.map(({ path }) => path), [["nonce"], ["action", "validators", 1], [
        "action",
        "wei"
      ]])
      assert.isTrue(error.errors.every(({ message }) => message !== ""))
      assert.strictEqual(error.detail, `nonce: ${error.errors[0]?.message}`)
    }))

  it.effect("puts the path below where the value stands", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(decodeValue(Schema.Tuple([Address]), ["params"])(["0x12"]))
      assert.deepStrictEqual(error.errors.map(({ path }) => path), [["params", 0]])
      assert.isTrue(error.detail?.startsWith("params.0: "))
    }))

  it.effect("says that a key is missing, and that the request is no object", () =>
    Effect.gen(function*() {
      const missing = yield* Effect.flip(decodeValue(Body)({ nonce: 1 }))
      assert.deepStrictEqual(missing.errors, [{ path: ["action"], message: "Missing key" }])
      const nothing = yield* Effect.flip(decodeValue(Body)(null))
      assert.deepStrictEqual(nothing.errors[0]?.path, [])
      assert.isTrue(nothing.detail?.startsWith("the request: "))
    }))

  it.effect("stops telling after 16 faults", () =>
    Effect.gen(function*() {
      const validators = Array.from({ length: 1000 }, () => "x")
      const error = yield* Effect.flip(decodeValue(Body)({ nonce: 1, action: { validators, wei: 1 } }))
      assert.strictEqual(error.errors.length, 16)
    }))

  it.effect("quotes no more than a part of a long value or key", () =>
    Effect.gen(function*() {
      const long = "x".repeat(100_000)
      const value = yield* Effect.flip(decodeValue(Schema.Struct({ a: Address }))({ a: long }))
      assert.isAtMost(value.errors[0]?.message.length ?? 0, 240)
      const key = yield* Effect.flip(decodeValue(Schema.Record(Schema.String, Schema.Int))({ [long]: "x" }))
      assert.deepStrictEqual(key.errors[0]?.path, ["x".repeat(64)])
    }))
})

describe("invalidRequest", () => {
  it("has no detail without a fault", () => {
    assert.isUndefined(invalidRequest([]).detail)
    assert.deepStrictEqual(invalidRequest([]).errors, [])
  })
})

describe("parseRequest", () => {
  it.effect("keeps digits", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* parseRequest("{\"wei\":18446744073709551615}")).valueOrUndefined, {
        wei: 2n ** 64n - 1n
      })
    }))

  it.effect.each(
    [
      ["{\"a\":{\"b\":1,\"\\u0062\":2}}", ["a", "b"], "a.b: Duplicate key \"b\""],
      ["[{},{\"b\":1,\"b\":2}]", [1, "b"], "1.b: Duplicate key \"b\""],
      ["{bad", [], "the request: Not a JSON document"],
      ["", [], "the request: Not a JSON document"],
      [`{"n":${"1".repeat(2000)}}`, [], "the request: An integer has more than 1024 digits"],
      ["[".repeat(65), [0, 0, 0, 0, 0, 0, 0, 0], "0.0.0.0.0.0.0.0: Nested deeper than 64 levels"]
    ] as const
  )("%s is refused", ([text, path, detail]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Effect.asVoid(parseRequest(text)))
      assert.strictEqual(error._tag, "InvalidRequest")
      assert.deepStrictEqual(error.errors.map((fault) => fault.path), [path])
      assert.strictEqual(error.detail, detail)
    }))

  it.effect("a duplicate key of a megabyte comes back short", () =>
    Effect.gen(function*() {
      const key = JSON.stringify("k".repeat(1_000_000))
      const error = yield* Effect.flip(Effect.asVoid(parseRequest(`{${key}:1,${key}:2}`)))
      assert.isBelow(JSON.stringify(error).length, 2000)
    }))
})
