/** Blocks of an EVM chain, and references to them. */
import * as Schema from "effect/Schema"
import { Address, Data, Hash, Quantity } from "../encoding/Hex.ts"
import { openStruct } from "../encoding/OpenStruct.ts"

/** A block by number, or by a tag such as `latest`. */
export const BlockNumberOrTag = Schema.Union([
  Schema.Literals(["latest", "safe", "finalized", "earliest", "pending"]),
  Quantity
])
export type BlockNumberOrTag = typeof BlockNumberOrTag.Type

/** A transaction in a block. Chain families, such as OP Stack and Arbitrum, add fields. */
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

/** A block with its transactions or their hashes. A pending block has neither number nor hash. */
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

/** A block without its transactions, as subscriptions send it. */
export const BlockHeader = openStruct({
  number: Quantity,
  hash: Hash,
  parentHash: Hash,
  timestamp: Quantity.annotate({ description: "Seconds since the Unix epoch" }),
  gasLimit: Quantity,
  gasUsed: Quantity,
  baseFeePerGas: Schema.optionalKey(Schema.NullOr(Quantity).annotate({ description: "In wei" })),
  logsBloom: Schema.optionalKey(Schema.NullOr(Data))
}).annotate({ identifier: "BlockHeader" })
export type BlockHeader = typeof BlockHeader.Type

/** Maximum number of addresses or alternatives of a topic in a log filter. It is geth's limit too. */
export const maxAlternatives = 1000
/** Maximum number of topics in a log filter: the number of topics that a log can have. */
export const maxTopics = 4

/** Returns the schemas of a filter's addresses and topics, with at most `most` addresses or alternatives of a topic. */
export const selectedLogs = (most: number) => {
  const oneOrMore = (each: typeof Address) => Schema.Union([each, Schema.Array(each).check(Schema.isMaxLength(most))])
  return {
    address: oneOrMore(Address),
    topics: Schema.Array(Schema.NullOr(oneOrMore(Hash))).check(Schema.isMaxLength(maxTopics))
  }
}

const selected = selectedLogs(maxAlternatives)

/** A log filter: a block hash or a block range, contract addresses, and topics by position. */
export const LogFilter = Schema.Struct({
  fromBlock: Schema.optionalKey(BlockNumberOrTag),
  toBlock: Schema.optionalKey(BlockNumberOrTag),
  blockHash: Schema.optionalKey(Hash),
  address: Schema.optionalKey(selected.address),
  topics: Schema.optionalKey(selected.topics)
}).annotate({ identifier: "LogFilter" })
export type LogFilter = typeof LogFilter.Type
