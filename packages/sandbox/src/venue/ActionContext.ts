/** What an action is executed with, and what executing it gives. */
import { type Address, lowerCase } from "@trigate/domain/encoding/Hex"
import * as Result from "effect/Result"
import type { LedgerEntry, TradingAccount } from "./TradingState.ts"
import { append, ensureAccount } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import { emit } from "./Venue.ts"
import type { VenueState } from "./VenueState.ts"
import { changeAccount } from "./VenueState.ts"

/** Who acts, when, and on what. */
export interface ActionContext {
  readonly venue: Venue
  /** Accounts, API wallets, stake: the state besides trading. An action replaces it. */
  identity: VenueState
  /** The account that acts. */
  readonly user: Address
  readonly nonce: number
}

/** The venue's response to an action that it took. */
export interface ActionResponse {
  readonly type: string
  readonly data?: unknown
}

/** The venue's response, or its refusal. */
export type ActionDecision = Result.Result<ActionResponse, string>

/** The response of most actions. */
export const done: ActionDecision = Result.succeed({ type: "default" })

/** A refusal. */
export const refuse = (text: string): ActionDecision => Result.fail(text)

/** The trading account of the one who acts. */
export const actor = ({ user, venue }: ActionContext): TradingAccount => ensureAccount(venue.state, user)

/** Returns the account of an address; `undefined` if it does not exist and the venue has no room for another. */
export const receiver = ({ venue }: ActionContext, address: Address): TradingAccount | undefined =>
  venue.state.accounts.has(lowerCase(address)) || venue.state.accounts.size < venue.limits.accounts
    ? ensureAccount(venue.state, address)
    : undefined

/** Makes an account that receives money one that exists. */
export const open = (context: ActionContext, address: Address): TradingAccount => {
  context.identity = changeAccount(context.identity, address, {})
  return ensureAccount(context.venue.state, address)
}

/** The newest entries of a ledger that the venue remembers. */
const remembered = 2_000

/** Writes into the ledgers of accounts. */
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
