/** `TokenChain` alone, over each transport: what is sent. */
import { assert, describe, it } from "@effect/vitest"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { say } from "@trigate/testing/Reactions"
import * as TokenChainUpstream from "@trigate/tokens/TokenChainUpstream"
import * as TransportLayers from "@trigate/upstream/transport/HttpTransport"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"

const layers: {
  readonly [over: string]: (options: TokenChainUpstream.Options) => Layer.Layer<TokenChainUpstream.TokenChain>
} = {
  "undici": TokenChainUpstream.layerUndici,
  "fetch": TokenChainUpstream.layerFetch,
  "an HttpClient": (options) => Layer.provide(TokenChainUpstream.layerHttpClient(options), FetchHttpClient.layer),
  "a transport": (options) => Layer.provide(TokenChainUpstream.layer(options), TransportLayers.layerUndici())
}

const address = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"

describe("TokenChain alone", () => {
  for (const [over, layer] of Object.entries(layers)) {
    it.live(`reads over ${over}, in one request`, () =>
      Effect.gen(function*() {
        const node = yield* faultyUpstream(say({ body: `{"ok":true,"result":"0:ab"}` }))
        const read = TokenChainUpstream.TokenChain.use(({ unpackAddress }) => unpackAddress({ address }))
        assert.strictEqual(yield* Effect.provide(read, layer({ url: node.url })), "0:ab")
        assert.deepStrictEqual(
          node.requests.map(({ body }) => body),
          [`{"jsonrpc":"2.0","id":1,"method":"unpackAddress","params":{"address":"${address}"}}`]
        )
      }))
  }
})
