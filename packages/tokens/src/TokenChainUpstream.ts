/** The token chain as it is upstream: REST and JSON-RPC under `/api/v2` of the base address. */
import type { CommonFailure } from "@trigate/domain/GatewayError"
import * as JsonRpc from "@trigate/domain/JsonRpc"
import * as JsonText from "@trigate/domain/JsonText"
import type { Sharing } from "@trigate/domain/Operation"
import { ChainNotConfigured } from "@trigate/domain/RequestError"
import { settings } from "@trigate/domain/Settings"
import { getTokenData } from "@trigate/domain/TokenOperations"
import type { Query } from "@trigate/domain/TokenQuery"
import type { OutcomeUnknown } from "@trigate/domain/UpstreamError"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Utf8 from "@trigate/domain/Utf8"
import * as Answers from "@trigate/upstream/Answers"
import type { OnceCall } from "@trigate/upstream/AtMostOnce"
import type { Read } from "@trigate/upstream/Attempts"
import * as CacheCodec from "@trigate/upstream/CacheCodec"
import * as CacheRules from "@trigate/upstream/CacheRules"
import * as CacheSpace from "@trigate/upstream/CacheSpace"
import { Calls } from "@trigate/upstream/Calls"
import { ResponseCache } from "@trigate/upstream/ResponseCache"
import * as Upstream from "@trigate/upstream/Upstream"
import type * as Config from "effect/Config"
import * as Digest from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { MetadataFetch } from "./MetadataFetch.ts"
import * as TokenAttemptResult from "./TokenAttemptResult.ts"
import * as TokenChain from "./TokenChain.ts"

/** Where the token chain is. */
export interface Options {
  /**
   * Base URLs with the endpoint key in the path, in order of preference; none means `ChainNotConfigured`.
   *
   * Providers show them with and without `/api/v2` or `/api/v2/jsonRPC` at the end; all three are the same address here.
   */
  readonly addresses: ReadonlyArray<string | Redacted.Redacted>
}

const baseOf = (address: string | Redacted.Redacted): string =>
  (Redacted.isRedacted(address) ? Redacted.value(address) : address).replace(/\/api\/v2(?:\/jsonRPC)?\/*$/u, "")

const notConfigured = Effect.suspend(() =>
  Effect.fail(new ChainNotConfigured({ chain: "tokens", detail: "No address of a token chain is configured" }))
)

const canonical = (params: string): string =>
  Result.match(JsonText.parse(params), { onFailure: () => params, onSuccess: JsonText.canonical })

/** The encoding turns + into %2B: servers read a bare + as a space, which makes an address wrong. */
const queryText = (query: Query): string =>
  query.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&")

/** What is kept of an operation are results of its JSON-RPC, not bodies of its REST. */
const unkept = ({ cheap, class: kind, cost, name }: Read["operation"]): Read["operation"] => ({
  class: kind,
  cost,
  name,
  ...(cheap === undefined ? {} : { cheap })
})

const transport = Effect.fnUntraced(function*(options: Options) {
  const upstream = Upstream.make("token-chain", options.addresses.map(baseOf))
  const calls = yield* Calls
  const space = yield* CacheSpace.of(upstream)
  const read = (yield* ResponseCache).reader<UpstreamResponse.UpstreamResponse, CommonFailure>({
    space,
    codec: CacheCodec.relayed
  })
  const rpcTargets = Upstream.targets(upstream, "/api/v2/jsonRPC")
  const send = (
    operation: Read["operation"] & Sharing<unknown>,
    request: unknown,
    [first, ...others]: ReadonlyArray<Upstream.Target>,
    key: string,
    body: Uint8Array | undefined
  ): Effect.Effect<UpstreamResponse.UpstreamResponse, CommonFailure> =>
    first === undefined ? notConfigured : read({
      operation: operation.name,
      upstream: "token-chain",
      key,
      ...CacheRules.of<unknown, UpstreamResponse.UpstreamResponse>(operation, request, (answer) => answer.text),
      ask: calls.read({ operation, targets: [first, ...others] }, { body, read: TokenAttemptResult.of })
    })
  const sendOnce = (
    operation: OnceCall["operation"],
    [first, ...others]: ReadonlyArray<Upstream.Target>,
    body: Uint8Array
  ): Effect.Effect<UpstreamResponse.UpstreamResponse, CommonFailure | OutcomeUnknown> => {
    if (first === undefined) return notConfigured
    const targets = [first, ...others] as const
    return Effect.map(
      calls.once({ operation, targets, body }, {}),
      // which of them answered is not told
      (answer) => targets.reduce((left, target) => Answers.concealedError(target, left, left.text), answer)
    )
  }
  const made: TokenChain.Transport = {
    getTokenData: (address) => {
      // the encoding turns + into %2B: servers read a bare + as a space, which makes the address wrong
      const path = `/api/v2/getTokenData?address=${encodeURIComponent(address)}`
      return send(getTokenData, { address }, Upstream.targets(upstream, path), `rest ${address}`, undefined)
    },
    call: ({ operation, params }) =>
      send(
        operation,
        undefined,
        rpcTargets,
        canonical(params),
        Utf8.encode(JsonRpc.requestText(1, operation.name, params))
      ),
    once: ({ operation, params }) =>
      sendOnce(operation, rpcTargets, Utf8.encode(JsonRpc.requestText(1, operation.name, params))),
    rest: ({ asked, operation }) => {
      const path = `/api/v2/${operation.name}`
      if (!Predicate.isString(asked)) {
        const targets = Upstream.targets(upstream, asked.length === 0 ? path : `${path}?${queryText(asked)}`)
        return send(unkept(operation), undefined, targets, `get ${queryText(asked)}`, undefined)
      }
      return send(
        unkept(operation),
        undefined,
        Upstream.targets(upstream, path),
        `post ${canonical(asked)}`,
        Utf8.encode(asked)
      )
    },
    restOnce: ({ asked, operation }) =>
      sendOnce(operation, Upstream.targets(upstream, `/api/v2/${operation.name}`), Utf8.encode(asked))
  }
  return made
})

/** The token chain at the given addresses; a function, so that two token chains in one program never share a layer. */
export const layer = (
  options: Options
): Layer.Layer<TokenChain.TokenChain, never, Calls | ResponseCache | MetadataFetch> =>
  Layer.effect(
    TokenChain.TokenChain,
    Effect.gen(function*() {
      return TokenChain.make(yield* transport(options), yield* MetadataFetch)
    })
  ).pipe(Layer.provide(Digest.layerWebCrypto))

/** The token chain at the addresses of `TRIGATE_TOKEN_CHAIN_URL`. */
export const layerConfig: Layer.Layer<
  TokenChain.TokenChain,
  Config.ConfigError,
  Calls | ResponseCache | MetadataFetch
> = Layer.unwrap(
  Effect.map(settings.tokenChainUrl, (addresses) => layer({ addresses }))
)
