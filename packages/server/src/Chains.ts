/**
 * The chains behind the gateway, live or simulated, and the content of `/health/ready`: the mode and the readiness of
 * each.
 *
 * Settings can change while a gateway serves. The action log, rate-limit use, cached responses, connections, outlier
 * ejections and the sandbox's state persist across a change. The services that use this state are rebuilt.
 */
import { degradable, type Readiness } from "@trigate/api/unstable/HealthApi"
import * as ResumePosition from "@trigate/domain/unstable/streams/Subscription"
import type { Layer2 } from "@trigate/evm/Layer2"
import type * as EvmFeed from "@trigate/evm/unstable/EvmFeed"
import type * as SandboxState from "@trigate/sandbox/SandboxState"
import type { TokenChain } from "@trigate/tokens/TokenChain"
import type { Phase, Status as EventLogStatus } from "@trigate/trading/accounts/AccountEvents"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import type { Exchange } from "@trigate/trading/Exchange"
import type { Guard } from "@trigate/trading/guard/Guard"
import type { GuardStore } from "@trigate/trading/guard/GuardStore"
import type { Info } from "@trigate/trading/Info"
import type * as Inspector from "@trigate/trading/Inspector"
import type { SharedStreams } from "@trigate/trading/streams/Streams"
import type { TradingEvm } from "@trigate/trading/TradingEvm"
import type { Used } from "@trigate/trading/unstable/actionLog/LoggedAction"
import type { RateWindow } from "@trigate/upstream/unstable/limits/RateWindow"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import { addressNames, type Settings } from "./settings/Settings.ts"

/** The services of the chains, and the service that inspects signed bodies. */
export type Services = Exchange | Guard | Info | Inspector.Inspector | TradingEvm | TokenChain | Layer2

/**
 * The chains of a gateway: what persists when the settings change, and the services that follow from settings. A change
 * of the network or of the stores has no effect.
 *
 * @since 0.1.0
 * @category services
 */
export class Chains extends Context.Service<Chains, {
  readonly actionLog: ActionLog.ActionLog["Service"]
  /** The guard, whose policies are replaced when the settings change. */
  readonly guard: Guard["Service"]
  /** The store of halts, reservations and dead man's switches; `undefined` if they are in this process. */
  readonly guardStore: GuardStore["Service"] | undefined
  /** Counts the actions of the signers of dead man's switches. */
  readonly usedNonces: ActionLog.UsedNonces
  /** The use of each upstream's rate limit, by upstream; empty for the sandbox. */
  readonly windows: Map<string, RateWindow>
  /** The sandbox's state; `undefined` for live chains. */
  readonly sandbox: SandboxState.SandboxState["Service"] | undefined
  /** Returns the streams of the venue; `undefined` while that chain is not configured. */
  readonly streams: () => SharedStreams | undefined
  /** The feeds that follow the newest blocks of the EVM chains for the callers' subscriptions (`eth_subscribe`). */
  readonly feeds: { readonly [chain in FeedChain]: EvmFeed.EvmFeed }
  /** Returns the services that follow from settings. */
  readonly layerServices: (settings: Settings) => Layer.Layer<Services>
}>()("@trigate/server/Chains") {}

/** The chains that have subscriptions over JSON-RPC. */
export type FeedChain = "trading" | "layer2"

/** The settings that a gateway serves with. State that persists when the settings change reads them here. */
export class SettingsInForce {
  current: Settings
  /**
   * The longest deadline of an action in any settings so far, because an action that was sent with older settings can
   * be in flight until the deadline of those settings.
   */
  onceDeadline: Duration.Duration

  constructor(first: Settings) {
    this.current = first
    this.onceDeadline = first.onceDeadline
  }

  replace(settings: Settings): void {
    this.current = settings
    this.onceDeadline = Duration.max(this.onceDeadline, settings.onceDeadline)
  }
}

/**
 * The mode of each chain.
 *
 * @since 0.1.0
 * @category services
 */
export class GatewayStatus extends Context.Service<
  GatewayStatus,
  Pick<Readiness, "sandbox" | "network" | "chains">
>()("@trigate/server/Chains/GatewayStatus") {}

/** Returns whether a gateway serves the sandbox, which is the case if no upstream URL is configured. */
export const isSandbox = (settings: Pick<Settings, (typeof addressNames)[number]>): boolean =>
  addressNames.every((name) => settings[name].length === 0)

const chain = (sandbox: boolean, upstreams: { readonly [label: string]: number }) => ({
  mode: sandbox
    ? "sandbox" as const
    : Object.values(upstreams).some((count) => count > 0)
    ? "live" as const
    : "not-configured" as const,
  upstreams
})

/** Returns the status of a gateway: the mode of each chain, and the number of URLs of each upstream. */
export const makeStatus = (settings: Settings): Required<GatewayStatus["Service"]> => {
  const sandbox = isSandbox(settings)
  return {
    sandbox,
    network: settings.network,
    chains: {
      trading: chain(sandbox, {
        "trading-api": settings.tradingApiUrl.length,
        "trading-node": settings.tradingNodeUrl.length
      }),
      tokens: chain(sandbox, { "token-chain": settings.tokenChainUrl.length }),
      layer2: chain(sandbox, { layer2: settings.layer2Url.length })
    }
  }
}

/**
 * The state of the configured stores. Without this service, a gateway reports no stores.
 *
 * @since 0.1.0
 * @category services
 */
export class StoreReadiness extends Context.Service<StoreReadiness, {
  /** Probes each configured store. A store that does not respond in time is reported as unreachable. */
  readonly probe: Effect.Effect<Pick<Readiness, "actionLog" | "redis">>
}>()("@trigate/server/Chains/StoreReadiness") {}

const state = (isUp: boolean) => isUp ? "up" as const : "away" as const

/** Returns the readiness of the account event log, from which reconnecting clients receive missed events. */
export const eventLogReadiness = (
  { accounts, backing, head, isUp, role, unrecorded }: EventLogStatus
): NonNullable<Readiness["eventLog"]> => {
  const count = (phase: Phase) => accounts.filter((account) => account.phase === phase).length
  return {
    backing,
    state: state(isUp),
    role,
    position: ResumePosition.print(head),
    accounts: {
      waiting: count("waiting"),
      subscribing: count("subscribing"),
      refilling: count("refilling"),
      live: count("live")
    },
    unrecorded
  }
}

/** Returns the names of the parts that do not work, or work only in part. The gateway accepts traffic nevertheless. */
export const degradedParts = (
  { actionLog, callers, eventLog, redis }: Pick<Readiness, "actionLog" | "callers" | "eventLog" | "redis">
): NonNullable<Readiness["degraded"]> => {
  const parts = {
    actionLog: actionLog?.state === "away",
    callers: callers !== undefined && callers !== "up",
    redis: redis === "away",
    eventLog: eventLog !== undefined && (eventLog.state === "away" || eventLog.unrecorded > 0)
  }
  return degradable.filter((part) => parts[part])
}

const deadline = "250 millis"

// if this fraction of the byte quota is used, the action log is reported as full, because the remaining bytes are
// rarely enough for another action
const allUsed = 0.99
const nearlyAllUsed = 0.8

const quotaLevel = ({ familiar, strangers }: Used) => {
  if (Math.min(familiar, strangers) >= allUsed) return "full" as const
  return Math.max(familiar, strangers) >= nearlyAllUsed ? "nearly full" as const : "enough" as const
}

const probing = (
  { backing, isUp, used }: ActionLog.ActionLog["Service"],
  redis: Option.Option<Redis.Redis["Service"]>
) => {
  const isRedisUp = Option.match(redis, {
    onNone: () => Effect.succeedNone,
    onSome: ({ send }) => Effect.asSome(Effect.isSuccess(Effect.timeout(send("PING"), deadline)))
  })
  return Effect.map(Effect.all([isUp, isRedisUp, used], { concurrency: "unbounded" }), ([isLogUp, found, used]) => ({
    actionLog: { backing, state: state(isLogUp), used, room: quotaLevel(used) },
    ...(Option.isSome(found) ? { redis: state(found.value) } : {})
  }))
}

/**
 * Provides the probe of the action log, and of Redis if the context has a Redis client.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerStoreReadiness: Layer.Layer<StoreReadiness, never, ActionLog.ActionLog> = Layer.effect(
  StoreReadiness,
  Effect.zipWith(ActionLog.ActionLog, Effect.serviceOption(Redis.Redis), probing).pipe(
    // probes once at startup, so that an unreachable store is reported before the first action
    Effect.tap((probe) => probe),
    Effect.map((probe) => StoreReadiness.of({ probe }))
  )
)
