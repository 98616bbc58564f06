/** Encodes blocks, transactions, receipts and logs of a sandbox's EVM chain as a node does. */
import { Address, Hash, lowerCase, Quantity } from "@trigate/domain/encoding/Hex"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Envelope, EvmChain, Sent, Transaction } from "./EvmChain.ts"
import * as Chain from "./EvmChain.ts"
import { zeroWord } from "./EvmWorld.ts"

/** A JSON-RPC error object, as a node returns it. */
export interface RpcRefusal {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** Makes the error object with which a node refuses a call. */
export const refused = (message: string): RpcRefusal => ({ code: -32000, message })

/** Formats an integer in 0x hex. */
export const quantity = (value: number | bigint): string => `0x${value.toString(16)}`

/** A block tag or block number. */
export const Block = Schema.Union([Schema.Literals(["latest", "pending", "safe", "finalized", "earliest"]), Quantity])

/** See {@link Block}. */
export type Block = typeof Block.Type

/** A block reference for reading state, including the object form (EIP-1898). */
export const StateBlock = Schema.Union([
  Block,
  Schema.Struct({ blockNumber: Quantity }),
  Schema.Struct({ blockHash: Hash })
])

/** Converts a block tag or number to a block number. Default: the latest block. */
export const blockNumber = ({ heads }: EvmChain, block: Block | null = "latest"): number => {
  if (block === null || block === "latest" || block === "pending") return heads.latest
  if (block === "earliest") return 0
  return typeof block === "bigint" ? Number(block) : heads[block]
}

const stateBlockNumber = (chain: EvmChain, block: typeof StateBlock.Type | null = "latest"): number | undefined => {
  if (block === "pending") return Chain.nextBlock(chain)
  if (block === null || typeof block !== "object") return blockNumber(chain, block)
  return "blockHash" in block ? Chain.findBlock(chain, block.blockHash) : Number(block.blockNumber)
}

/** Returns the number of the block whose state is read. For `pending`, this is the next block. */
export const stateAt = (
  chain: EvmChain,
  block: typeof StateBlock.Type | null | undefined
): Result.Result<number, RpcRefusal> => {
  const number = stateBlockNumber(chain, block)
  return number === undefined || (number > chain.heads.latest && block !== "pending")
    ? Result.fail(refused("header not found"))
    : Result.succeed(number)
}

const isThere = ({ heads }: EvmChain, number: number | undefined): number is number =>
  number !== undefined && number <= heads.latest

/**
 * Returns the bloom filter of logs: all ones if there are logs, because such a filter matches every topic and needs no
 * hashing.
 */
const bloom = (logs: ReadonlyArray<unknown>): string => `0x${(logs.length === 0 ? "0" : "f").repeat(512)}`

const inBlock = (chain: EvmChain, { block, index }: Transaction) => ({
  transactionIndex: quantity(index),
  blockHash: Chain.hashAt(chain, block),
  blockNumber: quantity(block)
})

const encodeLogs = (chain: EvmChain, transaction: Transaction) =>
  transaction.logs.map((log, index) => ({
    ...log,
    transactionHash: transaction.hash,
    ...inBlock(chain, transaction),
    logIndex: quantity(transaction.firstLog + index),
    removed: false,
    ...transaction.fields.log(Chain.receiptPlace(chain, transaction), index)
  }))

const wireReceipt = (chain: EvmChain, transaction: Transaction): { readonly [field: string]: unknown } => ({
  transactionHash: transaction.hash,
  ...inBlock(chain, transaction),
  from: transaction.from,
  to: transaction.to,
  contractAddress: transaction.contractAddress,
  cumulativeGasUsed: quantity(transaction.cumulativeGasUsed),
  gasUsed: quantity(transaction.gasUsed),
  ...(transaction.paid === undefined ? {} : { effectiveGasPrice: quantity(transaction.paid) }),
  status: transaction.status === "success" ? "0x1" : "0x0",
  ...(transaction.type === undefined ? {} : { type: transaction.type }),
  logsBloom: bloom(transaction.logs),
  logs: encodeLogs(chain, transaction),
  ...transaction.fields.receipt(Chain.receiptPlace(chain, transaction)),
  ...transaction.extras
})

const findTransaction = ({ ledger }: EvmChain, hash: Hash): Transaction | undefined =>
  ledger.transactions.get(lowerCase(hash))

/**
 * Encodes the receipt of a transaction. Returns `null` if the transaction is unknown, or if the transaction's block
 * does not exist yet and the receipt is not preconfirmed.
 */
export const encodeReceipt = (chain: EvmChain, hash: Hash) => {
  const transaction = findTransaction(chain, hash)
  return transaction !== undefined && (isThere(chain, transaction.block) || isThere(chain, transaction.promisedFrom))
    ? wireReceipt(chain, transaction)
    : null
}

const encodePricing = (pricing: Envelope["pricing"], paid: bigint) =>
  pricing.type === "0x2"
    ? {
      accessList: pricing.accessList,
      gasPrice: quantity(paid),
      maxFeePerGas: quantity(pricing.maxFeePerGas),
      maxPriorityFeePerGas: quantity(pricing.maxPriorityFeePerGas)
    }
    : {
      ...(pricing.type === "0x1" ? { accessList: pricing.accessList } : {}),
      gasPrice: quantity(pricing.gasPrice)
    }

const wireTransaction = (chain: EvmChain, transaction: Sent | Transaction) => {
  const { envelope, from, hash, to } = transaction
  const { gas, input, nonce, pricing, signature, value } = envelope
  const mined = "block" in transaction ? transaction : undefined
  const isLegacy = pricing.type === "0x0"
  return {
    hash,
    ...(mined !== undefined && isThere(chain, mined.block)
      ? inBlock(chain, mined)
      : { blockHash: null, blockNumber: null, transactionIndex: null }),
    from,
    to,
    nonce: quantity(nonce),
    value: quantity(value),
    gas: quantity(gas),
    input,
    type: mined === undefined ? pricing.type : mined.type ?? "0x0",
    chainId: quantity(chain.chainId),
    ...encodePricing(pricing, mined?.paid ?? Chain.paidAt(pricing, chain.baseFee(Chain.nextBlock(chain)))),
    r: signature.r,
    s: signature.s,
    v: quantity(isLegacy ? chain.chainId * 2 + 35 + signature.yParity : signature.yParity),
    ...(isLegacy ? {} : { yParity: quantity(signature.yParity) })
  }
}

/** Encodes a transaction, whether or not it is in a block. Returns `null` if the transaction is unknown. */
export const encodeTransaction = (chain: EvmChain, hash: Hash) => {
  const found = findTransaction(chain, hash) ??
    chain.ledger.waiting.find((sent) => sent.hash === hash.toLowerCase())
  return found === undefined ? null : wireTransaction(chain, found)
}

const emptyRoot = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
const noUncles = "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"

/**
 * Returns a block; `null` if the block does not exist. If `isFull` is set, the block contains its transactions;
 * otherwise their hashes.
 */
export const blockAt = (chain: EvmChain, number: number | undefined, isFull: boolean) => {
  if (!isThere(chain, number)) return null
  const transactions = Chain.transactionsIn(chain.ledger, number)
  const gasUsed = transactions.reduce((sum, transaction) => sum + transaction.gasUsed, 0n)
  const needed = transactions.reduce((most, { envelope: { gas } }) => gas > most ? gas : most, gasUsed)
  return {
    number: quantity(number),
    hash: Chain.hashAt(chain, number),
    parentHash: Chain.hashAt(chain, number - 1),
    timestamp: quantity(Chain.blockTimestamp(chain.clock, number)),
    baseFeePerGas: quantity(chain.baseFee(number)),
    gasLimit: quantity(needed > chain.blockGas ? Chain.gasLimit : chain.blockGas),
    gasUsed: quantity(gasUsed),
    transactions: transactions.map((transaction) => isFull ? wireTransaction(chain, transaction) : transaction.hash),
    uncles: [],
    size: "0x400",
    miner: `0x${"0".repeat(40)}`,
    difficulty: "0x0",
    totalDifficulty: "0x0",
    extraData: "0x",
    nonce: "0x0000000000000000",
    mixHash: zeroWord,
    sha3Uncles: noUncles,
    logsBloom: bloom(transactions.flatMap(({ logs }) => logs)),
    transactionsRoot: emptyRoot,
    stateRoot: emptyRoot,
    receiptsRoot: emptyRoot
  }
}

/** Returns the transaction at a position of a block; `null` if there is no such transaction. */
export const transactionAt = (chain: EvmChain, number: number | undefined, index: bigint) => {
  const found = isThere(chain, number)
    ? Chain.transactionsIn(chain.ledger, number).find((transaction) => BigInt(transaction.index) === index)
    : undefined
  return found === undefined ? null : wireTransaction(chain, found)
}

/** Returns the receipts of a block; `null` if the block does not exist. */
export const receiptsAt = (chain: EvmChain, number: number | undefined) =>
  isThere(chain, number)
    ? Chain.transactionsIn(chain.ledger, number).map((transaction) => wireReceipt(chain, transaction))
    : null

/** Returns the number of a block's uncles, which is always 0; `null` if the block does not exist. */
export const unclesAt = (chain: EvmChain, number: number | undefined) => isThere(chain, number) ? "0x0" : null

/** Returns the number of a block's transactions; `null` if the block does not exist. */
export const countAt = (chain: EvmChain, number: number | undefined) =>
  isThere(chain, number) ? quantity(Chain.transactionsIn(chain.ledger, number).length) : null

/** The filter of `eth_getLogs`. */
export const Filter = Schema.Struct({
  fromBlock: Schema.optionalKey(Schema.NullOr(Block)),
  toBlock: Schema.optionalKey(Schema.NullOr(Block)),
  blockHash: Schema.optionalKey(Hash),
  address: Schema.optionalKey(Schema.NullOr(Schema.Union([Address, Schema.Array(Address)]))),
  topics: Schema.optionalKey(
    Schema.NullOr(Schema.Array(Schema.NullOr(Schema.Union([Hash, Schema.Array(Hash)]))))
  )
})

type Wanted = string | ReadonlyArray<string> | null | undefined

const isWanted = (wanted: Wanted, found: string | undefined): boolean => {
  if (wanted === null || wanted === undefined || wanted.length === 0) return true
  const all = typeof wanted === "string" ? [wanted] : wanted
  return found !== undefined && all.some((each) => each.toLowerCase() === found.toLowerCase())
}

const filterRange = (chain: EvmChain, { blockHash, fromBlock, toBlock }: typeof Filter.Type) => {
  if (blockHash === undefined) return { from: blockNumber(chain, fromBlock), to: blockNumber(chain, toBlock) }
  const block = Chain.findBlock(chain, blockHash) ?? -1
  return { from: block, to: block }
}

/** Returns the logs that match a filter, in the order of their blocks. */
export const findLogs = (chain: EvmChain, filter: typeof Filter.Type) => {
  const { from, to } = filterRange(chain, filter)
  return [...chain.ledger.transactions.values()]
    .filter(({ block }) => block >= from && block <= Math.min(to, chain.heads.latest))
    .toSorted((a, b) => a.block - b.block)
    .flatMap((transaction) => encodeLogs(chain, transaction))
    .filter(({ address, topics }) =>
      isWanted(filter.address, address) &&
      (filter.topics ?? []).every((topic, position) => isWanted(topic, topics[position]))
    )
}
