/** Why a request was refused by its own content. Nothing was sent to an upstream. */
import * as HttpApiError from "effect/http-api/HttpApiError"
import * as Schema from "effect/Schema"
import { declare, tagged } from "./Problem.ts"

/** One mistake in a request: its path and what is wrong there. */
export const RequestFault = Schema.Struct({
  path: Schema.Array(Schema.Union([Schema.String, Schema.Int])),
  message: Schema.String
}).annotate({ identifier: "RequestFault" })
export type RequestFault = typeof RequestFault.Type

/** The request does not match its schema: a missing field, a wrong type or range, a duplicate key, not JSON. */
export class InvalidRequest extends HttpApiError.Problem<InvalidRequest>()(
  "InvalidRequest",
  declare("InvalidRequest", 400, "Invalid request"),
  { ...tagged("InvalidRequest"), errors: Schema.Array(RequestFault) }
) {
  get group() {
    return "fix-request" as const
  }
}

/** This gateway does not relay actions of this type. */
export class UnsupportedAction extends HttpApiError.Problem<UnsupportedAction>()(
  "UnsupportedAction",
  declare("UnsupportedAction", 400, "Unsupported action"),
  { ...tagged("UnsupportedAction"), actionType: Schema.String, supported: Schema.Array(Schema.String) }
) {
  get group() {
    return "fix-request" as const
  }
}

/** This route does not relay this JSON-RPC method. */
export class UnsupportedMethod extends HttpApiError.Problem<UnsupportedMethod>()(
  "UnsupportedMethod",
  declare("UnsupportedMethod", 404, "Unsupported method"),
  { ...tagged("UnsupportedMethod"), method: Schema.String }
) {
  get group() {
    return "fix-request" as const
  }
}

/** The blocks whose state a node of the trading chain can read. */
export const StateBlock = Schema.Literals(["latest", "pending"])

/** See {@link StateBlock}. */
export type StateBlock = typeof StateBlock.Type

/** The request reads state at a block that is not `supported`. A real node would silently read the latest state. */
export class UnsupportedBlock extends HttpApiError.Problem<UnsupportedBlock>()(
  "UnsupportedBlock",
  declare("UnsupportedBlock", 400, "Unsupported block"),
  {
    ...tagged("UnsupportedBlock"),
    method: Schema.String,
    block: Schema.String,
    supported: Schema.Array(StateBlock)
  }
) {
  get group() {
    return "fix-request" as const
  }
}

/** The operation was requested from a node, and only the official API serves it. */
export class UnavailableOnNode extends HttpApiError.Problem<UnavailableOnNode>()(
  "UnavailableOnNode",
  declare("UnavailableOnNode", 501, "Unavailable on a node"),
  { ...tagged("UnavailableOnNode"), operation: Schema.String, availableOn: Schema.Array(Schema.String) }
) {
  get group() {
    return "fix-setup" as const
  }
}

/** This gateway has no upstream address for the chain. */
export class ChainNotConfigured extends HttpApiError.Problem<ChainNotConfigured>()(
  "ChainNotConfigured",
  declare("ChainNotConfigured", 501, "Chain not configured"),
  { ...tagged("ChainNotConfigured"), chain: Schema.Literals(["trading", "tokens", "layer2"]) }
) {
  get group() {
    return "fix-setup" as const
  }
}

/** The form, the checksum or the workchain of a token-chain address is wrong. */
export class InvalidAddress extends HttpApiError.Problem<InvalidAddress>()(
  "InvalidAddress",
  declare("InvalidAddress", 400, "Invalid address"),
  { ...tagged("InvalidAddress"), address: Schema.String, reason: Schema.String }
) {
  get group() {
    return "fix-request" as const
  }
}

/** The request is larger than `limit` bytes after decompression. */
export class PayloadTooLarge extends HttpApiError.Problem<PayloadTooLarge>()(
  "PayloadTooLarge",
  declare("PayloadTooLarge", 413, "Payload too large"),
  { ...tagged("PayloadTooLarge"), limit: Schema.Natural }
) {
  get group() {
    return "fix-request" as const
  }
}
