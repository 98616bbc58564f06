/** Blocks of an EVM chain, and which of them a call names. */
import * as Schema from "effect/Schema"
import { Address, Data, Hash, Quantity } from "../encoding/Hex.ts"
import { openStruct } from "../encoding/OpenStruct.ts"

/** A block by its number, or one that a node knows by a name. */
export const BlockNumberOrTag = Schema.Union([
  Schema.Literals(["latest", "safe", "finalized", "earliest", "pending"]),
  Quantity
])
export type BlockNumberOrTag = typeof BlockNumberOrTag.Type

/** A transaction as blocks list it. Families of chains add fields. */
export const Transaction = openStruct({
  hash: Hash,
  from: Address,
  to: Schema.optionalKey(Schema.NullOr(Address)),
  value: Quantity,
  nonce: Quantity,
  gas: Quantity,
  input: Data
}).annotate({ identifier: "Transaction" })
export type Transaction = typeof Transaction.Type

/** A block, with the hashes of its transactions or the transactions themselves. A pending one has no number and no hash. */
export const Block = openStruct({
  number: Schema.NullOr(Quantity),
  hash: Schema.NullOr(Hash),
  parentHash: Hash,
  timestamp: Quantity.annotate({ description: "Seconds since the Unix epoch" }),
  gasLimit: Quantity,
  gasUsed: Quantity,
  baseFeePerGas: Schema.optionalKey(Schema.NullOr(Quantity).annotate({ description: "In wei" })),
  transactions: Schema.Array(Schema.Union([Hash, Transaction]))
}).annotate({ identifier: "Block" })
export type Block = typeof Block.Type

/** Which logs: of one block by its hash or of a range of blocks, by contracts and by topics at their positions. */
export const LogFilter = Schema.Struct({
  fromBlock: Schema.optionalKey(BlockNumberOrTag),
  toBlock: Schema.optionalKey(BlockNumberOrTag),
  blockHash: Schema.optionalKey(Hash),
  address: Schema.optionalKey(Schema.Union([Address, Schema.Array(Address)])),
  topics: Schema.optionalKey(Schema.Array(Schema.NullOr(Schema.Union([Hash, Schema.Array(Hash)]))))
}).annotate({ identifier: "LogFilter" })
export type LogFilter = typeof LogFilter.Type
