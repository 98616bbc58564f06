/** Accounts and storage, blocks and transactions of the sandbox's two EVM chains, and their encoding. */
import { Address, type Data, Hash, lowerCase, Quantity } from "@trigate/domain/encoding/Encoding"
import * as Arr from "effect/Array"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Random from "../Seed.ts"

/** An account or a contract; the balance is in wei. */
export interface Account {
  readonly nonce: bigint
  readonly balance: bigint
  /** The code of a contract; `0x` for an account without code. */
  readonly code: Data
}

/** Accounts by address, and storage words by {@link wordKey}. */
export interface World {
  readonly accounts: HashMap.HashMap<Address, Account>
  readonly words: HashMap.HashMap<string, Hash>
  /** Returns the initial word of a storage slot that was never written. */
  readonly unwritten: (address: Address, slot: bigint) => Hash
}

/** 32 zero bytes: an empty storage word, or the hash of an unsealed block. */
export const zeroWord: Hash = `0x${"0".repeat(64)}`

const nobody: Account = { nonce: 0n, balance: 0n, code: "0x" }

/** Makes a state with some accounts and no written storage words. */
export const make = (
  accounts: Iterable<readonly [Address, Partial<Account>]>,
  unwritten: World["unwritten"] = () => zeroWord
): World => ({
  accounts: HashMap.fromIterable(Array.from(accounts, ([address, account]) => [address, { ...nobody, ...account }])),
  words: HashMap.empty(),
  unwritten
})

/** Returns the key of a storage word, normalized for letter case and leading zeros. */
export const wordKey = (address: Address, slot: bigint): string => `${lowerCase(address)}/${slot.toString(16)}`

/** Returns an account. For an address without an account, returns an empty account. */
export const readAccount = ({ accounts }: World, address: Address): Account =>
  Option.getOrElse(HashMap.get(accounts, lowerCase(address)), () => nobody)

/** Returns a storage word. */
export const readWord = ({ unwritten, words }: World, address: Address, slot: bigint): Hash =>
  Option.getOrElse(HashMap.get(words, wordKey(address, slot)), () => unwritten(lowerCase(address), slot))

/** Returns the state with some fields of an account changed. */
export const withAccount = (world: World, address: Address, changes: Partial<Account>): World => ({
  ...world,
  accounts: HashMap.set(world.accounts, lowerCase(address), { ...readAccount(world, address), ...changes })
})

/** Returns the state with `word` in a storage slot. */
export const withWord = (world: World, address: Address, slot: bigint, word: Hash): World => ({
  ...world,
  words: HashMap.set(world.words, wordKey(address, slot), word)
})

/** Returns the state without an account. */
export const withoutAccount = (world: World, address: Address): World => ({
  ...world,
  accounts: HashMap.remove(world.accounts, lowerCase(address))
})

/** Returns the state without the written storage words of a contract. */
export const withoutWords = (world: World, address: Address): World => ({
  ...world,
  words: HashMap.filter(world.words, (_, key) => !key.startsWith(lowerCase(address)))
})

/** A log of a transaction. */
export interface TransactionLog {
  readonly address: Address
  readonly topics: ReadonlyArray<Hash>
  readonly data: Data
}

/** Addresses and storage slots that a transaction reads (EIP-2930). */
export type AccessList = ReadonlyArray<{ readonly address: Address; readonly storageKeys: ReadonlyArray<Hash> }>

/** The block in which code runs. */
export interface EvmBlock {
  readonly number: number
  /** The time of the block, in seconds. */
  readonly timestamp: number
  /** The base fee of the block, in wei. */
  readonly baseFee: bigint
  readonly gasLimit: bigint
  readonly hashAt: (block: number) => Hash
  readonly refuseMessage: (to: Address) => string | undefined
  readonly precompile: Precompile | undefined
}

/**
 * Returns why the sandbox cannot execute a call or a transfer, also one inside a contract, in the newest block or an
 * earlier one; `undefined` if it can. The caller of a contract must not get a result in which such a call did nothing.
 */
export type RefuseMessage = (to: Address, isPast: boolean) => string | undefined

/** A precompile of the chain's own: returns its result, or `failed` for arguments that it refuses. */
export type Precompile = (to: Address, data: Data) => Data | "failed"

/** A call of a contract, a transfer, or, if `to` is null, the creation of a contract. */
export interface EvmCall {
  readonly from: Address
  readonly to: Address | null
  readonly data: Data
  readonly value: bigint
  readonly gas: bigint
  /** The gas price, in wei, that the code reads. */
  readonly gasPrice: bigint
}

/** The result of an execution. */
export interface EvmOutcome {
  /** The state after the execution. */
  readonly world: World
  /**
   * Gas used, after refunds. For {@link Machine.call}, this does not include the intrinsic gas of a transaction (the
   * base cost and the cost of the input).
   */
  readonly gasUsed: bigint
  /** The reason why the code did not complete: `revert`, `out of gas`, … */
  readonly failure: string | undefined
  /** The return data, or the revert data. */
  readonly returned: Data
  /** The address of the created contract; `null` if no contract was created. */
  readonly created: Address | null
  readonly logs: ReadonlyArray<TransactionLog>
  /** The access list that {@link Machine.estimate} determines; empty for the other functions of {@link Machine}. */
  readonly accessList: AccessList
  /** Why the sandbox cannot execute the code: the text of the first refusal by {@link RefuseMessage}. */
  readonly unplayed: string | undefined
}

/**
 * Lets the event loop run between two slices of an execution: returns a promise at the end of a slice. The promise
 * rejects if the execution must end.
 */
export type Pause = () => Promise<void> | undefined

/**
 * An EVM, which executes code on a state. Its promises reject if no block can contain the transaction, for example
 * because of a wrong nonce. After a rejection by {@link Pause}, the EVM cannot be used again.
 */
export interface Machine {
  /** Executes a signed transaction, given as its bytes. */
  readonly execute: (world: World, block: EvmBlock, pause: Pause, bytes: Data) => Promise<EvmOutcome>
  /** Runs a call as a transaction of the call's sender. */
  readonly estimate: (world: World, block: EvmBlock, pause: Pause, call: EvmCall) => Promise<EvmOutcome>
  /** Runs a call without a transaction; the sender can also be a contract. */
  readonly call: (world: World, block: EvmBlock, pause: Pause, call: EvmCall) => Promise<EvmOutcome>
}

/** The signed content of a transaction. Amounts are in wei. */
export interface Envelope {
  readonly nonce: number
  readonly value: bigint
  readonly gas: bigint
  readonly input: Data
  readonly signature: { readonly r: Hash; readonly s: Hash; readonly yParity: number }
  /** The EIP-2718 type, and the fee parameters that the sender signed. */
  readonly pricing:
    | { readonly type: "0x0"; readonly gasPrice: bigint }
    | { readonly type: "0x1"; readonly gasPrice: bigint; readonly accessList: AccessList }
    | {
      readonly type: "0x2"
      readonly maxFeePerGas: bigint
      readonly maxPriorityFeePerGas: bigint
      readonly accessList: AccessList
    }
}

/** A signed transaction that the chain has accepted, but that is not assigned to a block yet. */
export interface Sent {
  readonly hash: Hash
  readonly from: Address
  /** The recipient; `null` if the transaction creates a contract. */
  readonly to: Address | null
  readonly envelope: Envelope
  /** The signed transaction, as its sender submitted it. */
  readonly bytes: Data
}

/** A transaction that is assigned to a block. */
export interface Transaction extends Omit<Sent, "bytes"> {
  /** Number of the transaction's block, which can be a future block. */
  readonly block: number
  /** Index of the transaction in its block. */
  readonly index: number
  readonly gasUsed: bigint
  /** Gas used in the block up to and including this transaction. */
  readonly cumulativeGasUsed: bigint
  /** Index, in the block, of the first log of the transaction. */
  readonly firstLog: number
  readonly logs: ReadonlyArray<TransactionLog>
  readonly contractAddress: Address | null
  readonly status: "success" | "failure"
  /** EIP-2718 type, as in the receipt; `undefined` for chain families without transaction types. */
  readonly type: string | undefined
  /** Effective gas price, in wei; `undefined` for chain families whose receipts omit it. */
  readonly paid: bigint | undefined
  /** The receipt fields that the transaction's chain family (such as OP stack) adds. */
  readonly fields: FamilyFields
  /** Additional receipt fields, which override those of the chain family. */
  readonly extras: { readonly [field: string]: unknown }
  /**
   * The number of the block from which on the sequencer returns a preconfirmed receipt of the transaction. `undefined`
   * if the sequencer does not preconfirm it.
   */
  readonly promisedFrom: number | undefined
  /** The signed transaction, as its sender submitted it; `undefined` for a generated transaction. */
  readonly bytes: Data | undefined
}

/**
 * The position of a transaction's receipt in the chain. A chain family (such as OP stack) computes some receipt fields
 * from this position.
 */
export interface ReceiptPlace {
  readonly seed: Random.Seed
  readonly hash: Hash
  readonly block: number
  readonly blockHash: Hash
  /** Timestamp of the block, in seconds. */
  readonly timestamp: number
  /** Whether the block has been posted to layer 1. */
  readonly posted: boolean
}

/** The fields that a chain family (such as OP stack) adds to a receipt and to the logs in the receipt. */
export interface FamilyFields {
  readonly receipt: (place: ReceiptPlace) => { readonly [field: string]: unknown }
  readonly log: (place: ReceiptPlace, position: number) => { readonly [field: string]: unknown }
}

/** The parameters that determine the time of each block. */
export interface BlockClock {
  /** Number of the newest block when the chain starts. */
  readonly first: number
  /** Time of block `first`, in milliseconds. */
  readonly startedAt: number
  /** Block interval, in milliseconds. */
  readonly every: number
}

/** The numbers of three blocks: the latest, the latest safe and the latest finalized block. */
export interface Heads {
  readonly latest: number
  readonly safe: number
  readonly finalized: number
}

/** The stored data of an EVM chain: transactions, accounts and storage. */
export interface Ledger {
  /** The transactions, by their hash in lower case. Transactions of one block are in the block's order. */
  readonly transactions: ReadonlyMap<Hash, Transaction>
  /**
   * Accepted transactions that are not in a block. Each waits for an earlier transaction of its sender, or until its
   * sender has a sufficient balance.
   */
  readonly waiting: ReadonlyArray<Sent>
  /**
   * The accounts and storage after each block that changed them, ordered by block number. The last entry can be for the
   * next block, which does not exist yet.
   */
  readonly worlds: Arr.NonEmptyReadonlyArray<{ readonly block: number; readonly world: World }>
}

/** The state of a chain at a point in time. */
export interface EvmChain {
  readonly seed: Random.Seed
  /** The name of the chain. Two chains with different names have different generated hashes. */
  readonly name: string
  readonly chainId: number
  readonly clock: BlockClock
  readonly heads: Heads
  readonly ledger: Ledger
  /** The receipt fields that the chain family adds for transactions from callers. */
  readonly fields: FamilyFields
  /** Base fee of a block, in wei. */
  readonly baseFee: (block: number) => bigint
  /** The priority fee that `eth_maxPriorityFeePerGas` returns, in wei. */
  readonly priorityFee: bigint
  /** Returns the layer 1 data fee of a transaction, in wei. The sender pays this fee in addition to gas. */
  readonly dataFee: (hash: Hash) => bigint
  /** The gas limit of a block whose transactions need no more. */
  readonly blockGas: bigint
  /** Returns the maximum gas of an account's transaction. */
  readonly transactionGas: (from: Address) => bigint
  readonly refuseMessage: RefuseMessage
  /** The precompiles of the chain's own; `undefined` if it has none. */
  readonly precompile: Precompile | undefined
}

/** Makes the initial data of a chain: the accounts of `world`, and no transactions. */
export const genesis = (world: World): Ledger => ({
  transactions: new Map(),
  waiting: [],
  worlds: [{ block: 0, world }]
})

/** Returns the latest block at the given time. */
export const latestAt = ({ every, first, startedAt }: BlockClock, now: number): number =>
  first + Math.floor((now - startedAt) / every)

/** Returns the timestamp of a block, in seconds. */
export const blockTimestamp = ({ every, first, startedAt }: BlockClock, block: number): number =>
  Math.floor((startedAt + (block - first) * every) / 1_000)

const numberDigits = 8

const blockHash = (seed: Random.Seed, chain: string, block: number): Hash => {
  const made = Random.hex(seed, `${chain}/block/${block}`, 64 - numberDigits)
  return `${made}${block.toString(16).padStart(numberDigits, "0")}`
}

/**
 * Returns the hash of a block; zeros if the block does not exist yet. {@link findBlock} converts a hash back to the
 * block number.
 */
export const hashAt = ({ heads, name, seed }: EvmChain, block: number): Hash =>
  block < 0 || block > heads.latest ? zeroWord : blockHash(seed, name, block)

/** Returns the number of the block with the given hash; `undefined` if there is no such block. */
export const findBlock = (chain: EvmChain, hash: Hash): number | undefined => {
  const block = Number.parseInt(hash.slice(-numberDigits), 16)
  return block <= chain.heads.latest && hashAt(chain, block) === hash.toLowerCase() ? block : undefined
}

/** Returns the number of the next block. */
export const nextBlock = ({ heads }: EvmChain): number => heads.latest + 1

/** Maximum gas of each block, transaction and call of the sandbox's EVM chains. */
export const gasLimit = 30_000_000n

/** Returns the block context for code that runs in a block. */
export const evmBlock = (chain: EvmChain, number: number): EvmBlock => ({
  number,
  timestamp: blockTimestamp(chain.clock, number),
  baseFee: chain.baseFee(number),
  gasLimit,
  hashAt: (block) => hashAt(chain, block),
  refuseMessage: (to) => chain.refuseMessage(to, number < chain.heads.latest),
  precompile: chain.precompile
})

/** Returns the accounts and storage after a block. */
export const worldAt = ({ ledger }: EvmChain, block: number): World =>
  Option.getOrElse(Arr.findLast(ledger.worlds, (each) => each.block <= block), () => ledger.worlds[0]).world

/** Applies a change to the stored accounts and storage of every block. */
export const mapWorlds = <State extends Ledger>(state: State, change: (world: World) => World): State => ({
  ...state,
  worlds: Arr.map(state.worlds, ({ block, world }) => ({ block, world: change(world) }))
})

/** Returns the transactions of a block, in the order of execution. */
export const transactionsIn = ({ transactions }: Ledger, block: number): ReadonlyArray<Transaction> =>
  [...transactions.values()].filter((transaction) => transaction.block === block)

/** Returns the position of a transaction's receipt. The block hash is zeros until the block exists. */
export const receiptPlace = (chain: EvmChain, { block, hash }: Transaction): ReceiptPlace => ({
  seed: chain.seed,
  hash,
  block,
  blockHash: hashAt(chain, block),
  timestamp: blockTimestamp(chain.clock, block),
  posted: block <= chain.heads.safe
})

/** Returns the effective gas price of a transaction at a base fee, in wei. */
export const paidAt = (pricing: Envelope["pricing"], baseFee: bigint): bigint => {
  if (pricing.type !== "0x2") return pricing.gasPrice
  const offered = baseFee + pricing.maxPriorityFeePerGas
  return offered < pricing.maxFeePerGas ? offered : pricing.maxFeePerGas
}

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
  if (block === "pending") return nextBlock(chain)
  if (block === null || typeof block !== "object") return blockNumber(chain, block)
  return "blockHash" in block ? findBlock(chain, block.blockHash) : Number(block.blockNumber)
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
  blockHash: hashAt(chain, block),
  blockNumber: quantity(block)
})

const encodeLogs = (chain: EvmChain, transaction: Transaction) =>
  transaction.logs.map((log, index) => ({
    ...log,
    transactionHash: transaction.hash,
    ...inBlock(chain, transaction),
    logIndex: quantity(transaction.firstLog + index),
    removed: false,
    ...transaction.fields.log(receiptPlace(chain, transaction), index)
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
  ...transaction.fields.receipt(receiptPlace(chain, transaction)),
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
    ...encodePricing(pricing, mined?.paid ?? paidAt(pricing, chain.baseFee(nextBlock(chain)))),
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
  const transactions = transactionsIn(chain.ledger, number)
  const gasUsed = transactions.reduce((sum, transaction) => sum + transaction.gasUsed, 0n)
  const needed = transactions.reduce((most, { envelope: { gas } }) => gas > most ? gas : most, gasUsed)
  return {
    number: quantity(number),
    hash: hashAt(chain, number),
    parentHash: hashAt(chain, number - 1),
    timestamp: quantity(blockTimestamp(chain.clock, number)),
    baseFeePerGas: quantity(chain.baseFee(number)),
    gasLimit: quantity(needed > chain.blockGas ? gasLimit : chain.blockGas),
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
    ? transactionsIn(chain.ledger, number).find((transaction) => BigInt(transaction.index) === index)
    : undefined
  return found === undefined ? null : wireTransaction(chain, found)
}

/** Returns the receipts of a block; `null` if the block does not exist. */
export const receiptsAt = (chain: EvmChain, number: number | undefined) =>
  isThere(chain, number)
    ? transactionsIn(chain.ledger, number).map((transaction) => wireReceipt(chain, transaction))
    : null

/** Returns the number of a block's uncles, which is always 0; `null` if the block does not exist. */
export const unclesAt = (chain: EvmChain, number: number | undefined) => isThere(chain, number) ? "0x0" : null

/** Returns the number of a block's transactions; `null` if the block does not exist. */
export const countAt = (chain: EvmChain, number: number | undefined) =>
  isThere(chain, number) ? quantity(transactionsIn(chain.ledger, number).length) : null

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
  const block = findBlock(chain, blockHash) ?? -1
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
