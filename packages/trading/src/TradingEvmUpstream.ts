/** `TradingEvm` over a node. */
import { Calls } from "@trigate/upstream/Calls"
import * as RpcCalls from "@trigate/upstream/RpcCalls"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TradingEvm from "./TradingEvm.ts"
import * as TradingUpstreams from "./TradingUpstreams.ts"

const make = Effect.fnUntraced(function*(addresses: TradingUpstreams.Addresses) {
  const ask = RpcCalls.make(yield* Calls)
  const route = TradingUpstreams.routes(TradingUpstreams.make(addresses), "/evm")
  return TradingEvm.make(({ operation, params, surface }) =>
    Effect.flatMap(route(operation, surface), (targets) => ask({ operation, targets }, params))
  )
})

/** The service over some addresses; a function, so that two chains in one program share nothing. */
export const layer = (addresses: TradingUpstreams.Addresses): Layer.Layer<TradingEvm.TradingEvm, never, Calls> =>
  Layer.effect(TradingEvm.TradingEvm, make(addresses))

/** The service over the addresses of the configuration. */
export const layerConfig: Layer.Layer<TradingEvm.TradingEvm, Config.ConfigError, Calls> = Layer.effect(
  TradingEvm.TradingEvm,
  Effect.flatMap(TradingUpstreams.config, make)
)
