/** The use of the stream limits that replicas report, in a simulated Redis or Postgres. */
import * as ReplicaUse from "@trigate/upstream/streams/ReplicaUse"
import { SharedStoreUnreachable } from "@trigate/upstream/unstable/SharedState"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Access from "./Access.ts"

/** The last report of each replica, and the time at which it expires. */
export type State = Map<string, { readonly report: string; readonly expiresAt: number }>

/** The reports in one simulated store. */
export type Store = Access.Disk<State>

/** Makes the store. Replicas that use it share their limits. */
export const make = (): Store => Access.makeDisk((): State => new Map())

/** Stores the report of a replica. Returns the unexpired reports of the others. */
const exchange = (state: State, replica: string, report: string, now: number): ReadonlyArray<string> => {
  const others: Array<string> = []
  for (const [name, found] of state) {
    if (found.expiresAt <= now) state.delete(name)
    else if (name !== replica) others.push(found.report)
  }
  state.set(replica, { report, expiresAt: now + ReplicaUse.expiresAfter })
  return others
}

/** Returns the store as one replica reaches it. `name` is the name of the store in log lines. */
export const makeReports = (
  { current }: Store,
  access: Access.Access,
  name: "Postgres" | "Redis" = "Redis"
): ReplicaUse.Store => ({
  name,
  exchange: (replica, report) =>
    Effect.mapError(
      access((now) => exchange(current(), replica, report, now)),
      ({ detail }) => new SharedStoreUnreachable({ detail })
    )
})

/**
 * Provides the use of the stream limits of one replica.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import * as Access from "@trigate/simulation/unstable/stores/Access"
 * import * as StreamUse from "@trigate/simulation/unstable/stores/StreamUse"
 * import { ReplicaUse } from "@trigate/upstream"
 * import { Console, Effect } from "effect"
 *
 * const store = StreamUse.make()
 *
 * const report = (connections: number) =>
 *   ReplicaUse.ReplicaUse.use(({ exchange }) => exchange({ connections, subscriptions: 0, users: [] })).pipe(
 *     Effect.provide(StreamUse.layer(store, Access.direct))
 *   )
 *
 * const program = Effect.flatMap(
 *   Effect.andThen(report(3), report(1)),
 *   (others) => Console.log(others.connections, others.replicas)
 * )
 *
 * await Effect.runPromise(program)
 * ```
 * ```text
 * 3 1
 * ```
 */
export const layer = (
  store: Store,
  access: Access.Access,
  name?: "Postgres" | "Redis"
): Layer.Layer<ReplicaUse.ReplicaUse> =>
  Layer.effect(ReplicaUse.ReplicaUse, ReplicaUse.make(makeReports(store, access, name)))
