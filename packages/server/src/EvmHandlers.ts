/** `POST /evm`. */
import { batchLimit } from "@trigate/api/JsonRpcSchema"
import { evmOperations } from "@trigate/domain/EvmOperations"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import * as Effect from "effect/Effect"
import * as RpcRoute from "./RpcRoute.ts"

/** The route's handler, shared with the keyed one. */
export const route = Effect.map(TradingEvm, (evm) =>
  RpcRoute.make({
    operations: Object.values(evmOperations),
    envelope: RpcRoute.jsonRpcEnvelope,
    concurrency: batchLimit,
    relay: (operation, params, surface) => evm.relay({ operation, params, surface })
  }))
