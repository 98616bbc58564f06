/** `Info` over the venue's official API, and over a node for what nodes serve. */
import { Calls } from "@trigate/upstream/Calls"
import * as Verdict from "@trigate/upstream/Verdict"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Info from "./Info.ts"
import * as TradingUpstreams from "./TradingUpstreams.ts"

const make = Effect.fnUntraced(function*(addresses: TradingUpstreams.Addresses) {
  const calls = yield* Calls
  const route = TradingUpstreams.routes(TradingUpstreams.make(addresses), "/info")
  return Info.make(({ body, operation, surface }) =>
    Effect.flatMap(
      route(operation, surface),
      (targets) => calls.read({ operation, targets }, { body, read: Verdict.ofPlain(operation) })
    )
  )
})

/** The service over some addresses; a function, so that two chains in one program share nothing. */
export const layer = (addresses: TradingUpstreams.Addresses): Layer.Layer<Info.Info, never, Calls> =>
  Layer.effect(Info.Info, make(addresses))

/** The service over the addresses of the configuration. */
export const layerConfig: Layer.Layer<Info.Info, Config.ConfigError, Calls> = Layer.effect(
  Info.Info,
  Effect.flatMap(TradingUpstreams.config, make)
)
