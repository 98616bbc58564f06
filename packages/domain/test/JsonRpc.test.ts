import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { of as json, Quantity } from "@trigate/domain/encoding/Encoding"
import { CallReverted, GatewayError, gatewayErrors, rpcCodes } from "@trigate/domain/errors/GatewayError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import * as Operation from "@trigate/domain/operations/Operation"
import { sampleRuns } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { samples } from "./gatewayErrorSamples.ts"
import { Choices, JsonKey, JsonValue, spell } from "./json.ts"

const readCall = (text: string) => EvmProtocol.readCall(json(text))

describe("envelopes", () => {
  it("are written member by member", () => {
    assert.strictEqual(
      EvmProtocol.requestText(7, "eth_\"odd\"", "[ 1.0 ]"),
      "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"eth_\\\"odd\\\"\",\"params\":[ 1.0 ]}"
    )
    assert.strictEqual(EvmProtocol.resultText("\"a\"", "null"), "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":null}")
    assert.strictEqual(
      EvmProtocol.errorText("null", "{\"code\":3}"),
      "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":3}}"
    )
  })
})

describe("readCall", () => {
  it.each([
    "1",
    "0",
    "-1",
    "1.50",
    "1e3",
    "12345678901234567890123",
    "\"1\"",
    "\"\"",
    "\"a \\\"b\\\" \\u0041\"",
    "null"
  ])("gives the id %s back as it came", (id) => {
    const call = Result.getOrThrow(readCall(`{ "id" : ${id} , "jsonrpc":"2.0","method":"m","params":[]}`))
    assert.deepStrictEqual(call, { id, method: "m", params: json("[]") })
  })

  it("a call without an id is a notification", () => {
    assert.isUndefined(Result.getOrThrow(readCall("{\"jsonrpc\":\"2.0\",\"method\":\"m\"}")).id)
  })

  it.each([
    ["{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":1}", "[]"],
    ["{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":1,\"params\":null}", "[]"],
    ["{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":1,\"params\": [ 1.0 , {} ] }", "[ 1.0 , {} ]"],
    [
      "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":1,\"params\":{\"n\":12345678901234567890}}",
      "{\"n\":12345678901234567890}"
    ]
  ])("%s has the params %s", (text, params) => {
    assert.strictEqual(Result.getOrThrow(readCall(text)).params.text, params)
  })

  it.each([
    ["[]", "Expected a JSON-RPC object"],
    ["5", "Expected a JSON-RPC object"],
    ["null", "Expected a JSON-RPC object"],
    ["\"text\"", "Expected a JSON-RPC object"],
    ["{}", "Expected \"jsonrpc\": \"2.0\""],
    ["{\"method\":\"m\",\"id\":1}", "Expected \"jsonrpc\": \"2.0\""],
    ["{\"jsonrpc\":\"1.0\",\"method\":\"m\",\"id\":1}", "Expected \"jsonrpc\": \"2.0\""],
    ["{\"jsonrpc\":2.0,\"method\":\"m\",\"id\":1}", "Expected \"jsonrpc\": \"2.0\""],
    ["{\"jsonrpc\":\"2.0\",\"id\":1}", "Expected a method name"],
    ["{\"jsonrpc\":\"2.0\",\"method\":1,\"id\":1}", "Expected a method name"],
    ["{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":\"x\"}", "Expected params to be an array or an object"],
    ["{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":1}", "Expected params to be an array or an object"],
    ["{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":true}", "Expected id to be a string, a number or null"],
    ["{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":{}}", "Expected id to be a string, a number or null"],
    ["{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":[1]}", "Expected id to be a string, a number or null"]
  ])("%s is an invalid request: %s", (text, message) => {
    const refusal = Result.getOrThrow(Result.flip(readCall(text)))
    assert.strictEqual(refusal._tag, "InvalidRequest")
    assert.deepStrictEqual(refusal.errors, [{ path: [], message }])
    assert.strictEqual(refusal.detail, message)
  })

  const Id = Schema.Union([Schema.Null, Schema.String, Schema.BigInt])
  const Params = Schema.Union([Schema.Array(JsonValue), Schema.Record(JsonKey, JsonValue)])
  it.effect.prop(
    "gives id and params of any spelling back as they came",
    { id: Id, params: Params, choices: Choices },
    ({ choices, id, params }) =>
      Effect.sync(() => {
        const idText = spell(id, choices).trim()
        const paramsText = spell(params, choices).trim()
        const text = `{"params":${paramsText} ,"jsonrpc" : "2.0","id": ${idText},"method":"m"}`
        assert.deepStrictEqual(Result.getOrThrow(readCall(text)), { id: idText, method: "m", params: json(paramsText) })
      }),
    { arbitrary: { runs: sampleRuns(300) } }
  )
})

const readAnswer = (text: string) => Effect.succeed(EvmProtocol.readResponse("layer2", json(text), 7))

describe("readAnswer", () => {
  it.effect.each(
    [
      ["{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":null}", "null"],
      ["{\"id\":7,\"result\":1}", "1"],
      [
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\": { \"n\" : 12345678901234567890.0 } }",
        "{ \"n\" : 12345678901234567890.0 }"
      ],
      ["{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":null,\"result\":false}", "false"]
    ] as const
  )("%s is a result", ([text, result]) =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* readAnswer(text), Result.succeed({ _tag: "Result", result: json(result) }))
    }))

  it.effect.each(
    [
      [
        "its id",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32000,\"message\":\"busy\"}}",
        "{\"code\":-32000,\"message\":\"busy\"}"
      ],
      [
        "a null id, as a node that could not read the request sends it",
        "{\"id\":null,\"error\": { \"message\":\"busy\", \"code\":-32000, \"data\":[1.0] } }",
        "{ \"message\":\"busy\", \"code\":-32000, \"data\":[1.0] }"
      ]
    ] as const
  )("an error with %s is an error", ([, text, error]) =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* readAnswer(text),
        Result.succeed({ _tag: "Error", code: -32000, message: "busy", error: json(error) })
      )
    }))

  it.effect.each(
    [
      [
        "{\"id\":7,\"result\":null,\"error\": {\"code\":3,\"message\":\"reverted\"}}",
        3,
        "reverted",
        "{\"code\":3,\"message\":\"reverted\"}"
      ],
      ["{\"id\":7,\"error\":\"busy\"}", -32000, "busy", "{\"code\":-32000,\"message\":\"busy\"}"],
      [
        "{\"id\":7,\"error\":{\"code\":\"-32005\",\"message\":\"slow down\"}}",
        -32005,
        "slow down",
        "{\"code\":-32005,\"message\":\"slow down\"}"
      ],
      [
        "{\"id\":7,\"error\":{\"code\":1.5,\"message\":\"odd\"}}",
        -32000,
        "odd",
        "{\"code\":-32000,\"message\":\"odd\"}"
      ],
      [
        "{\"id\":7,\"error\":{\"message\":\"no code\",\"data\":9007199254740993}}",
        -32000,
        "no code",
        "{\"message\":\"no code\",\"data\":9007199254740993,\"code\":-32000}"
      ],
      ["{\"id\":7,\"error\":{\"code\":1}}", 1, "{\"code\":1}", "{\"code\":1,\"message\":\"{\\\"code\\\":1}\"}"],
      [
        "{\"id\":7,\"error\":{\"code\":1,\"data\":\"why\"}}",
        1,
        "why",
        "{\"code\":1,\"data\":\"why\",\"message\":\"why\"}"
      ]
    ] as const
  )("%s is an error in the node's words", ([text, code, message, error]) =>
    Effect.gen(function*() {
      const answer = Result.getOrThrow(yield* readAnswer(text))
      assert(answer._tag === "Error")
      assert.deepStrictEqual([answer.code, answer.message, answer.error.text.trim()], [code, message, error])
    }))

  it.effect.each(
    [
      ["{\"id\":8,\"result\":null}", "The response has a different id than the request"],
      ["{\"id\":\"7\",\"result\":null}", "The response has a different id than the request"],
      ["{\"id\":7.5,\"result\":null}", "The response has a different id than the request"],
      ["{\"id\":null,\"result\":null}", "The response has a different id than the request"],
      ["{\"result\":null}", "The response has a different id than the request"],
      ["{\"id\":8,\"error\":{\"code\":1,\"message\":\"\"}}", "The response has a different id than the request"],
      ["{\"error\":{\"code\":1,\"message\":\"\"}}", "The response has a different id than the request"],
      ["{\"id\":7}", "Expected exactly one of result and error"],
      ["{\"id\":7,\"error\":null}", "Expected exactly one of result and error"],
      ["{\"id\":7,\"result\":1,\"error\":{\"code\":1,\"message\":\"\"}}", "Expected exactly one of result and error"],
      ["{\"id\":7,\"result\":1,\"error\":\"busy\"}", "Expected exactly one of result and error"],
      ["[{\"id\":7,\"result\":null}]", "Expected a JSON-RPC object"],
      ["7", "Expected a JSON-RPC object"],
      ["null", "Expected a JSON-RPC object"],
      ["{\"id\":7,\"resu", "Not a JSON document"],
      ["", "Not a JSON document"],
      ["<html>", "Not a JSON document"]
    ] as const
  )("%s is malformed: %s", ([text, issue]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Effect.fromResult(EvmProtocol.readResponse("layer2", json(text), 7)))
      assert.deepStrictEqual([error._tag, error.upstream, error.issue], ["UpstreamMalformed", "layer2", issue])
    }))
})

describe("answerOf", () => {
  const busy = "{\"id\":7,\"error\":{\"code\":-32000,\"message\":\"busy\"}}"
  const problem = (
    status: number,
    body: string
  ) => (Operation.json("layer2", status, body).with({ contentType: "application/problem+json" }))

  it.effect.each([200, 400, 401, 404, 500, 503])(
    "an error object counts with HTTP %i",
    (status) =>
      Effect.gen(function*() {
        const answer = yield* EvmProtocol.parseResponse(Operation.json("layer2", status, busy), 7)
        assert.strictEqual(answer._tag === "Error" ? answer.message : undefined, "busy")
      })
  )

  it.effect("HTTP 200 without an envelope is malformed", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(EvmProtocol.parseResponse(Operation.json("layer2", 200, "{}"), 7))
      assert.strictEqual(error._tag, "UpstreamMalformed")
    }))

  it.effect("without an envelope the status says what happened", () =>
    Effect.gen(function*() {
      const wrongId = yield* Effect.flip(EvmProtocol.parseResponse(Operation.json("layer2", 503, busy), 8))
      assert.strictEqual(wrongId._tag, "UpstreamUnavailable")
      assert.strictEqual(wrongId.detail, `layer2 responded with HTTP 503: ${busy}`)
    }))

  it.effect("HTTP 429 is a reached rate limit whatever the body says", () =>
    Effect.gen(function*() {
      const answer = Operation.json("layer2", 429, busy).with({ retryAfter: 7 })
      const error = yield* Effect.flip(EvmProtocol.parseResponse(answer, 7))
      assert.strictEqual(error._tag === "UpstreamRateLimited" ? error.retryAfter : undefined, 7)
    }))

  it.effect("the problem document of a gateway upstream is the error it was", () =>
    Effect.gen(function*() {
      const quota = Json.stringify(Schema.encodeSync(GatewayError)(samples.QuotaExceeded))
      assert.deepStrictEqual<GatewayError>(
        yield* Effect.flip(EvmProtocol.parseResponse(problem(429, quota), 7)),
        samples.QuotaExceeded
      )
      const foreign = Json.stringify(Schema.encodeSync(GatewayError)(samples.NonceMismatch))
      const error = yield* Effect.flip(EvmProtocol.parseResponse(problem(503, foreign), 7))
      assert.strictEqual(error._tag, "UpstreamUnavailable")
    }))
})

const operation = Operation.read({
  name: "eth_gasPrice",
  chain: "layer2",
  protocol: "layer2",
  summary: "",
  sources: ["node"],
  cost: { weight: 0, requestUnits: 1 },
  request: Schema.Unknown,
  response: Quantity,
  failures: []
})

const reader = EvmProtocol.makeReader(operation)
const readerOfAll = EvmProtocol.makeReader({ ...operation, failures: gatewayErrors })

const errorAnswer = (code: number, message: string, error: string): EvmProtocol.RpcResponse => ({
  _tag: "Error",
  code,
  message,
  error: json(error)
})

const calls = EvmProtocol.makeReader({ ...operation, failures: [CallReverted] })

/** Reads the error of a node that answers with a status. */
const refusalOf = (status: number, error: string, read: typeof calls | typeof reader = calls) =>
  Effect.gen(function*() {
    const response = Operation.plain("layer2", status, `{"jsonrpc":"2.0","id":7,"error":${error}}`)
    const judged = EvmProtocol.judge(7, operation.name)(response)
    assert(judged._tag !== "Refused" && judged.answer !== undefined)
    return yield* Effect.flip(read("layer2", judged.answer))
  })

describe("what a node refuses", () => {
  const reverts = [
    [`{"code":3,"message":"execution reverted: no","data":"0x08c379a0"}`, { code: 3, data: "0x08c379a0" }],
    [`{"code":-32000,"message":"execution reverted"}`, { code: -32000 }],
    [`{"code":-32015,"message":"VM execution error.","data":"Reverted 0x08c379a0"}`, {
      code: -32015,
      data: "0x08c379a0"
    }]
  ] as const
  for (const [error, fields] of reverts) {
    it.effect(`a reverted call is no failure of the node: ${error}`, () =>
      Effect.gen(function*() {
        const read = yield* refusalOf(200, error)
        assert.strictEqual(read._tag, "CallReverted")
        assert.deepInclude(read, fields)
        assert.strictEqual(read.group, "fix-request")
        // an operation that cannot revert does not declare it
        assert.strictEqual((yield* refusalOf(200, error, reader))._tag, "UpstreamUnavailable")
      }))
  }

  it.effect("another error of the server may pass", () =>
    Effect.map(
      refusalOf(200, `{"code":-32000,"message":"header not found"}`),
      (read) => assert.strictEqual(read._tag, "UpstreamUnavailable")
    ))

  for (const status of [401, 403]) {
    it.effect(`HTTP ${status} takes another key, whatever the error's code is`, () =>
      Effect.gen(function*() {
        const read = yield* refusalOf(status, `{"code":-32600,"message":"Must be authenticated!"}`)
        assert.deepStrictEqual([read._tag, read.group], ["UpstreamForbidden", "fix-setup"])
        assert.strictEqual(read.message, "layer2 returned error -32600: Must be authenticated!")
      }))
  }
})

describe("readerOf", () => {
  it.effect("reads a result against the operation's response", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        yield* reader("layer2", { _tag: "Result", result: json("\"0x09184e72a000\"") }),
        10_000_000_000_000n
      )
      const error = yield* Effect.flip(reader("layer2", { _tag: "Result", result: json("\"ten\"") }))
      assert.strictEqual(error._tag, "UpstreamMalformed")
    }))

  it.effect.each(Object.values<GatewayError>(samples))(
    "gives back $_tag that travelled in data",
    (error) =>
      Effect.gen(function*() {
        const text = EvmProtocol.errorText("7", EvmProtocol.errorObject(error))
        const answer = yield* Effect.fromResult(EvmProtocol.readResponse("layer2", json(text), 7))
        assert.strictEqual(answer._tag === "Error" ? answer.code : undefined, rpcCodes[error._tag])
        assert.strictEqual(answer._tag === "Error" ? answer.message : undefined, error.message)
        const again = yield* Effect.flip(readerOfAll("layer2", answer))
        assert.strictEqual(again.constructor, error.constructor)
        assert.deepStrictEqual<GatewayError>(again, error)
      })
  )

  it("an error may travel under a code that says more", () => {
    const object = Result.getOrThrow(Json.parse(EvmProtocol.errorObject(samples.InvalidRequest, -32700)))
    assert.deepStrictEqual(object, {
      code: -32700,
      message: samples.InvalidRequest.message,
      data: {
        type: "urn:trigate:problem:invalid-request",
        title: "Invalid request",
        status: 400,
        detail: "what happened, with \"quotes\" and \u20ac",
        _tag: "InvalidRequest",
        errors: [{ path: ["action", "signatures", 0, "r"], message: "Expected 0x hex" }]
      }
    })
  })

  it.effect("an error that the operation does not have is read by its code", () =>
    Effect.gen(function*() {
      const answer = errorAnswer(-32603, "m", EvmProtocol.errorObject(samples.UnknownAsset))
      const error = yield* Effect.flip(reader("layer2", answer))
      assert.strictEqual(error._tag, "UpstreamUnavailable")
    }))

  const codes: ReadonlyArray<readonly [code: number, tag: string]> = [
    [-32601, "UnsupportedMethod"],
    [-32004, "UnsupportedMethod"],
    [-32602, "InvalidRequest"],
    [-32600, "InvalidRequest"],
    [-32700, "InvalidRequest"],
    [-32005, "UpstreamRateLimited"],
    [-32007, "UpstreamRateLimited"],
    [429, "UpstreamRateLimited"],
    [-32603, "UpstreamUnavailable"],
    [-32000, "UpstreamUnavailable"],
    [-32001, "UpstreamUnavailable"],
    [-32002, "UpstreamUnavailable"],
    [3, "UpstreamUnavailable"],
    [0, "UpstreamUnavailable"]
  ]
  it.effect.each(codes)("code %i is %s", ([code, tag]) =>
    Effect.gen(function*() {
      const text = `{"code":${code},"message":"as the node put it","data":{"message":"unrelated"}}`
      const error = yield* Effect.flip(reader("layer2", errorAnswer(code, "as the node put it", text)))
      assert.strictEqual(error._tag, tag)
      assert.strictEqual(error.detail, `layer2 returned error ${code}: as the node put it`)
    }))

  it.effect("names the method that is not supported and where a request is wrong", () =>
    Effect.gen(function*() {
      const unsupported = yield* Effect.flip(reader("layer2", errorAnswer(-32601, "no", "{}")))
      assert.strictEqual(unsupported._tag === "UnsupportedMethod" ? unsupported.method : undefined, "eth_gasPrice")
      const invalid = yield* Effect.flip(reader("layer2", errorAnswer(-32602, "short hash", "{}")))
      assert.deepStrictEqual(invalid._tag === "InvalidRequest" ? invalid.errors : undefined, [
        { path: ["params"], message: "short hash" }
      ])
    }))
})

/** What a strict parser and `readCall` make of a text. */
const parsedCall = (text: string) =>
  Result.getOrUndefined(
    Result.flatMap(
      Json.parseStrict(text),
      (value) => Result.mapError(EvmProtocol.readCall(Json.parsed(text, value)), () => ({ path: [], message: "" }))
    )
  )

const plain = (call: EvmProtocol.RpcCall | undefined) =>
  call === undefined ? undefined : { ...call, params: [call.params.text, call.params.valueOrUndefined] }

const strange = ["0", "1", "-", "\"", "\\", ",", ":", ".", " ", "\n", "[", "]", "{", "}", "e", "\ufeff"]

/** The text with each of its characters left out, doubled, and replaced by others. */
const mutations = (text: string): ReadonlyArray<string> =>
  Array.from({ length: text.length }, (_, at) => {
    const before = text.slice(0, at)
    const after = text.slice(at + 1)
    return [before + after, text.slice(0, at + 1) + text.slice(at), ...strange.map((other) => before + other + after)]
  }).flat()

const usualTexts = [
  `{"jsonrpc":"2.0","id":42,"method":"eth_getTransactionReceipt","params":["0xab"]}`,
  `{"method":"eth_getBalance","params":["0xab","latest",true,null,1.50,12345678901234567890],"id":0,"jsonrpc":"2.0"}`,
  `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`
]

describe("usualCall", () => {
  it.each(usualTexts)("reads %s as a parser does", (text) => {
    const call = EvmProtocol.usualCall(text)
    assert.isDefined(call)
    assert.deepStrictEqual(plain(call), plain(parsedCall(text)))
  })

  it.each(usualTexts)("never reads a text otherwise than a parser: changes of %s", (text) => {
    for (const changed of mutations(text)) {
      const call = EvmProtocol.usualCall(changed)
      if (call !== undefined) assert.deepStrictEqual(plain(call), plain(parsedCall(changed)), changed)
    }
  })

  it.prop("never reads params otherwise than a parser", [Schema.Array(JsonValue)], ([params]) => {
    const text = `{"jsonrpc":"2.0","id":7,"method":"m","params":${Json.stringify(params)}}`
    const call = EvmProtocol.usualCall(text)
    if (call !== undefined) assert.deepStrictEqual(plain(call), plain(parsedCall(text)))
  })

  it.each([
    `{"jsonrpc":"2.0","id":1,"method":"m","params":[{"a":1,"a":2}]}`,
    `{"jsonrpc":"2.0","id":1,"method":"m","params":["\\u0061"]}`,
    `{"jsonrpc":"2.0","id":01,"method":"m","params":[]}`,
    `{"jsonrpc":"2.0","id":1,"method":"m","params":[1,]}`,
    `{"jsonrpc":"2.0","id":1,"method":"m","params":[${"1,".repeat(2500)}1]}`,
    `{"jsonrpc":"2.0","id":1,"method":"m","params":[${"1".repeat(1025)}]}`
  ])("leaves %s to the parser", (text) => {
    assert.isUndefined(EvmProtocol.usualCall(text))
  })
})

describe("an answer as nodes usually write it", () => {
  const read = (text: string) => {
    const answer = Result.getOrUndefined(EvmProtocol.readResponse("layer2", json(text), 7))
    return answer?._tag === "Result" ? [answer.result.text, answer.result.valueOrUndefined] : answer?._tag
  }
  // a space in front leaves it to the parser
  const same = (text: string) => assert.deepStrictEqual(read(text), read(` ${text}`), text)

  it("is read as a parser reads it, whatever character of it is another one", () => {
    const text = `{"jsonrpc":"2.0","id":7,"result":{"status":"0x1","logs":[{"data":"0x"},null,12345678901234567890]}}`
    assert.deepStrictEqual(read(text), [
      text.slice("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":".length, -1),
      { status: "0x1", logs: [{ data: "0x" }, null, 12345678901234567890n] }
    ])
    same(text)
    for (const changed of mutations(text)) same(changed)
  })

  it.prop("is read as a parser reads it, however its result is spelled", [JsonValue, Choices], ([value, choices]) => {
    same(`{"jsonrpc":"2.0","id":7,"result":${spell(value, choices)}}`)
    same(`{"jsonrpc":"2.0","id":7,"result":${Json.stringify(value)}}`)
  })

  it.each([
    `{"jsonrpc":"2.0","id":7,"result":1,"error":{"code":1,"message":"no"}}`,
    `{"jsonrpc":"2.0","id":7,"result":1,"result":2}`,
    `{"jsonrpc":"2.0","id":7,"result":1}}`,
    `{"jsonrpc":"2.0","id":7,"result":}`,
    `{"jsonrpc":"2.0","id":70,"result":1}`
  ])("means the same: %s", (text) => same(text))
})

describe("a batch's answers as nodes usually write them", () => {
  const ids = [7, 8, 9]
  const show = (answer: EvmProtocol.BatchMember) =>
    Result.match(answer, {
      onFailure: ({ issue }) => issue,
      onSuccess: (known) => known._tag === "Result" ? [known.result.text, known.result.valueOrUndefined] : known.message
    })
  const read = (text: string) =>
    Json.stringify(
      Result.match(EvmProtocol.readBatch("layer2", json(text), ids), {
        onFailure: ({ issue }) => issue,
        onSuccess: (each) => each.map(show)
      })
    )
  // a space in front leaves them to the parser
  const same = (text: string) => assert.strictEqual(read(text), read(` ${text}`), text)
  const batch = (results: ReadonlyArray<string>) =>
    `[${results.map((result, index) => `{"jsonrpc":"2.0","id":${index + 7},"result":${result}}`).join(",")}]`

  it("are read as a parser reads them, whatever character of them is another one", () => {
    const text = batch([`{"a":[{"b":"}"},12345678901234567890]}`, "null", `"0x1"`])
    assert.strictEqual(
      read(text),
      Json.stringify([
        [`{"a":[{"b":"}"},12345678901234567890]}`, { a: [{ b: "}" }, 12345678901234567890n] }],
        ["null", null],
        [`"0x1"`, "0x1"]
      ])
    )
    same(text)
    for (const changed of mutations(text)) same(changed)
  })

  it.prop("are read as a parser reads them, however a result is spelled", [JsonValue, Choices], ([value, choices]) => {
    same(batch(["1", spell(value, choices), "2"]))
    same(batch([Json.stringify(value), Json.stringify(value), Json.stringify(value)]))
  })

  const part = `{"jsonrpc":"2.0","id":8,"result":2}`
  it.each([
    batch(["1", "2"]),
    batch(["1", "2", "3", "4"]),
    batch(["1", `[${part},${part}]`, "3"]),
    batch([`{"x":1},${part},{"y":2}`, "2", "3"]),
    batch(["1", "2", "3"]).replace(`"id":9`, `"id":8`),
    batch(["1", "2", "3"]).replace(`"id":7`, `"id":70`),
    batch(["1", "2", "3"]).replace(`"result":2`, `"error":{"code":1,"message":"no"}`)
  ])("mean the same: %s", (text) => same(text))
})
