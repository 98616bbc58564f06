/** The context and the result of executing an action. */
import { type Address, lowerCase } from "@trigate/domain/encoding/Hex"
import * as Result from "effect/Result"
import type { LedgerEntry, TradingAccount } from "./TradingAccount.ts"
import { append, ensureAccount } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import { emit } from "./Venue.ts"
import type { VenueState } from "./VenueState.ts"
import { changeAccount } from "./VenueState.ts"

/** The context of an action: the venue, the acting account, and the action's nonce. */
export interface ActionContext {
  readonly venue: Venue
  /**
   * The accounts, API wallets and stake: all state except trading. To change this state, an action assigns a new value
   * to `identity`.
   */
  identity: VenueState
  /** The acting account. */
  readonly user: Address
  readonly nonce: number
  /**
   * The time at which the action was sent, by the sender's clock. The times in an action are times of that clock, which
   * differs from the venue's if the venue's clock is stopped or was advanced.
   */
  readonly sentAt: number
}

/** Converts a time of the sender's clock to the venue's time. */
export const toVenueTime = ({ sentAt, venue }: ActionContext, time: number): number => venue.state.now + time - sentAt

/** The venue's response to an accepted action. */
export interface ActionResponse {
  readonly type: string
  readonly data?: unknown
}

/** The venue's response to an accepted action, or the text with which the venue rejects the action. */
export type ActionDecision = Result.Result<ActionResponse, string>

/** The response of most actions. */
export const done: ActionDecision = Result.succeed({ type: "default" })

/** Rejects an action with a text. */
export const refuse = (text: string): ActionDecision => Result.fail(text)

/** Returns the trading account of the acting user. */
export const actor = ({ user, venue }: ActionContext): TradingAccount => ensureAccount(venue.state, user)

/**
 * Returns the account of an address; creates the account if the address has none. Returns `undefined` if it cannot be
 * created because the venue already has the maximum number of accounts.
 */
export const receiver = ({ venue }: ActionContext, address: Address): TradingAccount | undefined =>
  venue.state.accounts.has(lowerCase(address)) || venue.state.accounts.size < venue.limits.accounts
    ? ensureAccount(venue.state, address)
    : undefined

/** Returns the account of an address that receives money. Registers the account if the address has none. */
export const open = (context: ActionContext, address: Address): TradingAccount => {
  context.identity = changeAccount(context.identity, address, {})
  return ensureAccount(context.venue.state, address)
}

/** Maximum number of ledger entries (deposits, withdrawals and transfers) stored for an account. */
const remembered = 2_000

/** Adds an entry to the ledger (deposits, withdrawals and transfers) of each of the accounts. */
export const note = (
  { venue }: Pick<ActionContext, "venue">,
  delta: LedgerEntry["delta"],
  ...accounts: ReadonlyArray<TradingAccount>
): void => {
  const entry = { time: venue.state.now, hash: venue.hash, delta }
  for (const account of new Set(accounts)) {
    append(account.ledger, entry, remembered)
    emit(venue, { kind: "ledger", user: account.address, entry })
    emit(venue, { kind: "account", user: account.address })
  }
}
