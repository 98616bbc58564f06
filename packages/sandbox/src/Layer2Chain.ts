/** A layer 2: a block every two seconds, and receipts that come with their block and become final later. */
import type { Hash } from "@trigate/domain/Hex"
import { receiptOf } from "./EvmBlocks.ts"
import type { BlockClock, EvmChain, Heads, Ledger } from "./EvmChain.ts"
import { latestAt, zeroWord } from "./EvmChain.ts"
import { families, l1Fee } from "./Layer2Family.ts"
import { chainIds } from "./SandboxExamples.ts"
import type { Seed } from "./Seed.ts"

/** What the layer 2 remembers. */
export interface Layer2State extends Ledger {
  /** Instant of block {@link firstBlock}, in milliseconds. */
  readonly startedAt: number
  /** A block that is final ahead of time. */
  readonly finalizedFloor: number
}

/** Milliseconds between two blocks. */
const blockTime = 2_000

/** Number of the newest block when the chain starts. */
export const firstBlock = 21_000_000

const safeLag = 15
const finalizedLag = 30

const clockOf = ({ startedAt }: Layer2State): BlockClock => ({ first: firstBlock, startedAt, every: blockTime })

/** The heads of the chain at an instant: `safe` follows after 30 seconds, `finalized` after a minute. */
export const headsAt = (state: Layer2State, now: number): Heads => {
  const latest = latestAt(clockOf(state), now)
  const finalized = Math.min(latest, Math.max(latest - finalizedLag, state.finalizedFloor))
  return { latest, safe: Math.max(latest - safeLag, finalized), finalized }
}

const baseFee = 1_000_000n
const priorityFee = 200_000n

/** The chain at an instant. */
export const at = (seed: Seed, state: Layer2State, now: number): EvmChain => ({
  seed,
  name: "layer2",
  chainId: chainIds.layer2,
  clock: clockOf(state),
  heads: headsAt(state, now),
  ledger: state,
  fields: families["op-stack"],
  baseFee: () => baseFee,
  priorityFee,
  dataFee: (hash) => BigInt(l1Fee({ seed, hash })),
  // no contract of this chain can be run, or read
  code: () => "0x",
  word: () => zeroWord,
  call: () => undefined
})

/**
 * The receipt of a transaction on the wire at an instant; null while it is unknown or not yet in a block.
 *
 * A promised one has a block hash of zeros until its block is sealed.
 */
export const receiptAt = (seed: Seed, state: Layer2State, hash: Hash, now: number) =>
  receiptOf(at(seed, state, now), hash)
