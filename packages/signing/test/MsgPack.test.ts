import { assert, describe, it } from "@effect/vitest"
import * as MsgPack from "@trigate/signing/unstable/actions/ActionHash"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { bytesToHex } from "viem/utils"

/** A second reading of MessagePack, so that the encoder is not its own judge. Integers are read as bigints. */
const decode = (bytes: Uint8Array): unknown => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let offset = 0

  const advance = (size: number): number => {
    const at = offset
    offset += size
    if (offset > bytes.length) {
      throw new Error("MessagePack ends early")
    }
    return at
  }
  const uint8 = () => view.getUint8(advance(1))
  const uint16 = () => view.getUint16(advance(2))
  const uint32 = () => view.getUint32(advance(4))
  const text = (size: number) => {
    const at = advance(size)
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes.subarray(at, at + size))
  }
  const array = (size: number): Array<unknown> => Array.from({ length: size }, () => value())
  const map = (size: number): unknown =>
    Object.fromEntries(Array.from({ length: size }, () => {
      const key = value()
      if (typeof key !== "string") {
        throw new Error("A key is not a string")
      }
      return [key, value()]
    }))

  const value = (): unknown => {
    const head = uint8()
    if (head <= 0x7f) return BigInt(head)
    if (head <= 0x8f) return map(head & 0x0f)
    if (head <= 0x9f) return array(head & 0x0f)
    if (head <= 0xbf) return text(head & 0x1f)
    if (head >= 0xe0) return BigInt(head - 0x100)
    switch (head) {
      case 0xc0:
        return null
      case 0xc2:
        return false
      case 0xc3:
        return true
      case 0xcb:
        return view.getFloat64(advance(8))
      case 0xcc:
        return BigInt(uint8())
      case 0xcd:
        return BigInt(uint16())
      case 0xce:
        return BigInt(uint32())
      case 0xcf:
        return view.getBigUint64(advance(8))
      case 0xd0:
        return BigInt(view.getInt8(advance(1)))
      case 0xd1:
        return BigInt(view.getInt16(advance(2)))
      case 0xd2:
        return BigInt(view.getInt32(advance(4)))
      case 0xd3:
        return view.getBigInt64(advance(8))
      case 0xd9:
        return text(uint8())
      case 0xda:
        return text(uint16())
      case 0xdb:
        return text(uint32())
      case 0xdc:
        return array(uint16())
      case 0xdd:
        return array(uint32())
      case 0xde:
        return map(uint16())
      case 0xdf:
        return map(uint32())
      default:
        throw new Error(`Unexpected head 0x${head.toString(16)}`)
    }
  }

  const decoded = value()
  if (offset !== bytes.length) {
    throw new Error("Bytes are left over")
  }
  return decoded
}

const hex = (value: unknown) => bytesToHex(Result.getOrThrow(MsgPack.encode(value)))

const failure = (value: unknown) => {
  const { path, reason } = Result.getOrThrow(Result.flip(MsgPack.encode(value)))
  return { reason, path }
}

const nested = (depth: number, leaf: unknown): unknown => depth === 0 ? leaf : [nested(depth - 1, leaf)]

/** Integers as the decoder reads them. */
const normalize = (value: unknown): unknown => {
  if (typeof value === "number" && Number.isInteger(value)) {
    return BigInt(value)
  }
  if (Array.isArray(value)) {
    return value.map(normalize)
  }
  return typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, member]) => [key, normalize(member)]))
    : value
}

const Text = Schema.String.check(Schema.makeFilter((text) => text.isWellFormed()))

const Scalar = Schema.Union([
  Schema.Null,
  Schema.Boolean,
  Text,
  Schema.Int,
  Schema.Finite.check(Schema.isBetween({ minimum: -1e18, maximum: 1e18 })),
  Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: -(2n ** 63n), maximum: 2n ** 64n - 1n }))
])

type Value = typeof Scalar.Type | ReadonlyArray<Value> | { readonly [key: string]: Value }

const Value: Schema.Codec<Value> = Schema.Union([
  Scalar,
  Schema.Array(Schema.suspend(() => Value)),
  Schema.Record(Text, Schema.suspend(() => Value))
])

describe("MsgPack.encode", () => {
  const integers: ReadonlyArray<readonly [number | bigint, string]> = [
    [0, "0x00"],
    [127, "0x7f"],
    [128, "0xcc80"],
    [255, "0xccff"],
    [256, "0xcd0100"],
    [65535, "0xcdffff"],
    [65536, "0xce00010000"],
    [4294967295, "0xceffffffff"],
    [4294967296, "0xcf0000000100000000"],
    [9007199254740991, "0xcf001fffffffffffff"],
    [2 ** 60, "0xcf1000000000000000"],
    [2n ** 64n - 1n, "0xcfffffffffffffffff"],
    [-1, "0xff"],
    [-32, "0xe0"],
    [-33, "0xd0df"],
    [-128, "0xd080"],
    [-129, "0xd1ff7f"],
    [-32768, "0xd18000"],
    [-32769, "0xd2ffff7fff"],
    [-2147483648, "0xd280000000"],
    [-2147483649, "0xd3ffffffff7fffffff"],
    [-(2n ** 63n), "0xd38000000000000000"]
  ]

  it("gives integers their smallest form, as number and as bigint", () => {
    for (const [value, expected] of integers) {
      assert.strictEqual(hex(value), expected)
      assert.strictEqual(hex(BigInt(value)), expected)
    }
  })

  it("gives other numbers eight bytes", () => {
    assert.strictEqual(hex(1.5), "0xcb3ff8000000000000")
    assert.strictEqual(hex(-0.1), "0xcbbfb999999999999a")
  })

  it("sizes strings by their UTF-8 bytes", () => {
    assert.strictEqual(hex("é"), "0xa2c3a9")
    assert.strictEqual(hex("a".repeat(31)).slice(0, 4), "0xbf")
    assert.strictEqual(hex("a".repeat(32)).slice(0, 6), "0xd920")
    assert.strictEqual(hex("é".repeat(16)).slice(0, 6), "0xd920")
    assert.strictEqual(hex("a".repeat(256)).slice(0, 8), "0xda0100")
    assert.strictEqual(hex("a".repeat(65536)).slice(0, 12), "0xdb00010000")
  })

  it("sizes arrays and maps by their members", () => {
    assert.strictEqual(hex(Array(15).fill(null)).slice(0, 4), "0x9f")
    assert.strictEqual(hex(Array(16).fill(null)).slice(0, 8), "0xdc0010")
    assert.strictEqual(hex(Array(65536).fill(null)).slice(0, 12), "0xdd00010000")
    const map = (size: number) => Object.fromEntries(Array.from({ length: size }, (_, index) => [`k${index}`, null]))
    assert.strictEqual(hex(map(15)).slice(0, 4), "0x8f")
    assert.strictEqual(hex(map(16)).slice(0, 8), "0xde0010")
    assert.strictEqual(hex(map(65536)).slice(0, 12), "0xdf00010000")
  })

  it("keeps the order of keys, keeps null and drops undefined", () => {
    assert.strictEqual(hex({ b: null, a: true, c: undefined }), "0x82a162c0a161c3")
    assert.strictEqual(hex({ a: true, b: null }), "0x82a161c3a162c0")
  })

  it("refuses what it cannot spell, and says where", () => {
    assert.deepStrictEqual(failure({ a: [1, { b: 2n ** 64n }] }), { reason: "integerRange", path: ["a", 1, "b"] })
    assert.deepStrictEqual(failure(-(2n ** 63n) - 1n), { reason: "integerRange", path: [] })
    assert.deepStrictEqual(failure(1e20), { reason: "integerRange", path: [] })
    assert.deepStrictEqual(failure([Number.NaN]), { reason: "notFinite", path: [0] })
    assert.deepStrictEqual(failure(Number.NEGATIVE_INFINITY), { reason: "notFinite", path: [] })
    assert.deepStrictEqual(failure({ a: "\ud800" }), { reason: "malformedString", path: ["a"] })
    assert.deepStrictEqual(failure({ "\udfff": 1 }), { reason: "malformedString", path: ["\udfff"] })
    assert.deepStrictEqual(failure([undefined]), { reason: "unsupportedType", path: [0] })
    assert.deepStrictEqual(failure(Symbol.iterator), { reason: "unsupportedType", path: [] })
  })

  it("takes 64 containers and refuses the 65th, however deep the rest goes", () => {
    assert.strictEqual(hex(nested(64, 7)), `0x${"91".repeat(64)}07`)
    assert.deepStrictEqual(failure(nested(65, 7)), { reason: "tooDeep", path: Array(64).fill(0) })
    let deep: unknown = 7
    for (let depth = 0; depth < 200_000; depth++) {
      deep = { a: deep }
    }
    assert.strictEqual(failure(deep).reason, "tooDeep")
  })

  it.effect.prop(
    "is read back by an independent decoder, and printed the same again",
    { value: Value },
    ({ value }) =>
      Effect.gen(function*() {
        const bytes = yield* Effect.fromResult(MsgPack.encode(value))
        const read = decode(bytes)
        assert.deepStrictEqual(read, normalize(value))
        assert.deepStrictEqual(yield* Effect.fromResult(MsgPack.encode(read)), bytes)
      }),
    { arbitrary: { runs: 500 } }
  )
})
