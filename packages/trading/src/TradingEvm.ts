/** The trading chain's EVM: storage at the latest block, and what a transaction costs. */
import type { Address } from "@trigate/domain/encoding/Hex"
import type { CallFailure } from "@trigate/domain/errors/GatewayError"
import type { UnsupportedBlock } from "@trigate/domain/errors/RequestError"
import type { OutcomeUnknown } from "@trigate/domain/errors/UpstreamError"
import type { Serving } from "@trigate/domain/evm/EvmMethods"
import * as EvmOperations from "@trigate/domain/evm/EvmOperations"
import type { evmOperations } from "@trigate/domain/evm/EvmOperations"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import * as Gas from "@trigate/domain/evm/Gas"
import type { RpcAnswer } from "@trigate/domain/operations/JsonRpc"
import type { Methods } from "@trigate/domain/operations/Operation"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** Whose transaction. */
export interface Account {
  readonly address: Address
}

/** The methods of the service; those of typed operations are derived. */
export interface TradingEvmMethods extends Methods<typeof evmOperations, CallFailure> {
  /** The blocks that the nodes know: `EvmOperations.makeMethods` returns the operations that they serve. */
  readonly serving: Serving
  /**
   * Relays a call; the result or error object comes as the node wrote it.
   *
   * State at a block that the operation does not read fails with `UnsupportedBlock` before anything is sent, since nodes
   * answer it with the latest state unless they are archives. A transaction is sent at most once; `OutcomeUnknown` means that it may have been taken.
   */
  readonly relay: (
    call: EvmProtocol.EvmCall
  ) => Effect.Effect<RpcAnswer, CallFailure | OutcomeUnknown | UnsupportedBlock>
  /** Base fee of the next block that takes an account's transactions: big or small, as the account has chosen. */
  readonly gasPriceFor: (account: Account) => Effect.Effect<bigint, CallFailure>
  /** Most that a transaction of an account costs at the price that applies to it. */
  readonly transactionCost: (
    transaction: Account & { readonly gasLimit: bigint }
  ) => Effect.Effect<bigint, CallFailure>
}

/**
 * Reads the trading chain's EVM, with a method for each of `evmOperations`. All prices and costs are in wei; `Gas` prints them in gwei and ether.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Gas } from "@trigate/domain"
 * import { TradingEvm, TradingEvmMemory } from "@trigate/trading"
 * import { Console, Effect, Ref } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { gasPrice } = yield* TradingEvmMemory.TradingEvmState
 *   yield* Ref.set(gasPrice, 2_000_000_000n)
 *   const { transactionCost } = yield* TradingEvm.TradingEvm
 *   const address = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
 *   yield* Console.log(Gas.formatEther(yield* transactionCost({ address, gasLimit: 21_000n })))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, TradingEvmMemory.layer()))
 * ```
 * ```text
 * 0.000042
 * ```
 */
export class TradingEvm extends Context.Service<TradingEvm, TradingEvmMethods>()("@trigate/trading/TradingEvm") {}

/** The service over a backend, whose nodes know the latest block only when nothing else is said. */
export const make = (
  backend: EvmProtocol.EvmBackend,
  serving: Serving = EvmOperations.serving
): TradingEvm["Service"] => {
  const methods = EvmProtocol.makeMethods(EvmOperations.makeOperations(serving), "TradingEvm", "trading-node", backend)
  const gasPriceFor = Effect.fn("TradingEvm.gasPriceFor")(function*(account: Account) {
    return yield* (yield* methods.usingBigBlocks(account)) ? methods.bigBlockGasPrice() : methods.gasPrice()
  })
  return TradingEvm.of({
    ...methods,
    serving,
    relay: EvmProtocol.relay(backend),
    gasPriceFor,
    transactionCost: ({ address, gasLimit }) =>
      Effect.map(gasPriceFor({ address }), (price) => Gas.cost({ gasPrice: price, gasLimit }))
  })
}
