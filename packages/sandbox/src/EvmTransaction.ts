/** Transactions of a sandbox's EVM chains, and how a node tells them: as transactions, and by their receipts. */
import type { Address, Data, Hash } from "@trigate/domain/Hex"
import type { FamilyFields, ReceiptPlace } from "./Layer2Family.ts"
import { quantity } from "./Layer2Family.ts"
import * as Random from "./Seed.ts"

/** An event of a transaction. */
export interface TransactionLog {
  readonly address: Address
  readonly topics: ReadonlyArray<Hash>
  readonly data: Data
}

/** What the sender of a transaction signed. Amounts are in wei. */
export interface Envelope {
  readonly nonce: number
  readonly value: bigint
  readonly gas: bigint
  readonly input: Data
  readonly signature: { readonly r: Hash; readonly s: Hash; readonly yParity: number }
  /** EIP-2718 type, and what was signed of its price. */
  readonly pricing:
    | { readonly type: "0x0" | "0x1"; readonly gasPrice: bigint }
    | { readonly type: "0x2"; readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint }
  /** What is paid for a unit of gas. */
  readonly paid: bigint
  /** What is paid beside the gas. */
  readonly dataFee: bigint
}

/** A transaction as a chain keeps it. */
export interface Transaction {
  readonly hash: Hash
  /** What its chain adds to the receipt. */
  readonly fields: FamilyFields
  readonly from: Address
  /** Null for the creation of a contract, on most families. */
  readonly to: Address | null
  readonly contractAddress: Address | null
  readonly status: "success" | "failure"
  readonly gasUsed: bigint
  readonly logs: ReadonlyArray<TransactionLog>
  /** Further fields of the receipt, which win over the family's. */
  readonly extras: { readonly [field: string]: unknown }
  /** Number of its block; infinite while it waits for an earlier one of its sender. */
  readonly block: number
  /** Block from which on the sequencer promises the receipt, its block hash all zeros; none makes no promise. */
  readonly promisedFrom: number | undefined
  /** What was signed; none for a transaction that was made up. */
  readonly envelope: Envelope | undefined
}

type HttpTransport = { readonly [field: string]: unknown }

/** The bloom of some logs; one of ones says "may be here" of every topic: never wrong, and no hashing. */
export const bloom = (logs: ReadonlyArray<unknown>): string => `0x${(logs.length === 0 ? "0" : "f").repeat(512)}`

/** A made up transaction has neighbours in its block that are not told. */
const positionOf = ({ envelope, fields, hash }: Transaction, { index, seed }: ReceiptPlace): number => {
  if (envelope !== undefined) return index
  return fields.type === "0x7e" ? 0 : Random.below(Random.series(seed, `layer2/${hash}`), 0, 60) + 1
}

const gasBefore = (transaction: Transaction, place: ReceiptPlace): bigint =>
  transaction.envelope === undefined ? BigInt(positionOf(transaction, place) * 120_000) : place.gasBefore

const inBlock = (transaction: Transaction, place: ReceiptPlace) => ({
  transactionIndex: quantity(positionOf(transaction, place)),
  blockHash: place.blockHash,
  blockNumber: quantity(place.block)
})

/** The logs of a transaction on the wire. */
export const wireLogs = (transaction: Transaction, place: ReceiptPlace): ReadonlyArray<HttpTransport> => {
  const firstLog = Random.below(Random.series(place.seed, `layer2/${transaction.hash}`), 1, 200)
  return transaction.logs.map((log, index) => ({
    ...log,
    transactionHash: transaction.hash,
    ...inBlock(transaction, place),
    logIndex: quantity(firstLog + index),
    removed: false,
    ...transaction.fields.log(place, index)
  }))
}

/** The receipt of a transaction on the wire. */
export const wireReceipt = (transaction: Transaction, place: ReceiptPlace): HttpTransport => {
  const { envelope, fields } = transaction
  const price = envelope === undefined ? fields.effectiveGasPrice(place) : quantity(envelope.paid)
  const type = envelope === undefined ? fields.type : envelope.pricing.type
  return {
    transactionHash: transaction.hash,
    ...inBlock(transaction, place),
    from: transaction.from,
    to: transaction.to,
    contractAddress: transaction.contractAddress,
    cumulativeGasUsed: quantity(gasBefore(transaction, place) + transaction.gasUsed),
    gasUsed: quantity(transaction.gasUsed),
    ...(price === undefined ? {} : { effectiveGasPrice: price }),
    status: transaction.status === "success" ? "0x1" : "0x0",
    ...(type === undefined ? {} : { type }),
    logsBloom: bloom(transaction.logs),
    logs: wireLogs(transaction, place),
    ...fields.receipt(place),
    ...transaction.extras
  }
}

/** An envelope for a transaction that nobody signed. */
const madeUp = ({ fields, gasUsed, hash }: Transaction, place: ReceiptPlace): Envelope => {
  const price = BigInt(fields.effectiveGasPrice(place) ?? 0)
  return {
    nonce: Random.below(Random.series(place.seed, `layer2/${hash}/nonce`), 0, 500),
    value: 0n,
    gas: gasUsed,
    input: "0x",
    signature: {
      r: Random.hex(place.seed, `layer2/${hash}/r`, 64),
      s: Random.hex(place.seed, `layer2/${hash}/s`, 64),
      yParity: 0
    },
    pricing: { type: "0x2", maxFeePerGas: price, maxPriorityFeePerGas: 0n },
    paid: price,
    dataFee: 0n
  }
}

const wirePricing = ({ paid, pricing }: Envelope, chainId: number) =>
  pricing.type === "0x2"
    ? {
      chainId: quantity(chainId),
      accessList: [],
      gasPrice: quantity(paid),
      maxFeePerGas: quantity(pricing.maxFeePerGas),
      maxPriorityFeePerGas: quantity(pricing.maxPriorityFeePerGas)
    }
    : {
      chainId: quantity(chainId),
      ...(pricing.type === "0x1" ? { accessList: [] } : {}),
      gasPrice: quantity(pricing.gasPrice)
    }

/** A transaction on the wire; one that is in no block yet has no place. */
export const wireTransaction = (
  transaction: Transaction,
  place: ReceiptPlace,
  chainId: number,
  isMined: boolean
): HttpTransport => {
  const envelope = transaction.envelope ?? madeUp(transaction, place)
  const { gas, input, nonce, pricing, signature, value } = envelope
  const isLegacy = pricing.type === "0x0"
  return {
    hash: transaction.hash,
    ...(isMined ? inBlock(transaction, place) : { blockHash: null, blockNumber: null, transactionIndex: null }),
    from: transaction.from,
    to: transaction.to,
    nonce: quantity(nonce),
    value: quantity(value),
    gas: quantity(gas),
    input,
    type: transaction.envelope === undefined ? transaction.fields.type ?? "0x0" : pricing.type,
    ...wirePricing(envelope, chainId),
    r: signature.r,
    s: signature.s,
    v: quantity(isLegacy ? chainId * 2 + 35 + signature.yParity : signature.yParity),
    ...(isLegacy ? {} : { yParity: quantity(signature.yParity) })
  }
}
