/** Orders through a gateway: a nonce, a signature, one attempt, and the outcome of a lost response. */
import { Connection } from "@trigate/client/Connection"
import * as GatewayClient from "@trigate/client/GatewayClient"
import type { NonceSource } from "@trigate/signing/NonceSource"
import * as Signing from "@trigate/signing/Orders"
import { Orders } from "@trigate/signing/Orders"
import type { Signer } from "@trigate/signing/Signer"
import type { Venue } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

export { Orders } from "@trigate/signing/Orders"

/** Makes `Orders` from the calls of a gateway. */
export const make = (
  { exchange: { outcome, resolve, submit }, info }: Pick<GatewayClient.Calls, "exchange" | "info">
) => Signing.make({ submit, resolve, outcome, info })

/**
 * Provides `Orders` over the gateway of the context, for the `Signer` of the context.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Connection } from "@trigate/client"
 * import { layer, Orders } from "@trigate/sdk/Orders"
 * import { NonceSource, Signer, VenueProfile } from "@trigate/signing"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = Effect.gen(function*() {
 *   const orders = yield* Orders
 *   const placed = yield* orders.place({ coin: "ETH", side: "buy", sizeInBase: "0.2", priceInQuote: "1100.5" })
 *   yield* Console.log(placed._tag, placed.settledBy)
 * })
 *
 * const orders = layer.pipe(Layer.provide([
 *   Connection.layerFetch({ baseUrl: "http://localhost:8080" }),
 *   NonceSource.layerMemory(),
 *   Signer.layerPrivateKey(key),
 *   VenueProfile.layer("mainnet")
 * ]))
 *
 * await Effect.runPromise(Effect.provide(program, orders))
 * ```
 * ```text
 * Resting response
 * ```
 */
export const layer: Layer.Layer<Orders, never, Connection | NonceSource | Signer | Venue> = Layer.effect(
  Orders,
  Effect.flatMap(Connection, (connection) => make(GatewayClient.make(connection)))
)
