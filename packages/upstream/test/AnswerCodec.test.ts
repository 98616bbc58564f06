import { assert, describe, it } from "@effect/vitest"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import * as Relayed from "@trigate/domain/Relayed"
import type { TokenRpcAnswer } from "@trigate/domain/TokenRpc"
import * as AnswerCodec from "@trigate/upstream/AnswerCodec"
import type { Codec } from "@trigate/upstream/Kept"

const comesBack = <A>(codec: Codec<A>, answer: A) => {
  const content = codec.keep(answer)
  assert.isDefined(content)
  assert.deepStrictEqual(codec.of(content), answer)
  // as a store of text gives it back
  assert.deepStrictEqual(codec.of({ head: content.head, body: AnswerCodec.textOf(content) }), answer)
  return content
}

describe("AnswerCodec", () => {
  it("gives plain answers back, whoever gave them; keeps none but those of status 200", () => {
    comesBack(AnswerCodec.relayed, Relayed.json("trading-api", 200, "{\"a\":\"₮\"}"))
    comesBack(AnswerCodec.relayed, Relayed.plain("trading-node", 200, ""))
    for (const status of [201, 204, 400, 429, 500]) {
      assert.isUndefined(AnswerCodec.relayed.keep(Relayed.json("trading-api", status, "null")))
    }
    assert.deepStrictEqual(
      [200, 400, 422, 429, 500, 503].map((status) =>
        AnswerCodec.relayed.isFault(Relayed.json("trading-api", status, "null"))
      ),
      [false, false, false, true, true, true]
    )
  })

  it("keeps no receive buffer alive for a small answer", () => {
    const view = new Uint8Array(65_536).subarray(0, 10)
    const content = AnswerCodec.relayed.keep({ ...Relayed.json("layer2", 200, ""), body: view })
    assert.isDefined(content)
    assert.instanceOf(content.body, Uint8Array)
    assert.strictEqual(content.body.buffer.byteLength, 10)
  })

  it("gives JSON-RPC results back, digits and all; keeps no error", () => {
    comesBack(AnswerCodec.rpc, { _tag: "Result", result: "{\"n\":123456789012345678901234567890}" })
    const error = (code: number): RpcAnswer => ({ _tag: "Error", code, message: "x", error: `{"code":${code}}` })
    assert.isUndefined(AnswerCodec.rpc.keep(error(-32000)))
    assert.deepStrictEqual(
      [-32603, -32005, -32007, 429, 503, -32602, -32000, 3].map((code) => AnswerCodec.rpc.isFault(error(code))),
      [true, true, true, true, true, false, false, false]
    )
  })

  it("gives results of the token chain back with the members beside them; keeps no error", () => {
    const answer: TokenRpcAnswer = {
      _tag: "Result",
      result: "\"0:ab\"",
      extras: [["@extra", "\"1:2\\\":3\""], ["n", "12345678901234567890"]]
    }
    comesBack(AnswerCodec.tokenRpc, answer)
    comesBack(AnswerCodec.tokenRpc, { ...answer, extras: [] })
    const error = (code: number): TokenRpcAnswer => ({
      _tag: "Error",
      code,
      message: "x",
      data: undefined,
      retryAfter: undefined,
      extras: []
    })
    assert.isUndefined(AnswerCodec.tokenRpc.keep(error(409)))
    assert.deepStrictEqual(
      [429, 500, 504, 542, 409, 416, 422].map((code) => AnswerCodec.tokenRpc.isFault(error(code))),
      [true, true, true, true, false, false, false]
    )
  })
})
