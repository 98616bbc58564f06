/** Spot tokens and pairs of the trading chain, as `spotMeta` returns them. */
import * as Schema from "effect/Schema"
import { Address } from "../encoding/Hex.ts"
import { nullish, openStruct } from "../encoding/OpenStruct.ts"

/** The ERC-20 contract to which a spot token is linked. The venue names one field in snake_case. */
export const EvmContract = openStruct({
  address: Address,
  evm_extra_wei_decimals: Schema.Int.annotate({
    description: "EVM decimals minus weiDecimals; can be negative"
  })
}).annotate({ identifier: "EvmContract" })

/** A spot token. `index` identifies it in pairs and is not contiguous; `tokenId` is its only unique key. */
export const SpotToken = openStruct({
  name: Schema.String,
  szDecimals: Schema.Int.annotate({ description: "Decimals of an order size" }),
  weiDecimals: Schema.Int.annotate({ description: "Decimals of the token's smallest unit (wei)" }),
  index: Schema.Natural,
  tokenId: Schema.String.check(Schema.isPattern(/^0x[0-9a-fA-F]{32}$/u)),
  isCanonical: Schema.Boolean,
  evmContract: nullish(EvmContract),
  fullName: nullish(Schema.String),
  deployerTradingFeeShare: nullish(Schema.String)
}).annotate({ identifier: "SpotToken" })
export type SpotToken = typeof SpotToken.Type

/** A spot pair: `name` is `<BASE>/<QUOTE>` or `@<index>`; `index` is not contiguous, so it is not an array position. */
export const SpotPair = openStruct({
  name: Schema.String,
  tokens: Schema.Tuple([Schema.Natural, Schema.Natural]).annotate({ description: "Token indexes: base, quote" }),
  index: Schema.Natural,
  isCanonical: Schema.Boolean
}).annotate({ identifier: "SpotPair" })
export type SpotPair = typeof SpotPair.Type

/** All spot pairs and tokens; preserves unknown fields. */
export const SpotMeta = openStruct({ universe: Schema.Array(SpotPair), tokens: Schema.Array(SpotToken) }).annotate({
  identifier: "SpotMeta"
})
export type SpotMeta = typeof SpotMeta.Type
