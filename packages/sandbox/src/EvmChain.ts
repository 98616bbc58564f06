/** What a sandbox's two EVM chains have in common: blocks that come by the clock, accounts, transactions. */
import type { Address, Data, Hash } from "@trigate/domain/Hex"
import type { Transaction } from "./EvmTransaction.ts"
import type { FamilyFields, ReceiptPlace } from "./Layer2Family.ts"
import type { Seed } from "./Seed.ts"
import * as Random from "./Seed.ts"

/** When blocks come. */
export interface BlockClock {
  /** Number of the newest block when the chain starts. */
  readonly first: number
  /** Instant of that block, in milliseconds. */
  readonly startedAt: number
  /** Milliseconds between two blocks. */
  readonly every: number
}

/** The newest blocks of each degree of certainty. */
export interface Heads {
  readonly latest: number
  readonly safe: number
  readonly finalized: number
}

/** Who had what at the start, in wei, and what was sent since. */
export interface Ledger {
  /** By address, in lower case; everybody else has nothing. */
  readonly balances: ReadonlyMap<Address, bigint>
  /** By hash, in lower case. */
  readonly transactions: ReadonlyMap<Hash, Transaction>
}

/** A chain at an instant. */
export interface EvmChain {
  readonly seed: Seed
  /** Keeps the made up hashes of two chains apart. */
  readonly name: string
  readonly chainId: number
  readonly clock: BlockClock
  readonly heads: Heads
  readonly ledger: Ledger
  /** What the chain adds to receipts of transactions that are sent to it. */
  readonly fields: FamilyFields
  /** Base fee of a block, in wei. */
  readonly baseFee: (block: number) => bigint
  /** What a sender is proposed to add to the base fee, in wei. */
  readonly priorityFee: bigint
  /** Code of a contract, in lower case; `0x` for everybody else. */
  readonly code: (address: Address) => Data
  readonly word: (address: Address, slot: string) => Hash
  /** What a call of a contract returns; none where that would take running its code. */
  readonly call: (to: Address, data: Data) => Data | undefined
}

/** The newest block at an instant. */
export const latestAt = ({ every, first, startedAt }: BlockClock, now: number): number =>
  first + Math.floor((now - startedAt) / every)

/** Time of a block, in seconds. */
export const timestampOf = ({ every, first, startedAt }: BlockClock, block: number): number =>
  Math.floor((startedAt + (block - first) * every) / 1_000)

const numberDigits = 8

/** Hash of a block; it ends in the block's number, by which the block is found again. */
export const blockHash = (seed: Seed, chain: string, block: number): Hash => {
  const made = Random.hex(seed, `${chain}/block/${block}`, 64 - numberDigits)
  return `${made}${block.toString(16).padStart(numberDigits, "0")}`
}

/** The block of a hash; none if it is the hash of none that is there. */
export const blockOf = ({ heads, name, seed }: EvmChain, hash: Hash): number | undefined => {
  const block = Number.parseInt(hash.slice(-numberDigits), 16)
  return block <= heads.latest && blockHash(seed, name, block) === hash.toLowerCase() ? block : undefined
}

/** 32 bytes of nothing: an empty storage word, or the hash of a block that has none yet. */
export const zeroWord: Hash = `0x${"0".repeat(64)}`

/** Where a transaction stands; no block hash while its block is not there. */
export const placeOf = ({ clock, heads, name, seed }: EvmChain, { block, hash }: Transaction): ReceiptPlace => ({
  seed,
  hash,
  block,
  blockHash: block <= heads.latest ? blockHash(seed, name, block) : zeroWord,
  timestamp: timestampOf(clock, block),
  posted: block <= heads.safe
})

/** The transactions of a block, in the order in which they were sent. */
export const transactionsIn = ({ ledger }: EvmChain, block: number): ReadonlyArray<Transaction> =>
  [...ledger.transactions.values()].filter((transaction) => transaction.block === block)

const sentUpTo = ({ ledger }: EvmChain, block: number) =>
  [...ledger.transactions.values()].flatMap((transaction) =>
    transaction.block <= block && transaction.envelope !== undefined
      ? [{ ...transaction, envelope: transaction.envelope }]
      : []
  )

/** What an account, in lower case, has at a block, in wei. */
export const balanceAt = (chain: EvmChain, account: Address, block: number): bigint =>
  sentUpTo(chain, block).reduce(
    (balance, { envelope, from, gasUsed, to }) =>
      balance + (to === account ? envelope.value : 0n) -
      (from === account ? envelope.value + gasUsed * envelope.paid : 0n),
    chain.ledger.balances.get(account) ?? 0n
  )

/** How many transactions an account, in lower case, has sent up to a block. */
export const nonceAt = (chain: EvmChain, account: Address, block: number): number =>
  sentUpTo(chain, block).filter(({ from }) => from === account).length
