import { assert, describe, it } from "@effect/vitest"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as CacheCodec from "@trigate/upstream/CacheCodec"
import type { Codec } from "@trigate/upstream/CachedResponse"

const comesBack = <A>(codec: Codec<A>, answer: A) => {
  const content = codec.keep(answer)
  assert.isDefined(content)
  assert.deepStrictEqual(codec.of(content, 3), { ...answer, age: 3 })
  // as a store of text gives it back
  assert.deepStrictEqual(codec.of({ head: content.head, body: CacheCodec.textOf(content) }, 3), { ...answer, age: 3 })
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
    const content = CacheCodec.relayed.keep(UpstreamResponse.json("layer2", 200, "").with({ body: view }))
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
})
