import { assert, describe, it } from "@effect/vitest"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import type { RpcResponse } from "@trigate/domain/evm/EvmProtocol"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import type { CacheCodec } from "@trigate/domain/operations/Operation"

const textOf = (body: string | Uint8Array) => typeof body === "string" ? body : Encoding.decodeLossy(body)

const comesBack = <A>(codec: CacheCodec<A>, answer: A) => {
  const content = codec.store(answer)
  assert.isDefined(content)
  assert.deepStrictEqual(codec.restore(content, 3), { ...answer, age: 3 })
  // as a store of text gives it back
  assert.deepStrictEqual(codec.restore({ head: content.head, body: textOf(content.body) }, 3), { ...answer, age: 3 })
  return content
}

describe("CacheCodec", () => {
  it("gives plain answers back, whoever gave them; keeps none but those of status 200", () => {
    comesBack(InfoProtocol.codec, UpstreamResponse.json("trading-api", 200, "{\"a\":\"₮\"}"))
    comesBack(InfoProtocol.codec, UpstreamResponse.plain("trading-node", 200, ""))
    for (const status of [201, 204, 400, 429, 500]) {
      assert.isUndefined(InfoProtocol.codec.store(UpstreamResponse.json("trading-api", status, "null")))
    }
    assert.deepStrictEqual(
      [200, 400, 422, 429, 500, 503].map((status) =>
        InfoProtocol.codec.faultOf(UpstreamResponse.json("trading-api", status, "null"))
      ),
      [undefined, "caller", "caller", "upstream", "upstream", "upstream"]
    )
  })

  it("keeps no receive buffer alive for a small answer", () => {
    const view = new Uint8Array(65_536).subarray(0, 10)
    const content = InfoProtocol.codec.store(UpstreamResponse.json("layer2", 200, "").with({ body: view }))
    assert.isDefined(content)
    assert.instanceOf(content.body, Uint8Array)
    assert.strictEqual(content.body.buffer.byteLength, 10)
  })

  it("gives JSON-RPC results back, digits and all; keeps no error", () => {
    comesBack(EvmProtocol.reads.codec, {
      _tag: "Result",
      result: Encoding.of("{\"n\":123456789012345678901234567890}")
    })
    const error = (code: number): RpcResponse => ({
      _tag: "Error",
      code,
      message: "x",
      error: Encoding.of(`{"code":${code}}`)
    })
    assert.isUndefined(EvmProtocol.reads.codec.store(error(-32000)))
    assert.deepStrictEqual(
      [-32603, -32005, -32007, 429, 503, -32602, -32000, 3].map((code) => EvmProtocol.reads.codec.faultOf(error(code))),
      ["upstream", "upstream", "upstream", "upstream", "upstream", "caller", "caller", "caller"]
    )
  })
})
