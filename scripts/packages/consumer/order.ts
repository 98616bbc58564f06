/** Places a signed order, over undici and over Effect's fetch client. */
import { ActionBuilder, Signer } from "@trigate/signing"
import { ExchangeUpstream } from "@trigate/trading"
import { Clock, Console, Effect, Layer, Redacted } from "effect"

const options = { url: process.argv[2] ?? "http://localhost:8080", network: "mainnet" } as const
const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
const order = { asset: 0, side: "buy", priceInQuote: "60000", sizeInBase: "0.001" } as const

const program = Effect.gen(function*() {
  const nonce = yield* Clock.currentTimeMillis
  const signed = yield* ActionBuilder.placeOrders({ orders: [order] }, { nonce })
  const { submit } = yield* ExchangeUpstream.Exchange
  const { entries } = yield* submit(signed)
  yield* Console.log(entries.map(({ _tag }) => _tag).join())
})

const signer = Signer.layerPrivateKey(key)
await Effect.runPromise(Effect.provide(program, Layer.merge(ExchangeUpstream.layerUndici(options), signer)))
await Effect.runPromise(Effect.provide(program, Layer.merge(ExchangeUpstream.layerFetch(options), signer)))
