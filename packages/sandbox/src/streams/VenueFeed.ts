/** The venue's data for the sandbox's streams: the state of markets and accounts, and the events of accounts. */
import type { Address } from "@trigate/domain/encoding/Hex"
import type { Trade } from "@trigate/domain/info/Market"
import type { Fill } from "@trigate/domain/info/Order"
import type { OrderUpdate } from "@trigate/domain/info/Order"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"

/** Events of one account. The rows of each list are in order of occurrence. */
export interface AccountEvent {
  readonly user: Address
  /** Orders whose status changed, as in `orderUpdates`. */
  readonly orders?: ReadonlyArray<OrderUpdate>
  /** Fills of the account, as in `userFills`. */
  readonly fills?: ReadonlyArray<Fill>
  /** Funding payments, as in `userFundings`. */
  readonly fundings?: ReadonlyArray<unknown>
  /** Deposits, withdrawals and transfers, as in `userNonFundingLedgerUpdates`. */
  readonly ledger?: ReadonlyArray<unknown>
  /** Orders that the venue canceled, as in `userEvents`. */
  readonly nonUserCancel?: ReadonlyArray<{ readonly coin: string; readonly oid: number }>
  /** Fills of the account's TWAP orders, as in `userTwapSliceFills`. */
  readonly twapFills?: ReadonlyArray<unknown>
  /** Changes of the status of the account's TWAP orders, as in `userTwapHistory`. */
  readonly twapHistory?: ReadonlyArray<unknown>
  /** Liquidations of the account, as in `userEvents`. */
  readonly liquidations?: ReadonlyArray<unknown>
  /** A text for the account, as in `notification`. */
  readonly notification?: string
}

/** Trades of one coin, in order of occurrence. */
export interface MarketEvent {
  readonly coin: string
  readonly trades: ReadonlyArray<Trade>
}

/** The venue's data and events that the sandbox's streams read. */
export interface VenueFeed {
  /**
   * Returns the current response to a query of `POST /info` (`l2Book`, `openOrders`, `userFills`, …), as a JSON value.
   *
   * Returns `undefined` for a query that the venue does not know.
   */
  readonly ask: (query: { readonly type: string; readonly [member: string]: unknown }) => Effect.Effect<unknown>
  /** Returns the venue's time. */
  readonly now: Effect.Effect<number>
  /** Streams account events that occur after the reader starts the stream. */
  readonly accounts: Stream.Stream<AccountEvent>
  /**
   * Streams the trades in which accounts take part. The stream contains only trades after its start. The query
   * `recentTrades` also returns synthetic trades, which are derived from the clock.
   */
  readonly markets: Stream.Stream<MarketEvent>
}
