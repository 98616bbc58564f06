/**
 * All chains in one layer, with the defaults of one process: the action log, the nonces, the caches and the rate limits
 * are in memory.
 */
import type { Layer2 } from "@trigate/evm/Layer2"
import * as Layer2Chain from "@trigate/evm/Layer2Chain"
import * as Signer from "@trigate/signing/Signer"
import type { TokenChain } from "@trigate/tokens/TokenChain"
import * as Tokens from "@trigate/tokens/Tokens"
import * as Orders from "@trigate/trading/Orders"
import * as Trading from "@trigate/trading/Trading"
import type { Addresses } from "@trigate/trading/TradingUpstream"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"

type Urls = ReadonlyArray<string | Redacted.Redacted>

/** The upstream URLs, and the options of the venue. The methods of a chain without URLs fail with `ChainNotConfigured`. */
export interface Options extends Omit<Trading.Options, "addresses"> {
  readonly addresses: Addresses & {
    /** The base URLs of the token chain's servers. */
    readonly tokens?: Urls
    /** The URLs of the layer 2's nodes. */
    readonly layer2?: Urls
  }
}

/** Options with the private key of an account or of an API wallet. */
export interface SigningOptions extends Options {
  readonly privateKey: Redacted.Redacted
}

/** The services of the chains. */
export type Services = Trading.All | TokenChain | Layer2

/** The services for signing with a private key. */
export type SigningServices = Orders.Orders | Signer.Signer

/** The reasons why a private key does not sign. */
export type KeyFailure = Signer.InvalidPrivateKey | Signer.SignerFailure

const withKey = <E>(chains: Layer.Layer<Services, E>, privateKey: Redacted.Redacted) =>
  Orders.layer().pipe(Layer.provideMerge(Layer.merge(chains, Signer.layerPrivateKey(privateKey))))

/**
 * Provides the services of all chains, and with a private key also `Orders` and `Signer`.
 *
 * Each call returns a new layer with separate connections, limits and caches: call it once in a program.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Info, Orders, Trigate } from "@trigate/chains"
 * import { Console, Effect, Redacted } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const mids = yield* Info.use(({ allMids }) => allMids())
 *   const { place } = yield* Orders
 *   const order = yield* place({ coin: "ETH", side: "buy", sizeInBase: "0.2", priceInQuote: "1100.5" })
 *   yield* Console.log("BTC" in mids, order._tag)
 * })
 *
 * const chains = Trigate.layer({
 *   network: "mainnet",
 *   addresses: { api: ["http://localhost:8080"] },
 *   privateKey: Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 * })
 *
 * await Effect.runPromise(Effect.provide(program, chains))
 * ```
 * ```text
 * true Resting
 * ```
 */
export function layer(options: SigningOptions): Layer.Layer<Services | SigningServices, KeyFailure>
export function layer(options: Options): Layer.Layer<Services>
export function layer(options: Options | SigningOptions): Layer.Layer<Services, KeyFailure> {
  const { addresses: { layer2 = [], tokens = [], ...addresses }, ...trading } = options
  const chains = Layer.mergeAll(
    Trading.layer({ ...trading, addresses }),
    Tokens.layer({ addresses: tokens }),
    Layer2Chain.layer({ addresses: layer2 })
  )
  return "privateKey" in options ? withKey(chains, options.privateKey) : chains
}

/**
 * Provides the services of all chains, with options from the gateway's settings: `TRIGATE_NETWORK`,
 * `TRIGATE_TRADING_API_URL`, `TRIGATE_TOKEN_CHAIN_URL`, `TRIGATE_LAYER2_URL` and others. `Orders` and `Signer` sign with
 * `TRIGATE_PRIVATE_KEY`.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Orders, Trigate } from "@trigate/chains"
 * import { ConfigProvider, Console, Effect, Layer } from "effect"
 *
 * const environment = ConfigProvider.fromUnknown({
 *   TRIGATE_TRADING_API_URL: "http://localhost:8080",
 *   TRIGATE_PRIVATE_KEY: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
 * })
 *
 * const program = Orders.use(({ signer }) => Console.log(signer))
 *
 * await Effect.runPromise(Effect.provide(program, Layer.provide(Trigate.layerConfig, ConfigProvider.layer(environment))))
 * ```
 * ```text
 * 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266
 * ```
 */
export const layerConfig: Layer.Layer<Services | SigningServices, Config.ConfigError | KeyFailure> = Layer.unwrap(
  Effect.map(
    Config.Redacted("TRIGATE_PRIVATE_KEY"),
    (privateKey) =>
      withKey(Layer.mergeAll(Trading.layerConfig(), Tokens.layerConfig(), Layer2Chain.layerConfig()), privateKey)
  )
)
