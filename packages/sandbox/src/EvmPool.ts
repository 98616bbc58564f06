/** The transactions that a sandbox's EVM chain was sent and that are in no block yet: which come next, wait, or are replaced. */
import type { Address } from "@trigate/domain/Hex"
import * as Arr from "effect/Array"
import * as Option from "effect/Option"
import { withEntry, withoutEntry } from "./Entries.ts"
import type { EvmChain, Ledger } from "./EvmChain.ts"
import * as Chain from "./EvmChain.ts"
import type { Envelope, Transaction } from "./EvmTransaction.ts"

type Sent = Transaction & { readonly envelope: Envelope }

type Transactions = Ledger["transactions"]

/** How far ahead of the next one the number of a transaction may be. */
export const furthest = 64

const isSent = (transaction: Transaction): transaction is Sent => transaction.envelope !== undefined

/** A sender's transaction of a number, as long as it is in no block. */
export const unminedOf = ({ heads, ledger }: EvmChain, sender: Address, nonce: number): Sent | undefined =>
  ledger.transactions.values().filter(isSent).find(({ block, envelope, from }) =>
    block > heads.latest && from === sender && envelope.nonce === nonce
  )

const least = (one: bigint, other: bigint): bigint => one < other ? one : other

/** What is paid for a unit of gas at a base fee. */
export const paidAt = (pricing: Envelope["pricing"], baseFee: bigint): bigint =>
  pricing.type === "0x2" ? least(pricing.maxFeePerGas, baseFee + pricing.maxPriorityFeePerGas) : pricing.gasPrice

const offers = (pricing: Envelope["pricing"]): readonly [bigint, bigint] =>
  pricing.type === "0x2" ? [pricing.maxFeePerGas, pricing.maxPriorityFeePerGas] : [pricing.gasPrice, pricing.gasPrice]

/** Whether a transaction offers a tenth more than another one, as nodes want it of one that replaces it. */
export const outbids = (later: Envelope, earlier: Envelope): boolean => {
  const [fee, tip] = offers(later.pricing)
  const [earlierFee, earlierTip] = offers(earlier.pricing)
  return fee * 10n >= earlierFee * 11n && tip * 10n >= earlierTip * 11n
}

/** What a transaction takes from its sender at most, in wei. */
export const mostPaid = ({ dataFee, gas, pricing, value }: Envelope): bigint =>
  gas * offers(pricing)[0] + value + dataFee

// last, since blocks hold their transactions in the order of the map
const intoNext = (chain: EvmChain, transaction: Sent): Transactions => {
  const block = Chain.nextBlock(chain)
  const paid = paidAt(transaction.envelope.pricing, chain.baseFee(block))
  return withEntry(withoutEntry(chain.ledger.transactions, transaction.hash), transaction.hash, {
    ...transaction,
    block,
    envelope: { ...transaction.envelope, paid }
  })
}

const holding = (chain: EvmChain, transactions: Transactions): EvmChain => ({
  ...chain,
  ledger: { ...chain.ledger, transactions }
})

/** The chain as if a transaction had not been sent. */
export const without = (chain: EvmChain, { hash }: Sent): EvmChain =>
  holding(chain, withoutEntry(chain.ledger.transactions, hash))

/** A sender's waiting transactions that come next, each after the one before; one that cannot be paid stays, and those after it. */
const released = (chain: EvmChain, sender: Address): Transactions =>
  Option.match(
    Option.filter(
      Option.fromUndefinedOr(unminedOf(chain, sender, Chain.nonceAt(chain, sender, Chain.nextBlock(chain)))),
      ({ envelope }) => mostPaid(envelope) <= Chain.balanceAt(chain, sender, Chain.nextBlock(chain))
    ),
    {
      onNone: () => chain.ledger.transactions,
      onSome: (next) => released(holding(chain, intoNext(chain, next)), sender)
    }
  )

/** The chain's transactions with one more, which goes into the next block, or waits for those before it. */
export const withSent = (chain: EvmChain, sent: Sent): Transactions => {
  const { envelope, from } = sent
  const isNext = envelope.nonce === Chain.nonceAt(chain, from, Chain.nextBlock(chain))
  return isNext
    ? released(holding(chain, intoNext(chain, sent)), from)
    : withEntry(chain.ledger.transactions, sent.hash, { ...sent, block: Chain.waiting })
}

/** The chain's transactions with one at the place of another. */
export const withReplaced = ({ ledger }: EvmChain, earlier: Sent, later: Sent): Transactions =>
  new Map(
    Arr.map([...ledger.transactions], ([hash, transaction]) =>
      hash === earlier.hash ? [later.hash, { ...later, block: earlier.block }] : [hash, transaction])
  )
