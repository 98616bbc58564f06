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
    const behind = <A, E, R>(params: { readonly endpointKey: string }, handled: Effect.Effect<A, E, R>) =>
      Effect.andThen(keys.check(Redacted.make(params.endpointKey)), handled)
    return handlers
      .handleRaw("exchange", ({ params, request }) => behind(params, exchange(request, "node")))
      .handleRaw("info", ({ params, request }) => behind(params, info(request, "node")))
      .handleRaw("evm", ({ params, request }) => behind(params, evm(request, "node")))
      .handle("getTokenData", ({ params, query }) => behind(params, tokenData(query.address, "node")))
      .handleRaw("tokenRpc", ({ params, request }) => behind(params, tokenRpc(request, "node")))
      .handleRaw("layer2", ({ params, request }) => behind(params, layer2(request, "node")))
      .handleRaw("root", ({ params, request }) => behind(params, layer2(request, "node")))
  })
)
