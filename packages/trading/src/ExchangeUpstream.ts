/** `Exchange` over the venue's official API. */
import { operationOf } from "@trigate/domain/ExchangeOperations"
import { Pipeline } from "@trigate/upstream/Pipeline"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ActionLog } from "./ActionLog.ts"
import { Admission } from "./Admission.ts"
import * as Exchange from "./Exchange.ts"
import * as TradingUpstream from "./TradingUpstream.ts"

const make = Effect.fnUntraced(function*(addresses: TradingUpstream.Addresses) {
  const admission = yield* Admission
  const pipeline = yield* Pipeline
  const route = TradingUpstream.routes(TradingUpstream.make(addresses), "/exchange")
  return Exchange.make(admission, yield* ActionLog, (admitted) => {
    const operation = operationOf(admitted.actionType)
    return Effect.flatMap(
      Effect.fromResult(route(operation, "gateway")),
      (targets) =>
        pipeline.once({ operation, targets, body: admitted.body }, {
          nonce: admitted.nonce,
          ...(admitted.signer === undefined ? {} : { signer: admitted.signer })
        })
    )
  })
})

/** The service over some addresses; a function, so that two chains in one program share nothing. */
export const layer = (
  addresses: TradingUpstream.Addresses
): Layer.Layer<Exchange.Exchange, never, ActionLog | Admission | Pipeline> =>
  Layer.effect(Exchange.Exchange, make(addresses))

/** The service over the addresses of the configuration. */
export const layerConfig: Layer.Layer<Exchange.Exchange, Config.ConfigError, ActionLog | Admission | Pipeline> = Layer
  .effect(
    Exchange.Exchange,
    Effect.flatMap(TradingUpstream.config, make)
  )
