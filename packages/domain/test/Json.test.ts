import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { sampleRuns } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { asRead, Choices, JsonKey, JsonValue, spell } from "./json.ts"

const parsed = (text: string): unknown => Result.getOrThrow(Json.parse(text))
const refusal = (text: string): Json.ParseFault => Result.getOrThrow(Result.flip(Json.parseStrict(text)))
const slice = (text: string, span: Json.Span | undefined) => span && text.slice(span.start, span.end)

const many = { arbitrary: { runs: sampleRuns(300) } }

describe("parse and stringify", () => {
  it.effect.prop(
    "give back any value, integers up to 2^80 included",
    { value: JsonValue },
    ({ value }) =>
      Effect.sync(() => {
        assert.deepStrictEqual(parsed(Json.stringify(value)), asRead(value))
      }),
    many
  )

  it.effect.prop(
    "write a value without a bigint as JSON.stringify does",
    { value: Schema.Json },
    ({ value }) =>
      Effect.sync(() => {
        assert.strictEqual(Json.stringify(value), JSON.stringify(value))
      }),
    many
  )

  it("write a bigint that toJSON returns", () => {
    const amount = { toJSON: () => ({ wei: 2n ** 64n }) }
    assert.strictEqual(Json.stringify([amount]), `[{"wei":18446744073709551616}]`)
  })

  it.effect.prop(
    "have the same canonical form with and without white space",
    { value: JsonValue },
    ({ value }) =>
      Effect.sync(() => {
        const text = Json.stringify(value)
        assert.strictEqual(Json.canonical(text), Json.canonical(` ${text}`))
        assert.strictEqual(Json.writeCanonical(value), Json.canonical(text))
      }),
    many
  )

  it.effect.prop(
    "read any spelling of a value",
    { value: JsonValue, choices: Choices },
    ({ choices, value }) =>
      Effect.sync(() => {
        const text = spell(value, choices)
        assert.deepStrictEqual(Result.getOrThrow(Json.parseStrict(text)), asRead(value))
      }),
    many
  )

  it.effect.prop(
    "write a bigint digit for digit",
    { value: Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: -(2n ** 256n), maximum: 2n ** 256n })) },
    ({ value }) =>
      Effect.sync(() => {
        assert.strictEqual(Json.stringify({ value: [value] }), `{"value":[${value}]}`)
      })
  )

  it.each<readonly [text: string, value: unknown]>([
    ["9007199254740991", 9007199254740991],
    ["9007199254740992", 9007199254740992n],
    ["9007199254740993", 9007199254740993n],
    ["-9007199254740991", -9007199254740991],
    ["-9007199254740993", -9007199254740993n],
    ["18446744073709551615", 2n ** 64n - 1n],
    ["1208925819614629174706176", 2n ** 80n],
    ["{\"a\":[12345678901234567890]}", { a: [12345678901234567890n] }],
    ["1e21", 1e21],
    ["12345678901234567890.0", 12345678901234567000],
    ["\"12345678901234567890\"", "12345678901234567890"],
    ["{\"12345678901234567890\":1}", { "12345678901234567890": 1 }]
  ])("%s is read exactly", (text, value) => {
    assert.deepStrictEqual(parsed(text), value)
  })

  it("keeps an own __proto__ key apart from the prototype", () => {
    const value = parsed("{\"__proto__\":{\"a\":12345678901234567890}}")
    assert.deepStrictEqual(Object.getOwnPropertyNames(value), ["__proto__"])
    assert.strictEqual(Json.stringify(value), "{\"__proto__\":{\"a\":12345678901234567890}}")
  })

  it("reads integers of up to 1024 digits and refuses longer ones", () => {
    assert.strictEqual(parsed("9".repeat(1024)), 10n ** 1024n - 1n)
    assert.deepStrictEqual(refusal(`[${"9".repeat(1025)}]`), {
      path: [],
      message: "An integer has more than 1024 digits"
    })
    assert.strictEqual(parsed(`"${"9".repeat(5000)}"`), "9".repeat(5000))
  })

  it.each([
    "",
    " ",
    "{",
    "[1",
    "{\"a\"}",
    "01",
    "+1",
    "0x10",
    "'a'",
    "{a:1}",
    "[1,]",
    "nul",
    "\"\t\"",
    "1 2",
    "\"\\x\""
  ])(
    "%j is no JSON document",
    (text) => {
      assert.deepStrictEqual(refusal(text), { path: [], message: "Not a JSON document" })
    }
  )
})

const escaped = (key: string) =>
  Array.from({ length: key.length }, (_, at) => `\\u${key.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")

describe("duplicate keys", () => {
  const Step = Schema.Union([
    Schema.Literals(["a", "b\"", "{", "[,", "\\\\", "é", ""]),
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 }))
  ])
  const Path = Schema.Array(Step).check(Schema.isMaxLength(12))
  const Key = Schema.Literals(["kk", "wei", "k\"", "}}", "__"])

  const wrap = (path: ReadonlyArray<string | number>, text: string): string =>
    path.reduceRight<string>(
      (inner, step) =>
        typeof step === "number"
          ? `[${"{\"k\":[1]}, ".repeat(step)}${inner}, "k"]`
          : `{"before":{"k":1}, ${JSON.stringify(step)}:${inner}, "after":["k","k"]}`,
      text
    )

  it.effect.prop(
    "are found at any depth, however they are spelled",
    { path: Path, key: Key, spelling: Schema.Boolean },
    ({ key, path, spelling }) =>
      Effect.sync(() => {
        const again = spelling ? `"${escaped(key)}"` : JSON.stringify(key)
        const text = wrap(path, `{${JSON.stringify(key)}:1, "x":{"k":"k"}, ${again}:2}`)
        assert.deepStrictEqual(refusal(text), {
          path: [...path, key],
          message: `Duplicate key ${JSON.stringify(key)}`
        })
      }),
    many
  )

  it.effect.prop("are not seen where there are none", { path: Path, key: Key }, ({ key, path }) =>
    Effect.sync(() => {
      const text = wrap(path, `{${JSON.stringify(key)}:{${JSON.stringify(key)}:1}}`)
      assert.isUndefined(Json.refuse(text))
      assert.isTrue(Result.isSuccess(Json.parseStrict(text)))
    }), many)

  it.each([
    "{\"a\":\"{\\\"a\\\":1,\\\"a\\\":2}\"}",
    "{\"a\":\"a\",\"b\":\"a\"}",
    "[{\"a\":1},{\"a\":1}]",
    "{\"a\":1,\"A\":2}",
    "{\"é\":1,\"e\u0301\":2}",
    "{\"a\":[\"a\",\"a\"]}"
  ])("%s has none", (text) => {
    assert.isUndefined(Json.refuse(text))
  })

  it("of __proto__ and constructor are found like any other", () => {
    assert.deepStrictEqual(refusal("{\"__proto__\":1,\"__proto__\":2}").path, ["__proto__"])
    assert.isUndefined(Json.refuse("{\"constructor\":1,\"toString\":2}"))
  })
})

describe("nesting", () => {
  const nested = (depth: number, open: string, close: string) => `${open.repeat(depth)}1${close.repeat(depth)}`

  it.each([["[", "]"], ["{\"a\":", "}"], ["[{\"a\":", "}]"]])(
    "of 64 levels is read, of 65 refused: %s",
    (open, close) => {
      const levels = open.startsWith("[{") ? 2 : 1
      const deepest = nested(64 / levels, open, close)
      assert.isUndefined(Json.refuse(deepest))
      assert.isTrue(Result.isSuccess(Json.parseStrict(deepest)))
      const { message, path } = refusal(`[${deepest}]`)
      assert.strictEqual(message, "Nested deeper than 64 levels")
      assert.strictEqual(path.length, 8)
    }
  )

  it("has the limit it is given", () => {
    const limits = { ...Json.defaultLimits, maxDepth: 2 }
    assert.isTrue(Result.isSuccess(Json.parseStrict("[[1]]", limits)))
    const failure = Result.getOrThrow(Result.flip(Json.parseStrict("[[[1]]]", limits)))
    assert.deepStrictEqual(failure, { path: [0, 0], message: "Nested deeper than 2 levels" })
  })

  it("counts levels, not brackets in strings or side by side", () => {
    assert.isUndefined(Json.refuse(JSON.stringify("[".repeat(1000))))
    assert.isUndefined(Json.refuse(`[${"[],".repeat(1000)}[]]`))
  })
})

describe("the number of values", () => {
  it.each([
    ["elements", (count: number) => `[${Array.from({ length: count }, () => 1).join(",")}]`],
    ["members", (count: number) => `{${Array.from({ length: count }, (_, i) => `"k${i}":1`).join(",")}}`],
    ["containers", (count: number) => `[${Array.from({ length: count / 2 }, () => "[]").join(",")}]`],
    ["objects", (count: number) => `{"a":[${Array.from({ length: count / 2 - 1 }, () => `{"b":1}`).join(",")}]}`]
  ])("of %s together is 10000 at most", (_name, text) => {
    assert.isTrue(Result.isSuccess(Json.parseStrict(text(10_000))))
    assert.strictEqual(refusal(text(10_002)).message, "More than 10000 values")
  })

  it("has the limit it is given, and the path of what was too much", () => {
    const limits = { ...Json.defaultLimits, maxValues: 5 }
    assert.isTrue(Result.isSuccess(Json.parseStrict("{\"a\":[1,2,3,4]}", limits)))
    assert.deepStrictEqual(Result.getOrThrow(Result.flip(Json.parseStrict("{\"a\":[1,2,3,4,5]}", limits))), {
      path: ["a", 3],
      message: "More than 5 values"
    })
  })

  it("does not count what stands in strings", () => {
    assert.isUndefined(Json.refuse(JSON.stringify("[,{".repeat(100_000))))
  })
})

describe("a key that is no JSON string", () => {
  it.each(["{\"\\x\":1}", "{\"\\u00zz\":1,\"\\u00zz\":2}", "[{\"a\\\":1}]"])("%s ends the reading", (text) => {
    assert.deepStrictEqual(refusal(text), { path: [], message: "Not a JSON document" })
  })

  it("names no member", () => {
    assert.deepStrictEqual([...Json.members("{\"a\":1,\"\\x\":2}").keys()], ["a"])
  })
})

describe("without work that grows faster than the text", () => {
  // a few milliseconds each; work that grew with the square of these would take longer than any test may
  const deep = 1_000_000
  const long = 1_000_000
  it.each<readonly [name: string, text: string, accepted: boolean]>([
    ["a million open brackets", "[".repeat(deep), false],
    ["a million arrays", "[".repeat(deep) + "]".repeat(deep), false],
    ["a million objects", "{\"a\":".repeat(deep) + "1" + "}".repeat(deep), false],
    ["a million closing brackets", "]".repeat(deep), false],
    ["a string of 1 MB", `"${"a".repeat(long)}"`, true],
    ["a key of 1 MB", `{"${"a".repeat(long)}":1}`, true],
    ["a string of 1 MB that does not end", `"${"a".repeat(long)}`, false],
    ["1 MB of backslashes", `"${"\\".repeat(long)}"`, true],
    ["a string of 1 MB of digits", `"${"9".repeat(long)}"`, true],
    ["1 MB of digits", "9".repeat(long), false],
    ["1 MB of keys with wrong escapes", `[${`{"\\x":1},`.repeat(long / 9)}1]`, false],
    ["1 MB of ones and a long integer", `[${"1,".repeat(long / 2)}12345678901234567]`, false],
    ["runs of almost enough digits", `"${"123456789012345a".repeat(long / 16)}"`, true]
  ])("%s", (_name, text, accepted) => {
    const result = Json.parseStrict(text)
    assert.strictEqual(Result.isSuccess(result), accepted)
  })

  it("an answer nested a million deep is read or refused, never a crash", () => {
    assert.isTrue(Result.isSuccess(Json.parse("[".repeat(deep) + "]".repeat(deep))))
    assert.isTrue(Result.isFailure(Json.parse("[".repeat(deep) + "1234567890123456" + "]".repeat(deep))))
  })
})

describe("members", () => {
  it.effect.prop(
    "are the raw slices of an object, in any spelling",
    { value: Schema.Record(JsonKey, JsonValue), choices: Choices },
    ({ choices, value }) =>
      Effect.sync(() => {
        const text = spell(value, choices)
        const whole: unknown = JSON.parse(text)
        const spans = Json.members(text)
        assert.deepStrictEqual(
          Object.fromEntries([...spans].map(([key, span]) => [key, JSON.parse(text.slice(span.start, span.end))])),
          whole
        )
        for (const [key, span] of spans) {
          assert.strictEqual(JSON.parse(text.slice(span.keyStart, span.keyEnd)), key)
          assert.strictEqual(slice(text, span)?.trim(), slice(text, span))
        }
      }),
    many
  )

  it("keep what a reader would lose", () => {
    const text = "{ \"id\" : 1.50 , \"n\":12345678901234567890,\"s\":\"\\u0041\" , \"o\" : { \"b\":1, \"a\":2 } }"
    const spans = Json.members(text)
    assert.strictEqual(slice(text, spans.get("id")), "1.50")
    assert.strictEqual(slice(text, spans.get("n")), "12345678901234567890")
    assert.strictEqual(slice(text, spans.get("s")), "\"\\u0041\"")
    assert.strictEqual(slice(text, spans.get("o")), "{ \"b\":1, \"a\":2 }")
  })

  it("are read from a position, so that an inner object needs no copy", () => {
    const text = "{\"action\": {\"type\":\"x\", \"wei\": 7}}"
    const action = Json.members(text).get("action")
    assert.isDefined(action)
    assert.strictEqual(slice(text, Json.members(text, action.start).get("wei")), "7")
  })

  it.each(["", "[1]", "\"a\"", "1", "null", "{}", "{", "{1", "{\"a\"", "{\"a\" 1}"])("%j has none", (text) => {
    assert.strictEqual(Json.members(text).size, 0)
  })
})

describe("elements", () => {
  it.effect.prop(
    "are the raw slices of an array, in any spelling",
    { value: Schema.Array(JsonValue), choices: Choices },
    ({ choices, value }) =>
      Effect.sync(() => {
        const text = spell(value, choices)
        const slices = Json.elements(text)
        assert.isDefined(slices)
        assert.deepStrictEqual(slices.map((slice): unknown => JSON.parse(slice)), JSON.parse(text))
        assert.deepStrictEqual(slices.map((slice) => slice.trim()), slices)
      }),
    many
  )

  it("keep what a reader would lose", () => {
    assert.deepStrictEqual(Json.elements(" [ 1.50 ,{ \"a\" :1 } , \"]\", [[]] ]"), [
      "1.50",
      "{ \"a\" :1 }",
      "\"]\"",
      "[[]]"
    ])
    assert.deepStrictEqual(Json.elements("[]"), [])
    assert.deepStrictEqual(Json.elements(" [ ] "), [])
  })

  it.each(["", "{}", "1", "\"[1]\"", "null", "[", "[1", "[1,", "[1 2]", "[,1]", "[,,", "[}", "[1}", "[[1]", "[\"a]"])(
    "%j is no array",
    (text) => {
      assert.isUndefined(Json.elements(text))
    }
  )
})

describe("a key of one character that is an escape", () => {
  for (const key of ["\\\\", "\\n", "\\u0041", "\\u0000", "\\\""]) {
    it(`is refused: "${key}"`, () => {
      assert.deepStrictEqual(Json.refuse(`{"a":{"${key}":1}}`), {
        path: ["a", JSON.parse(`"${key}"`)],
        message: "A one-character key is written as an escape sequence"
      })
    })
  }

  it("is no fault where it is written plainly, or longer", () => {
    assert.isUndefined(Json.refuse("{\"r\":1,\"\\u0072s\":2,\"é\":3}"))
  })
})
