/** An EVM layer 2: its relayed JSON-RPC, receipts, and waiting for one. */
import { decodeValue, faultsOf, invalidRequest, parseRequest } from "@trigate/domain/Decode"
import type { CommonFailure } from "@trigate/domain/GatewayError"
import * as JsonRpc from "@trigate/domain/JsonRpc"
import * as JsonText from "@trigate/domain/JsonText"
import type { Layer2Operation } from "@trigate/domain/Layer2Operations"
import { layer2Operations } from "@trigate/domain/Layer2Operations"
import type { Request, Surface } from "@trigate/domain/Operation"
import { sourcesOn, unavailableOnNode } from "@trigate/domain/Operation"
import type { Receipt } from "@trigate/domain/Receipt"
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

/** A call that was checked: `request` is what its params mean. */
export interface CheckedCall extends Pick<RelayCall, "operation" | "params"> {
  readonly request: Request<Layer2Operation>
}

/** Sends the params of a call to a layer 2 and gives its answer: the one thing in which the layers differ. */
export type Transport = (call: CheckedCall) => Effect.Effect<JsonRpc.RpcAnswer, CommonFailure>

/** An EVM layer 2. */
export class Layer2 extends Context.Service<Layer2, {
  /** Relays a call; params that do not decode are refused before anything is sent. */
  readonly relay: (call: RelayCall) => Effect.Effect<JsonRpc.RpcAnswer, CommonFailure>
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
export const make = (transport: Transport): Layer2["Service"] => {
  const encodeParams = Schema.encodeEffect(getTransactionReceipt.request)
  const decodeParams = {
    eth_getTransactionReceipt: decodeValue(getTransactionReceipt.request, ["params"])
  } satisfies Record<Layer2Operation["name"], unknown>
  const readReceipt = JsonRpc.readerOf(getTransactionReceipt)

  const relay = ({ operation, params, surface }: RelayCall) =>
    sourcesOn(operation, surface).length === 0
      ? Effect.fail(unavailableOnNode(operation))
      : parseRequest(params).pipe(
        Effect.flatMap(decodeParams[operation.name]),
        Effect.flatMap((request) => transport({ operation, params, request }))
      )

  const getReceipt = Effect.fn("Layer2.getTransactionReceipt")(function*(
    request: Request<typeof getTransactionReceipt>
  ) {
    const params = yield* Effect.mapError(encodeParams(request), (error) => invalidRequest(faultsOf(error)))
    const answer = yield* relay({
      operation: getTransactionReceipt,
      params: JsonText.stringify(params),
      surface: "gateway"
    })
    return yield* readReceipt("layer2", answer)
  })

  return Layer2.of({
    relay,
    getTransactionReceipt: getReceipt,
    waitForReceipt: (options) => ReceiptWait.wait(getReceipt, options)
  })
}
