/** The contracts of the token chain, and how the two families of servers describe them. */
import * as TonAddress from "@trigate/domain/TonAddress"
import * as Predicate from "effect/Predicate"
import type { Seed } from "./Seed.ts"
import * as Random from "./Seed.ts"

/** Which family of servers answers for a contract: the older one in Python, the newer one in C++. */
export type Dialect = "python" | "cpp"

/** Metadata of a token contract (TEP-64): attributes that it holds, or the URI of a document. */
export type Content =
  | { readonly type: "onchain"; readonly data: { readonly [attribute: string]: string } }
  | { readonly type: "offchain"; readonly data: string }

/** What is deployed at an address; addresses inside are raw or friendly, integers in smallest units. */
export type Contract =
  | {
    readonly kind: "jetton_master"
    readonly supply: bigint
    readonly mintable: boolean
    /** Absent when nobody is the admin. */
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
  /** A wallet: active, with a balance in nanotons, and no token. */
  | { readonly kind: "wallet"; readonly balance: bigint; readonly seqno: number }

/** A token contract: anything but a plain wallet. */
export type TokenContract = Exclude<Contract, { readonly kind: "wallet" }>

/** Base64 of as many made up bytes; not a cell that could be run. */
export const base64 = (seed: Seed, key: string, bytes: number): string => {
  const hex = Random.hex(seed, key, bytes * 2).slice(2)
  const pairs = hex.match(/../gu) ?? []
  return btoa(String.fromCharCode(...pairs.map((pair) => Number.parseInt(pair, 16))))
}

const members = (seed: Seed, contract: TokenContract): { readonly [name: string]: unknown } => {
  const walletCode = base64(seed, "tokens/walletCode", 48)
  switch (contract.kind) {
    case "jetton_master":
      return {
        total_supply: contract.supply,
        mintable: contract.mintable,
        ...(contract.admin === undefined ? {} : { admin_address: contract.admin }),
        jetton_content: contract.content,
        jetton_wallet_code: walletCode
      }
    case "jetton_wallet":
      return {
        balance: contract.balance,
        owner: contract.owner,
        jetton: contract.jetton,
        jetton_wallet_code: walletCode
      }
    case "nft_collection":
      return {
        next_item_index: contract.nextItemIndex,
        owner_address: contract.owner,
        collection_content: contract.content
      }
    case "nft_item":
      return {
        init: true,
        index: contract.index,
        collection_address: contract.collection,
        owner_address: contract.owner,
        content: contract.content
      }
  }
}

const typeNames: { readonly [Kind in TokenContract["kind"]]: string } = {
  jetton_master: "ext.tokens.jettonMasterData",
  jetton_wallet: "ext.tokens.jettonWalletData",
  nft_collection: "ext.tokens.nftCollectionData",
  nft_item: "ext.tokens.nftItemData"
}

const echoed = (address: string): string =>
  address.includes(":") ? address.toUpperCase() : address.replaceAll("+", "-").replaceAll("/", "_")

/**
 * The `result` of `getTokenData` for an address as it was asked for.
 *
 * The Python family prints integers as JSON numbers and neither `@type` nor `address`; the C++ family prints them as
 * decimal strings and echoes the address.
 */
export const describe = (seed: Seed, dialect: Dialect, address: string, contract: TokenContract) => {
  const described: { readonly [name: string]: unknown } = { ...members(seed, contract), contract_type: contract.kind }
  return dialect === "python" ? described : {
    "@type": typeNames[contract.kind],
    address: echoed(address),
    ...Object.fromEntries(
      Object.entries(described).map(([name, value]) => [name, Predicate.isBigInt(value) ? value.toString() : value])
    )
  }
}

/** The account that an address names, spelled in one way; none for what is no address. */
export const accountKey = (account: TonAddress.Account): string => TonAddress.formatRaw(account)
