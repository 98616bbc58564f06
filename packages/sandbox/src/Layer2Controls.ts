/** Sends transactions to the layer 2, takes them back, and moves finality, as a test would. */
import type { Address, Hash } from "@trigate/domain/Hex"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { withEntry, withoutEntry } from "./Entries.ts"
import type { Heads } from "./EvmChain.ts"
import type { Transaction, TransactionLog } from "./EvmTransaction.ts"
import type { Layer2State } from "./Layer2Chain.ts"
import { headsAt } from "./Layer2Chain.ts"
import type { Layer2Family } from "./Layer2Family.ts"
import { families } from "./Layer2Family.ts"
import { lower } from "./VenueState.ts"

/** A transaction to send; what is not given is that of a plain transfer on an OP-stack chain. */
export interface NewTransaction {
  readonly hash: Hash
  readonly family?: Layer2Family
  readonly from?: Address
  /** Null to create a contract. */
  readonly to?: Address | null
  readonly contractAddress?: Address
  readonly status?: "success" | "failure"
  readonly gasUsed?: bigint
  readonly logs?: ReadonlyArray<TransactionLog>
  /** Further fields of the receipt, which win over the family's. */
  readonly extras?: { readonly [field: string]: unknown }
  /** Blocks from now until the one that holds it: 1, the next one, when not given; 0 or less for one that is there. */
  readonly inBlocks?: number
  /** Whether the sequencer promises the receipt at once, before its block is sealed. */
  readonly preconfirmed?: boolean
}

/** What can be set on the layer 2. */
export interface Layer2Controls {
  /** Transactions, the start of the chain, and finality. */
  readonly state: Ref.Ref<Layer2State>
  /** The newest blocks now. */
  readonly heads: Effect.Effect<Heads>
  /** Sends a transaction, or replaces it. */
  readonly pushTransaction: (transaction: NewTransaction) => Effect.Effect<void>
  /** Forgets a transaction, as a reorganisation does. */
  readonly dropTransaction: (hash: Hash) => Effect.Effect<void>
  /** Makes every block up to `block` final, up to the newest when not given. */
  readonly advanceFinality: (block?: number) => Effect.Effect<void>
}

const someone: Address = "0x17281460228691b044e080a5f5257dce8e47f79c"

/** A transaction as the chain keeps it, sent while the newest block is `latest`. */
export const transactionOf = (transaction: NewTransaction, latest: number): Transaction => {
  const { contractAddress = null, extras = {}, family = "op-stack", from = someone, hash, inBlocks = 1 } = transaction
  return {
    hash: lower(hash),
    fields: families[family],
    from,
    to: transaction.to === undefined ? someone : transaction.to,
    contractAddress,
    status: transaction.status ?? "success",
    gasUsed: transaction.gasUsed ?? 21_000n,
    logs: transaction.logs ?? [],
    extras,
    block: latest + inBlocks,
    promisedFrom: transaction.preconfirmed === true ? latest : undefined,
    envelope: undefined
  }
}

/** The transactions of a chain with one more in it. */
export const withTransaction = (state: Layer2State, transaction: Transaction): Layer2State => ({
  ...state,
  transactions: withEntry(state.transactions, transaction.hash, transaction)
})

/** Controls over a layer 2's memory. */
export const make = (state: Ref.Ref<Layer2State>): Layer2Controls => {
  const atNow = (change: (known: Layer2State, heads: Heads) => Layer2State): Effect.Effect<void> =>
    Effect.flatMap(
      Clock.currentTimeMillis,
      (now) => Ref.update(state, (known) => change(known, headsAt(known, now)))
    )
  return {
    state,
    heads: Effect.zipWith(Ref.get(state), Clock.currentTimeMillis, headsAt),
    pushTransaction: (transaction) =>
      atNow((known, { latest }) => withTransaction(known, transactionOf(transaction, latest))),
    dropTransaction: (hash) =>
      Ref.update(state, (known) => ({ ...known, transactions: withoutEntry(known.transactions, lower(hash)) })),
    advanceFinality: (block) =>
      atNow((known, { latest }) => ({
        ...known,
        finalizedFloor: Math.max(known.finalizedFloor, Math.min(latest, block ?? latest))
      }))
  }
}
