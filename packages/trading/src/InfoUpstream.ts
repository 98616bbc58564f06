/** `Info` over the venue's official API, and over a node for what nodes serve. */
import * as JsonText from "@trigate/domain/JsonText"
import type { ReadFailure } from "@trigate/domain/TransportFailure"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as AttemptResult from "@trigate/upstream/AttemptResult"
import * as CacheCodec from "@trigate/upstream/CacheCodec"
import * as CacheRules from "@trigate/upstream/CacheRules"
import * as CacheSpace from "@trigate/upstream/CacheSpace"
import { Calls } from "@trigate/upstream/Calls"
import { ResponseCache } from "@trigate/upstream/ResponseCache"
import type * as Config from "effect/Config"
import * as Digest from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Info from "./Info.ts"
import * as TradingUpstreams from "./TradingUpstreams.ts"

const text = new TextDecoder()

/** The body in one spelling; a body has more members than its operation declares where the caller wrote more. */
const canonical = (body: Uint8Array): string =>
  Result.match(JsonText.parse(text.decode(body)), {
    onFailure: () => "",
    onSuccess: JsonText.canonical
  })

const make = Effect.fnUntraced(function*(addresses: TradingUpstreams.Addresses) {
  const calls = yield* Calls
  const upstreams = TradingUpstreams.make(addresses)
  const route = TradingUpstreams.routes(upstreams, "/info")
  const { node, "official-api": api } = upstreams
  // where only nodes are configured, they alone tell one network from another
  const space = yield* CacheSpace.of({ ...api, addresses: [...api.addresses, ...node.addresses] })
  const read = (yield* ResponseCache).reader<UpstreamResponse.UpstreamResponse, ReadFailure>({
    space,
    codec: CacheCodec.relayed
  })
  return Info.make(({ body, operation, request, surface }) =>
    Effect.flatMap(route(operation, surface), (targets) =>
      read({
        operation: operation.name,
        upstream: targets[0].label,
        key: `${surface} ${canonical(body)}`,
        ...CacheRules.of<unknown, UpstreamResponse.UpstreamResponse>(operation, request, (answer) => answer.text),
        ask: calls.read({ operation, targets }, { body, read: AttemptResult.ofPlain(operation) })
      }))
  )
})

/** The service over some addresses; a function, so that two chains in one program share nothing. */
export const layer = (
  addresses: TradingUpstreams.Addresses
): Layer.Layer<Info.Info, never, Calls | ResponseCache> =>
  Layer.effect(Info.Info, make(addresses)).pipe(Layer.provide(Digest.layerWebCrypto))

/** The service over the addresses of the configuration. */
export const layerConfig: Layer.Layer<Info.Info, Config.ConfigError, Calls | ResponseCache> = Layer.unwrap(
  Effect.map(TradingUpstreams.config, layer)
)
