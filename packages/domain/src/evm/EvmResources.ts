/**
 * The resources of an EVM chain: blocks and references to them, receipts, logs and the filters that match them, and
 * amounts of gas and tokens.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { Address, Data, Hash, openStruct, Quantity } from "../encoding/Encoding.ts"

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

/**
 * Whether the transaction succeeded.
 *
 * Nodes encode it as `"0x1"` or `"0x0"`; some documentation shows `1` and `0`. The value is always encoded as `"0x1"`
 * or `"0x0"`, because standard clients accept no other form.
 */
export const ReceiptStatus = Schema.Literals(["0x1", "0x0", "1", "0", 1, 0]).pipe(
  Schema.decodeTo(
    Schema.Literals(["success", "failure"]),
    SchemaTransformation.transform({
      decode: (wire) => Number(wire) === 1 ? "success" : "failure",
      encode: (status) => status === "success" ? "0x1" : "0x0"
    })
  )
).annotate({ identifier: "ReceiptStatus" })
export type ReceiptStatus = typeof ReceiptStatus.Type

/** The EIP-2718 type of a transaction: `0x2`, `0x7e` (deposit), `0x71` (EIP-712), … */
export const TransactionType = Schema.String.check(Schema.isPattern(/^0x[0-9a-fA-F]{1,2}$/u)).annotate({
  identifier: "TransactionType",
  description: "EIP-2718 transaction type, 0x hex"
})
export type TransactionType = typeof TransactionType.Type

/** A log of a transaction. Chain families add fields (`blockTimestamp`, `transactionLogIndex`, …); old nodes omit `removed`. */
export const ReceiptLog = openStruct({
  address: Address,
  topics: Schema.Array(Hash).check(Schema.isMaxLength(4)),
  data: Data,
  blockHash: Hash,
  blockNumber: Quantity,
  transactionHash: Hash,
  transactionIndex: Quantity,
  logIndex: Quantity.annotate({ description: "Position in the block" }),
  removed: Schema.optionalKey(Schema.Boolean.annotate({ description: "Whether a reorg removed the log" }))
}).annotate({ identifier: "ReceiptLog" })
export type ReceiptLog = typeof ReceiptLog.Type

/**
 * The receipt of a transaction.
 *
 * Gas is in units of gas, `effectiveGasPrice` in wei. Chain families without EIP-1559 or EIP-2718 omit
 * `effectiveGasPrice` or `type`. For a contract creation, `to` is null in most families, and the system deployer on
 * zkSync. Fields that a family adds (`l1Fee`, `gasUsedForL1`, `l2ToL1Logs`, `root`, …) are preserved as received, here
 * and in each log.
 */
export const Receipt = openStruct({
  transactionHash: Hash,
  transactionIndex: Quantity,
  blockHash: Hash.annotate({ description: "All zeros while the block is not sealed" }),
  blockNumber: Quantity,
  from: Address,
  to: Schema.optionalKey(Schema.NullOr(Address)),
  cumulativeGasUsed: Quantity,
  gasUsed: Quantity,
  effectiveGasPrice: Schema.optionalKey(Schema.NullOr(Quantity)),
  contractAddress: Schema.optionalKey(Schema.NullOr(Address)),
  logs: Schema.Array(ReceiptLog),
  logsBloom: Data,
  type: Schema.optionalKey(Schema.NullOr(TransactionType)),
  status: ReceiptStatus
}).annotate({ identifier: "Receipt" })
export type Receipt = typeof Receipt.Type

/** The fee of a transaction, in wei of the chain's native coin. */
export interface Fee {
  readonly total: bigint
  /** The part of the fee that is paid for data on layer 1; absent if the chain family does not report it. */
  readonly layer1?: bigint
}

const decodeQuantity = Schema.decodeUnknownOption(Quantity)

/**
 * Returns the fee of a receipt; `None` if the chain family omits the gas price.
 *
 * OP Stack chains charge `l1Fee` in addition to gas. Arbitrum includes `gasUsedForL1` in `gasUsed`.
 */
export const receiptFee = (receipt: Receipt): Option.Option<Fee> => {
  const { effectiveGasPrice, gasUsed } = receipt
  if (effectiveGasPrice === undefined || effectiveGasPrice === null) return Option.none()
  const execution = gasUsed * effectiveGasPrice
  const beside = Option.map(
    decodeQuantity(receipt["l1Fee"]),
    (layer1): Fee => ({ total: execution + layer1, layer1 })
  )
  const within = Option.map(
    decodeQuantity(receipt["gasUsedForL1"]),
    (gas): Fee => ({ total: execution, layer1: gas * effectiveGasPrice })
  )
  return Option.some(Option.getOrElse(Option.orElse(beside, () => within), () => ({ total: execution })))
}

const zeros = /^0x0+$/u

/**
 * Returns whether a receipt is a preconfirmation by the sequencer: its block hash is all zeros, because the transaction
 * is not in a block yet.
 *
 * Some node providers return preconfirmed receipts; they can change until the block is sealed.
 */
export const isPreconfirmed = (receipt: Pick<Receipt, "blockHash">): boolean => zeros.test(receipt.blockHash)

const rangeFilter = (most: number) => {
  const { address, topics } = selectedLogs(most)
  return Schema.Struct({
    fromBlock: Schema.optionalKey(Schema.NullOr(BlockNumberOrTag)),
    toBlock: Schema.optionalKey(Schema.NullOr(BlockNumberOrTag)),
    blockHash: Schema.optionalKey(Schema.Null),
    address: Schema.optionalKey(Schema.NullOr(address)),
    topics: Schema.optionalKey(Schema.NullOr(topics))
  })
}

/** The filter of a range's logs, as callers and nodes encode it: absent members can be `null`. */
export const RangeFilter = rangeFilter(maxAlternatives)

/** The filter of a search, which may have more alternatives than nodes serve in one query. */
export const SearchFilter = rangeFilter(10 * maxAlternatives)

/** The message of the error for a filter that does not decode. */
export const invalidFilter =
  `invalid params: expected a filter of at most ${maxAlternatives} addresses and ${maxTopics} topics, each with at most ${maxAlternatives} alternatives`

/** The fields of a log that a filter compares. */
export interface LogSubject {
  readonly address: string
  readonly topics: ReadonlyArray<string>
}

/** The values that a filter accepts for the address or a topic of a log, in lower case. An empty set matches everything. */
export type Alternatives = Pick<ReadonlySet<string>, "has" | "size"> & Iterable<string>

/** The addresses and topics that a filter accepts. */
export interface LogSelection {
  readonly addresses: Alternatives
  readonly topics: ReadonlyArray<Alternatives>
}

const alternatives = (value: string | ReadonlyArray<string> | null | undefined): ReadonlySet<string> =>
  new Set((typeof value === "string" ? [value] : value ?? []).map((each) => each.toLowerCase()))

/** Returns the addresses and topics that a filter selects, without its block range. */
export const selectionIn = (
  { address, topics }: Pick<typeof RangeFilter.Type, "address" | "topics">
): LogSelection => ({
  addresses: alternatives(address),
  topics: (topics ?? []).map(alternatives)
})

/** Returns whether a selection matches a log. */
export const selects = ({ addresses, topics }: LogSelection, log: LogSubject): boolean =>
  (addresses.size === 0 || addresses.has(log.address.toLowerCase())) &&
  log.topics.length >= topics.length &&
  topics.every((position, index) => position.size === 0 || position.has(log.topics[index]?.toLowerCase() ?? ""))

const GWEI_DECIMALS = 9
const ETHER_DECIMALS = 18

/**
 * Formats an amount in smallest units as a decimal number without trailing zeros: `1500000000n` with 9 decimals is
 * `"1.5"`.
 */
export const formatUnits = (units: bigint, decimals: number): string => {
  const sign = units < 0n ? "-" : ""
  const digits = (units < 0n ? -units : units).toString().padStart(decimals + 1, "0")
  const point = digits.length - decimals
  const fraction = digits.slice(point).replace(/0+$/u, "")
  return `${sign}${digits.slice(0, point)}${fraction === "" ? "" : `.${fraction}`}`
}

const amount = /^(?<whole>[0-9]{1,60})(?:\.(?<fraction>[0-9]{1,60}))?$/u

const parse = (text: string, decimals: number): Option.Option<bigint> => {
  const groups = amount.exec(text)?.groups
  if (groups === undefined) return Option.none()
  // trailing zeros beyond the last decimal place are insignificant; any other digit there makes the number invalid
  const fraction = (groups["fraction"] ?? "").replace(/0+$/u, "")
  return fraction.length > decimals
    ? Option.none()
    : Option.some(BigInt(`${groups["whole"] ?? ""}${fraction.padEnd(decimals, "0")}`))
}

/** Formats wei in gwei without trailing zeros: `1500000000n` is `"1.5"`. */
export const formatGwei = (wei: bigint): string => formatUnits(wei, GWEI_DECIMALS)

/** Formats wei in ether without trailing zeros: `1n` is `"0.000000000000000001"`. */
export const formatEther = (wei: bigint): string => formatUnits(wei, ETHER_DECIMALS)

/** Parses a plain decimal number in gwei to wei; `None` for other text and for fractions of a wei. */
export const parseGwei = (text: string): Option.Option<bigint> => parse(text, GWEI_DECIMALS)

/** Parses a plain decimal number in ether to wei; `None` for other text and for fractions of a wei. */
export const parseEther = (text: string): Option.Option<bigint> => parse(text, ETHER_DECIMALS)

/** Returns the maximum cost of a transaction in wei: gas price x gas limit. */
export const cost = (price: { readonly gasPrice: bigint; readonly gasLimit: bigint }): bigint =>
  price.gasPrice * price.gasLimit
