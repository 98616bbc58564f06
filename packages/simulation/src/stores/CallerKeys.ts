/** The keys of callers that replicas share, in a simulated Postgres: what the statements of `KeyStoreSql` do. */
import * as KeyStore from "@trigate/callers/KeyStore"
import * as KeyStoreSql from "@trigate/callers/KeyStoreSql"
import * as SqlStore from "@trigate/stores/unstable/SqlStore"
import type * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Access from "./Access.ts"

/** The tables. */
export interface State {
  version: number
  /** The records by prefix, without the times of their last use. */
  readonly records: Map<string, KeyStore.KeyRecord>
  readonly lastUsed: Map<string, number>
}

/** The keys in one simulated Postgres. */
export type Store = Access.Disk<State>

/** Makes the store. Replicas that use it share their keys. */
export const make = (): Store => Access.makeDisk((): State => ({ version: 0, records: new Map(), lastUsed: new Map() }))

const list = ({ lastUsed, records }: State): ReadonlyArray<KeyStore.KeyRecord> =>
  [...records.values()]
    .map((record): KeyStore.KeyRecord => {
      const lastUsedAt = lastUsed.get(record.prefix)
      return lastUsedAt === undefined ? record : Object.assign({}, record, { lastUsedAt })
    })
    .toSorted((one, other) => one.createdAt - other.createdAt || (one.prefix < other.prefix ? -1 : 1))

/** Returns the backend of one replica. */
export const makeBackend = ({ current }: Store, access: Access.Access): KeyStore.Backend => {
  const step = SqlStore.makeStep({ isFile: false, ready: Effect.void, ...KeyStoreSql.stepOptions })
  return {
    since: (known) =>
      step(Access.sql(access, () => {
        const state = current()
        const version = String(state.version)
        return known === version ? undefined : { version, records: list(state) }
      })),
    modify: <A extends KeyStore.Change>(
      change: (records: ReadonlyArray<KeyStore.KeyRecord>) => Result.Result<A, KeyStore.KeyRefusal>
    ) =>
      Effect.flatMap(
        step(Access.sql(access, () => {
          const state = current()
          const result = change(list(state))
          if (Result.isFailure(result)) return result
          state.version += 1
          for (const { lastUsedAt: _, ...record } of [...result.success.added, ...result.success.replaced]) {
            state.records.set(record.prefix, record)
          }
          return result
        })),
        Effect.fromResult
      ),
    noteUses: (uses) =>
      step(Access.sql(access, () => {
        const { lastUsed, records } = current()
        for (const [prefix, at] of uses) {
          if (records.has(prefix)) lastUsed.set(prefix, Math.max(at, lastUsed.get(prefix) ?? at))
        }
      }))
  }
}

/**
 * Provides the keys of one replica.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import * as Access from "@trigate/simulation/unstable/stores/Access"
 * import * as CallerKeys from "@trigate/simulation/unstable/stores/CallerKeys"
 * import { KeyStore } from "@trigate/callers"
 * import { Console, Effect, Layer } from "effect"
 * import * as SecureRandom from "effect/crypto/SecureRandom"
 *
 * const replica = Layer.provide(CallerKeys.layer(CallerKeys.make(), Access.direct), SecureRandom.layerWebCrypto)
 *
 * const program = KeyStore.KeyStore.use(({ create }) => create({ name: "desk" })).pipe(
 *   Effect.flatMap(({ record }) => Console.log(record.name))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, replica))
 * ```
 * ```text
 * desk
 * ```
 */
export const layer = (
  store: Store,
  access: Access.Access
): Layer.Layer<KeyStore.KeyStore, never, SecureRandom.SecureRandom> =>
  Layer.effect(KeyStore.KeyStore, Effect.suspend(() => KeyStore.make(makeBackend(store, access))))
