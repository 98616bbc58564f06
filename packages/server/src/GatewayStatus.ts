/** What `/health/ready` says: how each chain is served, which does not change, and whether the stores can be reached. */
import type { Readiness } from "@trigate/api/HealthApi"
import { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import type * as ActionLogQuota from "@trigate/trading/actionLog/ActionLogQuota"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import { addressNames } from "./settings/Settings.ts"
import type { Settings } from "./settings/Settings.ts"

/**
 * How each chain is served.
 *
 * @since 0.1.0
 * @category services
 */
export class GatewayStatus extends Context.Service<
  GatewayStatus,
  Pick<Readiness, "sandbox" | "network" | "chains">
>()("@trigate/server/GatewayStatus") {}

/** Whether a gateway serves the sandbox: no upstream address is configured. */
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

/** The status of a gateway with some settings: modes, and the number of addresses. */
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

/** Asks each store within its deadline; says nothing about stores that are not configured. */
export const StoreReadiness = Context.Reference<Effect.Effect<Pick<Readiness, "actionLog" | "redis">>>(
  "@trigate/server/StoreReadiness",
  { defaultValue: () => Effect.succeed({}) }
)

const state = (isUp: boolean) => isUp ? "up" as const : "away" as const

const deadline = "250 millis"

// the bytes of a last action that finds room are seldom all that is free
const allUsed = 0.99
const nearlyAllUsed = 0.8

const quotaLevel = ({ familiar, strangers }: ActionLogQuota.Used) => {
  if (Math.min(familiar, strangers) >= allUsed) return "full" as const
  return Math.max(familiar, strangers) >= nearlyAllUsed ? "nearly full" as const : "enough" as const
}

const asking = ({ backing, isUp, used }: ActionLog["Service"], redis: Option.Option<Redis.Redis["Service"]>) => {
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
 * Asks the action log, and the Redis of the context if there is one.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerStoreReadiness: Layer.Layer<never, never, ActionLog> = Layer.effect(
  StoreReadiness,
  Effect.zipWith(ActionLog, Effect.serviceOption(Redis.Redis), asking).pipe(
    // a store that is unreachable should be reported before the first action
    Effect.tap((ask) => ask)
  )
)
