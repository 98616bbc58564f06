/** The typed client of a gateway, over fetch. */
import * as GatewayClient from "@trigate/client/GatewayClient"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

export type Client = GatewayClient.GatewayClient["Service"]

/** Makes the client of the gateway at `baseUrl`. If `endpointKey` is set, the request paths contain this key. */
export const makeClient = (baseUrl: string, endpointKey?: string): Effect.Effect<Client> => {
  const options = { baseUrl, ...(endpointKey === undefined ? {} : { endpointKey: Redacted.make(endpointKey) }) }
  return GatewayClient.GatewayClient.use(Effect.succeed).pipe(
    Effect.provide(GatewayClient.layer(options).pipe(Layer.provide(FetchHttpClient.layer)))
  )
}
