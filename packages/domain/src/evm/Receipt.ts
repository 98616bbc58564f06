/**
 * Transaction receipts of EVM layer 2s. Documented fields are decoded; fields that a chain family adds are preserved.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { Address, Data, Hash, Quantity } from "../encoding/Hex.ts"
import { openStruct } from "../encoding/OpenStruct.ts"

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
