/** Two networks in one process: each asks its own addresses and signs for itself, however the two are configured. */
import { assert, describe, it } from "@effect/vitest"
import { SignedEnvelope } from "@trigate/domain/actions/Action"
import * as Json from "@trigate/domain/encoding/Encoding"
import { Layer2 } from "@trigate/evm/Layer2"
import * as Layer2Chain from "@trigate/evm/Layer2Chain"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as SignerRecovery from "@trigate/signing/unstable/actions/CanonicalAction"
import { mainnet, profileFor, testnet } from "@trigate/signing/VenueProfile"
import { flipReason } from "@trigate/testing/Reason"
import type { Seen } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream, rpcReply } from "@trigate/testing/RecordingUpstream"
import { TokenChain } from "@trigate/tokens/TokenChain"
import * as Tokens from "@trigate/tokens/Tokens"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import * as Trading from "@trigate/trading/Trading"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

type Network = "mainnet" | "testnet"

const networks = ["mainnet", "testnet"] as const

const address = "EQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcFI-"
const hash = `0x${"ab".repeat(32)}` as const

/** Everything behind one address, recorded: the venue's API, its node, the token chain and the layer 2. */
const provider = recordingUpstream((request) => {
  if (request.path === "/exchange") return { body: `{"status":"ok","response":{"type":"default"}}` }
  if (request.path === "/info") return { body: `{"universe":[],"tokens":[]}` }
  if (request.path === "/KEY/evm") return rpcReply(`"0x7"`)(request)
  if (request.path === "/KEY/api/v2/jsonRPC") return { body: `{"ok":true,"result":"${address}"}` }
  return rpcReply("null")(request)
})

/** One call of each service, and an action that is signed for whichever network there is. */
const session = Effect.gen(function*() {
  const { submit } = yield* Exchange
  yield* Info.use(({ spotMeta }) => spotMeta())
  assert.strictEqual(yield* TradingEvm.use(({ gasPrice }) => gasPrice()), 7n)
  assert.strictEqual(yield* TokenChain.use(({ packAddress }) => packAddress({ address })), address)
  assert.isNull(yield* Layer2.use(({ getTransactionReceipt }) => getTransactionReceipt({ hash })))
  const nonce = yield* NonceSource.NonceSource.use(({ next }) => next(keys.trader.address))
  const signed = yield* ActionBuilder.delegate({ validator: keys.validator.address, wei: 1n, nonce })
  assert.strictEqual((yield* submit(signed)).status, "ok")
  return { signed, submit }
})

type Session = Effect.Success<typeof session>

class Main extends Context.Service<Main, Session>()("@trigate/server/test/TwoNetworks/Main") {}
class Test extends Context.Service<Test, Session>()("@trigate/server/test/TwoNetworks/Test") {}

type Chains = Layer.Layer<Trading.Services | Trading.Signing | TokenChain | Layer2, Config.ConfigError>

const signer = () => Signer.layerPrivateKey(Redacted.make(keys.trader.privateKey))

const environmentOf = (network: Network, url: string, prefix = "") => ({
  [`${prefix}TRIGATE_NETWORK`]: network,
  [`${prefix}TRIGATE_TRADING_API_URL`]: url,
  [`${prefix}TRIGATE_TRADING_NODE_URL`]: `${url}/KEY`,
  [`${prefix}TRIGATE_TOKEN_CHAIN_URL`]: `${url}/KEY`,
  [`${prefix}TRIGATE_LAYER2_URL`]: `${url}/KEY`
})

const fromSettings = () => Layer.mergeAll(Trading.layerConfig(), Tokens.layerConfig(), Layer2Chain.layerConfig())

/** The ways to say where a network is, of two at once. */
const ways: { readonly [way: string]: (urls: { readonly [N in Network]: string }) => (network: Network) => Chains } = {
  "values": (urls) => (network) => {
    const addresses = [`${urls[network]}/KEY`]
    return Layer.mergeAll(
      Trading.layer({ network, addresses: { api: [urls[network]], node: addresses } }),
      Tokens.layer({ addresses }),
      Layer2Chain.layer({ addresses })
    )
  },
  "a configuration of each option": (urls) => (network) => {
    const addresses = Config.succeed([`${urls[network]}/KEY`])
    return Layer.mergeAll(
      Trading.layerConfig({
        network: Config.succeed(network),
        addresses: { api: Config.succeed([urls[network]]), node: addresses }
      }),
      Tokens.layerConfig({ addresses }),
      Layer2Chain.layerConfig({ addresses })
    )
  },
  "a source of settings for each": (urls) => (network) =>
    fromSettings().pipe(
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: environmentOf(network, urls[network]) })))
    ),
  "one environment with a prefix for each": (urls) => {
    const env = {
      ...environmentOf("mainnet", urls.mainnet, "MAINNET_"),
      ...environmentOf("testnet", urls.testnet, "TESTNET_")
    }
    const source = ConfigProvider.layer(ConfigProvider.fromEnv({ env }))
    return (network) => {
      const behind = Config.nested(network.toUpperCase())
      return Layer.mergeAll(
        Trading.layerConfig(behind(Trading.config)),
        Tokens.layerConfig(behind(Tokens.config)),
        Layer2Chain.layerConfig(behind(Layer2Chain.config))
      ).pipe(Layer.provide(source))
    }
  }
}

const decode = Schema.decodeUnknownEffect(SignedEnvelope)

const requestsOf = (seen: ReadonlyArray<Seen>) => seen.map(({ body, method, path }) => `${method} ${path} ${body}`)

/** What a session asks its provider for, and nothing else. */
const expected = ({ signed }: Session) => [
  `POST /info {"type":"spotMeta"}`,
  `POST /KEY/evm {"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`,
  `POST /KEY/api/v2/jsonRPC {"jsonrpc":"2.0","id":1,"method":"packAddress","params":{"address":"${address}"}}`,
  `POST /KEY {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["${hash}"]}`,
  `POST /exchange ${Json.stringify(signed)}`
]

describe("two networks in one process", () => {
  for (const [way, chainsOf] of Object.entries(ways)) {
    it.live(`ask their own addresses and sign for themselves: ${way}`, () =>
      Effect.gen(function*() {
        const providers = { mainnet: yield* provider, testnet: yield* provider }
        const chains = chainsOf({ mainnet: providers.mainnet.url, testnet: providers.testnet.url })
        const both = yield* Layer.build(
          Layer.merge(
            Layer.effect(Main, session).pipe(Layer.provide([chains("mainnet"), signer()])),
            Layer.effect(Test, session).pipe(Layer.provide([chains("testnet"), signer()]))
          )
        )
        const sessions = { mainnet: Context.get(both, Main), testnet: Context.get(both, Test) }
        for (const network of networks) {
          const { seen } = providers[network]
          const session = sessions[network]
          assert.deepStrictEqual(requestsOf(seen), expected(session))
          assert.strictEqual(session.signed.action[mainnet.chainField], profileFor(network).chainName)
          const body = yield* Effect.flatMap(Effect.fromResult(Json.parseStrict(seen.at(-1)?.body ?? "")), decode)
          const recovered = yield* SignerRecovery.recover(profileFor(network), body)
          assert.strictEqual(recovered.signer, keys.trader.address)
        }
        // each refuses what is signed for the other, and sends nothing
        for (const [here, there] of [["mainnet", "testnet"], ["testnet", "mainnet"]] as const) {
          const refused = yield* flipReason(sessions[here].submit(sessions[there].signed))
          assert.strictEqual(refused._tag, "InvalidSignature")
        }
        for (const network of networks) assert.lengthOf(providers[network].seen, 5)
        assert.notStrictEqual(mainnet.chainName, testnet.chainName)
      }).pipe(Effect.provide(Secp256k1.layer)))
  }
})
