/** The trading chain's EVM: storage at the latest block, and what a transaction costs. */
import { checkBlock } from "@trigate/domain/BlockParam"
import { faultsOf, invalidRequest, parseRequest } from "@trigate/domain/Decode"
import type { EvmOperation } from "@trigate/domain/EvmOperations"
import { evmOperations } from "@trigate/domain/EvmOperations"
import * as Gas from "@trigate/domain/Gas"
import type { CommonFailure } from "@trigate/domain/GatewayError"
import type { Address, StorageSlot } from "@trigate/domain/Hex"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import { readerOf } from "@trigate/domain/JsonRpc"
import * as JsonText from "@trigate/domain/JsonText"
import type { AnyCodec, OnceOperation, Operation, Surface } from "@trigate/domain/Operation"
import type { UnsupportedBlock } from "@trigate/domain/RequestError"
import * as RpcParams from "@trigate/domain/RpcParams"
import type { OutcomeUnknown } from "@trigate/domain/UpstreamError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** A call to relay: its method, its params as raw JSON text, and the surface it came to. */
export interface EvmCall {
  readonly operation: EvmOperation
  readonly params: string
  readonly surface: Surface
}

/** A read that was checked: `request` is what its params mean. */
export interface CheckedRead extends EvmCall {
  readonly operation: Operation<string, "read">
  readonly request: unknown
}

/** A call that was checked and is sent at most once. */
export interface CheckedOnce extends EvmCall {
  readonly operation: OnceOperation
}

/** Sends calls and reads the envelopes of their answers. */
export interface Transport {
  readonly read: (call: CheckedRead) => Effect.Effect<RpcAnswer, CommonFailure>
  readonly once: (call: CheckedOnce) => Effect.Effect<RpcAnswer, CommonFailure | OutcomeUnknown>
}

/** Whose transaction. */
export interface Account {
  readonly address: Address
}

/** Reads the trading chain's EVM. All prices and costs are in wei; `Gas` prints them in gwei and ether. */
export class TradingEvm extends Context.Service<TradingEvm, {
  /**
   * Sends a call; the result or error object comes as the node wrote it.
   *
   * State at a block other than `latest` fails with `UnsupportedBlock` before anything is sent: nodes answer it with latest
   * state. A transaction is sent at most once; `OutcomeUnknown` means that it may have been taken.
   */
  readonly relay: (call: EvmCall) => Effect.Effect<RpcAnswer, CommonFailure | OutcomeUnknown | UnsupportedBlock>
  /** One storage word of a contract, at the latest block. */
  readonly getStorageAt: (
    request: { readonly address: Address; readonly slot: StorageSlot }
  ) => Effect.Effect<StorageSlot, CommonFailure | UnsupportedBlock>
  /** Base fee of the next small block. */
  readonly gasPrice: () => Effect.Effect<bigint, CommonFailure>
  /** Base fee of the next big block. */
  readonly bigBlockGasPrice: () => Effect.Effect<bigint, CommonFailure>
  /** Whether an account's transactions go to big blocks: what the `evmUserModify` action has set. */
  readonly usingBigBlocks: (account: Account) => Effect.Effect<boolean, CommonFailure>
  /** Base fee of the next block that takes an account's transactions: big or small, as the account has chosen. */
  readonly gasPriceFor: (account: Account) => Effect.Effect<bigint, CommonFailure>
  /** Most that a transaction of an account costs at the price that applies to it. */
  readonly transactionCost: (
    transaction: Account & { readonly gasLimit: bigint }
  ) => Effect.Effect<bigint, CommonFailure>
}>()("@trigate/trading/TradingEvm") {}

const upstream = "trading-node"

/** The typed method of an operation over some way to send. */
const methodOf = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(
  operation: Operation<string, "read", Request, Response, Failures>
) => {
  const encode = Schema.encodeEffect<AnyCodec>(operation.request, { errors: "all" })
  const read = readerOf<Request, Response, Failures>(operation)
  return (send: Transport["read"]) =>
    Effect.fn(`TradingEvm.${operation.name}`)(function*(request: Request["Type"]) {
      const params = yield* Effect.mapBoth(encode(request), {
        onFailure: (error) => invalidRequest(faultsOf(error, ["params"])),
        onSuccess: JsonText.stringify
      })
      return yield* read(upstream, yield* send({ operation, params, request, surface: "gateway" }))
    })
}

const getStorageAt = methodOf(evmOperations.getStorageAt)
const gasPrice = methodOf(evmOperations.gasPrice)
const bigBlockGasPrice = methodOf(evmOperations.bigBlockGasPrice)
const usingBigBlocks = methodOf(evmOperations.usingBigBlocks)

/** The service over some way to send. */
export const make = ({ once, read: send }: Transport): TradingEvm["Service"] => {
  const decodeParams = RpcParams.reader()
  const smallPrice = gasPrice(send)
  const bigPrice = bigBlockGasPrice(send)
  const isBig = usingBigBlocks(send)
  const gasPriceFor = Effect.fn("TradingEvm.gasPriceFor")(function*(account: Account) {
    return yield* (yield* isBig(account)) ? bigPrice() : smallPrice()
  })
  return TradingEvm.of({
    relay: Effect.fnUntraced(function*({ operation, ...call }: EvmCall) {
      const params = yield* parseRequest(call.params)
      yield* checkBlock(operation, params)
      const request = yield* decodeParams(operation, params)
      return yield* operation.class === "once" ? once({ ...call, operation }) : send({ ...call, operation, request })
    }),
    getStorageAt: getStorageAt(send),
    gasPrice: () => smallPrice(),
    bigBlockGasPrice: () => bigPrice(),
    usingBigBlocks: isBig,
    gasPriceFor,
    transactionCost: ({ address, gasLimit }) =>
      Effect.map(gasPriceFor({ address }), (price) => Gas.cost({ gasPrice: price, gasLimit }))
  })
}
