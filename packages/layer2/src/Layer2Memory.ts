/** A layer 2 in memory, for tests: it answers with the receipts that it was given, and has no other method. */
import type { Hash } from "@trigate/domain/Hex"
import * as Json from "@trigate/domain/Json"
import { layer2Operations } from "@trigate/domain/Layer2Operations"
import { decodeValue } from "@trigate/domain/Operation"
import type { EvmBackend } from "@trigate/domain/protocol/EvmProtocol"
import { methodNotFound, result } from "@trigate/domain/protocol/JsonRpc"
import type { Receipt } from "@trigate/domain/Receipt"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Layer2 from "./Layer2.ts"

/** How far a transaction has come: unseen, promised by the sequencer (its block hash is zeros), or in a block. */
export type Stage = "pending" | "preconfirmed" | "mined"

/** What the layer 2 in memory knows; letter case of a hash does not matter. */
export class Layer2State extends Context.Service<Layer2State, {
  /** Puts a transaction at a stage, `mined` when not given; setting it again moves it. */
  readonly set: (receipt: Receipt, stage?: Stage) => Effect.Effect<void>
  /** Forgets a transaction, as a reorganisation does. */
  readonly remove: (hash: Hash) => Effect.Effect<void>
  /** The receipt that is answered for a hash now; `null` while there is none. */
  readonly get: (hash: Hash) => Effect.Effect<Receipt | null>
}>()("@trigate/layer2/Layer2Memory/Layer2State") {}

const unsealed: Hash = `0x${"0".repeat(64)}`

const atStage = (receipt: Receipt, stage: Stage): Receipt | null => {
  if (stage === "pending") return null
  return stage === "mined" ? receipt : {
    ...receipt,
    blockHash: unsealed,
    logs: receipt.logs.map((log) => ({ ...log, blockHash: unsealed }))
  }
}

const keyOf = (hash: Hash): string => hash.toLowerCase()

const state = Effect.gen(function*() {
  const receipts = yield* Ref.make<ReadonlyMap<string, Receipt | null>>(new Map())
  return Layer2State.of({
    set: (receipt, stage = "mined") =>
      Ref.update(receipts, (known) => new Map(known).set(keyOf(receipt.transactionHash), atStage(receipt, stage))),
    remove: (hash) => Ref.update(receipts, (known) => new Map([...known].filter(([key]) => key !== keyOf(hash)))),
    get: (hash) => Effect.map(Ref.get(receipts), (known) => known.get(keyOf(hash)) ?? null)
  })
})

const { getTransactionReceipt } = layer2Operations
const decodeRequest = decodeValue(getTransactionReceipt.request)
const encodeReceipt = Schema.encodeEffect(getTransactionReceipt.response)

const backend = (state: Layer2State["Service"]): EvmBackend => ({
  read: ({ operation, params }) =>
    operation.name === getTransactionReceipt.name
      ? decodeRequest(params.valueOrUndefined).pipe(
        Effect.flatMap(({ hash }) => state.get(hash)),
        Effect.flatMap(encodeReceipt),
        // the params were checked, and the receipt is the test's own
        Effect.orDie,
        Effect.map((receipt) => result(Json.write(receipt)))
      )
      : Effect.succeed(methodNotFound(operation.name)),
  once: ({ operation }) => Effect.succeed(methodNotFound(operation.name))
})

/** A layer 2 without transactions, and the state to give it some; a function, so that two in one program share none. */
export const layer = (): Layer.Layer<Layer2.Layer2 | Layer2State> =>
  Layer.effect(Layer2.Layer2, Effect.map(Layer2State, (state) => Layer2.make(backend(state)))).pipe(
    Layer.provideMerge(Layer.effect(Layer2State, state))
  )
