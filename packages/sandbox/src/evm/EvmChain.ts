/** Functions and types that the sandbox's two EVM chains share, for blocks, accounts and transactions. */
import type { Address, Data, Hash } from "@trigate/domain/encoding/Hex"
import * as Arr from "effect/Array"
import * as Option from "effect/Option"
import type { Seed } from "../Seed.ts"
import * as Random from "../Seed.ts"
import { type World, zeroWord } from "./EvmWorld.ts"

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
  readonly refuseMessage: RefuseMessage
}

/**
 * Returns why the sandbox cannot execute a call or a transfer, also one inside a contract; `undefined` if it can. The
 * caller of a contract must not get a result in which such a call did nothing.
 */
export type RefuseMessage = (to: Address, value: bigint) => string | undefined

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
 * An EVM, which executes code on a state. Its promises reject if no block can contain the transaction, for example
 * because of a wrong nonce.
 */
export interface Machine {
  /** Executes a signed transaction, given as its bytes. */
  readonly execute: (world: World, block: EvmBlock, bytes: Data) => Promise<EvmOutcome>
  /** Runs a call as a transaction of the call's sender. */
  readonly estimate: (world: World, block: EvmBlock, call: EvmCall) => Promise<EvmOutcome>
  /** Runs a call without a transaction; the sender can also be a contract. */
  readonly call: (world: World, block: EvmBlock, call: EvmCall) => Promise<EvmOutcome>
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
  readonly seed: Seed
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
  readonly seed: Seed
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

const blockHash = (seed: Seed, chain: string, block: number): Hash => {
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
  refuseMessage: chain.refuseMessage
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
