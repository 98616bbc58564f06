/** Selects the store of callers' keys from the settings, for the gateway and for the tool that creates keys. */
import * as CallerKeys from "@trigate/callers/CallerKeys"
import * as Key from "@trigate/callers/Key"
import type { KeyStore, KeyStoreFault } from "@trigate/callers/KeyStore"
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as NetAddress from "effect/net/NetAddress"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { SettingsError } from "../settings/SettingsSources.ts"
import * as ActionLogStore from "./ActionLogStore.ts"

// @effect-diagnostics-next-line nodeBuiltinImport:off -- a hash without a promise, for each request
import { hash } from "node:crypto"
import type { Settings } from "../settings/Settings.ts"
import { settings as declared } from "../settings/Settings.ts"

/** The location of the callers' keys: a file, or the database that also stores the action log. */
export type StoreLocation = { readonly kind: "file"; readonly file: string } | ActionLogStore.DatabaseLocation

const { env } = declared.callers

const wrong = (message: string): Result.Result<never, SettingsError> =>
  Result.fail(new SettingsError({ setting: env, message }))

const isLoopback = (host: string): boolean =>
  host === "localhost" || Result.match(NetAddress.ipFromString(host), {
    onFailure: () => false,
    onSuccess: (address) => NetAddress.isLoopback(NetAddress.toCanonical(address))
  })

/**
 * Returns the location of the required keys; `None` if the gateway requires no keys.
 *
 * Fails if the location of the keys is not configured. Also fails if other machines can reach the gateway and the
 * settings do not configure who is allowed to call.
 */
export const findLocation = (settings: Settings): Result.Result<Option.Option<StoreLocation>, SettingsError> => {
  const callers = Option.getOrUndefined(settings.callers)
  if (callers === "open") return Result.succeedNone
  if (callers === undefined) {
    return isLoopback(settings.host) ? Result.succeedNone : wrong(
      `other machines can reach ${settings.host}: set ${env} to \`keys\`, to the path of a key file, or to \`open\` (every client)`
    )
  }
  if (callers !== "keys") return Result.succeedSome({ kind: "file", file: callers })
  const database = ActionLogStore.findDatabase(settings)
  return Option.isSome(database)
    ? Result.succeed(database)
    : wrong(
      `${env}=keys requires a database: set ${declared.databaseUrl.env}, or set ${env} to the path of a key file`
    )
}

/** Returns the location at which new keys are stored, even if the gateway does not require keys yet. */
export const placeToChange = (settings: Settings): Option.Option<StoreLocation> =>
  Option.match(Option.filter(settings.callers, (callers) => callers !== "keys" && callers !== "open"), {
    onNone: () => ActionLogStore.findDatabase(settings),
    onSome: (file) => Option.some({ kind: "file", file })
  })

/**
 * Describes a key store in a message: a file by its path, a database only by its type, because its URL can contain a
 * password.
 */
export const describeLocation = (place: StoreLocation): string => place.kind === "file" ? place.file : place.kind

/**
 * Provides a `KeyStore` that stores the callers' keys in a file or a database. In the mode `create`, a SQLite file that
 * does not exist is created. The database driver is loaded when the layer is built.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerStore = (
  place: StoreLocation,
  mode: "create" | "existing"
): Layer.Layer<KeyStore, never, FileSystem> =>
  Layer.unwrap(Effect.promise(() =>
    place.kind === "file"
      ? import("@trigate/callers/KeyStoreFile").then(({ layer }) => layer(place.file))
      : import("@trigate/callers/KeyStoreSql").then(({ layer }) =>
        Layer.provide(layer, ActionLogStore.layerDatabase(place, mode))
      )
  ))

// Node's hash function takes a tenth of the time of the default hasher
const hasher = Layer.succeed(Key.Hasher, (text) => hash("sha256", text))

const storeLayer = (place: StoreLocation): Layer.Layer<CallerKeys.CallerKeys | KeyStore, KeyStoreFault, FileSystem> =>
  Layer.unwrap(
    Effect.promise(() =>
      import("@trigate/callers/CallerKeysStored").then(({ layer }) =>
        layer().pipe(
          Layer.provideMerge(layerStore(place, "create")),
          Layer.provide(hasher)
        )
      )
    )
  )

/**
 * The keys that callers must have, and the operations with which the operator changes those keys. Fails if the store
 * cannot be used.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  place: Option.Option<StoreLocation>
): Layer.Layer<CallerKeys.CallerKeys, SettingsError, FileSystem> =>
  Option.match(place, {
    onNone: () => CallerKeys.layerOpen,
    onSome: (found) =>
      Layer.effectContext(
        Effect.mapError(
          Layer.build(storeLayer(found)),
          ({ message }) => new SettingsError({ setting: env, message: `${env}: ${message}` })
        )
      )
  })
