/**
 * A layer 2: a block every two seconds, receipts in the formats of several chain families (such as OP stack), and
 * delayed finality.
 */
import { type Address, type Hash, lowerCase } from "@trigate/domain/encoding/Encoding"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { chainIds } from "../SandboxExamples.ts"
import * as Random from "../Seed.ts"
import { withEntry, withoutEntry } from "../venue/VenueState.ts"
import * as Chain from "./EvmChain.ts"

/** A family of layer 2 chains with the same receipt fields. */
export type Layer2Family = "op-stack" | "op-legacy" | "op-deposit" | "arbitrum" | "zksync" | "linea" | "scroll"

/** A chain family, with the type and the gas price of its generated transactions. */
interface MadeFamily extends Chain.FamilyFields {
  /** EIP-2718 type; `undefined` for chain families without transaction types. */
  readonly type: string | undefined
  readonly effectiveGasPrice: (source: Source) => string | undefined
}

/** The values from which a generated number is derived. */
type Source = Pick<Chain.ReceiptPlace, "hash" | "seed">

/**
 * Returns a generated integer between 0.5 and 1.5 times `middle`. The transaction's hash and the field determine the
 * integer.
 */
const around = ({ hash, seed }: Source, field: string, middle: number): string =>
  Chain.quantity(Math.floor(middle * (0.5 + Random.fraction(Random.series(seed, `receipt/${hash}/${field}`), 0))))

const gasPrice = (place: Source): string => around(place, "effectiveGasPrice", 1_200_000)

const none = () => ({})

/** Returns the layer 1 data fee of a transaction, in wei. */
const l1Fee = (place: Source): string => around(place, "l1Fee", 2_400_000_000)

const l1Costs = (place: Chain.ReceiptPlace) => ({
  l1Fee: l1Fee(place),
  l1GasUsed: around(place, "l1GasUsed", 1_600),
  l1GasPrice: around(place, "l1GasPrice", 900_000_000)
})

const batchNumber = ({ block, posted }: Chain.ReceiptPlace): string | null =>
  posted ? Chain.quantity(Math.floor(block / 60)) : null

/** A chain family without additional fields. */
const plain: MadeFamily = { type: "0x2", effectiveGasPrice: gasPrice, receipt: none, log: none }

/** The chain families by name. */
const families: { readonly [Family in Layer2Family]: MadeFamily } = {
  "op-stack": {
    ...plain,
    receipt: (place) => ({
      ...l1Costs(place),
      l1BaseFeeScalar: "0x8dd",
      l1BlobBaseFee: "0x1d37c4",
      l1BlobBaseFeeScalar: "0x101c12",
      operatorFeeScalar: "0x0",
      operatorFeeConstant: "0x0",
      daFootprintGasScalar: "0x8b",
      blobGasUsed: around(place, "blobGasUsed", 40_000)
    }),
    log: ({ timestamp }) => ({ blockTimestamp: Chain.quantity(timestamp) })
  },
  "op-legacy": {
    ...plain,
    type: undefined,
    effectiveGasPrice: () => undefined,
    receipt: (place) => ({ ...l1Costs(place), l1FeeScalar: "0.684" })
  },
  "op-deposit": {
    ...plain,
    type: "0x7e",
    effectiveGasPrice: () => "0x0",
    receipt: ({ block }) => ({ depositNonce: Chain.quantity(block - 1), depositReceiptVersion: "0x1" })
  },
  arbitrum: {
    ...plain,
    receipt: (place) => ({
      gasUsedForL1: around(place, "gasUsedForL1", 2_300),
      l1BlockNumber: Chain.quantity(Math.floor(place.timestamp / 12)),
      timeboosted: false
    })
  },
  zksync: {
    ...plain,
    type: "0x71",
    receipt: (place) => ({
      cumulativeGasUsed: "0x0",
      l1BatchNumber: batchNumber(place),
      l1BatchTxIndex: place.posted ? around(place, "l1BatchTxIndex", 200) : null,
      l2ToL1Logs: [],
      root: place.blockHash
    }),
    log: (place, position) => ({
      l1BatchNumber: batchNumber(place),
      transactionLogIndex: Chain.quantity(position),
      logType: null
    })
  },
  linea: plain,
  scroll: { ...plain, receipt: (place) => ({ l1Fee: l1Fee(place) }) }
}

/** The state of the layer 2. */
export interface Layer2State extends Chain.Ledger {
  /** Time of block {@link firstBlock}, in milliseconds. */
  readonly startedAt: number
  /** All blocks up to the block with this number are finalized, even if the usual delay of finality has not passed. */
  readonly finalizedFloor: number
}

/** Milliseconds between two blocks. */
const blockTime = 2_000

/** Number of the newest block when the chain starts. */
export const firstBlock = 21_000_000

const safeLag = 15
const finalizedLag = 30

const blockClock = ({ startedAt }: Layer2State): Chain.BlockClock => ({
  first: firstBlock,
  startedAt,
  every: blockTime
})

/**
 * Returns the latest, safe and finalized blocks at the given time. Blocks become `safe` after 30 seconds and
 * `finalized` after a minute.
 */
const headsAt = (state: Layer2State, now: number): Chain.Heads => {
  const latest = Chain.latestAt(blockClock(state), now)
  const finalized = Math.min(latest, Math.max(latest - finalizedLag, state.finalizedFloor))
  return { latest, safe: Math.max(latest - safeLag, finalized), finalized }
}

const baseFee = 1_000_000n
const priorityFee = 200_000n

/** Returns the chain at the given time. */
export const at = (seed: Random.Seed, state: Layer2State, now: number): Chain.EvmChain => ({
  seed,
  name: "layer2",
  chainId: chainIds.layer2,
  clock: blockClock(state),
  heads: headsAt(state, now),
  ledger: state,
  fields: families["op-stack"],
  baseFee: () => baseFee,
  priorityFee,
  dataFee: (hash) => BigInt(l1Fee({ seed, hash })),
  blockGas: Chain.gasLimit,
  transactionGas: () => Chain.gasLimit,
  refuseMessage: () => undefined,
  precompile: undefined
})

/** A transaction to generate. Default: a plain transfer on an OP-stack chain. */
export interface NewTransaction {
  readonly hash: Hash
  readonly family?: Layer2Family
  readonly from?: Address
  /** The recipient; `null` if the transaction creates a contract. */
  readonly to?: Address | null
  readonly contractAddress?: Address
  readonly status?: "success" | "failure"
  readonly gasUsed?: bigint
  readonly logs?: ReadonlyArray<Chain.TransactionLog>
  /** Additional fields of the receipt, which override those of the chain family. */
  readonly extras?: { readonly [field: string]: unknown }
  /**
   * The number of the transaction's block minus the number of the latest block. Default: 1, which is the next block; 0
   * or less selects an existing block.
   */
  readonly inBlocks?: number
  /** Whether the sequencer preconfirms the receipt before its block is sealed. */
  readonly preconfirmed?: boolean
}

const someone: Address = "0x17281460228691b044e080a5f5257dce8e47f79c"

/**
 * Generates a transaction without running code. The transaction's index and cumulative gas are chosen as if the block
 * contained other transactions before it.
 */
const makeTransaction = (seed: Random.Seed, made: NewTransaction, latest: number): Chain.Transaction => {
  const { family = "op-stack", gasUsed = 21_000n, inBlocks = 1 } = made
  const hash = lowerCase(made.hash)
  const { effectiveGasPrice, type, ...fields } = families[family]
  const price = effectiveGasPrice({ seed, hash })
  const series = Random.series(seed, `layer2/${hash}`)
  const index = type === "0x7e" ? 0 : Random.below(series, 0, 60) + 1
  return {
    hash,
    fields,
    type,
    paid: price === undefined ? undefined : BigInt(price),
    from: made.from ?? someone,
    to: made.to === undefined ? someone : made.to,
    contractAddress: made.contractAddress ?? null,
    status: made.status ?? "success",
    gasUsed,
    cumulativeGasUsed: BigInt(index * 120_000) + gasUsed,
    index,
    firstLog: Random.below(series, 1, 200),
    logs: made.logs ?? [],
    extras: made.extras ?? {},
    block: latest + inBlocks,
    promisedFrom: made.preconfirmed === true ? latest : undefined,
    envelope: {
      nonce: Random.below(Random.series(seed, `layer2/${hash}/nonce`), 0, 500),
      value: 0n,
      gas: gasUsed,
      input: "0x",
      signature: {
        r: Random.hex(seed, `layer2/${hash}/r`, 64),
        s: Random.hex(seed, `layer2/${hash}/s`, 64),
        yParity: 0
      },
      pricing: { type: "0x2", maxFeePerGas: BigInt(price ?? 0), maxPriorityFeePerGas: 0n, accessList: [] }
    },
    bytes: undefined
  }
}

/** Makes a layer 2 with generated transactions. The chain starts at the given time, in milliseconds. */
export const make = (
  seed: Random.Seed,
  startedAt: number,
  world: Chain.World,
  made: ReadonlyArray<NewTransaction>
): Layer2State => ({
  ...Chain.genesis(world),
  startedAt,
  finalizedFloor: 0,
  transactions: new Map(
    made.map((each) => makeTransaction(seed, each, firstBlock)).map((transaction) => [transaction.hash, transaction])
  )
})

/** Makes the controls of the layer 2. */
export const controls = (seed: Random.Seed, state: Ref.Ref<Layer2State>) => {
  const change = (to: (known: Layer2State, heads: Chain.Heads) => Partial<Layer2State>): Effect.Effect<void> =>
    Effect.flatMap(
      Clock.currentTimeMillis,
      (now) => Ref.update(state, (known) => ({ ...known, ...to(known, headsAt(known, now)) }))
    )
  return {
    /** Transactions, accounts, the start of the chain, and finality. */
    state,
    /** Returns the current latest, safe and finalized blocks. */
    heads: Effect.zipWith(Ref.get(state), Clock.currentTimeMillis, headsAt),
    /** Generates or replaces a transaction. */
    pushTransaction: (made: NewTransaction) =>
      change(({ transactions }, { latest }) => {
        const transaction = makeTransaction(seed, made, latest)
        return { transactions: withEntry(transactions, transaction.hash, transaction) }
      }),
    /** Removes a generated transaction, as a reorg does. */
    dropTransaction: (hash: Hash) =>
      change(({ transactions }) => ({ transactions: withoutEntry(transactions, lowerCase(hash)) })),
    /** Finalizes all blocks up to `block`. Default: the latest block. */
    advanceFinality: (block?: number) =>
      change(({ finalizedFloor }, { latest }) => ({
        finalizedFloor: Math.max(finalizedFloor, Math.min(latest, block ?? latest))
      }))
  }
}

/** Reads and sets the state of the layer 2. */
export type Layer2Controls = ReturnType<typeof controls>
