/**
 * The token chain's virtual machine: accounts, messages, transactions and get methods, run by the real TVM in
 * WebAssembly.
 *
 * Loading the machine takes about half a second and 128 MiB. `TokenAnswers` loads the machine when the first call runs
 * code.
 */
import type { Transaction, TupleItem } from "@ton/core"
import { Address, Cell, loadMessage } from "@ton/core"
import { Blockchain, createEmptyShardAccount, createShardAccount, GetMethodError } from "@ton/sandbox"
import * as TonAddress from "@trigate/domain/tokens/TonAddress"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Ref from "effect/Ref"
import * as Semaphore from "effect/Semaphore"
import * as ContractCells from "./ContractCells.ts"
import type { Contract, TokenState } from "./TokenState.ts"

/** The current state of an account. */
export interface AccountView {
  /** The balance of the account, in nanotons. */
  readonly balance: bigint
  readonly state: "active" | "uninitialized" | "frozen"
  readonly code: Cell | undefined
  readonly data: Cell | undefined
  /** The latest transaction of the account; `undefined` if there are no transactions. */
  readonly last: { readonly lt: bigint; readonly hash: Uint8Array } | undefined
}

/** The result of a get method. */
export interface GetResult {
  readonly exitCode: number
  readonly gasUsed: bigint
  readonly stack: ReadonlyArray<TupleItem>
}

/** The refusal of a message, with the server's error text. */
export interface MachineRefusal {
  readonly refused: string
}

/**
 * Maximum number of transactions stored for an account. Older transactions are dropped, as on a node without an
 * archive.
 */
const keptTransactions = 1_000

/**
 * The initial balance of a contract for which the state contains no balance, in nanotons. The contract pays fees from
 * it. `getAddressBalance` returns this amount even before the virtual machine is loaded.
 */
const seedBalance = 50_000_000n

const toAddress = (account: TonAddress.Account): Address => Address.parseRaw(TonAddress.formatRaw(account))

const stateNames = { active: "active", uninit: "uninitialized", frozen: "frozen" } as const

const refusal = (cause: unknown): MachineRefusal => ({
  refused: Predicate.isString(cause)
    ? cause
    : Predicate.hasProperty(cause, "message") && Predicate.isString(cause.message)
    ? cause.message
    : "not a message"
})

/**
 * Makes the virtual machine over the contracts of a state. If a test adds, replaces or removes a contract later, the
 * change applies to the next call.
 */
export const make = Effect.fnUntraced(function*(state: Ref.Ref<TokenState>) {
  const blockchain = yield* Effect.promise(() => Blockchain.create({ config: "slim" }))
  const turn = yield* Semaphore.make(1)
  const placed = new Map<string, Contract>()
  const transactions = new Map<string, Array<Transaction>>()

  const place = (key: string, contract: Contract): Promise<void> => {
    const address = Address.parseRaw(key)
    const cells = ContractCells.contractCells(contract)
    placed.set(key, contract)
    transactions.delete(key)
    if (cells !== undefined) {
      return blockchain.setShardAccount(address, createShardAccount({ address, ...cells, balance: seedBalance }))
    }
    const account = createEmptyShardAccount(address)
    const balance = contract.kind === "wallet" || contract.kind === "account" ? contract.balance : seedBalance
    return blockchain.setShardAccount(address, {
      ...account,
      account: {
        addr: address,
        storageStats: { used: { cells: 0n, bits: 0n }, storageExtra: null, lastPaid: 0, duePayment: null },
        storage: { lastTransLt: 0n, balance: { coins: balance }, state: { type: "uninit" } }
      }
    })
  }

  const follow = Effect.fnUntraced(function*() {
    const { contracts } = yield* Ref.get(state)
    for (const [key, { contract }] of contracts) {
      if (placed.get(key) !== contract) yield* Effect.promise(() => place(key, contract))
    }
    for (const key of placed.keys()) {
      if (contracts.has(key)) continue
      placed.delete(key)
      transactions.delete(key)
      const address = Address.parseRaw(key)
      yield* Effect.promise(() => blockchain.setShardAccount(address, createEmptyShardAccount(address)))
    }
    blockchain.now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
  })

  /** Runs one call at a time, because the virtual machine has one state. */
  const inTurn = <A>(call: Effect.Effect<A>): Effect.Effect<A> => turn.withPermits(1)(Effect.andThen(follow(), call))

  const record = (sent: ReadonlyArray<Transaction>): void => {
    for (const transaction of sent) {
      const key = `0:${transaction.address.toString(16).padStart(64, "0")}`
      const known = transactions.get(key) ?? []
      known.unshift(transaction)
      transactions.set(key, known.slice(0, keptTransactions))
    }
  }

  return {
    /** Returns an account. An account that was never written is uninitialized and empty. */
    account: (account: TonAddress.Account): Effect.Effect<AccountView> =>
      inTurn(Effect.gen(function*() {
        const contract = yield* Effect.promise(() => blockchain.getContract(toAddress(account)))
        const [last] = transactions.get(TonAddress.formatRaw(account)) ?? []
        const state = contract.account.account?.storage.state
        const init = state?.type === "active" ? state.state : undefined
        return {
          balance: contract.balance,
          state: stateNames[state?.type ?? "uninit"],
          code: init?.code ?? undefined,
          data: init?.data ?? undefined,
          last: last === undefined ? undefined : { lt: last.lt, hash: last.hash() }
        }
      })),

    /** Runs a get method of a contract. The method is selected by its name or its numeric ID. */
    runGetMethod: (
      account: TonAddress.Account,
      method: string | number,
      stack: ReadonlyArray<TupleItem>
    ): Effect.Effect<GetResult> =>
      inTurn(Effect.gen(function*() {
        const contract = yield* Effect.promise(() => blockchain.getContract(toAddress(account)))
        const ran = yield* Effect.promise(() =>
          // a method that ends with an exit code has completed, and the exit code is part of its result
          contract.get(method, [...stack]).catch((cause: unknown) =>
            cause instanceof GetMethodError
              ? { exitCode: cause.exitCode, gasUsed: cause.gasUsed, stack: [] }
              : Promise.reject(cause)
          )
        )
        return { exitCode: ran.exitCode, gasUsed: ran.gasUsed, stack: ran.stack }
      })),

    /** Executes an external message and all resulting messages. Returns the hash of the message's cell. */
    send: (boc: string): Effect.Effect<{ readonly hash: Uint8Array } | MachineRefusal> =>
      inTurn(
        Effect.gen(function*() {
          const cell = yield* Effect.try({ try: () => Cell.fromBase64(boc), catch: refusal })
          const message = yield* Effect.try({ try: () => loadMessage(cell.beginParse()), catch: refusal })
          if (message.info.type !== "external-in") return yield* Effect.fail(refusal("not an external message"))
          const sent = yield* Effect.tryPromise({ try: () => blockchain.sendMessage(message), catch: refusal })
          record(sent.transactions)
          return { hash: cell.hash() }
        }).pipe(Effect.catch(Effect.succeed))
      ),

    /** Returns the transactions of an account, newest first. */
    transactions: (account: TonAddress.Account): Effect.Effect<ReadonlyArray<Transaction>> =>
      inTurn(Effect.sync(() => transactions.get(TonAddress.formatRaw(account)) ?? []))
  }
})

/** The virtual machine. */
export type TokenMachine = Effect.Success<ReturnType<typeof make>>
