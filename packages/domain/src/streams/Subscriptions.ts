/** The subscriptions of the venue's WebSocket, and of `GET /ws`. */
import * as Account from "./AccountSubscriptions.ts"
import * as Market from "./MarketSubscriptions.ts"
import * as Subscription from "./Subscription.ts"

/** Every subscription by its name. */
export const subscriptions = { ...Market, ...Account }

/** Every subscription. */
export const table: ReadonlyArray<Subscription.Subscription> = Object.values(subscriptions)

/** Decodes a subscription that the venue acknowledges. Ignores unknown members. */
export const readAcknowledged = Subscription.reader(table)

/** Decodes a subscription that a client requests. Refuses unknown members. */
export const read = Subscription.requestReader(readAcknowledged)
