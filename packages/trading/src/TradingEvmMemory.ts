/**
 * `TradingEvm` in memory: storage, prices and flags that a test sets, answered as a node answers them.
 *
 * It has no other method, and takes no transaction.
 */
import { evmOperations } from "@trigate/domain/EvmOperations"
import type { Address, Hash, StorageSlot } from "@trigate/domain/Hex"
import * as Json from "@trigate/domain/Json"
import { decodeValue } from "@trigate/domain/Operation"
import type { AnyCodec, MethodClass, Operation } from "@trigate/domain/Operation"
import type { RpcAnswer } from "@trigate/domain/protocol/JsonRpc"
import { methodNotFound, result } from "@trigate/domain/protocol/JsonRpc"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as TradingEvm from "./TradingEvm.ts"

/** What a test sets. */
export class TradingEvmState extends Context.Service<TradingEvmState, {
  /** Storage words by {@link storageKey}; a position that is not there holds zeros. */
  readonly storage: Ref.Ref<ReadonlyMap<string, Hash>>
  /** Base fee of the next small block, in wei; 1 gwei until it is set. */
  readonly gasPrice: Ref.Ref<bigint>
  /** Base fee of the next big block, in wei; 1 gwei until it is set. */
  readonly bigBlockGasPrice: Ref.Ref<bigint>
  /** Accounts whose transactions go to big blocks, in lower case. */
  readonly usingBigBlocks: Ref.Ref<ReadonlySet<string>>
}>()("@trigate/trading/TradingEvmMemory/TradingEvmState") {}

/** The key of a storage position, whatever the letter case and the leading zeros. */
export const storageKey = (address: Address, slot: StorageSlot): string => `${address.toLowerCase()}:${BigInt(slot)}`

const gwei = 1_000_000_000n
const zeros: Hash = `0x${"0".repeat(64)}`

const state = Effect.gen(function*() {
  return TradingEvmState.of({
    storage: yield* Ref.make<ReadonlyMap<string, Hash>>(new Map()),
    gasPrice: yield* Ref.make(gwei),
    bigBlockGasPrice: yield* Ref.make(gwei),
    usingBigBlocks: yield* Ref.make<ReadonlySet<string>>(new Set())
  })
})

/** Answers one method as a node would: params and result pass through the operation's own schemas. */
const answering = <Request extends AnyCodec, Response extends AnyCodec>(
  operation: Operation<string, MethodClass, Request, Response>,
  answer: (request: Request["Type"]) => Effect.Effect<Response["Type"]>
) => {
  const decode = decodeValue(operation.request, ["params"])
  const encode = Schema.encodeEffect<AnyCodec>(operation.response)
  return (params: Json.Json): Effect.Effect<RpcAnswer> =>
    // `relay` has checked the params: here they decode
    decode(params.valueOrUndefined).pipe(
      Effect.flatMap(answer),
      Effect.flatMap(encode),
      Effect.orDie,
      Effect.map((value) => result(Json.write(value)))
    )
}

const make = Effect.gen(function*() {
  const { bigBlockGasPrice, gasPrice, storage, usingBigBlocks } = yield* TradingEvmState
  const answers = {
    eth_getStorageAt: answering(
      evmOperations.getStorageAt,
      ({ address, slot }) => Effect.map(Ref.get(storage), (words) => words.get(storageKey(address, slot)) ?? zeros)
    ),
    eth_gasPrice: answering(evmOperations.gasPrice, () => Ref.get(gasPrice)),
    eth_bigBlockGasPrice: answering(evmOperations.bigBlockGasPrice, () => Ref.get(bigBlockGasPrice)),
    eth_usingBigBlocks: answering(
      evmOperations.usingBigBlocks,
      ({ address }) => Effect.map(Ref.get(usingBigBlocks), (accounts) => accounts.has(address.toLowerCase()))
    )
  }
  const isKnown = (name: string): name is keyof typeof answers => Object.hasOwn(answers, name)
  return TradingEvm.make({
    read: ({ operation: { name }, params }) =>
      isKnown(name) ? answers[name](params) : Effect.succeed(methodNotFound(name)),
    once: ({ operation }) => Effect.succeed(methodNotFound(operation.name))
  })
})

/** The service and its state; a function, so that two chains in one program share no state. */
export const layer = (): Layer.Layer<TradingEvm.TradingEvm | TradingEvmState> =>
  Layer.effect(TradingEvm.TradingEvm, make).pipe(Layer.provideMerge(Layer.effect(TradingEvmState, state)))
