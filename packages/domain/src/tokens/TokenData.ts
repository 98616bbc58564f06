/** The response of `GET /api/v2/getTokenData`, and the four kinds of token contracts that TON servers return. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { openStruct } from "../encoding/OpenStruct.ts"
import { TonAddress } from "./TonAddress.ts"

/** The number of decimals if the metadata contains none (TEP-64). */
export const DEFAULT_DECIMALS = 9

/**
 * A fungible token, by its master contract.
 *
 * `name` and `symbol` can be absent if `metadata` is `"unresolved"`. Several tokens can have the same name and symbol;
 * only `address` is unique.
 */
export const TokenData = Schema.Struct({
  name: Schema.optionalKey(Schema.String),
  symbol: Schema.optionalKey(Schema.String),
  decimals: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 })).annotate({
    description: "Decimals of an amount; 9 if the token's metadata contains no valid decimals (TEP-64)"
  }),
  totalSupply: Schema.String.check(Schema.isPattern(/^(?:0|[1-9][0-9]{0,77})$/u)).annotate({
    description: "The total supply in the smallest unit, as a decimal string with every digit"
  }),
  mintable: Schema.Boolean.annotate({ description: "Whether the admin can still mint" }),
  burnable: Schema.Boolean.annotate({
    description: "Always true: TEP-74 requires every jetton wallet to accept a burn, and no server reports this value"
  }),
  address: TonAddress.annotate({
    description: "The master contract in canonical form: bounceable, base64url, not test-only"
  }),
  metadata: Schema.Literals(["onchain", "offchain", "unresolved"]).annotate({
    description:
      "`onchain`: name, symbol and decimals come from the contract itself. `offchain`: at least one of them comes from the " +
      "document that the contract refers to. `unresolved`: one of them is missing, or is in a document that could not be read, " +
      "or the stated decimals are not a number from 0 to 255. If the token's decimals are unknown, `decimals` is 9"
  })
}).annotate({ identifier: "TokenData" })
export type TokenData = typeof TokenData.Type

/** A TVM integer of up to 257 bits: a JSON number, or a decimal string from newer servers. */
export const TvmInteger = Schema.Union([
  Schema.Int,
  Schema.BigInt,
  Schema.String.check(Schema.isPattern(/^-?[0-9]{1,78}$/u))
]).pipe(
  Schema.decodeTo(
    Schema.BigInt,
    SchemaTransformation.transform({ decode: (value) => BigInt(value), encode: (value) => value.toString() })
  )
)

/** On-chain metadata by attribute (TEP-64); `uri` refers to a document with further attributes. */
const OnchainContent = Schema.Struct({
  type: Schema.Literal("onchain"),
  data: Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown))
})

/** Off-chain metadata: `data` is the URI of a JSON document. */
const OffchainContent = Schema.Struct({ type: Schema.Literal("offchain"), data: Schema.NullOr(Schema.String) })

/** Metadata of a token contract as servers report it (TEP-64). */
export const TokenContent = Schema.Union([OnchainContent, OffchainContent])
export type TokenContent = typeof TokenContent.Type

/** Makes a member that servers omit, or send as `null`, when it has no value. */
const sometimes = <S extends Schema.ConstraintCodec<unknown, unknown>>(schema: S) =>
  Schema.optionalKey(Schema.NullOr(schema))

/** A fungible token's master contract. `admin_address` is absent if the token has no admin. */
export const JettonMaster = openStruct({
  contract_type: Schema.Literal("jetton_master").pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("jetton_master" as const))
  ),
  total_supply: TvmInteger,
  mintable: Schema.Boolean,
  admin_address: sometimes(Schema.String),
  jetton_content: sometimes(TokenContent),
  jetton_wallet_code: sometimes(Schema.String)
}).annotate({ identifier: "JettonMaster" })
export type JettonMaster = typeof JettonMaster.Type

/** One holder's wallet for a fungible token; `jetton` is the master contract. */
export const JettonWallet = openStruct({
  contract_type: Schema.Literal("jetton_wallet"),
  balance: TvmInteger,
  owner: sometimes(Schema.String),
  jetton: sometimes(Schema.String),
  jetton_wallet_code: sometimes(Schema.String),
  mintless_is_claimed: sometimes(Schema.Boolean)
}).annotate({ identifier: "JettonWallet" })

/** A collection of non-fungible tokens; `next_item_index` is -1 if its items are not numbered in sequence. */
export const NftCollection = openStruct({
  contract_type: Schema.Literal("nft_collection"),
  next_item_index: TvmInteger,
  collection_content: Schema.optionalKey(Schema.Unknown),
  owner_address: sometimes(Schema.String)
}).annotate({ identifier: "NftCollection" })

/**
 * A non-fungible token; `index` has up to 256 bits; `content` contains the domain's records if the token is a DNS item.
 */
export const NftItem = openStruct({
  contract_type: Schema.Literal("nft_item"),
  init: Schema.Boolean,
  index: TvmInteger,
  collection_address: sometimes(Schema.String),
  owner_address: sometimes(Schema.String),
  content: Schema.optionalKey(Schema.Unknown)
}).annotate({ identifier: "NftItem" })

/**
 * The servers' responses to `getTokenData`, distinguished by `contract_type`; integers decode as `bigint`.
 *
 * Old servers omit the `contract_type` of a master contract; decoding adds it.
 */
export const TokenContract = Schema.Union([JettonWallet, NftCollection, NftItem, JettonMaster]).annotate({
  identifier: "TokenContract"
})
export type TokenContract = typeof TokenContract.Type

/** All forms of an address, as returned by `detectAddress`; `given_type` is the form in the request. */
export const DetectedAddress = openStruct({
  raw_form: Schema.String,
  bounceable: Schema.Struct({ b64: Schema.String, b64url: Schema.String }),
  non_bounceable: Schema.Struct({ b64: Schema.String, b64url: Schema.String }),
  given_type: Schema.Literals(["raw_form", "friendly_bounceable", "friendly_non_bounceable"]),
  test_only: Schema.Boolean
}).annotate({ identifier: "DetectedAddress" })
export type DetectedAddress = typeof DetectedAddress.Type

/** The type of a contract's data, in responses of servers of the C++ family to `getTokenData`. */
export const wireTypes: { readonly [Kind in TokenContract["contract_type"]]: string } = {
  jetton_master: "ext.tokens.jettonMasterData",
  jetton_wallet: "ext.tokens.jettonWalletData",
  nft_collection: "ext.tokens.nftCollectionData",
  nft_item: "ext.tokens.nftItemData"
}
