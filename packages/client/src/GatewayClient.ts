/**
 * The typed client of a gateway, derived from its contract and its operations.
 *
 * Paths come from the contract, requests, answers and errors from the operation declarations, so a method here has the
 * type of the embedded service's and fails with the same classes, also those that travelled inside a JSON-RPC error.
 */
import { GatewayApi } from "@trigate/api/GatewayApi"
import { Readiness } from "@trigate/api/HealthApi"
import * as CandleWindow from "@trigate/domain/CandleWindow"
import { evmOperations } from "@trigate/domain/EvmOperations"
import { infoOperations } from "@trigate/domain/InfoOperations"
import { Inspection } from "@trigate/domain/Inspection"
import { layer2Operations } from "@trigate/domain/Layer2Operations"
import type { AnyCodec, MethodClass, Operation, Request } from "@trigate/domain/Operation"
import type { TokenRpcOperation } from "@trigate/domain/TokenOperations"
import { getTokenData, tokenRpcOperations } from "@trigate/domain/TokenOperations"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Methods from "./Methods.ts"
import * as Transport from "./Transport.ts"

const { evm, exchange, health, info, layer2, tokens } = GatewayApi.groups

/** The client's methods over the routes of the chains and over those that no endpoint key stands before. */
export const make = (transport: Transport.Transport, own: Transport.Transport = transport) => {
  const candles = Methods.plain(transport, info.endpoints.query, infoOperations.candleSnapshot)
  const evmMethod = Methods.jsonRpc(transport, evm.endpoints.rpc)
  const layer2Method = Methods.jsonRpc(transport, layer2.endpoints.rpc)
  const tokenMethod = Methods.tokenRpc(transport, tokens.endpoints.rpc)
  return {
    /** Signed actions. */
    exchange: {
      submit: Methods.submit(transport, exchange.endpoints.submit),
      /** What became of an action after `OutcomeUnknown`, found out by sending the identical bytes again. */
      resolve: Methods.resolve(transport, exchange.endpoints.submit),
      /**
       * What the gateway sees in a signed action: its form, its signers, its nonce; nothing is relayed.
       *
       * With the address that should have signed it also says why the signature is another's.
       */
      inspect: Methods.inspect(own, exchange.endpoints.inspect, Inspection)
    },
    /** Queries of the trading chain. */
    info: {
      spotMeta: Methods.plain(transport, info.endpoints.query, infoOperations.spotMeta),
      candleSnapshot: Effect.fn("GatewayClient.candleWindow")(function*(
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
    /** The token chain; addresses are checked before anything is sent. */
    tokens: {
      getTokenData: Methods.tokenQuery(transport, tokens.endpoints.getTokenData, getTokenData),
      /** What the contract at an address is, of any of the four kinds, as the chain itself answers. */
      getTokenContract: tokenMethod(tokenRpcOperations.getTokenData),
      packAddress: tokenMethod(tokenRpcOperations.packAddress),
      unpackAddress: tokenMethod(tokenRpcOperations.unpackAddress),
      detectAddress: tokenMethod(tokenRpcOperations.detectAddress),
      /** Any method of `tokenRpcOperations`; the result of most is `unknown`, with integers beyond 2^53 as `bigint`. */
      call: <Request extends AnyCodec, Response extends AnyCodec, const Failures extends ReadonlyArray<AnyCodec>>(
        operation: TokenRpcOperation & Operation<string, MethodClass, Request, Response, Failures>,
        params: Request["Encoded"]
      ) => tokenMethod<Request, Response, Failures>(operation)(params)
    },
    /** The layer 2. */
    layer2: {
      getTransactionReceipt: layer2Method(layer2Operations.getTransactionReceipt)
    },
    /** The gateway itself. */
    health: {
      /** Whether it takes traffic, and how each chain is served; a gateway that drains is an answer, too. */
      ready: Methods.state(own, health.endpoints.ready, Readiness)
    }
  }
}

/** A gateway's typed client. */
export class GatewayClient extends Context.Service<GatewayClient, ReturnType<typeof make>>()(
  "@trigate/client/GatewayClient"
) {}

/**
 * The client of the gateway at `baseUrl`, over the `HttpClient` of the context (fetch in a browser, undici in Node).
 *
 * Neither a deadline nor a retry is added: put `Effect.timeout` and `Effect.retry` around reads. An `HttpClient` that
 * retries by itself would also send signed actions again.
 */
export const layer = (options: Transport.Options): Layer.Layer<GatewayClient, never, HttpClient.HttpClient> =>
  Layer.effect(
    GatewayClient,
    Effect.map(
      HttpClient.HttpClient,
      (client) => GatewayClient.of(make(Transport.make(client, options), Transport.own(client, options)))
    )
  )
