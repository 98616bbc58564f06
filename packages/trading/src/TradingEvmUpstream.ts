/** `TradingEvm` over a node. */
import { malformed, readerOf } from "@trigate/domain/Answer"
import { evmOperations } from "@trigate/domain/EvmOperations"
import type { CommonFailure } from "@trigate/domain/GatewayError"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import * as JsonRpc from "@trigate/domain/JsonRpc"
import * as Relayed from "@trigate/domain/Relayed"
import { Calls } from "@trigate/upstream/Calls"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TradingEvm from "./TradingEvm.ts"
import * as TradingUpstreams from "./TradingUpstreams.ts"

// reads problem documents and statuses; what an answer carries is read as JSON-RPC
const readPlain = readerOf(evmOperations.gasPrice)

const answerOf = (answer: Relayed.Relayed, id: number): Effect.Effect<RpcAnswer, CommonFailure> => {
  const rpc = JsonRpc.readAnswer(answer.upstream, Relayed.text(answer), id)
  if (answer.status === 200) return rpc
  // nodes put an error object into answers of any status; without one the status is all there is
  return Effect.catchTag(
    rpc,
    "UpstreamMalformed",
    () =>
      Effect.flatMap(
        readPlain(undefined, answer),
        () => Effect.fail(malformed(answer.upstream, `HTTP ${answer.status}`))
      )
  )
}

const make = Effect.fnUntraced(function*(addresses: TradingUpstreams.Addresses) {
  const calls = yield* Calls
  const upstreams = TradingUpstreams.make(addresses)
  let sent = 0
  return TradingEvm.make(Effect.fnUntraced(function*({ operation, params, surface }) {
    const targets = yield* TradingUpstreams.route(upstreams, operation, surface, "/evm")
    sent = sent % Number.MAX_SAFE_INTEGER + 1
    const id = sent
    const body = Relayed.bytes(JsonRpc.requestText(id, operation.name, params))
    return yield* answerOf(yield* calls.read(operation, { targets, body }), id)
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
