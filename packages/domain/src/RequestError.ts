/** Refusals that look at the request alone: nothing was sent to an upstream. */
import * as HttpApiError from "effect/http-api/HttpApiError"
import * as Schema from "effect/Schema"
import { declare, tagged } from "./Problem.ts"

/** One fault of a request: where it is and what is wrong there. */
export const RequestFault = Schema.Struct({
  path: Schema.Array(Schema.Union([Schema.String, Schema.Int])),
  message: Schema.String
}).annotate({ identifier: "RequestFault" })
export type RequestFault = typeof RequestFault.Type

/** The request has the wrong shape: a field missing or of the wrong type, a range, a duplicate key, not JSON at all. */
export class InvalidRequest extends HttpApiError.Problem<InvalidRequest>()(
  "InvalidRequest",
  declare("InvalidRequest", 400, "Invalid request"),
  { ...tagged("InvalidRequest"), errors: Schema.Array(RequestFault) }
) {}

/** The action type is outside the set that this gateway relays. */
export class UnsupportedAction extends HttpApiError.Problem<UnsupportedAction>()(
  "UnsupportedAction",
  declare("UnsupportedAction", 400, "Unsupported action"),
  { ...tagged("UnsupportedAction"), actionType: Schema.String, supported: Schema.Array(Schema.String) }
) {}

/** The JSON-RPC method is outside the set that this route relays. */
export class UnsupportedMethod extends HttpApiError.Problem<UnsupportedMethod>()(
  "UnsupportedMethod",
  declare("UnsupportedMethod", 404, "Unsupported method"),
  { ...tagged("UnsupportedMethod"), method: Schema.String }
) {}

/** A block by name, of which a node of the trading chain tells the state. */
export const StateBlock = Schema.Literals(["latest", "pending"])

/** See {@link StateBlock}. */
export type StateBlock = typeof StateBlock.Type

/** State of the trading chain asked for at a block that is not `supported`, which real nodes answer with latest state. */
export class UnsupportedBlock extends HttpApiError.Problem<UnsupportedBlock>()(
  "UnsupportedBlock",
  declare("UnsupportedBlock", 400, "Unsupported block"),
  {
    ...tagged("UnsupportedBlock"),
    method: Schema.String,
    block: Schema.String,
    supported: Schema.Array(StateBlock)
  }
) {}

/** The operation exists only on the official API and was asked of a node address. */
export class UnavailableOnNode extends HttpApiError.Problem<UnavailableOnNode>()(
  "UnavailableOnNode",
  declare("UnavailableOnNode", 501, "Unavailable on a node"),
  { ...tagged("UnavailableOnNode"), operation: Schema.String, availableOn: Schema.Array(Schema.String) }
) {}

/** No upstream address is configured for the chain. */
export class ChainNotConfigured extends HttpApiError.Problem<ChainNotConfigured>()(
  "ChainNotConfigured",
  declare("ChainNotConfigured", 501, "Chain not configured"),
  { ...tagged("ChainNotConfigured"), chain: Schema.Literals(["trading", "tokens", "layer2"]) }
) {}

/** A token-chain address with a bad checksum, form or workchain. */
export class InvalidAddress extends HttpApiError.Problem<InvalidAddress>()(
  "InvalidAddress",
  declare("InvalidAddress", 400, "Invalid address"),
  { ...tagged("InvalidAddress"), address: Schema.String, reason: Schema.String }
) {}

/** The request is larger than `limit` bytes, counted after decompression. */
export class PayloadTooLarge extends HttpApiError.Problem<PayloadTooLarge>()(
  "PayloadTooLarge",
  declare("PayloadTooLarge", 413, "Payload too large"),
  { ...tagged("PayloadTooLarge"), limit: Schema.Natural }
) {}
