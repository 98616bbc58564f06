/** The service of an EVM layer 2: relayed JSON-RPC calls and receipts. */
import type { CallFailure } from "@trigate/domain/errors/GatewayError"
import type { UnsupportedBlock } from "@trigate/domain/errors/RequestError"
import type { OutcomeUnknown } from "@trigate/domain/errors/UpstreamError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import * as EvmStreams from "@trigate/domain/evm/EvmStreams"
import * as EvmTypedCalls from "@trigate/domain/evm/EvmTypedCalls"
import { layer2Operations, serving } from "@trigate/domain/evm/Layer2Operations"
import type { Receipt } from "@trigate/domain/evm/Receipt"
import type { RpcAnswer } from "@trigate/domain/operations/JsonRpc"
import type { Methods } from "@trigate/domain/operations/Operation"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ReceiptTimeout } from "./ReceiptTimeout.ts"
import * as ReceiptWait from "./ReceiptWait.ts"

/** The methods of the service. Typed methods are derived from the declared operations and subscriptions. */
export interface Layer2Methods
  extends Methods<typeof layer2Operations, CallFailure>, EvmStreams.Methods<EvmStreams.StreamFailure>
{
  /**
   * Relays a call. If its params are invalid, the call is refused and nothing is sent.
   *
   * A transaction is sent at most once; `OutcomeUnknown` means that the node might have accepted it.
   */
  readonly relay: (
    call: EvmProtocol.EvmCall
  ) => Effect.Effect<RpcAnswer, CallFailure | OutcomeUnknown | UnsupportedBlock>
  /**
   * Polls until the receipt exists.
   *
   * Polling continues after upstream failures. It stops at an error that a retry cannot change (`InvalidRequest`,
   * `UnsupportedMethod`, `ChainNotConfigured`, …).
   */
  readonly waitForReceipt: (
    options: ReceiptWait.WaitOptions
  ) => Effect.Effect<Receipt, CallFailure | ReceiptTimeout>
}

/**
 * An EVM layer 2, with a method for each of `layer2Operations` and `evmSubscriptions`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Layer2, Layer2Upstream } from "@trigate/layer2"
 * import { Console, Effect } from "effect"
 *
 * const hash = "0xffbd8fdbaf5800e2f7df0d5a73efee4fe8a9ef54d53f10798bbb76f7bb08c39e"
 *
 * const program = Layer2.Layer2.use(({ waitForReceipt }) => waitForReceipt({ hash })).pipe(
 *   Effect.flatMap(({ status }) => Console.log(status))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Layer2Upstream.layerFetch({ url: "http://localhost:8080/l2" })))
 * ```
 * ```text
 * success
 * ```
 */
export class Layer2 extends Context.Service<Layer2, Layer2Methods>()("@trigate/layer2/Layer2") {}

/** Makes the `Layer2` service over a backend. */
export const make = (backend: EvmProtocol.StreamingBackend): Layer2["Service"] => {
  const label = "layer2"
  const methods = EvmTypedCalls.makeMethods(layer2Operations, "Layer2", label, backend)
  return Layer2.of({
    ...methods,
    ...EvmStreams.make({ serving, label, methods, subscribe: backend.subscribe }),
    relay: EvmProtocol.relay(backend),
    waitForReceipt: (options) => ReceiptWait.wait(methods.getTransactionReceipt, options)
  })
}
