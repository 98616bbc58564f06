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

/** Provides the documents, as one replica reaches them. */
export const layer = ({ current }: Store, access: Access.Access): Layer.Layer<GuardStore.GuardStore> =>
  Layer.succeed(
    GuardStore.GuardStore,
    GuardStore.make({
      get: (key) => Access.redis(access, (now) => Access.getKey(current(), key, now)),
      put: (key, version, text) =>
        Access.redis(access, (now) => {
          if ((Access.getKey(current(), key, now)?.version ?? 0) !== version) return false
          const diesAt = key === GuardStore.haltsKey ? Infinity : now + GuardStore.keptFor
          Access.setKey(current(), key, { version: version + 1, text }, diesAt)
          return true
        })
    })
  )
