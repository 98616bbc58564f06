/** The blocks of a sandbox's EVM chain as a node tells them, with their transactions and receipts. */
import { Hash, Quantity } from "@trigate/domain/Hex"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { EvmChain } from "./EvmChain.ts"
import * as Chain from "./EvmChain.ts"
import type { Refusal } from "./EvmReply.ts"
import { refused } from "./EvmReply.ts"
import type { Transaction } from "./EvmTransaction.ts"
import { bloom, wireReceipt, wireTransaction } from "./EvmTransaction.ts"
import { quantity } from "./Layer2Family.ts"
import { lower } from "./VenueState.ts"

/** A block by tag or number. */
export const Block = Schema.Union([Schema.Literals(["latest", "pending", "safe", "finalized", "earliest"]), Quantity])

/** See {@link Block}. */
export type Block = typeof Block.Type

/** A block whose state is read: also by an object (EIP-1898). */
export const StateBlock = Schema.Union([
  Block,
  Schema.Struct({ blockNumber: Quantity }),
  Schema.Struct({ blockHash: Hash })
])

/** The number of a block; no block is the newest one. */
export const numberOf = ({ heads }: EvmChain, block: Block | null = "latest"): number => {
  if (block === null || block === "latest" || block === "pending") return heads.latest
  if (block === "earliest") return 0
  return typeof block === "bigint" ? Number(block) : heads[block]
}

const stateNumberOf = (chain: EvmChain, block: typeof StateBlock.Type | null = "latest"): number | undefined => {
  if (block === "pending") return Chain.nextBlock(chain)
  if (block === null || typeof block !== "object") return numberOf(chain, block)
  return "blockHash" in block ? Chain.blockOf(chain, block.blockHash) : Number(block.blockNumber)
}

/** The number of a block whose state is read, the next one if that is pending. */
export const stateAt = (
  chain: EvmChain,
  block: typeof StateBlock.Type | null | undefined
): Result.Result<number, Refusal> => {
  const number = stateNumberOf(chain, block)
  return number === undefined || (number > chain.heads.latest && block !== "pending")
    ? Result.fail(refused("header not found"))
    : Result.succeed(number)
}

const isThere = ({ heads }: EvmChain, number: number | undefined): number is number =>
  number !== undefined && number <= heads.latest

/** The receipt of a transaction; null while it is unknown, or in no block yet and promised by nobody. */
export const receiptOf = (chain: EvmChain, hash: Hash) => {
  const transaction = chain.ledger.transactions.get(lower(hash))
  return transaction !== undefined && (isThere(chain, transaction.block) || isThere(chain, transaction.promisedFrom))
    ? wireReceipt(transaction, Chain.placeOf(chain, transaction))
    : null
}

const told = (chain: EvmChain, transaction: Transaction) =>
  wireTransaction(
    transaction,
    Chain.placeOf(chain, transaction),
    chain.chainId,
    isThere(chain, transaction.block)
  )

/** A transaction, in a block or not yet; null if it is unknown. */
export const transactionOf = (chain: EvmChain, hash: Hash) => {
  const transaction = chain.ledger.transactions.get(lower(hash))
  return transaction === undefined ? null : told(chain, transaction)
}

const gasLimit = 30_000_000
const emptyRoot = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
const noUncles = "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"

/** A block, with its transactions or their hashes; null where there is none. */
export const blockAt = (chain: EvmChain, number: number | undefined, isFull: boolean) => {
  if (!isThere(chain, number)) return null
  const { clock, name, seed } = chain
  const transactions = Chain.transactionsIn(chain, number)
  return {
    number: quantity(number),
    hash: Chain.blockHash(seed, name, number),
    parentHash: number === 0 ? Chain.zeroWord : Chain.blockHash(seed, name, number - 1),
    timestamp: quantity(Chain.timestampOf(clock, number)),
    baseFeePerGas: quantity(chain.baseFee(number)),
    gasLimit: quantity(gasLimit),
    gasUsed: quantity(transactions.reduce((sum, { gasUsed }) => sum + gasUsed, 0n)),
    transactions: transactions.map((transaction) => isFull ? told(chain, transaction) : transaction.hash),
    uncles: [],
    size: "0x400",
    miner: `0x${"0".repeat(40)}`,
    difficulty: "0x0",
    totalDifficulty: "0x0",
    extraData: "0x",
    nonce: "0x0000000000000000",
    mixHash: Chain.zeroWord,
    sha3Uncles: noUncles,
    logsBloom: bloom(transactions.flatMap(({ logs }) => logs)),
    transactionsRoot: emptyRoot,
    stateRoot: emptyRoot,
    receiptsRoot: emptyRoot
  }
}

/** The transaction at a position of a block; null where there is none. */
export const transactionAt = (chain: EvmChain, number: number | undefined, index: bigint) =>
  isThere(chain, number)
    ? Chain.transactionsIn(chain, number).map((transaction) => told(chain, transaction)).find(
      ({ transactionIndex }) => transactionIndex === quantity(index)
    ) ?? null
    : null

/** The receipts of a block; null where there is none. */
export const receiptsAt = (chain: EvmChain, number: number | undefined) =>
  isThere(chain, number) ? Chain.transactionsIn(chain, number).map(({ hash }) => receiptOf(chain, hash)) : null

/** The number of a block's uncles, of which there never are any; null where there is no block. */
export const unclesAt = (chain: EvmChain, number: number | undefined) => isThere(chain, number) ? "0x0" : null

/** The number of a block's transactions; null where there is none. */
export const countAt = (chain: EvmChain, number: number | undefined) =>
  isThere(chain, number) ? quantity(Chain.transactionsIn(chain, number).length) : null
