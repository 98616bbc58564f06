/**
 * The target of a command that uses a gateway's stores: the stores in the gateway's settings, or a running gateway.
 *
 * The settings are found as `trigate serve` finds them. Each command prints its target to standard error, because the
 * target depends on the machine and the folder in which the command runs.
 */
import * as Connection from "@trigate/client/Connection"
import * as Settings from "@trigate/server/settings/SettingsSources"
import { commandLine, type Settings as Decoded } from "@trigate/server/unstable/settings/Settings"
import * as CallerStore from "@trigate/server/unstable/stores/Stores"
import * as Flag from "effect/cli/Flag"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Option from "effect/Option"
import * as ServeCommand from "./commands/ServeCommand.ts"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as Output from "./Output.ts"

/** The flags for settings files, as in `trigate serve`. */
export const files = ServeCommand.files

/**
 * Reads the settings of the gateway whose stores a command uses. `flags` contains the settings that the command's own
 * flags set.
 */
export const settings = (
  given: ServeCommand.Files,
  flags: { readonly [name: string]: string } = {}
) => Settings.read({ ...ServeCommand.settingSources(given), flags })

/** Prints to standard error which store a command uses: a database by its type, a file by its path. */
export const printStore = (what: string, place: CallerStore.StoreLocation, { network }: Decoded): Effect.Effect<void> =>
  Output.printNotes([
    `${what}: ${place.kind === "SQLite" ? place.file : CallerStore.describeLocation(place)} (${network})`
  ])

/** Prints to standard error which gateway a command calls. */
export const printGateway = (what: string, { origin }: { readonly origin: string }): Effect.Effect<void> =>
  Output.printNotes([`${what}: the gateway at ${origin}`])

/** The option `--admin`, which selects a running gateway instead of the stores in the settings. */
export const adminFlag = Flag.String("admin").pipe(
  Flag.withMetavar("url"),
  Flag.withFallbackConfig(Config.String(commandLine.adminUrl)),
  Flag.optional,
  Flag.withDescription(
    `URL of a running gateway's admin routes (default: ${commandLine.adminUrl}), instead of the stores in the settings; ` +
      `${commandLine.adminKey} is the key, if the gateway requires one`
  )
)

const adminKey = Config.option(Config.Redacted(commandLine.adminKey))

/**
 * Prepares calls to the admin routes at an address, and prints the address. Returns a function that makes the calls.
 * Sends nothing itself.
 */
export const admin = Effect.fnUntraced(function*(what: string, address: string) {
  const baseUrl = yield* Effect.mapError(
    GatewayAccess.parseBaseUrl(address),
    () => Output.fault("--admin must be an http(s) URL without a query")
  )
  const client = yield* HttpClient.HttpClient
  const key = yield* Effect.mapError(adminKey, () => Output.fault(`${commandLine.adminKey} cannot be read`))
  const keyed = Option.match(key, {
    onNone: () => client,
    onSome: (secret) => HttpClient.mapRequest(client, HttpClientRequest.bearerToken(secret))
  })
  const connection = Connection.make(keyed, { baseUrl })
  yield* printGateway(what, baseUrl)
  return <A, E>(calls: Effect.Effect<A, E, Connection.Connection>): Effect.Effect<A, E> =>
    Effect.provideService(calls, Connection.Connection, connection)
})
