/** `POST /evm`: JSON-RPC of the trading chain's EVM. */
import { evmMethods } from "@trigate/domain/EvmOperations"
import { PayloadTooLarge } from "@trigate/domain/RequestError"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import { orBatch, RpcAnswer, rpcCall } from "./JsonRpcSchema.ts"
import { Problems } from "./Problems.ts"

/** A call of the route, as the documents show it. */
export const evmCall = rpcCall(evmMethods)

export class EvmApi extends HttpApiGroup.make("evm").add(
  HttpApiEndpoint.post("rpc", "/evm", {
    disableCodecs: true,
    payload: orBatch(evmCall),
    success: orBatch(RpcAnswer),
    error: PayloadTooLarge
  }).annotateMerge(OpenApi.annotations({
    summary: "JSON-RPC of the trading chain's EVM",
    description:
      "Single calls and batches. Errors are JSON-RPC errors with HTTP 200; `error.data` carries the typed error. State " +
      "is read at `latest` only: the real node silently answers latest state for any other block, so it is refused."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "EVM",
  description: `JSON-RPC of the trading chain: ${evmMethods.map((each) => each.name).join(", ")}`
})) {}
