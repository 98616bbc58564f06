/**
 * `TradingEvm` in memory. A test sets the storage, the prices, the big-block flags, the blocks, the logs, and the
 * responses to other methods.
 *
 * It accepts no transactions.
 */
import type { Address, Hash, StorageSlot } from "@trigate/domain/encoding/Encoding"
import { evmOperations, serving } from "@trigate/domain/evm/EvmProtocol"
import * as EvmMemory from "@trigate/domain/unstable/evm/EvmMemory"
import type { SetAnswer } from "@trigate/domain/unstable/operations/MemoryAnswers"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as TradingEvm from "./TradingEvm.ts"

/**
 * The state that a test sets.
 *
 * Provided by `TradingEvmMemory.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { TradingEvm, TradingEvmMemory } from "@trigate/trading"
 * import { Console, Effect, Ref } from "effect"
 *
 * const address = "0x5555555555555555555555555555555555555555"
 * const word = `0x${"12".padStart(64, "0")}` as const
 *
 * const program = Effect.gen(function*() {
 *   const { storage } = yield* TradingEvmMemory.TradingEvmState
 *   yield* Ref.set(storage, new Map([[TradingEvmMemory.storageKey(address, "0x2"), word]]))
 *   const { getStorageAt } = yield* TradingEvm.TradingEvm
 *   yield* Console.log(BigInt(yield* getStorageAt({ address, slot: "0x2" })))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, TradingEvmMemory.layer()))
 * ```
 * ```text
 * 18n
 * ```
 */
export class TradingEvmState extends Context.Service<
  TradingEvmState,
  EvmMemory.SentItems & {
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
     * `answer(evmOperations.blockNumber, () => Effect.succeed(1n))`.
     */
    readonly answer: SetAnswer
  }
>()("@trigate/trading/TradingEvmMemory/TradingEvmState") {}

/**
 * Returns the key of a storage position in {@link TradingEvmState}. Ignores the letter case and the leading zeros of
 * the arguments.
 */
export const storageKey = (address: Address, slot: StorageSlot): string => `${address.toLowerCase()}:${BigInt(slot)}`

const gwei = 1_000_000_000n
const zeros: Hash = `0x${"0".repeat(64)}`

const make = Effect.gen(function*() {
  const { answer, backend, sent } = yield* EvmMemory.make(serving)
  const state = TradingEvmState.of({
    ...sent,
    answer,
    storage: yield* Ref.make<ReadonlyMap<string, Hash>>(new Map()),
    gasPrice: yield* Ref.make(gwei),
    bigBlockGasPrice: yield* Ref.make(gwei),
    usingBigBlocks: yield* Ref.make<ReadonlySet<string>>(new Set())
  })
  yield* answer(
    evmOperations.getStorageAt,
    ({ address, slot }) => Effect.map(Ref.get(state.storage), (words) => words.get(storageKey(address, slot)) ?? zeros)
  )
  yield* answer(evmOperations.gasPrice, () => Ref.get(state.gasPrice))
  yield* answer(evmOperations.bigBlockGasPrice, () => Ref.get(state.bigBlockGasPrice))
  yield* answer(
    evmOperations.usingBigBlocks,
    ({ address }) => Effect.map(Ref.get(state.usingBigBlocks), (accounts) => accounts.has(address.toLowerCase()))
  )
  return Context.make(TradingEvm.TradingEvm, TradingEvm.make(backend)).pipe(Context.add(TradingEvmState, state))
})

/**
 * Provides `TradingEvm` and its state. Each call returns a new layer with separate state.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (): Layer.Layer<TradingEvm.TradingEvm | TradingEvmState> => Layer.effectContext(make)
