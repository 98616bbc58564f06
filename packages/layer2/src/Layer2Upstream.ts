/** Layer 2 as it is upstream: JSON-RPC by POST to the base address itself. */
import type { CommonFailure } from "@trigate/domain/GatewayError"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import { getTransactionReceipt } from "@trigate/domain/Layer2Operations"
import { ChainNotConfigured } from "@trigate/domain/RequestError"
import { settings } from "@trigate/domain/Settings"
import * as CacheCodec from "@trigate/upstream/CacheCodec"
import * as CacheRules from "@trigate/upstream/CacheRules"
import * as CacheSpace from "@trigate/upstream/CacheSpace"
import { Calls } from "@trigate/upstream/Calls"
import { ResponseCache } from "@trigate/upstream/ResponseCache"
import * as RpcCalls from "@trigate/upstream/RpcCalls"
import * as RpcOnceCalls from "@trigate/upstream/RpcOnceCalls"
import * as Upstream from "@trigate/upstream/Upstream"
import type * as Config from "effect/Config"
import * as Digest from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as FinalReceipts from "./FinalReceipts.ts"
import * as Layer2 from "./Layer2.ts"

/** Where the layer 2 is. */
export interface Options {
  /** Base URLs with the endpoint key in the path, in order of preference; none means `ChainNotConfigured`. */
  readonly addresses: ReadonlyArray<string | Redacted.Redacted>
  /** Whether receipts are kept once they are final, which takes reads of blocks; see {@link FinalReceipts}. */
  readonly finality?: FinalReceipts.Options
}

const notConfigured = Effect.suspend(() =>
  Effect.fail(new ChainNotConfigured({ chain: "layer2", detail: "No address of a layer 2 is configured" }))
)

const nowhere: Layer2.Transport = {
  receipt: () => notConfigured,
  read: () => notConfigured,
  once: () => notConfigured
}

const textOf = (answer: RpcAnswer): string => answer._tag === "Result" ? answer.result : ""

const transport = Effect.fnUntraced(function*({ addresses, finality }: Options) {
  const upstream = Upstream.make("layer2", addresses)
  const [first, ...others] = Upstream.targets(upstream, "")
  if (first === undefined) return nowhere
  const targets = [first, ...others] as const
  const calls = yield* Calls
  const ask = RpcCalls.make(calls)
  const sendOnce = RpcOnceCalls.make(calls)
  const space = yield* CacheSpace.of(upstream)
  const read = (yield* ResponseCache).reader<RpcAnswer, CommonFailure>({ space, codec: CacheCodec.rpc })
  const receipts = FinalReceipts.make(({ operation, params }) => ask({ operation, targets }, params), finality)
  return {
    receipt: ({ params, request }) =>
      read({
        operation: getTransactionReceipt.name,
        upstream: "layer2",
        // hexadecimal digits mean the same in either case
        key: request.hash.toLowerCase(),
        ...CacheRules.of(getTransactionReceipt, request, textOf),
        confirm: (answer) => receipts.confirm(request.hash, answer),
        ask: ask({ operation: getTransactionReceipt, targets }, params)
      }),
    read: ({ operation, params }) =>
      read({
        operation: operation.name,
        upstream: "layer2",
        key: params,
        ask: ask({ operation, targets }, params)
      }),
    once: ({ operation, params }) => sendOnce({ operation, targets }, params)
  } satisfies Layer2.Transport
})

/** The layer 2 at the given addresses; a function, so that two layer 2s in one program never share a memoised layer. */
export const layer = (options: Options): Layer.Layer<Layer2.Layer2, never, Calls | ResponseCache> =>
  Layer.effect(Layer2.Layer2, Effect.map(transport(options), Layer2.make)).pipe(Layer.provide(Digest.layerWebCrypto))

/** The layer 2 at the addresses of `TRIGATE_LAYER2_URL`. */
export const layerConfig: Layer.Layer<Layer2.Layer2, Config.ConfigError, Calls | ResponseCache> = Layer.unwrap(
  Effect.map(settings.layer2Url, (addresses) => layer({ addresses }))
)
