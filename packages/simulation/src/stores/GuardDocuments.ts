/** The documents of guards that replicas share, in a simulated Redis. */
import * as GuardStore from "@trigate/trading/guard/GuardStore"
import * as Layer from "effect/Layer"
import * as Access from "./Access.ts"

/** The documents, by key. */
export type State = Access.Keys<GuardStore.Document>

/** The documents in one simulated Redis. */
export type Store = Access.Disk<State>

/** Makes the store. Guards that use it share their documents. */
export const make = (): Store => Access.makeDisk((): State => new Map())

/**
 * Provides the documents, as one replica reaches them.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import * as Access from "@trigate/simulation/unstable/stores/Access"
 * import * as GuardDocuments from "@trigate/simulation/unstable/stores/GuardDocuments"
 * import { GuardStore } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const store = GuardDocuments.make()
 * const program = Effect.gen(function*() {
 *   const { get, put } = yield* GuardStore.GuardStore
 *   yield* put("halts", 0, "[]")
 *   yield* Console.log(yield* put("halts", 0, "[1]"), yield* get("halts"))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, GuardDocuments.layer(store, Access.direct)))
 * ```
 * ```text
 * false { version: 1, text: '[]' }
 * ```
 */
export const layer = ({ current }: Store, access: Access.Access): Layer.Layer<GuardStore.GuardStore> =>
  Layer.succeed(
    GuardStore.GuardStore,
    GuardStore.make({
      get: (key) => Access.redis(access, (now) => Access.getKey(current(), key, now)),
      put: (key, version, text) =>
        Access.redis(access, (now) => {
          if ((Access.getKey(current(), key, now)?.version ?? 0) !== version) return false
          const diesAt = GuardStore.isLasting(key) ? Infinity : now + GuardStore.storedFor
          Access.setKey(current(), key, { version: version + 1, text }, diesAt)
          return true
        })
    })
  )
