/** One service alone, over each transport: what is sent, and what a program needs beside it. */
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Signer from "@trigate/signing/Signer"
import type { Venue } from "@trigate/signing/VenueProfile"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { say } from "@trigate/testing/Reactions"
import * as ExchangeUpstream from "@trigate/trading/ExchangeUpstream"
import * as InfoUpstream from "@trigate/trading/InfoUpstream"
import * as TradingEvmUpstream from "@trigate/trading/TradingEvmUpstream"
import * as TransportLayers from "@trigate/upstream/transport/HttpTransport"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

const infoLayers: { readonly [over: string]: (options: InfoUpstream.Options) => Layer.Layer<InfoUpstream.Info> } = {
  "undici": InfoUpstream.layerUndici,
  "fetch": InfoUpstream.layerFetch,
  "an HttpClient": (options) => Layer.provide(InfoUpstream.layerHttpClient(options), FetchHttpClient.layer),
  "a transport": (options) => Layer.provide(InfoUpstream.layer(options), TransportLayers.layerUndici())
}

const exchangeLayers: {
  readonly [over: string]: (options: ExchangeUpstream.Options) => Layer.Layer<ExchangeUpstream.Exchange | Venue>
} = {
  "undici": ExchangeUpstream.layerUndici,
  "fetch": ExchangeUpstream.layerFetch,
  "an HttpClient": (options) => Layer.provide(ExchangeUpstream.layerHttpClient(options), FetchHttpClient.layer),
  "a transport": (options) => Layer.provide(ExchangeUpstream.layer(options), TransportLayers.layerUndici())
}

const evmLayers: {
  readonly [over: string]: (options: TradingEvmUpstream.Options) => Layer.Layer<TradingEvmUpstream.TradingEvm>
} = {
  "undici": TradingEvmUpstream.layerUndici,
  "fetch": TradingEvmUpstream.layerFetch,
  "an HttpClient": (options) => Layer.provide(TradingEvmUpstream.layerHttpClient(options), FetchHttpClient.layer),
  "a transport": (options) => Layer.provide(TradingEvmUpstream.layer(options), TransportLayers.layerUndici())
}

const mids = { BTC: "68000.0" }
const order = { asset: 0, side: "buy", priceInQuote: "60000", sizeInBase: "0.001" } as const
const signer = Signer.layerPrivateKey(Redacted.make(keys.trader.privateKey))

describe("Info alone", () => {
  for (const [over, layer] of Object.entries(infoLayers)) {
    it.live(`reads over ${over}, in one request`, () =>
      Effect.gen(function*() {
        const venue = yield* faultyUpstream(say({ body: JSON.stringify(mids) }))
        const read = InfoUpstream.Info.use(({ allMids }) => allMids())
        assert.deepStrictEqual(yield* Effect.provide(read, layer({ url: venue.url })), mids)
        assert.deepStrictEqual(venue.requests.map(({ body }) => body), [`{"type":"allMids"}`])
      }))
  }
})

describe("TradingEvm alone", () => {
  for (const [over, layer] of Object.entries(evmLayers)) {
    it.live(`reads over ${over}, in one request`, () =>
      Effect.gen(function*() {
        const node = yield* faultyUpstream(say({ body: `{"jsonrpc":"2.0","id":1,"result":"0x14"}` }))
        const read = TradingEvmUpstream.TradingEvm.use(({ blockNumber }) => blockNumber())
        assert.strictEqual(yield* Effect.provide(read, layer({ url: node.url })), 20n)
        assert.deepStrictEqual(
          node.requests.map(({ body }) => body),
          [`{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}`]
        )
      }))
  }
})

describe("Exchange alone", () => {
  for (const [over, layer] of Object.entries(exchangeLayers)) {
    it.live(`submits a signed order over ${over}, once`, () =>
      Effect.gen(function*() {
        const response = { type: "order", data: { statuses: [{ resting: { oid: 7 } }] } }
        const venue = yield* faultyUpstream(say({ body: JSON.stringify({ status: "ok", response }) }))
        const { entries } = yield* Effect.gen(function*() {
          const nonce = yield* Clock.currentTimeMillis
          const signed = yield* ActionBuilder.placeOrders({ orders: [order] }, { nonce })
          const { submit } = yield* ExchangeUpstream.Exchange
          return yield* submit(signed)
        }).pipe(Effect.provide(Layer.merge(layer({ url: venue.url, network: "mainnet" }), signer)))
        assert.deepStrictEqual(entries, [{ _tag: "Resting", oid: 7 }])
        assert.lengthOf(venue.requests, 1)
      }))
  }

  it.live("takes what is signed for another network for another signer's", () =>
    Effect.gen(function*() {
      const venue = yield* faultyUpstream(say({ body: `{"status":"ok","response":{"type":"default"}}` }))
      const url = venue.url
      const signed = yield* Effect.flatMap(
        Clock.currentTimeMillis,
        (nonce) => ActionBuilder.delegate({ validator: keys.validator.address, wei: 1n, nonce })
      ).pipe(Effect.provide(Layer.merge(ExchangeUpstream.layerFetch({ url, network: "testnet" }), signer)))
      const submitted = ExchangeUpstream.Exchange.use(({ submit }) => submit(signed)).pipe(
        Effect.provide(ExchangeUpstream.layerFetch({ url, network: "mainnet", signers: [keys.trader.address] })),
        Effect.catchReason("RequestError", "InvalidSignature", ({ _tag }) => Effect.succeed(_tag))
      )
      assert.strictEqual(yield* submitted, "InvalidSignature")
      assert.lengthOf(venue.requests, 0)
    }))
})
