import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { InvalidAddress, InvalidRequest, TokenNotFound, UpstreamRateLimited } from "@trigate/domain/errors/GatewayError"
import type { GatewayError } from "@trigate/domain/errors/GatewayError"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import { TonAddress } from "@trigate/domain/tokens/TokenData"
import * as TokenOperations from "@trigate/domain/tokens/TokenOperations"
import * as TokenRpc from "@trigate/domain/unstable/tokens/TokenProtocol"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import methods from "./fixtures/ton-address-methods.json" with { type: "json" }
import errors from "./fixtures/ton-errors.json" with { type: "json" }
import usdt from "./fixtures/ton-getTokenData-usdt.json" with { type: "json" }

const upstream = "token-chain"
const address = TonAddress.make("EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs")
const { getTokenData, packAddress, unpackAddress } = TokenOperations.tokenRpcOperations

const answer = (status: number, body: string, retryAfter?: number) =>
  TokenRpc.readResponse(UpstreamResponse.json(upstream, status, body).with({ retryAfter }))

/** The typed error that a body ends in when `getTokenData` was asked. */
const failure = (status: number, body: string) =>
  Effect.flip(
    Effect.flatMap(answer(status, body), (read) => TokenRpc.makeReader(getTokenData)({ address }, upstream, read))
  )

const textFields = (error: { readonly message: string }) => error.message

describe("readAnswer", () => {
  it.effect("reads the newer servers' answer: no id, no jsonrpc, an extra kept raw", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* answer(200, `{"ok":true,"result":"1400", "@extra":"17:5:0.59"}`), {
        _tag: "Result",
        result: Json.of(`"1400"`),
        extras: [["@extra", `"17:5:0.59"`]]
      })
    }))

  it.effect("reads the older servers' answer: id turned into a text", () =>
    Effect.gen(function*() {
      const body = `{"ok":true,"result":{"total_supply":123456789012345678901234567890},"id":"1","jsonrpc":"2.0"}`
      assert.deepStrictEqual(yield* answer(200, body), {
        _tag: "Result",
        result: Json.of(`{"total_supply":123456789012345678901234567890}`),
        extras: []
      })
    }))

  it.effect("reads a plain JSON-RPC answer and falsy results", () =>
    Effect.gen(function*() {
      for (const result of ["0", "false", `""`, "null", "[]"]) {
        const expected = { _tag: "Result", result: Json.of(result), extras: [] } as const
        assert.deepStrictEqual(yield* answer(200, `{"jsonrpc":"2.0","id":1,"result":${result}}`), expected)
        assert.deepStrictEqual(yield* answer(200, `{"ok":true,"result":${result}}`), expected)
      }
    }))

  it.effect("reads tonlib's own error out of a result", () =>
    Effect.gen(function*() {
      const body = `{"ok":true,"result":{"@type":"error","code":500,"message":"LITE_SERVER_UNKNOWN"}}`
      const read = yield* answer(200, body)
      assert(read._tag === "Error")
      assert.strictEqual(read.code, 500)
      assert.strictEqual(read.message, "LITE_SERVER_UNKNOWN")
    }))

  it.effect("reads a JSON-RPC error object and a text that is not JSON", () =>
    Effect.gen(function*() {
      const rpc = yield* answer(
        200,
        `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the method does not exist"}}`
      )
      assert(rpc._tag === "Error")
      assert.deepStrictEqual([rpc.code, rpc.message], [-32601, "the method does not exist"])
      const plain = yield* answer(504, "upstream request timeout\n")
      assert(plain._tag === "Error")
      assert.deepStrictEqual([plain.code, plain.message], [504, "upstream request timeout"])
      const empty = yield* answer(429, "", 7)
      assert(empty._tag === "Error")
      assert.deepStrictEqual([empty.code, empty.message, empty.retryAfter], [429, "HTTP 429", 7])
    }))

  for (const body of ["not JSON", "[]", "null", "1", "{}", `{"ok":true}`]) {
    it.effect(`refuses ${body} under HTTP 200`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(answer(200, body))
        assert.strictEqual(error._tag, "UpstreamMalformed")
        assert.strictEqual(error.upstream, upstream)
      }))
  }

  it.effect("passes on no data that is no error of ours", () =>
    Effect.gen(function*() {
      const read = yield* answer(200, `{"ok":false,"error":"x","code":500,"data":{"_tag":"Anything"}}`)
      assert(read._tag === "Error")
      assert.isUndefined(read.data)
    }))
})

describe("answers to callers", () => {
  it.effect("go out with the caller's own id, truthy ok and the extras", () =>
    Effect.gen(function*() {
      const read = yield* answer(200, `{"ok":true,"result":12345678901234567890,"@extra":"e","id":"7"}`)
      assert.strictEqual(
        TokenRpc.answerText("9007199254740993", read),
        `{"ok":true,"result":12345678901234567890,"@extra":"e","jsonrpc":"2.0","id":9007199254740993}`
      )
      assert.strictEqual(
        TokenRpc.answerText(`"getblock.io"`, read),
        `{"ok":true,"result":12345678901234567890,"@extra":"e","jsonrpc":"2.0","id":"getblock.io"}`
      )
      assert.strictEqual(
        TokenRpc.answerText(undefined, read),
        `{"ok":true,"result":12345678901234567890,"@extra":"e","jsonrpc":"2.0"}`
      )
    }))

  it.effect("carry a failure's text in error, even where the server put it in result", () =>
    Effect.gen(function*() {
      const read = yield* answer(429, `{"ok":false,"result":"Ratelimit exceed","code":429}`)
      assert.strictEqual(
        TokenRpc.answerText("1", read),
        `{"ok":false,"error":"Ratelimit exceed","code":429,"jsonrpc":"2.0","id":1}`
      )
    }))

  it.effect("of every recorded failure have ok false, a text in error, a code and no result", () =>
    Effect.gen(function*() {
      for (const row of errors.errors) {
        const read = yield* answer(row.httpStatus ?? 200, JSON.stringify(row.body))
        const written = JSON.parse(TokenRpc.answerText("1", read)) as Record<string, unknown>
        assert.strictEqual(written["ok"], false)
        assert.isTrue(typeof written["error"] === "string" && written["error"] !== "")
        assert.isTrue(Number.isInteger(written["code"]))
        assert.isFalse("result" in written)
      }
    }))
})

describe("errorText", () => {
  it("writes a typed error as a failure envelope", () => {
    const error = new InvalidAddress({ address: "EQ", reason: "length is 2", detail: "Not an address" })
    assert.deepStrictEqual(JSON.parse(TokenRpc.errorText(error)(`"a"`)), {
      ok: false,
      error: "Not an address",
      code: -32602,
      data: {
        _tag: "InvalidAddress",
        type: "urn:trigate:problem:invalid-address",
        status: 400,
        title: "Invalid address",
        detail: "Not an address",
        address: "EQ",
        reason: "length is 2"
      },
      jsonrpc: "2.0",
      id: "a"
    })
  })

  const travelling: ReadonlyArray<GatewayError> = [
    new InvalidAddress({ address: "EQ", reason: "length is 2" }),
    new TokenNotFound({ address, contractType: "nft_item" }),
    new UpstreamRateLimited({ upstream, retryAfter: 3, detail: "slow down" }),
    new InvalidRequest({ errors: [{ path: ["params", "seqno"], message: "Expected a number" }] })
  ]
  for (const error of travelling) {
    it.effect(`brings ${error._tag} back as it was, from the envelope and from a problem document`, () =>
      Effect.gen(function*() {
        const back = yield* failure(200, TokenRpc.errorText(error)("1"))
        assert.deepStrictEqual(back, error)
        assert.strictEqual(back.constructor, error.constructor)
        const problem = /"data":(.*),"jsonrpc"/u.exec(TokenRpc.errorText(error)("1"))?.[1] ?? ""
        assert.deepStrictEqual(yield* failure(error.status, problem), error)
      }))
  }
})

describe("readerOf", () => {
  // one row for each recorded or documented failure, in the file's order
  const table: ReadonlyArray<readonly [error: string, tag: GatewayError["_tag"]]> = [
    ["Verification with Jetton master failed", "UpstreamUnavailable"],
    ["No working liteservers with ls_index=None, archival=None", "UpstreamUnavailable"],
    ["VALIDATE_ACCOUNT_STATEFailed to unpack Account", "UpstreamUnavailable"],
    ["Ratelimit exceed", "UpstreamRateLimited"],
    ["Ratelimit exceeded", "UpstreamRateLimited"],
    ["API key does not exist", "UpstreamForbidden"],
    ["Network not allowed", "UpstreamForbidden"],
    ["transaction not found", "InvalidRequest"],
    ["Not Found", "UnsupportedMethod"],
    ["Smart contract is not Jetton or NFT", "TokenNotFound"],
    ["Smart contract is not a Jetton or NFT", "TokenNotFound"],
    ["empty address", "InvalidAddress"],
    ["failed to parse address", "InvalidAddress"],
    ["Incorrect address", "InvalidAddress"],
    ["Unknown method", "UnsupportedMethod"],
    ["Liteserver timeout", "UpstreamTimeout"],
    ["Failed to unpack token data", "UpstreamUnavailable"],
    ["LITE_SERVER_NETWORK timeout", "UpstreamTimeout"],
    ["Unsupported stack entry type: <type>", "UpstreamUnavailable"],
    ["LITE_SERVER_NETWORKtimeout for adnl query query", "UpstreamTimeout"]
  ]

  it("knows every recorded failure", () => {
    assert.strictEqual(errors.errors.length, table.length)
  })

  table.forEach(([text, tag], index) => {
    it.effect(`reads "${text}" as ${tag}`, () =>
      Effect.gen(function*() {
        const row = errors.errors[index]
        assert.isDefined(row)
        const error = yield* failure(row.httpStatus ?? row.body.code ?? 200, JSON.stringify(row.body))
        assert.strictEqual(error._tag, tag)
        assert.include(textFields(error), text)
        if (error._tag === "TokenNotFound" || error._tag === "InvalidAddress") {
          assert.strictEqual(error.address, address)
        }
        if (error._tag === "UnsupportedMethod") assert.strictEqual(error.method, "getTokenData")
        if (error._tag === "UpstreamTimeout") assert.strictEqual(error.deadline, 10_000)
      }))
  })

  const noTokens = [
    [409, "whatever the words are"],
    [503, "Smart contract is not Jetton or NFT"]
  ] as const
  for (const [code, error] of noTokens) {
    it.effect(`knows that ${code} "${error}" is no token`, () =>
      Effect.gen(function*() {
        const found = yield* failure(code, JSON.stringify({ ok: false, error, code }))
        assert(found._tag === "TokenNotFound")
        assert.strictEqual(found.contractType, "none")
      }))
  }

  it.effect("does not speak of tokens where another method was asked", () =>
    Effect.gen(function*() {
      const read = yield* answer(409, `{"ok":false,"error":"Smart contract is not Jetton or NFT","code":409}`)
      const error = yield* Effect.flip(TokenRpc.makeReader(packAddress)({ address }, upstream, read))
      assert.strictEqual(error._tag, "UpstreamUnavailable")
    }))

  it.effect("keeps the seconds that a reached rate limit asks to wait", () =>
    Effect.gen(function*() {
      const read = yield* answer(429, `{"ok":false,"result":"Ratelimit exceed","code":429}`, 2)
      const error = yield* Effect.flip(TokenRpc.makeReader(packAddress)({ address }, upstream, read))
      assert(error._tag === "UpstreamRateLimited")
      assert.strictEqual(error.retryAfter, 2)
    }))

  it.effect("reads the recorded answers of the address methods", () =>
    Effect.gen(function*() {
      for (const { body, method } of methods.calls) {
        if (method === "detectAddress") continue
        const operation = method === "packAddress" ? packAddress : unpackAddress
        const read = yield* answer(200, JSON.stringify(body))
        assert.strictEqual(yield* TokenRpc.makeReader(operation)({ address }, upstream, read), body.result)
      }
    }))

  it.effect("reads the recorded getTokenData into the kind of contract, and a wrong shape as the upstream's fault", () =>
    Effect.gen(function*() {
      const read = yield* answer(200, JSON.stringify(usdt.body))
      const contract = yield* TokenRpc.makeReader(getTokenData)({ address }, upstream, read)
      assert(contract.contract_type === "jetton_master")
      assert.strictEqual(contract.total_supply, 1030000002000000n)
      const error = yield* failure(200, `{"ok":true,"result":{"contract_type":"jetton_master"}}`)
      assert.strictEqual(error._tag, "UpstreamMalformed")
    }))
})

describe("readCall", () => {
  const read = (text: string) => TokenRpc.readCall(Json.of(text))

  it("keeps the id and the params as they came", () => {
    assert.deepStrictEqual(
      read(`{"jsonrpc":"2.0","id":9007199254740993,"method":"shards","params":{"seqno":1}}`),
      Result.succeed({
        id: "9007199254740993",
        method: "shards",
        params: Json.of(`{"seqno":1}`)
      })
    )
    assert.deepStrictEqual(
      read(`{"method":"getMasterchainInfo"}`),
      Result.succeed({
        id: undefined,
        method: "getMasterchainInfo",
        params: Json.of("{}")
      })
    )
    assert.strictEqual(Result.getOrThrow(read(`{"id":null,"method":"shards"}`)).id, "null")
  })

  const refused = [
    ["[]", []],
    ["1", []],
    [`{"id":1}`, ["method"]],
    [`{"id":1,"method":2}`, ["method"]],
    [`{"id":1,"method":"shards","jsonrpc":"1.0"}`, ["jsonrpc"]],
    [`{"id":{},"method":"shards"}`, ["id"]],
    [`{"id":true,"method":"shards"}`, ["id"]]
  ] as const
  for (const [text, path] of refused) {
    it(`refuses ${text}`, () => {
      const error = Result.getOrThrow(Result.flip(read(text)))
      assert.strictEqual(error._tag, "InvalidRequest")
      assert.deepStrictEqual(error.errors[0]?.path, path)
    })
  }

  it.effect.prop("gives back any id in the answer", {
    id: Schema.Union([Schema.String, Schema.Int, Schema.Null]),
    result: Schema.String
  }, ({ id, result }) =>
    Effect.gen(function*() {
      const call = yield* Effect.fromResult(read(JSON.stringify({ id, method: "shards" })))
      const answered = yield* answer(200, JSON.stringify({ ok: true, result }))
      assert.strictEqual(
        TokenRpc.answerText(call.id, answered),
        JSON.stringify({ ok: true, result, jsonrpc: "2.0", id })
      )
    }))
})
