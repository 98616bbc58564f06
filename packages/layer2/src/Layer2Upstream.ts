/** Layer 2 as it is upstream: JSON-RPC by POST to the base address itself. */
import { ChainNotConfigured } from "@trigate/domain/RequestError"
import { Calls } from "@trigate/upstream/Calls"
import * as RpcCalls from "@trigate/upstream/RpcCalls"
import * as Upstream from "@trigate/upstream/Upstream"
import * as UpstreamConfig from "@trigate/upstream/UpstreamConfig"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Layer2 from "./Layer2.ts"

/** Where the layer 2 is. */
export interface Options {
  /** Base URLs with the endpoint key in the path, in order of preference; none means `ChainNotConfigured`. */
  readonly addresses: ReadonlyArray<string | Redacted.Redacted>
}

const notConfigured = Effect.suspend(() =>
  Effect.fail(new ChainNotConfigured({ chain: "layer2", detail: "No address of a layer 2 is configured" }))
)

const transport = (calls: Calls["Service"], options: Options): Layer2.Transport => {
  const [first, ...others] = Upstream.targets(Upstream.make("layer2", options.addresses), "")
  if (first === undefined) return () => notConfigured
  const ask = RpcCalls.make(calls)
  const targets = [first, ...others] as const
  return ({ operation, params }) => ask({ operation, targets }, params)
}

/** The layer 2 at the given addresses; a function, so that two layer 2s in one program never share a memoised layer. */
export const layer = (options: Options): Layer.Layer<Layer2.Layer2, never, Calls> =>
  Layer.effect(Layer2.Layer2, Effect.map(Calls, (calls) => Layer2.make(transport(calls, options))))

/** The layer 2 at the addresses of `TRIGATE_LAYER2_URL`. */
export const layerConfig: Layer.Layer<Layer2.Layer2, Config.ConfigError, Calls> = Layer.unwrap(
  Effect.map(UpstreamConfig.baseUrls("TRIGATE_LAYER2_URL"), (addresses) => layer({ addresses }))
)
