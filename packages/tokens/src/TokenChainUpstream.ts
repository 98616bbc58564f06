/** The token chain as it is upstream: REST and JSON-RPC under `/api/v2` of the base address. */
import { detached } from "@trigate/domain/Caller"
import { ChainNotConfigured } from "@trigate/domain/errors/RequestError"
import * as TokenProtocol from "@trigate/domain/tokens/TokenProtocol"
import { Pipeline } from "@trigate/upstream/Pipeline"
import * as Upstream from "@trigate/upstream/Upstream"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { MetadataFetch } from "./metadata/MetadataFetch.ts"
import * as TokenChain from "./TokenChain.ts"
import * as Transactions from "./transactions/Transactions.ts"

/** Where the token chain is. */
export interface Options {
  /**
   * Base URLs with the endpoint key in the path, in order of preference; none means `ChainNotConfigured`.
   *
   * Providers show them with and without `/api/v2` or `/api/v2/jsonRPC` at the end; all three are the same address here.
   */
  readonly addresses: ReadonlyArray<string | Redacted.Redacted>
  /** Requests per second of all streams of transactions together; 1 by default. */
  readonly streamRequestsPerSecond?: number
}

const notConfigured = () =>
  new ChainNotConfigured({ chain: "tokens", detail: "No address of a token chain is configured" })

const make = Effect.fnUntraced(function*({ addresses, streamRequestsPerSecond }: Options) {
  const pipeline = yield* Pipeline
  const upstream = Upstream.make("token-chain", addresses)
  // only the calls of JSON-RPC all go to one path
  const rpcTargets = Upstream.targets(upstream, "/api/v2/jsonRPC")
  const targetsOf = (call: TokenProtocol.TokenRead | TokenProtocol.TokenOnce) => {
    const targets = call.form === "rpc" ? rpcTargets : Upstream.targets(upstream, TokenProtocol.pathOf(call))
    return Arr.isReadonlyArrayNonEmpty(targets) ? Result.succeed(targets) : Result.fail(notConfigured())
  }
  const backend: TokenProtocol.TokenBackend = {
    read: (yield* pipeline.reads({ protocol: TokenProtocol.reads, upstream, targetsOf })).read,
    once: (call) =>
      Effect.flatMap(
        Effect.fromResult(targetsOf(call)),
        (targets) =>
          detached(pipeline.once({ operation: call.operation, targets, body: TokenProtocol.bodyOf(call) }, {}))
      )
  }
  const { pollInterval, requestsPerSecond } = Transactions.defaults
  return yield* TokenChain.make(backend, yield* MetadataFetch, {
    pollInterval,
    requestsPerSecond: streamRequestsPerSecond ?? requestsPerSecond
  })
})

/** The token chain at the given addresses; a function, so that two token chains in one program never share a layer. */
export const layer = (
  options: Options
): Layer.Layer<TokenChain.TokenChain, never, Pipeline | MetadataFetch> =>
  Layer.effect(TokenChain.TokenChain, make(options))
