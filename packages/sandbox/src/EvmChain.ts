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

/** The block of a transaction that waits for an earlier one of its sender. */
export const waiting = Number.POSITIVE_INFINITY

/** Who had what at the start, in wei, and what was sent since. */
export interface Ledger {
  /** By address, in lower case; everybody else has nothing. */
  readonly balances: ReadonlyMap<Address, bigint>
  /** By hash, in lower case; those of a block in their order. */
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
  /** What a transaction pays beside its gas, in wei. */
  readonly dataFee: (hash: Hash) => bigint
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

/** Number of the block that is made next. */
export const nextBlock = ({ heads }: EvmChain): number => heads.latest + 1

/** The transactions of a block, in their order. */
export const transactionsIn = ({ ledger }: EvmChain, block: number): ReadonlyArray<Transaction> =>
  [...ledger.transactions.values()].filter((transaction) => transaction.block === block)

/** Where a transaction stands; no block hash while its block is not there. */
export const placeOf = (chain: EvmChain, { block, envelope, hash }: Transaction): ReceiptPlace => {
  const { clock, heads, name, seed } = chain
  const sent = envelope === undefined ? [] : transactionsIn(chain, block).filter((each) => each.envelope !== undefined)
  const index = Math.max(0, sent.findIndex((each) => each.hash === hash))
  return {
    seed,
    hash,
    block,
    blockHash: block <= heads.latest ? blockHash(seed, name, block) : zeroWord,
    timestamp: timestampOf(clock, block),
    posted: block <= heads.safe,
    index,
    gasBefore: sent.slice(0, index).reduce((sum, { gasUsed }) => sum + gasUsed, 0n)
  }
}

/** What an account, in lower case, has at a block, in wei. */
export const balanceAt = ({ ledger }: EvmChain, account: Address, upTo: number): bigint =>
  ledger.transactions.values().reduce(
    (balance, { block, envelope, from, gasUsed, to }) => {
      if (envelope === undefined || block > upTo) return balance
      const { dataFee, paid, value } = envelope
      return balance + (to === account ? value : 0n) - (from === account ? value + gasUsed * paid + dataFee : 0n)
    },
    ledger.balances.get(account) ?? 0n
  )

/** How many transactions an account, in lower case, has sent up to a block. */
export const nonceAt = ({ ledger }: EvmChain, account: Address, upTo: number): number =>
  ledger.transactions.values().reduce(
    (count, { block, envelope, from }) =>
      envelope !== undefined && from === account && block <= upTo ? count + 1 : count,
    0
  )
