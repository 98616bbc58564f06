/** HyperEVM: relayed calls, typed reads, streams, and transaction costs. */
import type { Address, Hash, StorageSlot } from "@trigate/domain/encoding/Encoding"
import type { CallFailure, OutcomeUnknown, UnsupportedBlock } from "@trigate/domain/errors/GatewayError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import { evmOperations, serving } from "@trigate/domain/evm/EvmProtocol"
import * as Gas from "@trigate/domain/evm/EvmResources"
import type { Methods } from "@trigate/domain/operations/Operation"
import type { Serving } from "@trigate/domain/unstable/evm/EvmMethods"
import * as EvmStreams from "@trigate/domain/unstable/evm/EvmStreams"
import * as MemoryResponses from "@trigate/domain/unstable/operations/MemoryResponses"
import type { SetResponse } from "@trigate/domain/unstable/operations/MemoryResponses"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import type { Guard } from "./guard/Guard.ts"

/** The sender of a transaction. */
export interface Account {
  readonly address: Address
}

/**
 * The methods of the service `TradingEvm`. Typed methods are derived from the declared operations and subscriptions.
 */
export interface TradingEvmMethods
  extends Methods<typeof EvmProtocol.evmOperations, CallFailure>, EvmStreams.Methods<EvmStreams.StreamFailure>
{
  /**
   * The blocks whose state the nodes can return: the latest block only, or every block. `EvmOperations.makeMethods`
   * returns the matching operations.
   */
  readonly serving: Serving
  /**
   * Relays a call. Returns the node's result or error object unchanged.
   *
   * A call for state at a block that the nodes do not serve fails with `UnsupportedBlock` before anything is sent,
   * because nodes that are not archives would return the latest state. A transaction is sent at most once;
   * `OutcomeUnknown` means that it may have been accepted.
   */
  readonly relay: (
    call: EvmProtocol.EvmCall
  ) => Effect.Effect<EvmProtocol.RpcResponse, CallFailure | OutcomeUnknown | UnsupportedBlock>
  /** Sends a signed transaction at most once, and returns its hash. */
  readonly sendRawTransaction: (
    signed: EvmProtocol.SignedTransaction
  ) => Effect.Effect<EvmProtocol.TransactionHash, CallFailure | OutcomeUnknown>
  /**
   * Returns the base fee of the next block that can contain an account's transactions: a small or a big block, as the
   * account chose.
   */
  readonly gasPriceFor: (account: Account) => Effect.Effect<bigint, CallFailure>
  /** Returns the maximum cost of an account's transaction at the account's current gas price. */
  readonly transactionCost: (
    transaction: Account & { readonly gasLimit: bigint }
  ) => Effect.Effect<bigint, CallFailure>
}

/**
 * Queries HyperEVM, with a method for each of `evmOperations` and `evmSubscriptions`. All prices and
 * costs are in wei; `Gas` formats them in gwei and ether.
 *
 * Provided by `Trigate.layer`, `Trading.layer`, `TradingEvmUpstream.layerFetch` or `TradingEvm.layerMemory`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { EvmResources } from "@trigate/domain"
 * import { TradingEvm } from "@trigate/trading"
 * import { Console, Effect, Ref } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { gasPrice } = yield* TradingEvm.TradingEvmState
 *   yield* Ref.set(gasPrice, 2_000_000_000n)
 *   const { transactionCost } = yield* TradingEvm.TradingEvm
 *   const address = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
 *   yield* Console.log(EvmResources.formatEther(yield* transactionCost({ address, gasLimit: 21_000n })))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, TradingEvm.layerMemory()))
 * ```
 * ```text
 * 0.000042
 * ```
 */
export class TradingEvm extends Context.Service<TradingEvm, TradingEvmMethods>()("@trigate/trading/TradingEvm") {}

/** Judges the transactions of a guarded account. */
const guarded = (
  backend: EvmProtocol.StreamingBackend,
  { checkTransaction }: Pick<Guard["Service"], "checkTransaction">
): EvmProtocol.StreamingBackend => ({
  ...backend,
  once: (call) => Effect.andThen(checkTransaction(call.params.valueOrUndefined), backend.once(call))
})

/**
 * Makes the service `TradingEvm` over a backend. Default: the nodes serve the latest block only, and every transaction is
 * sent.
 */
export const make = (
  unguarded: EvmProtocol.StreamingBackend,
  serving: Serving = EvmProtocol.serving,
  guard?: Pick<Guard["Service"], "checkTransaction">
): TradingEvm["Service"] => {
  const backend = guard === undefined ? unguarded : guarded(unguarded, guard)
  const label = "trading-node"
  const methods = EvmProtocol.makeMethods(EvmProtocol.makeOperations(serving), "TradingEvm", label, backend)
  const gasPriceFor = Effect.fn("TradingEvm.gasPriceFor")(function*(account: Account) {
    return yield* (yield* methods.usingBigBlocks(account)) ? methods.bigBlockGasPrice() : methods.gasPrice()
  })
  return TradingEvm.of({
    ...methods,
    ...EvmStreams.make({ serving, label, methods, subscribe: backend.subscribe }),
    serving,
    relay: EvmProtocol.relay(backend),
    sendRawTransaction: EvmProtocol.makeSend(EvmProtocol.sendRawTransaction)(
      "TradingEvm",
      label,
      (call) => backend.once({ ...call, surface: "gateway" })
    ),
    gasPriceFor,
    transactionCost: ({ address, gasLimit }) =>
      Effect.map(gasPriceFor({ address }), (price) => Gas.cost({ gasPrice: price, gasLimit }))
  })
}

/**
 * The state that a test sets.
 *
 * Provided by `TradingEvm.layerMemory`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { TradingEvm } from "@trigate/trading"
 * import { Console, Effect, Ref } from "effect"
 *
 * const address = "0x5555555555555555555555555555555555555555"
 * const word = `0x${"12".padStart(64, "0")}` as const
 *
 * const program = Effect.gen(function*() {
 *   const { storage } = yield* TradingEvm.TradingEvmState
 *   yield* Ref.set(storage, new Map([[TradingEvm.storageKey(address, "0x2"), word]]))
 *   const { getStorageAt } = yield* TradingEvm.TradingEvm
 *   yield* Console.log(BigInt(yield* getStorageAt({ address, slot: "0x2" })))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, TradingEvm.layerMemory()))
 * ```
 * ```text
 * 18n
 * ```
 */
export class TradingEvmState extends Context.Service<
  TradingEvmState,
  MemoryResponses.SentItems & {
    /** Storage words by {@link storageKey}. An absent position contains zeros. */
    readonly storage: Ref.Ref<ReadonlyMap<string, Hash>>
    /** Base fee of the next small block, in wei. Default: 1 gwei. */
    readonly gasPrice: Ref.Ref<bigint>
    /** Base fee of the next big block, in wei. Default: 1 gwei. */
    readonly bigBlockGasPrice: Ref.Ref<bigint>
    /** Accounts whose transactions use big blocks, in lower case. */
    readonly usingBigBlocks: Ref.Ref<ReadonlySet<string>>
    /**
     * Sets the response to any method of `evmOperations` except those for storage, base fees and big blocks:
     * `respond(evmOperations.blockNumber, () => Effect.succeed(1n))`.
     */
    readonly respond: SetResponse
  }
>()("@trigate/trading/TradingEvm/TradingEvmState") {}

/**
 * Returns the key of a storage position in {@link TradingEvmState}. Ignores the letter case and the leading zeros of
 * the arguments.
 */
export const storageKey = (address: Address, slot: StorageSlot): string => `${address.toLowerCase()}:${BigInt(slot)}`

const gwei = 1_000_000_000n
const zeros: Hash = `0x${"0".repeat(64)}`

const makeMemory = Effect.gen(function*() {
  const { respond, backend, sent } = yield* MemoryResponses.makeEvm(serving)
  const state = TradingEvmState.of({
    ...sent,
    respond,
    storage: yield* Ref.make<ReadonlyMap<string, Hash>>(new Map()),
    gasPrice: yield* Ref.make(gwei),
    bigBlockGasPrice: yield* Ref.make(gwei),
    usingBigBlocks: yield* Ref.make<ReadonlySet<string>>(new Set())
  })
  yield* respond(
    evmOperations.getStorageAt,
    ({ address, slot }) => Effect.map(Ref.get(state.storage), (words) => words.get(storageKey(address, slot)) ?? zeros)
  )
  yield* respond(evmOperations.gasPrice, () => Ref.get(state.gasPrice))
  yield* respond(evmOperations.bigBlockGasPrice, () => Ref.get(state.bigBlockGasPrice))
  yield* respond(
    evmOperations.usingBigBlocks,
    ({ address }) => Effect.map(Ref.get(state.usingBigBlocks), (accounts) => accounts.has(address.toLowerCase()))
  )
  return Context.make(TradingEvm, make(backend)).pipe(Context.add(TradingEvmState, state))
})

/**
 * Provides `TradingEvm` and its state. Each call returns a new layerMemory with separate state.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (): Layer.Layer<TradingEvm | TradingEvmState> => Layer.effectContext(makeMemory)
