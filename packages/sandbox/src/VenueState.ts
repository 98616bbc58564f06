/** What the venue remembers of accounts, API wallets, validators and nonces. */
import type { Address } from "@trigate/domain/Hex"
import { withEntry } from "./Entries.ts"

/** Who may act for a multi-sig account: at most 10 users that exist, `threshold` of which have to sign. */
export interface MultiSigRule {
  readonly authorizedUsers: ReadonlyArray<Address>
  readonly threshold: number
}

/** An account that exists on the venue. */
export interface Account {
  /** Staking balance that is not delegated, in HYPE x 10^8. */
  readonly stake: bigint
  /** Delegated stake by validator, in HYPE x 10^8. */
  readonly delegations: ReadonlyMap<Address, bigint>
  /** Whether its EVM transactions go to big blocks. */
  readonly usingBigBlocks: boolean
  /** Present on an account that acts by several signatures only. */
  readonly multiSig?: MultiSigRule
  /** Present on a vault or a sub-account: who acts for it. */
  readonly leader?: Address
  /** Actions that it may send in all and has sent. */
  readonly requests: { readonly limit: number; readonly sent: number }
}

/** A validator; its address is also the account that signs its own jailing. */
export interface Validator {
  readonly name: string
  readonly jailed: boolean
  /** Stake delegated to it, in HYPE x 10^8. */
  readonly stake: bigint
}

/** The venue's memory; every address in it is lower case. */
export interface VenueState {
  readonly accounts: ReadonlyMap<Address, Account>
  /** The account that each API wallet signs for. */
  readonly agents: ReadonlyMap<Address, Address>
  readonly validators: ReadonlyMap<Address, Validator>
  /** The highest nonces that each signer has used, ascending. */
  readonly nonces: ReadonlyMap<Address, ReadonlyArray<number>>
}

/** A venue that nobody has used. */
export const empty: VenueState = { accounts: new Map(), agents: new Map(), validators: new Map(), nonces: new Map() }

/** An account that has just come into being. */
export const newAccount: Account = {
  stake: 0n,
  delegations: new Map(),
  usingBigBlocks: false,
  requests: { limit: Number.POSITIVE_INFINITY, sent: 0 }
}

/** An address as the venue keeps it. */
export const lower = (address: Address): Address => `0x${address.slice(2).toLowerCase()}`

/** The account of an address, as it is or as it would begin. */
export const accountOf = (state: VenueState, address: Address): Account =>
  state.accounts.get(lower(address)) ?? newAccount

/** Changes an account, which comes into being if it is not there. */
export const changeAccount = (
  state: VenueState,
  address: Address,
  change: (account: Account) => Account
): VenueState => ({
  ...state,
  accounts: withEntry(state.accounts, lower(address), change(accountOf(state, address)))
})
