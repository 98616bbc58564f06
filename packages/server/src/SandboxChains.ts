/** The simulated chains of the sandbox. */
import * as Quotas from "@trigate/callers/Quotas"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as SandboxState from "@trigate/sandbox/SandboxState"
import * as SandboxSettings from "@trigate/sandbox/unstable/SandboxSettings"
import * as VenueStreams from "@trigate/sandbox/unstable/streams/VenueStreams"
import * as VenueArchive from "@trigate/sandbox/venue/VenueArchive"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import { SharedTransactions } from "@trigate/tokens/transactions/Transactions"
import * as EventStore from "@trigate/trading/accounts/AccountEvents"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as Admission from "@trigate/trading/admission/Admission"
import * as Inspector from "@trigate/trading/Inspector"
import * as Streams from "@trigate/trading/streams/Streams"
import { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import * as EvmFeed from "@trigate/upstream/unstable/evm/EvmFeed"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as GatewayStatus from "./Chains.ts"
import { Chains, feedServing } from "./Chains.ts"
import * as StreamOptions from "./settings/Settings.ts"
import type { Settings } from "./settings/Settings.ts"
import type { SettingsError } from "./settings/SettingsSources.ts"
import { audited, type AuditLogWriter } from "./stores/AuditLogWriter.ts"

/** Makes the sandbox. The action log of the sandbox is in memory, separate from the log of live chains. */
const make = () =>
  Layer.effect(
    Chains,
    Effect.map(Effect.context<ActionLog.ActionLog | SandboxState.SandboxState | SharedTransactions>(), (context) => {
      const kept = Context.pick(ActionLog.ActionLog, SandboxState.SandboxState, SharedTransactions)(context)
      return Chains.of({
        actionLog: Context.get(kept, ActionLog.ActionLog),
        windows: new Map(),
        sandbox: Context.get(kept, SandboxState.SandboxState),
        openStreams: Effect.fnUntraced(function*(queries, settings) {
          const shared = yield* Streams.makeShared(queries, {
            addresses: [Redacted.make("sandbox")],
            limits: StreamOptions.toLimits(settings()),
            events: StreamOptions.toEventLog(settings())
          }).pipe(
            Effect.provideService(SocketTransport, VenueStreams.make(Context.get(kept, SandboxState.SandboxState))),
            Effect.provideServiceEffect(EventStore.EventStore, EventStore.makeMemory)
          )
          return () => shared
        }),
        openFeed: (chain, ask) => EvmFeed.make({ serving: feedServing[chain], ask }),
        layerOf: (settings) =>
          Layer.mergeAll(
            Sandbox.layerServices(),
            Inspector.layer(Admission.toOptions(settings)),
            VenueArchive.layer
          ).pipe(
            Layer.provide(Admission.layer(Admission.toOptions(settings))),
            Layer.provide(VenueProfile.layer(settings.network)),
            Layer.provide(Layer.succeedContext(kept))
          )
      })
    })
  ).pipe(Layer.provide(SharedTransactions.layer()), Layer.provideMerge(GatewayStatus.layerStoreReadiness))

/**
 * Makes the sandbox's state from the settings. Loads the module that reads recorded prices only if the sandbox replays
 * such prices.
 */
const sandboxState = (
  settings: Settings
): Layer.Layer<SandboxState.SandboxState, SettingsError, FileSystem> => {
  const options = SandboxSettings.toOptions(settings)
  return settings.sandboxPrices.length === 0 ? SandboxState.layer(options) : Layer.unwrap(
    Effect.promise(() => import("./stores/SandboxPrices.ts")).pipe(
      Effect.flatMap(({ read }) => read(settings)),
      Effect.map((prices) => SandboxState.layer({ ...options, prices }))
    )
  )
}

/**
 * Provides the sandbox, and the callers' quotas in memory.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  settings: Settings
): Layer.Layer<Chains | Quotas.Quotas, SettingsError, AuditLogWriter | FileSystem> =>
  Layer.merge(
    Layer.provide(make(), [audited(ActionLogMemory.layer()), sandboxState(settings)]),
    Quotas.layerMemory
  )
