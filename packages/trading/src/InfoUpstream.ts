/** `Info` over the venue's official API, and over a node for what nodes serve. */
import * as JsonText from "@trigate/domain/JsonText"
import * as Relayed from "@trigate/domain/Relayed"
import type { ReadFailure } from "@trigate/domain/TransportFailure"
import * as AnswerCodec from "@trigate/upstream/AnswerCodec"
import { Calls } from "@trigate/upstream/Calls"
import * as ReadSpace from "@trigate/upstream/ReadSpace"
import { SharedReads } from "@trigate/upstream/SharedReads"
import * as SharingRules from "@trigate/upstream/SharingRules"
import * as Verdict from "@trigate/upstream/Verdict"
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
  const space = yield* ReadSpace.of({ ...api, addresses: [...api.addresses, ...node.addresses] })
  const read = (yield* SharedReads).reader<Relayed.Relayed, ReadFailure>({ space, codec: AnswerCodec.relayed })
  return Info.make(({ body, operation, request, surface }) =>
    Effect.flatMap(route(operation, surface), (targets) =>
      read({
        operation: operation.name,
        upstream: targets[0].label,
        key: `${surface} ${canonical(body)}`,
        ...SharingRules.of<unknown, Relayed.Relayed>(operation, request, Relayed.text),
        ask: calls.read({ operation, targets }, { body, read: Verdict.ofPlain(operation) })
      }))
  )
})

/** The service over some addresses; a function, so that two chains in one program share nothing. */
export const layer = (
  addresses: TradingUpstreams.Addresses
): Layer.Layer<Info.Info, never, Calls | SharedReads> =>
  Layer.effect(Info.Info, make(addresses)).pipe(Layer.provide(Digest.layerWebCrypto))

/** The service over the addresses of the configuration. */
export const layerConfig: Layer.Layer<Info.Info, Config.ConfigError, Calls | SharedReads> = Layer.unwrap(
  Effect.map(TradingUpstreams.config, layer)
)
