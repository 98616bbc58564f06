/** What each family of layer 2s adds to a receipt and to its logs. */
import type { Seed } from "./Seed.ts"
import * as Random from "./Seed.ts"

/** A family of layer 2s, by the shape of its receipts. */
export type Layer2Family = "op-stack" | "op-legacy" | "op-deposit" | "arbitrum" | "zksync" | "linea" | "scroll"

/** Where a receipt stands, for the fields that depend on it. */
export interface ReceiptPlace {
  readonly seed: Seed
  readonly hash: string
  readonly block: number
  readonly blockHash: string
  /** Of the block, in seconds. */
  readonly timestamp: number
  /** Whether the block has been posted to layer 1. */
  readonly posted: boolean
  /** Position in the block among those that were sent, and the gas of those before it. */
  readonly index: number
  readonly gasBefore: bigint
}

/** The fields of a family. */
export interface FamilyFields {
  /** EIP-2718 type; none on families from before it. */
  readonly type: string | undefined
  readonly effectiveGasPrice: (place: ReceiptPlace) => string | undefined
  readonly receipt: (place: ReceiptPlace) => { readonly [field: string]: unknown }
  readonly log: (place: ReceiptPlace, position: number) => { readonly [field: string]: unknown }
}

/** An integer as nodes spell it. */
export const quantity = (value: number | bigint): string => `0x${value.toString(16)}`

/** A made up integer around `middle`, the same for a transaction whenever it is asked for. */
const around = ({ hash, seed }: Pick<ReceiptPlace, "hash" | "seed">, field: string, middle: number): string =>
  quantity(Math.floor(middle * (0.5 + Random.fraction(Random.series(seed, `receipt/${hash}/${field}`), 0))))

const gasPrice = (place: ReceiptPlace): string => around(place, "effectiveGasPrice", 1_200_000)

const none = () => ({})

/** What a transaction pays for its bytes on layer 1, in wei. */
export const l1Fee = (place: Pick<ReceiptPlace, "hash" | "seed">): string => around(place, "l1Fee", 2_400_000_000)

const l1Costs = (place: ReceiptPlace) => ({
  l1Fee: l1Fee(place),
  l1GasUsed: around(place, "l1GasUsed", 1_600),
  l1GasPrice: around(place, "l1GasPrice", 900_000_000)
})

const batchOf = ({ block, posted }: ReceiptPlace): string | null => posted ? quantity(Math.floor(block / 60)) : null

/** No field of its own, as on most EVM chains. */
export const plain: FamilyFields = { type: "0x2", effectiveGasPrice: gasPrice, receipt: none, log: none }

/** The families by name. */
export const families: { readonly [Family in Layer2Family]: FamilyFields } = {
  "op-stack": {
    type: "0x2",
    effectiveGasPrice: gasPrice,
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
    log: ({ timestamp }) => ({ blockTimestamp: quantity(timestamp) })
  },
  "op-legacy": {
    type: undefined,
    effectiveGasPrice: () => undefined,
    receipt: (place) => ({ ...l1Costs(place), l1FeeScalar: "0.684" }),
    log: none
  },
  "op-deposit": {
    type: "0x7e",
    effectiveGasPrice: () => "0x0",
    receipt: ({ block }) => ({ depositNonce: quantity(block - 1), depositReceiptVersion: "0x1" }),
    log: none
  },
  arbitrum: {
    type: "0x2",
    effectiveGasPrice: gasPrice,
    receipt: (place) => ({
      gasUsedForL1: around(place, "gasUsedForL1", 2_300),
      l1BlockNumber: quantity(Math.floor(place.timestamp / 12)),
      timeboosted: false
    }),
    log: none
  },
  zksync: {
    type: "0x71",
    effectiveGasPrice: gasPrice,
    receipt: (place) => ({
      cumulativeGasUsed: "0x0",
      l1BatchNumber: batchOf(place),
      l1BatchTxIndex: place.posted ? around(place, "l1BatchTxIndex", 200) : null,
      l2ToL1Logs: [],
      root: place.blockHash
    }),
    log: (place, position) => ({
      l1BatchNumber: batchOf(place),
      transactionLogIndex: quantity(position),
      logType: null
    })
  },
  linea: plain,
  scroll: {
    type: "0x2",
    effectiveGasPrice: gasPrice,
    receipt: (place) => ({ l1Fee: l1Fee(place) }),
    log: none
  }
}
