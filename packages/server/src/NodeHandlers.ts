/** The node provider's surface: each route of the gateway again, behind the caller's endpoint key. */
import { GatewayApi } from "@trigate/api/GatewayApi"
import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Redacted from "effect/Redacted"
import { CallerKeys } from "./CallerKeys.ts"
import * as EvmHandlers from "./EvmHandlers.ts"
import * as ExchangeHandlers from "./ExchangeHandlers.ts"
import * as InfoHandlers from "./InfoHandlers.ts"
import * as Layer2Handlers from "./Layer2Handlers.ts"
import * as TokensHandlers from "./TokensHandlers.ts"

export const layer = HttpApiBuilder.group(
  GatewayApi,
  "node",
  Effect.fnUntraced(function*(handlers) {
    const keys = yield* CallerKeys
    const exchange = yield* ExchangeHandlers.route
    const info = yield* InfoHandlers.route
    const evm = yield* EvmHandlers.route
    const layer2 = yield* Layer2Handlers.route
    const tokenRpc = yield* TokensHandlers.rpcRoute
    const tokenData = yield* TokensHandlers.tokenDataRoute
    const admitted = (params: { readonly endpointKey: string }) => keys.check(Redacted.make(params.endpointKey))
    const behind = <A, E, R>(params: { readonly endpointKey: string }, handled: Effect.Effect<A, E, R>) =>
      Effect.andThen(admitted(params), handled)
    return handlers
      .handleRaw("exchange", ({ params, request }) => behind(params, exchange(request, "node")))
      .handleRaw("info", ({ params, request }) => behind(params, info(request, "node")))
      .handleRaw("evm", ({ params, request }) => evm(request, "node", admitted(params)))
      .handle("getTokenData", ({ params, query }) => behind(params, tokenData(query.address, "node")))
      .handleRaw("tokenRpc", ({ params, request }) => tokenRpc(request, "node", admitted(params)))
      .handleRaw("layer2", ({ params, request }) => layer2(request, "node", admitted(params)))
      .handleRaw("root", ({ params, request }) => layer2(request, "node", admitted(params)))
  })
)
