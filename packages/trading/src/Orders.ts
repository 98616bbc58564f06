/** Orders over the embedded services: a nonce, a signature, one attempt, and the outcome of a lost response. */
import type { NonceSource } from "@trigate/signing/NonceSource"
import { make, Orders } from "@trigate/signing/Orders"
import type { Signer } from "@trigate/signing/Signer"
import type { Venue } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Exchange } from "./Exchange.ts"
import { Info } from "./Info.ts"

export {
  type NewOrder,
  type OpenOrder,
  type OrderFailure,
  Orders,
  type Placed,
  type PlacedAll
} from "@trigate/signing/Orders"

/**
 * Provides `Orders` over `Exchange` and `Info`, for the `Signer` of the context.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { NonceSource, Signer } from "@trigate/signing"
 * import { ExchangeUpstream, InfoUpstream, Orders } from "@trigate/trading"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const url = "http://localhost:8080"
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = Effect.gen(function*() {
 *   const { place } = yield* Orders.Orders
 *   const { _tag } = yield* place({ coin: "ETH", side: "buy", sizeInBase: "0.2", priceInQuote: "1100.5" })
 *   yield* Console.log(_tag)
 * })
 *
 * const orders = Orders.layer().pipe(Layer.provide(Layer.mergeAll(
 *   ExchangeUpstream.layerFetch({ url, network: "mainnet" }),
 *   InfoUpstream.layerFetch({ url }),
 *   NonceSource.layerMemory(),
 *   Signer.layerPrivateKey(key)
 * )))
 *
 * await Effect.runPromise(Effect.provide(program, orders))
 * ```
 * ```text
 * Resting
 * ```
 */
export const layer = (): Layer.Layer<Orders, never, Exchange | Info | NonceSource | Signer | Venue> =>
  Layer.effect(
    Orders,
    Effect.flatMap(Effect.all([Exchange, Info]), ([{ outcome, resolve, submit }, info]) =>
      make({ submit, resolve, outcome, info }))
  )
