/**
 * The typed client of a gateway, derived from its contract and its operations.
 *
 * Paths come from the contract, requests, answers and errors from the operation declarations, so a method here has the
 * type of the embedded service's and fails with the same classes, also those that travelled inside a JSON-RPC error.
 */
import { GatewayApi } from "@trigate/api/GatewayApi"
import * as CandleWindow from "@trigate/domain/CandleWindow"
import { evmOperations } from "@trigate/domain/EvmOperations"
import { infoOperations } from "@trigate/domain/InfoOperations"
import { layer2Operations } from "@trigate/domain/Layer2Operations"
import type { Request } from "@trigate/domain/Operation"
import { getTokenData, tokenRpcOperations } from "@trigate/domain/TokenOperations"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Methods from "./Methods.ts"
import * as Transport from "./Transport.ts"

const { evm, exchange, info, layer2, tokens } = GatewayApi.groups

/** The client's methods over a transport. */
export const make = (transport: Transport.Transport) => {
  const candles = Methods.plain(transport, info.endpoints.query, infoOperations.candleSnapshot)
  const evmMethod = Methods.jsonRpc(transport, evm.endpoints.rpc)
  const layer2Method = Methods.jsonRpc(transport, layer2.endpoints.rpc)
  const tokenMethod = Methods.tokenRpc(transport, tokens.endpoints.rpc)
  return {
    /** Signed actions. */
    exchange: {
      submit: Methods.submit(transport, exchange.endpoints.submit)
    },
    /** Queries of the trading chain. */
    info: {
      spotMeta: Methods.plain(transport, info.endpoints.query, infoOperations.spotMeta),
      candleSnapshot: Effect.fn("GatewayClient.candleSnapshot")(function*(
        request: Request<typeof infoOperations.candleSnapshot>
      ) {
        const rows = yield* candles(request)
        return CandleWindow.fromSnapshot(request, rows, yield* Clock.currentTimeMillis)
      })
    },
    /** The trading chain's EVM. */
    evm: {
      getStorageAt: evmMethod(evmOperations.getStorageAt),
      gasPrice: evmMethod(evmOperations.gasPrice),
      bigBlockGasPrice: evmMethod(evmOperations.bigBlockGasPrice),
      usingBigBlocks: evmMethod(evmOperations.usingBigBlocks)
    },
    /** The token chain. */
    tokens: {
      getTokenData: Methods.query(transport, tokens.endpoints.getTokenData, getTokenData),
      packAddress: tokenMethod(tokenRpcOperations.packAddress),
      unpackAddress: tokenMethod(tokenRpcOperations.unpackAddress),
      detectAddress: tokenMethod(tokenRpcOperations.detectAddress)
    },
    /** The layer 2. */
    layer2: {
      getTransactionReceipt: layer2Method(layer2Operations.getTransactionReceipt)
    }
  }
}

/** A gateway's typed client. */
export class GatewayClient extends Context.Service<GatewayClient, ReturnType<typeof make>>()(
  "@trigate/client/GatewayClient"
) {}

/** The client of the gateway at `baseUrl`, over the `HttpClient` of the context (fetch in a browser, undici in Node). */
export const layer = (options: Transport.Options): Layer.Layer<GatewayClient, never, HttpClient.HttpClient> =>
  Layer.effect(
    GatewayClient,
    Effect.map(HttpClient.HttpClient, (client) => GatewayClient.of(make(Transport.make(client, options))))
  )
