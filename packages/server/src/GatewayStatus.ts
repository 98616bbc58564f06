/**
 * The content of `/health/ready`: the mode of each chain (live, sandbox or not configured), and the readiness of the
 * stores.
 */
import { degradable } from "@trigate/api/HealthApi"
import type { Readiness } from "@trigate/api/HealthApi"
import * as ResumePosition from "@trigate/domain/streams/ResumePosition"
import type { Phase, Status as EventLogStatus } from "@trigate/trading/accounts/AccountEvents"
import { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import type { Used } from "@trigate/trading/actionLog/LoggedAction"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import { addressNames } from "./settings/Settings.ts"
import type { Settings } from "./settings/Settings.ts"

/**
 * The mode of each chain.
 *
 * @since 0.1.0
 * @category services
 */
export class GatewayStatus extends Context.Service<
  GatewayStatus,
  Pick<Readiness, "sandbox" | "network" | "chains">
>()("@trigate/server/GatewayStatus") {}

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
}>()("@trigate/server/GatewayStatus/StoreReadiness") {}

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

const probing = ({ backing, isUp, used }: ActionLog["Service"], redis: Option.Option<Redis.Redis["Service"]>) => {
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
export const layerStoreReadiness: Layer.Layer<StoreReadiness, never, ActionLog> = Layer.effect(
  StoreReadiness,
  Effect.zipWith(ActionLog, Effect.serviceOption(Redis.Redis), probing).pipe(
    // probes once at startup, so that an unreachable store is reported before the first action
    Effect.tap((probe) => probe),
    Effect.map((probe) => StoreReadiness.of({ probe }))
  )
)
