/** The chains behind the gateway: live where any address is configured, else the sandbox. Never a mixture. */
import * as Layer2Upstream from "@trigate/layer2/Layer2Upstream"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { mainnet, testnet } from "@trigate/signing/VenueProfile"
import * as MetadataFetchUndici from "@trigate/tokens/MetadataFetchUndici"
import * as TokenChainUpstream from "@trigate/tokens/TokenChainUpstream"
import * as Admission from "@trigate/trading/Admission"
import * as ExchangeUpstream from "@trigate/trading/ExchangeUpstream"
import * as InfoUpstream from "@trigate/trading/InfoUpstream"
import * as TradingEvmUpstream from "@trigate/trading/TradingEvmUpstream"
import * as UsedNonces from "@trigate/trading/UsedNonces"
import * as UsedNoncesRedis from "@trigate/trading/UsedNoncesRedis"
import * as AddressHealthMemory from "@trigate/upstream/AddressHealthMemory"
import * as AddressHealthRedis from "@trigate/upstream/AddressHealthRedis"
import * as Budgets from "@trigate/upstream/Budgets"
import * as Calls from "@trigate/upstream/Calls"
import * as ChainGuard from "@trigate/upstream/ChainGuard"
import * as Upstream from "@trigate/upstream/Upstream"
import * as WireUndici from "@trigate/upstream/WireUndici"
import * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { GatewayStatus } from "./GatewayStatus.ts"
import * as RedisReadiness from "./RedisReadiness.ts"
import type { Settings } from "./Settings.ts"
import * as SharedRedis from "./SharedRedis.ts"

/** Whether no upstream address at all is configured. */
export const isSandbox = (settings: Settings): boolean =>
  settings.TRIGATE_TRADING_API_URL.length === 0 && settings.TRIGATE_TRADING_NODE_URL.length === 0 &&
  settings.TRIGATE_TOKEN_CHAIN_URL.length === 0 && settings.TRIGATE_LAYER2_URL.length === 0

const profileOf = (settings: Settings) => settings.TRIGATE_NETWORK === "mainnet" ? mainnet : testnet

const admissionOf = (settings: Settings) =>
  Admission.layer({
    profile: profileOf(settings),
    strict: settings.TRIGATE_STRICT,
    relayActions: Option.match(settings.TRIGATE_RELAY_ACTIONS, {
      onNone: () => "none" as const,
      onSome: (actions) => actions === "*" ? "all" as const : actions
    }),
    ...(Option.isSome(settings.TRIGATE_SIGNERS) ? { signers: settings.TRIGATE_SIGNERS.value } : {})
  })

/** What replicas share: in process, or in the Redis that the settings name. */
const sharedOf = (settings: Settings) =>
  Option.match(settings.TRIGATE_REDIS_URL, {
    onNone: () => Layer.merge(UsedNonces.layerMemory(), AddressHealthMemory.layer()),
    onSome: (url) =>
      Layer.merge(RedisReadiness.layer, AddressHealthRedis.layer()).pipe(
        // nonces of one network are not those of another, nor a sandbox's those of a venue
        Layer.provideMerge(UsedNoncesRedis.layer({
          prefix: `trigate:{used-nonces:${isSandbox(settings) ? "sandbox" : settings.TRIGATE_NETWORK}}:`,
          lease: Duration.sum(settings.TRIGATE_ONCE_DEADLINE, Duration.seconds(10))
        })),
        Layer.provide(SharedRedis.layer(url))
      )
  })

/** How the calls of live chains go out. */
const callsOf = (settings: Settings) =>
  Calls.layerNoDeps({
    readDeadline: settings.TRIGATE_READ_DEADLINE,
    onceDeadline: settings.TRIGATE_ONCE_DEADLINE
  }).pipe(
    Layer.provide(ChainGuard.layer({
      guarded: [
        { upstream: Upstream.make("trading-node", settings.TRIGATE_TRADING_NODE_URL), path: "/evm" },
        { upstream: Upstream.make("layer2", settings.TRIGATE_LAYER2_URL), path: "" }
      ]
    })),
    Layer.provide(Budgets.layerUnlimited),
    Layer.provide(WireUndici.layer())
  )

const live = (settings: Settings) => {
  const trading = {
    api: settings.TRIGATE_TRADING_API_URL,
    node: settings.TRIGATE_TRADING_NODE_URL
  }
  return Layer.mergeAll(
    ExchangeUpstream.layer(trading).pipe(Layer.provide(admissionOf(settings))),
    InfoUpstream.layer(trading),
    TradingEvmUpstream.layer(trading),
    TokenChainUpstream.layer({ addresses: settings.TRIGATE_TOKEN_CHAIN_URL }).pipe(
      Layer.provide(MetadataFetchUndici.layer())
    ),
    Layer2Upstream.layer({ addresses: settings.TRIGATE_LAYER2_URL })
  ).pipe(Layer.provide(callsOf(settings)))
}

/** The five services, and whether the Redis that replicas share answers. */
export const layer = (settings: Settings) => {
  const chains = isSandbox(settings)
    ? Sandbox.layerNoDeps({ profile: profileOf(settings) }).pipe(Layer.provide(admissionOf(settings)))
    : live(settings)
  return Layer.provideMerge(chains, sharedOf(settings))
}

const chain = (sandbox: boolean, upstreams: { readonly [label: string]: number }) => ({
  mode: sandbox
    ? "sandbox" as const
    : Object.values(upstreams).some((count) => count > 0)
    ? "live" as const
    : "not-configured" as const,
  upstreams
})

/** What readiness tells of the settings: modes and counts, no address. */
export const statusOf = (settings: Settings): GatewayStatus["Service"] => {
  const sandbox = isSandbox(settings)
  return {
    sandbox,
    network: settings.TRIGATE_NETWORK,
    chains: {
      trading: chain(sandbox, {
        "trading-api": settings.TRIGATE_TRADING_API_URL.length,
        "trading-node": settings.TRIGATE_TRADING_NODE_URL.length
      }),
      tokens: chain(sandbox, { "token-chain": settings.TRIGATE_TOKEN_CHAIN_URL.length }),
      layer2: chain(sandbox, { layer2: settings.TRIGATE_LAYER2_URL.length })
    }
  }
}
