/** `Layer2` alone, over each transport: what is sent. */
import { assert, describe, it } from "@effect/vitest"
import * as Layer2Upstream from "@trigate/evm/Layer2Upstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { say } from "@trigate/testing/Reactions"
import * as TransportLayers from "@trigate/upstream/transport/HttpTransport"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"

const layers: { readonly [over: string]: (options: Layer2Upstream.Options) => Layer.Layer<Layer2Upstream.Layer2> } = {
  "undici": Layer2Upstream.layerUndici,
  "fetch": Layer2Upstream.layerFetch,
  "an HttpClient": (options) => Layer.provide(Layer2Upstream.layerHttpClient(options), FetchHttpClient.layer),
  "a transport": (options) => Layer.provide(Layer2Upstream.layer(options), TransportLayers.layerUndici())
}

describe("Layer2 alone", () => {
  for (const [over, layer] of Object.entries(layers)) {
    it.live(`reads over ${over}, in one request`, () =>
      Effect.gen(function*() {
        const node = yield* faultyUpstream(say({ body: `{"jsonrpc":"2.0","id":1,"result":"0x14"}` }))
        const read = Layer2Upstream.Layer2.use(({ blockNumber }) => blockNumber())
        assert.strictEqual(yield* Effect.provide(read, layer({ url: node.url })), 20n)
        assert.deepStrictEqual(
          node.requests.map(({ body }) => body),
          [`{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}`]
        )
      }))
  }
})
