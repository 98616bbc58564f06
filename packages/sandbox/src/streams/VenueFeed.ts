/** What the sandbox's venue provides for its streams: what its markets and accounts are now, and what has happened to accounts. */
import type { Address } from "@trigate/domain/encoding/Hex"
import type { Trade } from "@trigate/domain/info/Market"
import type { Fill } from "@trigate/domain/info/Order"
import type { OrderUpdate } from "@trigate/domain/info/Order"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"

/** Something that happened to one account, in the order in which it happened. */
export interface AccountEvent {
  readonly user: Address
  /** Orders whose status changed, as `orderUpdates` has them. */
  readonly orders?: ReadonlyArray<OrderUpdate>
  /** Its fills, as `userFills` has them. */
  readonly fills?: ReadonlyArray<Fill>
  /** Funding payments, as `userFundings` has them. */
  readonly fundings?: ReadonlyArray<unknown>
  /** Deposits, withdrawals and transfers, as `userNonFundingLedgerUpdates` has them. */
  readonly ledger?: ReadonlyArray<unknown>
  /** Orders that the venue cancelled, as `userEvents` has them. */
  readonly nonUserCancel?: ReadonlyArray<{ readonly coin: string; readonly oid: number }>
  /** Fills of its TWAP orders, as `userTwapSliceFills` has them. */
  readonly twapFills?: ReadonlyArray<unknown>
  /** Its liquidations, as `userEvents` has them. */
  readonly liquidations?: ReadonlyArray<unknown>
  /** A message, as `notification` has it. */
  readonly notification?: string
}

/** Trades of one coin, in the order in which they happened. */
export interface MarketEvent {
  readonly coin: string
  readonly trades: ReadonlyArray<Trade>
}

/** The venue behind the sandbox's streams. */
export interface VenueFeed {
  /**
   * Returns the current response to a query of `POST /info`, as JSON values: `l2Book`, `openOrders`, `clearinghouseState`, `userFills`, ….
   *
   * Returns `undefined` for a query that the venue does not know.
   */
  readonly ask: (query: { readonly type: string; readonly [member: string]: unknown }) => Effect.Effect<unknown>
  /** The venue's time. */
  readonly now: Effect.Effect<number>
  /**
   * Account events from now on. The subscription is in place when the stream starts to be read.
   *
   * Absent where the responses to queries are compared once a second.
   */
  readonly accounts?: Stream.Stream<AccountEvent>
  /** Trades from now on; absent where they follow from the clock and `recentTrades` lists them. */
  readonly markets?: Stream.Stream<MarketEvent>
}
