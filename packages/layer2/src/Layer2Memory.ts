/**
 * A layer 2 in memory: a test sets the receipts, blocks and logs, and the responses to other methods. The chain accepts
 * no transactions.
 */
import type { Hash } from "@trigate/domain/encoding/Encoding"
import type { Receipt } from "@trigate/domain/evm/EvmResources"
import { layer2Operations, serving } from "@trigate/domain/evm/Layer2Operations"
import * as EvmMemory from "@trigate/domain/unstable/evm/EvmMemory"
import type { SetAnswer } from "@trigate/domain/unstable/operations/MemoryAnswers"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Layer2 from "./Layer2.ts"

/**
 * The stage of a transaction. `pending`: not in a block and without a receipt. `preconfirmed`: confirmed by the
 * sequencer, with a receipt that contains zeros as the block hash. `mined`: in a block.
 */
export type Stage = "pending" | "preconfirmed" | "mined"

/**
 * The state of the layer 2 in memory. Hashes can have any letter case.
 *
 * Provided by `Layer2Memory.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
 * import { Layer2, Layer2Memory } from "@trigate/layer2"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { answer } = yield* Layer2Memory.Layer2State
 *   yield* answer(layer2Operations.blockNumber, () => Effect.succeed(7n))
 *   const { blockNumber } = yield* Layer2.Layer2
 *   yield* Console.log(yield* blockNumber())
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Layer2Memory.layer()))
 * ```
 * ```text
 * 7n
 * ```
 */
export class Layer2State extends Context.Service<
  Layer2State,
  EvmMemory.SentItems & {
    /**
     * Sets the receipt and the stage of a transaction, and replaces the earlier receipt and stage. Default stage:
     * `mined`.
     */
    readonly set: (receipt: Receipt, stage?: Stage) => Effect.Effect<void>
    /** Removes a transaction, as a reorg does. */
    readonly remove: (hash: Hash) => Effect.Effect<void>
    /** Returns the current receipt of a transaction; `null` if the receipt does not exist yet. */
    readonly get: (hash: Hash) => Effect.Effect<Receipt | null>
    /**
     * Sets the response to any method of `layer2Operations` except `getTransactionReceipt`:
     * `answer(layer2Operations.blockNumber, () => Effect.succeed(1n))`.
     */
    readonly answer: SetAnswer
  }
>()("@trigate/layer2/Layer2Memory/Layer2State") {}

const unsealed: Hash = `0x${"0".repeat(64)}`

const atStage = (receipt: Receipt, stage: Stage): Receipt | null => {
  if (stage === "pending") return null
  return stage === "mined" ? receipt : {
    ...receipt,
    blockHash: unsealed,
    logs: receipt.logs.map((log) => ({ ...log, blockHash: unsealed }))
  }
}

const hashKey = (hash: Hash): string => hash.toLowerCase()

const make = Effect.gen(function*() {
  const { answer, backend, sent } = yield* EvmMemory.make(serving)
  const receipts = yield* Ref.make<ReadonlyMap<string, Receipt | null>>(new Map())
  const state = Layer2State.of({
    ...sent,
    answer,
    set: (receipt, stage = "mined") =>
      Ref.update(receipts, (known) => new Map(known).set(hashKey(receipt.transactionHash), atStage(receipt, stage))),
    remove: (hash) => Ref.update(receipts, (known) => new Map([...known].filter(([key]) => key !== hashKey(hash)))),
    get: (hash) => Effect.map(Ref.get(receipts), (known) => known.get(hashKey(hash)) ?? null)
  })
  yield* answer(layer2Operations.getTransactionReceipt, ({ hash }) => state.get(hash))
  return Context.make(Layer2.Layer2, Layer2.make(backend)).pipe(Context.add(Layer2State, state))
})

/**
 * Provides a layer 2 without transactions, and its state.
 *
 * Each call returns a new layer with separate state.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (): Layer.Layer<Layer2.Layer2 | Layer2State> => Layer.effectContext(make)
