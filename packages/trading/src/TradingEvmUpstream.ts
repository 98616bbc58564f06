/** `TradingEvm` over a node. */
import * as JsonRpc from "@trigate/domain/JsonRpc"
import * as Relayed from "@trigate/domain/Relayed"
import { Calls } from "@trigate/upstream/Calls"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TradingEvm from "./TradingEvm.ts"
import * as TradingUpstreams from "./TradingUpstreams.ts"

const make = Effect.fnUntraced(function*(addresses: TradingUpstreams.Addresses) {
  const calls = yield* Calls
  const upstreams = TradingUpstreams.make(addresses)
  let sent = 0
  return TradingEvm.make(Effect.fnUntraced(function*({ operation, params, surface }) {
    const targets = yield* TradingUpstreams.route(upstreams, operation, surface, "/evm")
    sent = sent % Number.MAX_SAFE_INTEGER + 1
    const id = sent
    const body = Relayed.bytes(JsonRpc.requestText(id, operation.name, params))
    return yield* JsonRpc.answerOf(yield* calls.read(operation, { targets, body }), id)
  }))
})

/** The service over some addresses; a function, so that two chains in one program share nothing. */
export const layer = (addresses: TradingUpstreams.Addresses): Layer.Layer<TradingEvm.TradingEvm, never, Calls> =>
  Layer.effect(TradingEvm.TradingEvm, make(addresses))

/** The service over the addresses of the configuration. */
export const layerConfig: Layer.Layer<TradingEvm.TradingEvm, Config.ConfigError, Calls> = Layer.effect(
  TradingEvm.TradingEvm,
  Effect.flatMap(TradingUpstreams.config, make)
)
