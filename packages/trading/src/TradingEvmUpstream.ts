/** `TradingEvm` over a node. */
import type { CommonFailure } from "@trigate/domain/GatewayError"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import * as JsonText from "@trigate/domain/JsonText"
import * as CacheCodec from "@trigate/upstream/CacheCodec"
import * as CacheRules from "@trigate/upstream/CacheRules"
import * as CacheSpace from "@trigate/upstream/CacheSpace"
import { Calls } from "@trigate/upstream/Calls"
import { ResponseCache } from "@trigate/upstream/ResponseCache"
import * as RpcCalls from "@trigate/upstream/RpcCalls"
import * as RpcOnceCalls from "@trigate/upstream/RpcOnceCalls"
import type * as Config from "effect/Config"
import * as Digest from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TradingEvm from "./TradingEvm.ts"
import * as TradingUpstreams from "./TradingUpstreams.ts"

const textOf = (answer: RpcAnswer): string => answer._tag === "Result" ? answer.result : ""

/** What is equal here is the same request; hexadecimal digits mean the same in either case where a schema says that they are some. */
const keyOf = ({ operation, params, request }: TradingEvm.CheckedRead): string => {
  if (operation.verbatim === true) return params
  return request === undefined ? "" : JsonText.canonical(request).toLowerCase()
}

const make = Effect.fnUntraced(function*(addresses: TradingUpstreams.Addresses) {
  const calls = yield* Calls
  const ask = RpcCalls.make(calls)
  const sendOnce = RpcOnceCalls.make(calls)
  const upstreams = TradingUpstreams.make(addresses)
  const route = TradingUpstreams.routes(upstreams, "/evm")
  const space = yield* CacheSpace.of(upstreams.node)
  const read = (yield* ResponseCache).reader<RpcAnswer, CommonFailure>({ space, codec: CacheCodec.rpc })
  return TradingEvm.make({
    read: (call) =>
      Effect.flatMap(route(call.operation, call.surface), (targets) =>
        read({
          operation: call.operation.name,
          upstream: "trading-node",
          key: keyOf(call),
          ...CacheRules.of<unknown, RpcAnswer>(call.operation, call.request, textOf),
          ask: ask({ operation: call.operation, targets }, call.params)
        })),
    once: ({ operation, params, surface }) =>
      Effect.flatMap(route(operation, surface), (targets) => sendOnce({ operation, targets }, params))
  })
})

/** The service over some addresses; a function, so that two chains in one program share nothing. */
export const layer = (
  addresses: TradingUpstreams.Addresses
): Layer.Layer<TradingEvm.TradingEvm, never, Calls | ResponseCache> =>
  Layer.effect(TradingEvm.TradingEvm, make(addresses)).pipe(Layer.provide(Digest.layerWebCrypto))

/** The service over the addresses of the configuration. */
export const layerConfig: Layer.Layer<TradingEvm.TradingEvm, Config.ConfigError, Calls | ResponseCache> = Layer.unwrap(
  Effect.map(TradingUpstreams.config, layer)
)
