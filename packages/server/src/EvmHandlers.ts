/** `POST /evm`. */
import { configuredRead } from "@trigate/domain/EvmMethods"
import { evmMethods, serving } from "@trigate/domain/EvmOperations"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import * as Effect from "effect/Effect"
import { BatchLimit } from "./BatchLimit.ts"
import { RelayMethods } from "./RelayMethods.ts"
import * as RpcRoute from "./RpcRoute.ts"

/** The route's handler, shared with the keyed one. */
export const route = Effect.gen(function*() {
  const evm = yield* TradingEvm
  const further = yield* RelayMethods
  const longest = yield* BatchLimit
  return RpcRoute.make({
    // a declared method stays what it is declared to be
    operations: [...further.map((name) => configuredRead(name, serving)), ...evmMethods],
    envelope: RpcRoute.jsonRpcEnvelope,
    longest,
    concurrency: longest,
    relay: (operation, params, surface) => evm.relay({ operation, params, surface })
  })
})
