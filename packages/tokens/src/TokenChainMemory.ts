/** A token chain in memory. It responds from a state that a test sets, in the format of C++ servers. */
import * as Json from "@trigate/domain/encoding/Encoding"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import * as TonAddress from "@trigate/domain/tokens/TokenData"
import type { TokenBackend } from "@trigate/domain/unstable/tokens/TokenProtocol"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TokenChain from "./TokenChain.ts"

/** A contract at an address (in any form), as the JSON-RPC method `getTokenData` returns it. */
export interface Deployed {
  readonly address: TonAddress.TonAddress
  readonly contract: TonAddress.TokenContract
}

/**
 * The state of the chain in memory; initially empty.
 *
 * Provided by `TokenChainMemory.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { TokenData } from "@trigate/domain"
 * import { TokenChain, TokenChainMemory } from "@trigate/tokens"
 * import { Console, Effect, Ref } from "effect"
 *
 * const address = TokenData.TonAddress.make("EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz")
 * const token = { address, name: "Test", symbol: "TEST", decimals: 9, totalSupply: "1", mintable: false, burnable: true } as const
 *
 * const program = Effect.gen(function*() {
 *   const { jettons } = yield* TokenChainMemory.TokenChainState
 *   yield* Ref.set(jettons, [{ ...token, metadata: "onchain" }])
 *   const { getTokenData } = yield* TokenChain.TokenChain
 *   yield* Console.log((yield* getTokenData({ address })).symbol)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, TokenChainMemory.layer()))
 * ```
 * ```text
 * TEST
 * ```
 */
export class TokenChainState extends Context.Service<TokenChainState, {
  /**
   * Fungible tokens, by their `address`. The chain always reports `burnable` as true, whatever its value in this list.
   */
  readonly jettons: Ref.Ref<ReadonlyArray<TonAddress.TokenData>>
  /** Contracts of any kind: wallets, collections, items, and masters with custom content. */
  readonly contracts: Ref.Ref<ReadonlyArray<Deployed>>
  /** Raw JSON results of the methods other than `getTokenData`, by method name. */
  readonly results: Ref.Ref<ReadonlyMap<string, string>>
}>()("@trigate/tokens/TokenChainMemory/TokenChainState") {
  /** Provides the state of an empty chain. */
  static readonly layer: Layer.Layer<TokenChainState> = Layer.effect(
    TokenChainState,
    Effect.gen(function*() {
      return TokenChainState.of({
        jettons: yield* Ref.make<ReadonlyArray<TonAddress.TokenData>>([]),
        contracts: yield* Ref.make<ReadonlyArray<Deployed>>([]),
        results: yield* Ref.make<ReadonlyMap<string, string>>(new Map())
      })
    })
  )
}

const encodeContract = Schema.encodeSync(TonAddress.TokenContract)

const succeeded = (result: string) =>
  UpstreamResponse.json("token-chain", 200, `{"ok":true,"result":${result},"@extra":"0:0:0"}`)

const failed = (status: number, error: string) =>
  UpstreamResponse.json(
    "token-chain",
    status,
    Json.stringify({ ok: false, error, code: status, "@extra": "0:0:0" })
  )

const metadataUrl = (token: TonAddress.TokenData): string => `https://metadata.invalid/${token.address}.json`

/**
 * Makes a master contract whose content decodes to the given token.
 *
 * If the token's metadata is unresolved although it has a name and a symbol, its decimals are in a document that cannot
 * be fetched.
 */
const masterContract = (token: TonAddress.TokenData): TonAddress.TokenContract => {
  const { decimals, metadata, mintable, name, symbol, totalSupply } = token
  const hidesDecimals = metadata === "unresolved" && name !== undefined && symbol !== undefined
  const names = { ...(name === undefined ? {} : { name }), ...(symbol === undefined ? {} : { symbol }) }
  return {
    contract_type: "jetton_master",
    total_supply: BigInt(totalSupply),
    mintable,
    jetton_content: {
      type: "onchain",
      data: {
        ...(metadata === "offchain" ? {} : names),
        ...(metadata === "onchain" ? {} : { uri: metadataUrl(token) }),
        ...(hidesDecimals ? {} : { decimals: String(decimals) })
      }
    },
    jetton_wallet_code: ""
  }
}

const packed = (address: TonAddress.Parsed): string =>
  TonAddress.format(address, { bounceable: address.form !== "non-bounceable", testOnly: address.testOnly })

const isAt = (address: TonAddress.Parsed) => (entry: { readonly address: string }): boolean =>
  Result.match(TonAddress.parse(entry.address), {
    onFailure: () => false,
    onSuccess: (other) => TonAddress.formatRaw(other) === TonAddress.formatRaw(address)
  })

const backend = (state: TokenChainState["Service"]): TokenBackend => {
  const contractAt = Effect.fnUntraced(function*(text: string, address: TonAddress.Parsed) {
    const token = (yield* Ref.get(state.jettons)).find(isAt(address))
    const contract = token === undefined
      ? (yield* Ref.get(state.contracts)).find(isAt(address))?.contract
      : masterContract(token)
    return contract === undefined
      ? failed(409, "Smart contract is not Jetton or NFT")
      : succeeded(Json.stringify({
        "@type": TonAddress.wireTypes[contract.contract_type],
        address: text,
        ...encodeContract(contract)
      }))
  })

  const atAddress = (
    text: unknown,
    respond: (text: string, address: TonAddress.Parsed) => Effect.Effect<UpstreamResponse.UpstreamResponse>
  ): Effect.Effect<UpstreamResponse.UpstreamResponse> =>
    Predicate.isString(text)
      ? Result.match(TonAddress.parse(text), {
        onFailure: () => Effect.succeed(failed(422, "failed to parse address")),
        onSuccess: (address) => respond(text, address)
      })
      : Effect.succeed(failed(422, "empty address"))

  const pure = (result: (address: TonAddress.Parsed) => unknown) => (_text: string, address: TonAddress.Parsed) =>
    Effect.sync(() => succeeded(Json.stringify(result(address))))

  const read: TokenBackend["read"] = Effect.fnUntraced(function*({ operation, params }) {
    const named = params.valueOrUndefined
    const address = Predicate.hasProperty(named, "address") ? named.address : undefined
    switch (operation.name) {
      case "getTokenData":
        return yield* atAddress(address, contractAt)
      case "packAddress":
        return yield* atAddress(address, pure(packed))
      case "unpackAddress":
        return yield* atAddress(address, pure(TonAddress.formatRaw))
      case "detectAddress":
        return yield* atAddress(
          address,
          pure((address) => ({ "@type": "ext.utils.detectedAddress", ...TonAddress.detect(address) }))
        )
      default: {
        const result = (yield* Ref.get(state.results)).get(operation.name)
        return result === undefined ? failed(404, "Not Found") : succeeded(result)
      }
    }
  })
  // an in-memory chain accepts no messages
  return { read, once: () => Effect.succeed(failed(404, "Not Found")) }
}

/**
 * Provides the metadata documents of tokens with off-chain metadata. Documents of tokens with unresolved metadata
 * cannot be fetched.
 */
const documents = (state: TokenChainState["Service"]): TokenChain.MetadataFetch["Service"] => ({
  fetch: (uri) =>
    Effect.map(Ref.get(state.jettons), (tokens) =>
      Option.map(
        Option.fromUndefinedOr(tokens.find((token) => token.metadata === "offchain" && metadataUrl(token) === uri)),
        ({ name, symbol }): unknown => ({ name, symbol })
      ))
})

/** The stream options: a high request rate, because an in-memory chain has no request limit. */
const streams = { requestsPerSecond: 1_000, pollInterval: "100 millis" } as const

/**
 * Provides the token chain over the `TokenChainState` of the context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoDeps: Layer.Layer<TokenChain.TokenChain, never, TokenChainState> = Layer.effect(
  TokenChain.TokenChain,
  Effect.flatMap(TokenChainState, (state) => TokenChain.make(backend(state), documents(state), streams))
)

/**
 * Provides `TokenChain` and its state, which is empty at first. Each call returns a new layer with separate state.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (): Layer.Layer<TokenChain.TokenChain | TokenChainState> =>
  Layer.fresh(layerNoDeps).pipe(Layer.provideMerge(Layer.fresh(TokenChainState.layer)))
