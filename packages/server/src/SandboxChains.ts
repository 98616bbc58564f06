/** The simulated chains of the sandbox. */
import * as Quotas from "@trigate/callers/Quotas"
import * as Policy from "@trigate/domain/actions/Policy"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as SandboxState from "@trigate/sandbox/SandboxState"
import * as VenueStreams from "@trigate/sandbox/unstable/streams/VenueStreams"
import * as VenueArchive from "@trigate/sandbox/venue/VenueArchive"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import { SharedTransactions } from "@trigate/tokens/transactions/Transactions"
import * as EventStore from "@trigate/trading/accounts/AccountEvents"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as Admission from "@trigate/trading/admission/Admission"
import * as Guard from "@trigate/trading/guard/Guard"
import * as Inspector from "@trigate/trading/Inspector"
import * as Streams from "@trigate/trading/streams/Streams"
import { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { Chains, layerStoreReadiness } from "./Chains.ts"
import * as SandboxSettings from "./settings/SandboxSettings.ts"
import { type Settings, toEventLog, toLimits } from "./settings/Settings.ts"
import type { SettingsError } from "./settings/SettingsSources.ts"
import * as AuditLogWriter from "./stores/AuditLogWriter.ts"
import { CurrentServices, openFeeds } from "./streams/Sessions.ts"

/**
 * The services that persist when the settings change. The action log is in memory, separate from the log of live
 * chains.
 */
const persistent = [ActionLog.ActionLog, SandboxState.SandboxState, SharedTransactions] as const

const make = Effect.fnUntraced(function*(first: Settings, usedNonces: ActionLog.UsedNonces) {
  const services = Context.pick(...persistent)(
    yield* Effect.context<Context.Service.Identifier<(typeof persistent)[number]>>()
  )
  const sandbox = Context.get(services, SandboxState.SandboxState)
  const { queries } = yield* CurrentServices
  const guard = yield* Guard.make({
    policies: first.policies ?? Policy.none,
    info: queries,
    log: Context.get(services, ActionLog.ActionLog),
    audit: yield* AuditLogWriter.current
  })
  const shared = yield* Streams.makeShared(queries, {
    addresses: [Redacted.make("sandbox")],
    limits: toLimits(first),
    events: toEventLog(first)
  }).pipe(
    Effect.provideService(SocketTransport, VenueStreams.make(sandbox)),
    Effect.provideServiceEffect(EventStore.EventStore, EventStore.makeMemory)
  )
  return Chains.of({
    actionLog: Context.get(services, ActionLog.ActionLog),
    windows: new Map(),
    guard,
    guardStore: undefined,
    usedNonces,
    sandbox,
    streams: () => shared,
    feeds: yield* openFeeds(),
    layerServices: (settings) =>
      Layer.mergeAll(
        Sandbox.layerServices({ guard }),
        Inspector.layer(Admission.toOptions(settings)),
        VenueArchive.layer
      ).pipe(
        Layer.provide(Admission.layer(Admission.toOptions(settings))),
        Layer.provide(VenueProfile.layer(settings.network)),
        Layer.provide(Layer.succeedContext(services))
      )
  })
})

/**
 * Makes the sandbox's state from the settings. Loads the modules that read recorded prices, and that follow another
 * venue, only if the sandbox does so.
 */
const sandboxState = (
  settings: Settings
): Layer.Layer<SandboxState.SandboxState, SettingsError, FileSystem> => {
  const options = { ...SandboxSettings.toOptions(settings), network: settings.network }
  const prices = settings.sandboxPrices.length === 0
    ? Effect.undefined
    : Effect.flatMap(Effect.promise(() => import("./stores/SandboxPrices.ts")), ({ read }) => read(settings))
  const feed = Option.match(settings.sandboxFeedUrl, {
    onNone: () => Effect.undefined,
    onSome: (url) => Effect.flatMap(Effect.promise(() => import("./stores/SandboxPrices.ts")), ({ open }) => open(url))
  })
  return Layer.unwrap(
    Effect.map(Effect.all({ prices, feed }), (found) => SandboxState.layer({ ...options, ...found }))
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
): Layer.Layer<
  Chains | NonceSource.NonceSource | Quotas.Quotas,
  SettingsError,
  AuditLogWriter.AuditLogWriter | CurrentServices | FileSystem
> => {
  const nonces = new ActionLog.UsedNonces()
  return Layer.effect(Chains, make(settings, nonces)).pipe(
    Layer.provideMerge(layerStoreReadiness),
    Layer.provide([
      SharedTransactions.layer(),
      Layer.provide(
        ActionLog.layerNoting({ familiar: new Set(), nonces }),
        AuditLogWriter.audited(ActionLogMemory.layer())
      ),
      sandboxState(settings)
    ]),
    Layer.merge(Layer.merge(Quotas.layerMemory, NonceSource.layerMemory()))
  )
}
