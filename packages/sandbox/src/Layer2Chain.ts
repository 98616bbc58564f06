/** A layer 2: a block every two seconds, and receipts that come with their block and become final later. */
import type { Address, Data, Hash } from "@trigate/domain/Hex"
import type { Layer2Family, ReceiptPlace } from "./Layer2Family.ts"
import { families, quantity } from "./Layer2Family.ts"
import type { Seed } from "./Seed.ts"
import * as Random from "./Seed.ts"

/** An event of a transaction. */
export interface TransactionLog {
  readonly address: Address
  readonly topics: ReadonlyArray<Hash>
  readonly data: Data
}

/** A transaction as the chain keeps it. */
export interface Transaction {
  readonly hash: Hash
  readonly family: Layer2Family
  readonly from: Address
  /** Null for the creation of a contract, on most families. */
  readonly to: Address | null
  readonly contractAddress: Address | null
  readonly status: "success" | "failure"
  readonly gasUsed: bigint
  readonly logs: ReadonlyArray<TransactionLog>
  /** Further fields of the receipt, which win over the family's. */
  readonly extras: { readonly [field: string]: unknown }
  /** Number of its block. */
  readonly block: number
  /** Block from which on the sequencer promises the receipt, its block hash all zeros; none makes no promise. */
  readonly promisedFrom: number | undefined
}

/** What the layer 2 remembers. */
export interface Layer2State {
  /** Instant of block {@link firstBlock}, in milliseconds. */
  readonly startedAt: number
  /** A block that is final ahead of time. */
  readonly finalizedFloor: number
  /** By hash, in lower case. */
  readonly transactions: ReadonlyMap<Hash, Transaction>
}

/** Milliseconds between two blocks. */
export const blockTime = 2_000

/** Number of the newest block when the chain starts. */
export const firstBlock = 21_000_000

const safeLag = 15
const finalizedLag = 30

/** The newest blocks of each degree of certainty. */
export interface Heads {
  readonly latest: number
  readonly safe: number
  readonly finalized: number
}

/** The heads of the chain at an instant: `safe` follows after 30 seconds, `finalized` after a minute. */
export const headsAt = (state: Layer2State, now: number): Heads => {
  const latest = firstBlock + Math.floor((now - state.startedAt) / blockTime)
  const finalized = Math.min(latest, Math.max(latest - finalizedLag, state.finalizedFloor))
  return { latest, safe: Math.max(latest - safeLag, finalized), finalized }
}

/** Hash of a block. */
export const blockHash = (seed: Seed, block: number): Hash => Random.hex(seed, `layer2/block/${block}`, 64)

/** Time of a block, in seconds. */
export const timestampOf = (state: Layer2State, block: number): number =>
  Math.floor((state.startedAt + (block - firstBlock) * blockTime) / 1_000)

const unsealed: Hash = `0x${"0".repeat(64)}`

// a bloom of ones says "may be here" of every topic: never wrong, and no hashing
const bloom = (logs: ReadonlyArray<unknown>): string => `0x${(logs.length === 0 ? "0" : "f").repeat(512)}`

const wireReceipt = (transaction: Transaction, place: ReceiptPlace): { readonly [field: string]: unknown } => {
  const fields = families[transaction.family]
  const series = Random.series(place.seed, `layer2/${transaction.hash}`)
  const position = transaction.family === "op-deposit" ? 0 : Random.below(series, 0, 60) + 1
  const common = {
    transactionHash: transaction.hash,
    transactionIndex: quantity(position),
    blockHash: place.blockHash,
    blockNumber: quantity(place.block)
  }
  const firstLog = Random.below(series, 1, 200)
  const price = fields.effectiveGasPrice(place)
  return {
    ...common,
    from: transaction.from,
    to: transaction.to,
    contractAddress: transaction.contractAddress,
    cumulativeGasUsed: quantity(transaction.gasUsed + BigInt(position * 120_000)),
    gasUsed: quantity(transaction.gasUsed),
    ...(price === undefined ? {} : { effectiveGasPrice: price }),
    status: transaction.status === "success" ? "0x1" : "0x0",
    ...(fields.type === undefined ? {} : { type: fields.type }),
    logsBloom: bloom(transaction.logs),
    logs: transaction.logs.map((log, index) => ({
      ...log,
      ...common,
      logIndex: quantity(firstLog + index),
      removed: false,
      ...fields.log(place, index)
    })),
    ...fields.receipt(place),
    ...transaction.extras
  }
}

/**
 * The receipt of a transaction on the wire at an instant; null while it is unknown or not yet in a block.
 *
 * A promised one has a block hash of zeros until its block is sealed.
 */
export const receiptAt = (
  seed: Seed,
  state: Layer2State,
  hash: Hash,
  now: number
): { readonly [field: string]: unknown } | null => {
  const transaction = state.transactions.get(`0x${hash.slice(2).toLowerCase()}`)
  const { latest, safe } = headsAt(state, now)
  if (transaction === undefined) return null
  const { block, promisedFrom } = transaction
  const isSealed = latest >= block
  if (!isSealed && (promisedFrom === undefined || latest < promisedFrom)) return null
  return wireReceipt(transaction, {
    seed,
    hash: transaction.hash,
    block,
    blockHash: isSealed ? blockHash(seed, block) : unsealed,
    timestamp: timestampOf(state, block),
    posted: block <= safe
  })
}
