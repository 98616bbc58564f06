/**
 * The chains behind the gateway: live chains if any upstream URL is configured, otherwise the sandbox (simulated
 * chains), never both.
 *
 * Settings can change while a gateway serves. The action log, rate-limit use, cached responses, connections, outlier
 * ejections and the sandbox's state persist across a change. The services that use this state are rebuilt.
 */
import * as EvmOperations from "@trigate/domain/evm/EvmOperations"
import * as Layer2Operations from "@trigate/domain/evm/Layer2Operations"
import type { Layer2 } from "@trigate/layer2/Layer2"
import type * as SandboxState from "@trigate/sandbox/SandboxState"
import type { TokenChain } from "@trigate/tokens/TokenChain"
import type * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import type { Exchange } from "@trigate/trading/Exchange"
import type { Info } from "@trigate/trading/Info"
import type * as Inspector from "@trigate/trading/Inspector"
import type { Queries } from "@trigate/trading/streams/CoinCatalog"
import type { SharedStreams } from "@trigate/trading/streams/Streams"
import type { TradingEvm } from "@trigate/trading/TradingEvm"
import type * as EvmFeed from "@trigate/upstream/evm/EvmFeed"
import type { AskNode } from "@trigate/upstream/evm/NodeReads"
import type { RateWindow } from "@trigate/upstream/limits/RateWindow"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Settings } from "./settings/Settings.ts"

/** The services of the chains, and the service that inspects signed bodies. */
export type Services = Exchange | Info | Inspector.Inspector | TradingEvm | TokenChain | Layer2

/**
 * Builds the chain services from settings. The state of the services persists when the settings change. A change of the
 * network or of the stores has no effect.
 *
 * @since 0.1.0
 * @category services
 */
export class Chains extends Context.Service<Chains, {
  /** The action log, which persists when the settings change. */
  readonly actionLog: ActionLog.ActionLog["Service"]
  /** The use of each upstream's rate limit, by upstream; empty for the sandbox. */
  readonly windows: Map<string, RateWindow>
  readonly layerOf: (settings: Settings) => Layer.Layer<Services>
  /** The sandbox's state; `undefined` for live chains. */
  readonly sandbox: SandboxState.SandboxState["Service"] | undefined
  /** Opens the streams of the trading chain. Each new connection uses the URL in the current settings. */
  readonly openStreams: (
    queries: Queries,
    settings: () => Settings
  ) => Effect.Effect<() => SharedStreams | undefined, never, Scope.Scope>
  /**
   * Opens the feed of an EVM chain, which follows the chain's newest blocks for the callers' subscriptions
   * (`eth_subscribe`). The feed queries the node through `ask`, and uses the current settings.
   */
  readonly openFeed: (
    chain: FeedChain,
    ask: AskNode,
    settings: () => Settings
  ) => Effect.Effect<EvmFeed.EvmFeed, never, Scope.Scope>
}>()("@trigate/server/Chains") {}

/** The chains that have subscriptions over JSON-RPC. */
export type FeedChain = "trading" | "layer2"

/** For each chain, the chain and protocol of the requests that its block feed sends to the node. */
export const feedServing = { trading: EvmOperations.serving, layer2: Layer2Operations.serving } as const
