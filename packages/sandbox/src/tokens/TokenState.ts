/** The state of the token chain: its contracts and metadata documents, and the controls that change them. */
import type { InvalidAddress } from "@trigate/domain/errors/RequestError"
import * as TonAddress from "@trigate/domain/tokens/TonAddress"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { withEntry, withoutEntry } from "../venue/VenueState.ts"

/** The implementation of the TON HTTP API whose formats apply: the older server (Python) or the newer server (C++). */
export type Dialect = "python" | "cpp"

/** Metadata of a token contract (TEP-64): on-chain attributes, or the URI of a document. */
export type Content =
  | { readonly type: "onchain"; readonly data: { readonly [attribute: string]: string } }
  | { readonly type: "offchain"; readonly data: string }

/** A contract. Addresses in it can be raw or friendly; amounts are in the smallest unit. */
export type Contract =
  | {
    readonly kind: "jetton_master"
    readonly supply: bigint
    readonly mintable: boolean
    /** The admin's address; absent if the token has no admin. */
    readonly admin?: string
    readonly content: Content
  }
  | { readonly kind: "jetton_wallet"; readonly balance: bigint; readonly owner: string; readonly jetton: string }
  | {
    readonly kind: "nft_collection"
    readonly nextItemIndex: bigint
    readonly owner: string
    readonly content: Content
  }
  | {
    readonly kind: "nft_item"
    readonly index: bigint
    readonly collection: string
    readonly owner: string
    readonly content: Content
  }
  /** A wallet: active, with a balance in nanotons, and not a token contract. */
  | { readonly kind: "wallet"; readonly balance: bigint; readonly seqno: number }
  /** An account with a balance in nanotons and without code. Its first message can deploy a wallet. */
  | { readonly kind: "account"; readonly balance: bigint }

/** A token contract: any contract except a plain wallet and an account without code. */
export type TokenContract = Exclude<Contract, { readonly kind: "wallet" | "account" }>

/**
 * A contract that the sandbox stores as data, without code. Get methods of contracts with code run in the virtual
 * machine.
 */
export type Described = Exclude<Contract, { readonly kind: "jetton_master" | "jetton_wallet" | "account" }>

/** Returns whether the sandbox stores a contract only as data, without code. */
export const isDescribed = (contract: Contract | undefined): contract is Described =>
  contract !== undefined && contract.kind !== "jetton_master" && contract.kind !== "jetton_wallet" &&
  contract.kind !== "account"

/** Returns whether a contract is a token contract. */
export const isToken = (contract: Contract | undefined): contract is TokenContract =>
  contract !== undefined && contract.kind !== "wallet" && contract.kind !== "account"

/** The state of the token chain. */
export interface TokenState {
  /** The contracts, by raw address in lower case. */
  readonly contracts: ReadonlyMap<string, { readonly contract: Contract; readonly dialect: Dialect }>
  /** The server family whose format is used for responses about addresses without a contract. */
  readonly dialect: Dialect
  /** Metadata documents by URI. As with a live chain, the gateway fetches the documents; the chain's servers do not. */
  readonly documents: ReadonlyMap<string, unknown>
}

/** Returns the key under which an account is stored: its raw address. */
export const accountKey = (account: TonAddress.Account): string => TonAddress.formatRaw(account)

/**
 * Reads and sets the state of the token chain. Addresses can be raw or friendly. A method fails with `InvalidAddress`
 * if its address is invalid.
 */
export interface TokenControls {
  /** Contracts by raw address, and metadata documents by URI. */
  readonly state: Ref.Ref<TokenState>
  /**
   * Deploys or replaces a contract. `dialect` is the server family whose format is used for responses about the
   * contract. Default: C++.
   */
  readonly putContract: (
    address: string,
    contract: Contract,
    dialect?: Dialect
  ) => Effect.Effect<void, InvalidAddress>
  /** Publishes a JSON document at a URI, to which contracts can refer. */
  readonly putDocument: (uri: string, document: unknown) => Effect.Effect<void>
  /** Removes a contract. After that, the account at its address is uninitialized. */
  readonly removeContract: (address: string) => Effect.Effect<void, InvalidAddress>
}

/** Makes the controls of the token chain. */
export const controls = (state: Ref.Ref<TokenState>): TokenControls => {
  const change = (
    address: string,
    to: (known: TokenState["contracts"], key: string) => TokenState["contracts"]
  ) =>
    Effect.flatMap(
      Effect.fromResult(TonAddress.parse(address)),
      (account) => Ref.update(state, (known) => ({ ...known, contracts: to(known.contracts, accountKey(account)) }))
    )
  return {
    state,
    putContract: (address, contract, dialect = "cpp") =>
      change(address, (contracts, key) => withEntry(contracts, key, { contract, dialect })),
    putDocument: (uri, document) =>
      Ref.update(state, (known) => ({ ...known, documents: withEntry(known.documents, uri, document) })),
    removeContract: (address) => change(address, withoutEntry)
  }
}
