/**
 * Converts the venue's events to account events for streams. One action, or one second of simulated time, produces at
 * most one account event per account.
 */
import type { Address } from "@trigate/domain/encoding/Hex"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { AccountEvent, MarketEvent } from "../streams/VenueFeed.ts"
import { printOpen } from "./OrderReads.ts"
import type { TradingControls } from "./TradingControls.ts"
import type { Venue, VenueEvent } from "./Venue.ts"

type Collected = { -readonly [Member in keyof AccountEvent]?: AccountEvent[Member] }

const more = <A>(list: ReadonlyArray<A> | undefined, entry: A): ReadonlyArray<A> => [...list ?? [], entry]

const addTo = (found: Collected, venue: Pick<Venue, "listing">, event: VenueEvent): void => {
  switch (event.kind) {
    case "order": {
      const asset = venue.listing.byCoin.get(event.order.coin)
      if (asset === undefined) return
      const { status, statusTimestamp } = event.order
      found.orders = more(found.orders, { order: printOpen(asset, event.order), status, statusTimestamp })
      return
    }
    case "fill":
      found.fills = more(found.fills, event.fill)
      return
    case "twapFill":
      found.twapFills = more(found.twapFills, event.fill)
      return
    case "twap":
      found.twapHistory = more(found.twapHistory, event.row)
      return
    case "funding":
      found.fundings = more(found.fundings, { ...event.funding, nSamples: null })
      return
    case "ledger":
      found.ledger = more(found.ledger, event.entry)
      return
    case "nonUserCancel":
      found.nonUserCancel = more(found.nonUserCancel, { coin: event.coin, oid: event.oid })
      return
    case "liquidation":
      found.liquidations = more(found.liquidations, event.liquidation)
      return
    case "trade":
    case "book":
    case "account":
  }
}

/** Groups events by account, in the order of each account's first event. */
export const byAccount = (
  venue: Pick<Venue, "listing">,
  events: ReadonlyArray<VenueEvent>
): ReadonlyArray<AccountEvent> => {
  const found = new Map<Address, Collected>()
  for (const event of events) {
    if (!("user" in event)) continue
    const known = found.get(event.user) ?? {}
    found.set(event.user, known)
    addTo(known, venue, event)
  }
  return [...found].flatMap(([user, event]) => Object.keys(event).length === 0 ? [] : [{ ...event, user }])
}

/** The interval at which prices change. */
const tickEvery = Duration.seconds(1)

/** Selects the trades from a list of events and groups them by coin, in order of occurrence. */
const byCoin = (events: ReadonlyArray<VenueEvent>): ReadonlyArray<MarketEvent> => {
  const found = new Map<string, Array<MarketEvent["trades"][number]>>()
  for (const event of events) {
    if (event.kind !== "trade") continue
    const known = found.get(event.coin)
    if (known === undefined) found.set(event.coin, [event.trade])
    else known.push(event.trade)
  }
  return [...found].map(([coin, trades]) => ({ coin, trades }))
}

/** Streams the events that occur from now on. Reading the stream advances the venue's time. */
const follow = <A>(
  trading: TradingControls,
  read: (events: ReadonlyArray<VenueEvent>, venue: Venue) => ReadonlyArray<A>
): Stream.Stream<A> =>
  Stream.callback<A>(Effect.fnUntraced(function*(queue) {
    const following = trading.follow((events, venue) => {
      Queue.offerAllUnsafe(queue, read(events, venue))
    })
    yield* Effect.asVoid(Effect.acquireRelease(following, (leave) => leave))
    yield* Effect.forkScoped(Effect.repeat(trading.tick, Schedule.spaced(tickEvery)))
    return yield* Effect.never
  }))

/** Streams the account events that occur from now on. Reading the stream advances the venue's time. */
export const accountEvents = (trading: TradingControls): Stream.Stream<AccountEvent> =>
  follow(trading, (events, venue) => byAccount(venue, events))

/** Streams the trades that accounts make from now on. Reading the stream advances the venue's time. */
export const marketEvents = (trading: TradingControls): Stream.Stream<MarketEvent> => follow(trading, byCoin)
