/** A simulated server of stores, such as a Redis or a Postgres: its latency, its outages and lost confirmations. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Simulation from "./Simulation.ts"
import { type Access, StoreAway } from "./stores/Access.ts"

/** The current faults of a server. */
export interface StoreFault {
  /** Whether connections are refused. */
  isAway: boolean
  /** Further milliseconds before an operation is committed. */
  slowness: number
  /** The probability that an operation is committed and its confirmation is lost. */
  lostConfirmations: number
  /** The probability that an operation is lost before it is committed, and the replica is not notified. */
  lostOperations: number
}

/** A server of stores. */
export interface StoreServer {
  readonly name: string
  /** The access of a replica to the stores of this server. */
  readonly access: Access
  /** The current faults; assign its members. */
  readonly fault: StoreFault
}

/**
 * Makes a server of stores.
 *
 * @since 0.1.0
 * @category services
 */
export const make = Effect.fnUntraced(function*(
  name: string,
  { latency: [shortest, longest] = [0.1, 2] }: { readonly latency?: readonly [shortest: number, longest: number] } = {}
) {
  const { after, now, random, startsAt } = yield* Simulation.Simulation
  const fault: StoreFault = { isAway: false, slowness: 0, lostConfirmations: 0, lostOperations: 0 }
  const delay = (): number => shortest + random() * (longest - shortest)
  const refused = new StoreAway({ detail: "the connection was refused" })
  const lost = new StoreAway({ detail: "the connection was lost" })
  const access: Access = (operation) =>
    Simulation.callback((resume) => {
      let isWaiting = true
      const settle = (exit: Parameters<typeof resume>[0]): void => {
        if (isWaiting) resume(exit)
        isWaiting = false
      }
      if (fault.isAway) after(delay(), () => settle(Exit.fail(refused)))
      // an operation on its way is committed, also if its replica has been killed
      else if (random() >= fault.lostOperations) {
        after(delay() + fault.slowness * random(), () => {
          if (fault.isAway) return void after(delay(), () => settle(Exit.fail(lost)))
          const result = operation(Math.floor(startsAt + now()))
          if (random() < fault.lostConfirmations) after(delay(), () => settle(Exit.fail(lost)))
          else after(delay(), () => settle(Exit.succeed(result)))
        })
      }
      return () => {
        isWaiting = false
      }
    })
  return { name, access, fault } satisfies StoreServer
})
