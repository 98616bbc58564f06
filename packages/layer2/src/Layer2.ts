/** An EVM layer 2: its relayed JSON-RPC, receipts, and waiting for one. */
import { decodeValue, faultsOf, invalidRequest, parseRequest } from "@trigate/domain/Decode"
import type { CommonFailure } from "@trigate/domain/GatewayError"
import * as JsonRpc from "@trigate/domain/JsonRpc"
import * as JsonText from "@trigate/domain/JsonText"
import type { Layer2Operation } from "@trigate/domain/Layer2Operations"
import { layer2Operations } from "@trigate/domain/Layer2Operations"
import type { OnceOperation, Operation, Request, Surface } from "@trigate/domain/Operation"
import { sourcesOn, unavailableOnNode } from "@trigate/domain/Operation"
import type { Receipt } from "@trigate/domain/Receipt"
import * as RpcParams from "@trigate/domain/RpcParams"
import type { OutcomeUnknown } from "@trigate/domain/UpstreamError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { PassingFailure, ReceiptTimeout } from "./ReceiptTimeout.ts"
import * as ReceiptWait from "./ReceiptWait.ts"

/** A call to relay: `params` is raw JSON text and goes out as it is; `surface` is the one of ours that was asked. */
export interface RelayCall {
  readonly operation: Layer2Operation
  readonly params: string
  readonly surface: Surface
}

/** A request for a receipt that was checked. */
export interface ReceiptCall {
  readonly params: string
  readonly request: Request<typeof layer2Operations.getTransactionReceipt>
}

/** A further read, whose params were checked to be some. */
export interface ReadCall {
  readonly operation: Operation<string, "read">
  readonly params: string
}

/** A call that was checked and is sent at most once. */
export interface OnceCall {
  readonly operation: OnceOperation
  readonly params: string
}

/** Sends the params of a call to a layer 2 and gives its answer: the one thing in which the layers differ. */
export interface Transport {
  readonly receipt: (call: ReceiptCall) => Effect.Effect<JsonRpc.RpcAnswer, CommonFailure>
  readonly read: (call: ReadCall) => Effect.Effect<JsonRpc.RpcAnswer, CommonFailure>
  readonly once: (call: OnceCall) => Effect.Effect<JsonRpc.RpcAnswer, CommonFailure | OutcomeUnknown>
}

/** An EVM layer 2. */
export class Layer2 extends Context.Service<Layer2, {
  /**
   * Relays a call; params that do not decode are refused before anything is sent.
   *
   * A transaction is sent at most once; `OutcomeUnknown` means that it may have been taken.
   */
  readonly relay: (call: RelayCall) => Effect.Effect<JsonRpc.RpcAnswer, CommonFailure | OutcomeUnknown>
  /** The receipt of a transaction; `null` while it is unknown or not yet in a block. */
  readonly getTransactionReceipt: (
    request: Request<typeof layer2Operations.getTransactionReceipt>
  ) => Effect.Effect<Receipt | null, CommonFailure>
  /**
   * Polls until the receipt is there.
   *
   * A poll that the upstream failed is a poll without an answer; a refusal that asking again cannot change
   * (`InvalidRequest`, `UnsupportedMethod`, `ChainNotConfigured`, …) ends the waiting.
   */
  readonly waitForReceipt: (
    options: ReceiptWait.WaitOptions
  ) => Effect.Effect<Receipt, Exclude<CommonFailure, PassingFailure> | ReceiptTimeout>
}>()("@trigate/layer2/Layer2") {}

const { getTransactionReceipt } = layer2Operations

/** The service over a transport; live, memory and sandbox layers hand in theirs. */
export const make = ({ once, read, receipt }: Transport): Layer2["Service"] => {
  const encodeParams = Schema.encodeEffect(getTransactionReceipt.request)
  const decodeHash = decodeValue(getTransactionReceipt.request, ["params"])
  const decodeParams = RpcParams.reader()
  const readReceipt = JsonRpc.readerOf(getTransactionReceipt)

  const relay = Effect.fnUntraced(function*({ operation, params, surface }: RelayCall) {
    if (sourcesOn(operation, surface).length === 0) return yield* unavailableOnNode(operation)
    const value = yield* parseRequest(params)
    if (operation.name === getTransactionReceipt.name) {
      return yield* receipt({ params, request: yield* decodeHash(value) })
    }
    yield* decodeParams(operation, value)
    return yield* operation.class === "once" ? once({ operation, params }) : read({ operation, params })
  })

  const getReceipt = Effect.fn("Layer2.getTransactionReceipt")(function*(
    request: Request<typeof getTransactionReceipt>
  ) {
    const params = yield* Effect.mapError(encodeParams(request), (error) => invalidRequest(faultsOf(error)))
    return yield* readReceipt("layer2", yield* receipt({ params: JsonText.stringify(params), request }))
  })

  return Layer2.of({
    relay,
    getTransactionReceipt: getReceipt,
    waitForReceipt: (options) => ReceiptWait.wait(getReceipt, options)
  })
}
