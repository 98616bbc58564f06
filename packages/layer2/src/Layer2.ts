/** An EVM layer 2: its relayed JSON-RPC, receipts, and waiting for one. */
import type { CommonFailure } from "@trigate/domain/GatewayError"
import { layer2Operations } from "@trigate/domain/Layer2Operations"
import type { Request } from "@trigate/domain/Operation"
import * as EvmProtocol from "@trigate/domain/protocol/EvmProtocol"
import type { RpcAnswer } from "@trigate/domain/protocol/JsonRpc"
import type { Receipt } from "@trigate/domain/Receipt"
import type { UnsupportedBlock } from "@trigate/domain/RequestError"
import type { Start } from "@trigate/domain/Start"
import type { OutcomeUnknown } from "@trigate/domain/UpstreamError"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ReceiptTimeout, TransientFailure } from "./ReceiptTimeout.ts"
import * as ReceiptWait from "./ReceiptWait.ts"

/** An EVM layer 2. */
export class Layer2 extends Context.Service<Layer2, {
  /**
   * Relays a call; params that do not decode are refused before anything is sent.
   *
   * A transaction is sent at most once; `OutcomeUnknown` means that it may have been taken.
   */
  readonly relay: (
    call: EvmProtocol.EvmCall
  ) => Effect.Effect<RpcAnswer, CommonFailure | OutcomeUnknown | UnsupportedBlock>
  /** Starts the relay of a read. */
  readonly start: (call: EvmProtocol.EvmCall) => Start<RpcAnswer, CommonFailure>
  /** The receipt of a transaction; `null` while it is unknown or not yet in a block. */
  readonly getTransactionReceipt: (
    request: Request<typeof layer2Operations.getTransactionReceipt>
  ) => Effect.Effect<Receipt | null, CommonFailure>
  /**
   * Polls until the receipt is there.
   *
   * A poll that the upstream failed counts as a poll without an answer. A refusal that asking again cannot change
   * (`InvalidRequest`, `UnsupportedMethod`, `ChainNotConfigured`, …) ends the waiting.
   */
  readonly waitForReceipt: (
    options: ReceiptWait.WaitOptions
  ) => Effect.Effect<Receipt, Exclude<CommonFailure, TransientFailure> | ReceiptTimeout>
}>()("@trigate/layer2/Layer2") {}

const receiptOver = EvmProtocol.methodOf(layer2Operations.getTransactionReceipt)

/** The service over a backend. */
export const make = (backend: EvmProtocol.EvmBackend): Layer2["Service"] => {
  const getReceipt = receiptOver("Layer2", "layer2", (call) => backend.read({ ...call, surface: "gateway" }))
  return Layer2.of({
    relay: EvmProtocol.relay(backend),
    start: EvmProtocol.starting(backend),
    getTransactionReceipt: getReceipt,
    waitForReceipt: (options) => ReceiptWait.wait(getReceipt, options)
  })
}
