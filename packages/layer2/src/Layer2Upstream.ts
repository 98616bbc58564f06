/** Layer 2 over its nodes: JSON-RPC by POST to the base address itself. */
import { Hash } from "@trigate/domain/encoding/Hex"
import { ChainNotConfigured } from "@trigate/domain/errors/RequestError"
import { getTransactionReceipt, serving } from "@trigate/domain/evm/Layer2Operations"
import * as GatewayReads from "@trigate/upstream/evm/GatewayReads"
import * as EvmUpstream from "@trigate/upstream/EvmUpstream"
import type { Pipeline } from "@trigate/upstream/Pipeline"
import * as Upstream from "@trigate/upstream/Upstream"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as FinalReceipts from "./FinalReceipts.ts"
import * as Layer2 from "./Layer2.ts"

/** Where the layer 2 is. */
export interface Options {
  /** Base URLs with the endpoint key in the path, in order of preference; none means `ChainNotConfigured`. */
  readonly addresses: ReadonlyArray<string | Redacted.Redacted>
  /** Whether receipts are cached once they are final, which takes reads of blocks; see {@link FinalReceipts}. */
  readonly finality?: FinalReceipts.Options
  /** What logs and filters may take. */
  readonly evm?: GatewayReads.Bounds
}

const notConfigured = () => new ChainNotConfigured({ chain: "layer2", detail: "No address of a layer 2 is configured" })

const isHash = Schema.is(Hash)

const make = ({ addresses, evm, finality }: Options) => {
  const upstream = Upstream.make("layer2", addresses)
  const targets = Upstream.targets(upstream, "")
  const targetsOf = () => Arr.isReadonlyArrayNonEmpty(targets) ? Result.succeed(targets) : Result.fail(notConfigured())
  const nodes = EvmUpstream.make({
    upstream,
    targetsOf,
    confirm: (read) => {
      const receipts = FinalReceipts.make(
        (call) => Effect.flatMap(Effect.fromResult(targetsOf()), (found) => read(call, found)),
        finality
      )
      return ({ operation, request }, answer) =>
        operation.name === getTransactionReceipt.name && Predicate.hasProperty(request, "hash") && isHash(request.hash)
          ? receipts.confirm(request.hash, answer)
          : undefined
    }
  })
  return Effect.flatMap(nodes, (backend) => GatewayReads.make(backend, { ...evm, serving, label: upstream.label }))
}

/** The layer 2 at the given addresses; a function, so that two layer 2s in one program never share a memoised layer. */
export const layer = (options: Options): Layer.Layer<Layer2.Layer2, never, Pipeline> =>
  Layer.effect(Layer2.Layer2, Effect.map(make(options), Layer2.make))
