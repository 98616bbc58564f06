/** `POST /l2`: JSON-RPC of an EVM layer 2. */
import { layer2Methods } from "@trigate/domain/Layer2Operations"
import { PayloadTooLarge } from "@trigate/domain/RequestError"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import { orBatch, RpcAnswer, rpcCall } from "./JsonRpcSchema.ts"
import { Problems } from "./Problems.ts"

/** A call of the route, as the documents show it. */
export const layer2Call = rpcCall(layer2Methods)

export class Layer2Api extends HttpApiGroup.make("layer2").add(
  HttpApiEndpoint.post("rpc", "/l2", {
    disableCodecs: true,
    payload: orBatch(layer2Call),
    success: orBatch(RpcAnswer),
    error: PayloadTooLarge
  }).annotateMerge(OpenApi.annotations({
    summary: "JSON-RPC of an EVM layer 2",
    description:
      "Single calls and batches. Receipts pass through whole, with the fields that each family of layer 2 adds; an " +
      "unknown or not yet mined transaction is `result: null`."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Layer 2",
  description: `JSON-RPC of an EVM layer 2: ${layer2Methods.map((each) => each.name).join(", ")}`
})) {}
