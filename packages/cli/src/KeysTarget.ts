/** The target of `trigate keys`: the callers' keys in a file or a database, or the keys of a running gateway. */
import * as KeyStore from "@trigate/callers/KeyStore"
import * as Admin from "@trigate/client/Admin"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Target from "./Target.ts"

/**
 * The fields of a key that the CLI displays. `hash` is present only if the key was read from a store, because a running
 * gateway does not return it.
 */
export const KeyShown = Schema.Struct({
  ...KeyStore.KeyRecord.fields,
  hash: Schema.optionalKey(KeyStore.KeyRecord.fields.hash)
})
export type KeyShown = typeof KeyShown.Type

/** A new key, with its displayed fields. */
export interface KeyIssued {
  readonly key: Redacted.Redacted
  readonly record: KeyShown
}

/** The operations of `trigate keys` on a key store or a running gateway. `E` is the error of an operation. */
export interface Keys<E> {
  readonly list: Effect.Effect<ReadonlyArray<KeyShown>, E>
  readonly create: (creation: KeyStore.Creation) => Effect.Effect<KeyIssued, E>
  readonly rotate: (rotation: KeyStore.Rotation) => Effect.Effect<KeyIssued, E>
  readonly revoke: (
    caller: { readonly name: string; readonly prefix?: string }
  ) => Effect.Effect<ReadonlyArray<Pick<KeyShown, "name" | "prefix">>, E>
}

const encodeLifetime = ({ lifetime }: Pick<KeyStore.Creation, "lifetime">) =>
  lifetime === undefined ? {} : { lifetime: Duration.toMillis(lifetime) }

/** A key as a gateway returns it. */
type ReturnedKey = KeyShown & { readonly state: string }

const shown = ({ state: _, ...record }: ReturnedKey): KeyShown => record

/** Returns the operations on the keys of a running gateway, through its admin routes at a URL. */
export const ofGateway = Effect.fnUntraced(function*(address: string) {
  const asked = yield* Target.admin("keys", address)
  const issued = ({ key, record }: { readonly key: Redacted.Redacted; readonly record: ReturnedKey }): KeyIssued => ({
    key,
    record: shown(record)
  })
  return {
    list: Effect.map(asked(Admin.keys()), ({ keys }) => keys.map(shown)),
    create: (creation: KeyStore.Creation) => {
      const { lifetime: _, ...wanted } = creation
      return Effect.map(asked(Admin.createKey({ ...wanted, ...encodeLifetime(creation) })), issued)
    },
    rotate: (rotation: KeyStore.Rotation) => {
      const overlap = Duration.toMillis(rotation.overlap)
      return Effect.map(asked(Admin.rotateKey(rotation.name, { overlap, ...encodeLifetime(rotation) })), issued)
    },
    revoke: ({ name, prefix }: { readonly name: string; readonly prefix?: string }) =>
      asked(Admin.revokeKeys(name, prefix === undefined ? {} : { prefix }))
  }
})
