/**
 * Reports the orders and fills of watched accounts (accounts whose events the gateway logs). The action log uses these
 * reports to settle actions of unknown outcome.
 */
import * as Json from "@trigate/domain/encoding/Json"
import { valueAt } from "@trigate/domain/streams/Subscription"
import { subscriptions } from "@trigate/domain/streams/Subscriptions"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { EventLog } from "./EventLog.ts"

/** Reads the client order ID from an event, in lower case; returns `undefined` if the event's order has none. */
export type ReadCloid = () => string | undefined

/** Receives an event of an account, whose address is in lower case. */
export type OrderListener = (user: string, readCloid: ReadCloid) => void

/** The order events of watched accounts. */
export interface OrderEvents {
  /** Starts to report the events of an event log. */
  readonly follow: (log: EventLog) => void
  /** Calls a function with the account of each reported event, until the scope ends. */
  readonly listen: (listener: OrderListener) => Effect.Effect<void, never, Scope.Scope>
}

/** The path to the client order ID in the rows of each subscription. */
const cloidPaths: ReadonlyMap<string, string> = new Map([
  [subscriptions.orderUpdates.name, "order.cloid"],
  [subscriptions.userFills.name, "cloid"]
])

/** Makes the `OrderEvents` of one chain. It reports no events before `follow` is called. */
export const make = (): OrderEvents => {
  const listeners = new Set<OrderListener>()
  return {
    follow: (log) =>
      void log.listen({
        appended: ({ kind, name, rows, user }) => {
          const path = cloidPaths.get(name)
          if (path === undefined || kind === "past") return
          for (const { text } of rows) {
            const readCloid = () => {
              const cloid = valueAt(Result.getOrUndefined(Json.parse(text)), path)
              return Predicate.isString(cloid) ? cloid.toLowerCase() : undefined
            }
            for (const listener of listeners) listener(user, readCloid)
          }
        },
        replaced: () => {}
      }),
    listen: (listener) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => listeners.add(listener)),
        () => Effect.sync(() => listeners.delete(listener))
      ))
  }
}
