/** HyperEVM: relayed calls, typed reads, streams, and transaction costs. */
import type { Address } from "@trigate/domain/encoding/Encoding"
import type { CallFailure, OutcomeUnknown, UnsupportedBlock } from "@trigate/domain/errors/GatewayError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import * as Gas from "@trigate/domain/evm/EvmResources"
import type { Methods } from "@trigate/domain/operations/Operation"
import type { Serving } from "@trigate/domain/unstable/evm/EvmMethods"
import * as EvmStreams from "@trigate/domain/unstable/evm/EvmStreams"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

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
  ) => Effect.Effect<EvmProtocol.RpcAnswer, CallFailure | OutcomeUnknown | UnsupportedBlock>
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
 * Provided by `Trigate.layer`, `Trading.layer`, `TradingEvmUpstream.layerFetch` or `TradingEvmMemory.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { EvmResources } from "@trigate/domain"
 * import { TradingEvm, TradingEvmMemory } from "@trigate/trading"
 * import { Console, Effect, Ref } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { gasPrice } = yield* TradingEvmMemory.TradingEvmState
 *   yield* Ref.set(gasPrice, 2_000_000_000n)
 *   const { transactionCost } = yield* TradingEvm.TradingEvm
 *   const address = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
 *   yield* Console.log(EvmResources.formatEther(yield* transactionCost({ address, gasLimit: 21_000n })))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, TradingEvmMemory.layer()))
 * ```
 * ```text
 * 0.000042
 * ```
 */
export class TradingEvm extends Context.Service<TradingEvm, TradingEvmMethods>()("@trigate/trading/TradingEvm") {}
import type { Guard } from "./guard/Guard.ts"

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
