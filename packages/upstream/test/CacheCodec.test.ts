import { assert, describe, it } from "@effect/vitest"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import type { TokenRpcAnswer } from "@trigate/domain/TokenRpc"
import * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as CacheCodec from "@trigate/upstream/CacheCodec"
import type { Codec } from "@trigate/upstream/CachedResponse"

const comesBack = <A>(codec: Codec<A>, answer: A) => {
  const content = codec.keep(answer)
  assert.isDefined(content)
  assert.deepStrictEqual(codec.of(content), answer)
  // as a store of text gives it back
  assert.deepStrictEqual(codec.of({ head: content.head, body: CacheCodec.textOf(content) }), answer)
  return content
}

describe("CacheCodec", () => {
  it("gives plain answers back, whoever gave them; keeps none but those of status 200", () => {
    comesBack(CacheCodec.relayed, UpstreamResponse.json("trading-api", 200, "{\"a\":\"₮\"}"))
    comesBack(CacheCodec.relayed, UpstreamResponse.plain("trading-node", 200, ""))
    for (const status of [201, 204, 400, 429, 500]) {
      assert.isUndefined(CacheCodec.relayed.keep(UpstreamResponse.json("trading-api", status, "null")))
    }
    assert.deepStrictEqual(
      [200, 400, 422, 429, 500, 503].map((status) =>
        CacheCodec.relayed.isFault(UpstreamResponse.json("trading-api", status, "null"))
      ),
      [false, false, false, true, true, true]
    )
  })

  it("keeps no receive buffer alive for a small answer", () => {
    const view = new Uint8Array(65_536).subarray(0, 10)
    const content = CacheCodec.relayed.keep({ ...UpstreamResponse.json("layer2", 200, ""), body: view })
    assert.isDefined(content)
    assert.instanceOf(content.body, Uint8Array)
    assert.strictEqual(content.body.buffer.byteLength, 10)
  })

  it("gives JSON-RPC results back, digits and all; keeps no error", () => {
    comesBack(CacheCodec.rpc, { _tag: "Result", result: "{\"n\":123456789012345678901234567890}" })
    const error = (code: number): RpcAnswer => ({ _tag: "Error", code, message: "x", error: `{"code":${code}}` })
    assert.isUndefined(CacheCodec.rpc.keep(error(-32000)))
    assert.deepStrictEqual(
      [-32603, -32005, -32007, 429, 503, -32602, -32000, 3].map((code) => CacheCodec.rpc.isFault(error(code))),
      [true, true, true, true, true, false, false, false]
    )
  })

  it("gives results of the token chain back with the members beside them; keeps no error", () => {
    const answer: TokenRpcAnswer = {
      _tag: "Result",
      result: "\"0:ab\"",
      extras: [["@extra", "\"1:2\\\":3\""], ["n", "12345678901234567890"]]
    }
    comesBack(CacheCodec.tokenRpc, answer)
    comesBack(CacheCodec.tokenRpc, { ...answer, extras: [] })
    const error = (code: number): TokenRpcAnswer => ({
      _tag: "Error",
      code,
      message: "x",
      data: undefined,
      retryAfter: undefined,
      extras: []
    })
    assert.isUndefined(CacheCodec.tokenRpc.keep(error(409)))
    assert.deepStrictEqual(
      [429, 500, 504, 542, 409, 416, 422].map((code) => CacheCodec.tokenRpc.isFault(error(code))),
      [true, true, true, true, false, false, false]
    )
  })
})
