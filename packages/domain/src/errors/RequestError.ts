/**
 * Errors of requests that the gateway refuses because of their content or their caller, or because of its own
 * configuration. Nothing was sent to an upstream.
 */
import * as ErrorReporter from "effect/ErrorReporter"
import * as Schema from "effect/Schema"
import { InvalidSignature, NonceAlreadyUsed, NonceMismatch, SignerNotAllowed } from "../actions/ActionError.ts"
import { chains } from "../Chain.ts"
import { NotPermitted, Overloaded, QuotaExceeded, Unauthorized } from "./CallerError.ts"
import { Problem } from "./Problem.ts"

/** One mistake in a request: its path and a description. */
export const RequestFault = Schema.Struct({
  path: Schema.Array(Schema.Union([Schema.String, Schema.Int])),
  message: Schema.String
}).annotate({ identifier: "RequestFault" })
export type RequestFault = typeof RequestFault.Type

/** The request does not match its schema: a missing field, a wrong type or range, a duplicate key, not JSON. */
export class InvalidRequest extends Problem<InvalidRequest>()(
  "InvalidRequest",
  { group: "fix-request", status: 400, title: "Invalid request" },
  { errors: Schema.Array(RequestFault) }
) {}

/**
 * This gateway does not relay actions of this type; `supported` lists the relayed types.
 *
 * The status is 422, because client libraries retry after 400.
 */
export class UnsupportedAction extends Problem<UnsupportedAction>()(
  "UnsupportedAction",
  { group: "fix-request", status: 422, title: "Unsupported action" },
  { actionType: Schema.String, supported: Schema.Array(Schema.String) }
) {}

/** This route does not relay this JSON-RPC method. */
export class UnsupportedMethod extends Problem<UnsupportedMethod>()(
  "UnsupportedMethod",
  { group: "fix-request", status: 404, title: "Unsupported method" },
  { method: Schema.String }
) {}

/** The blocks whose state nodes of the trading chain can return even without history. */
export const StateBlock = Schema.Literals(["latest", "pending"])

/** A block whose state nodes of the trading chain can return even without history. */
export type StateBlock = typeof StateBlock.Type

/**
 * The request reads state at a block that is not in `supported`. A node without history would return the latest state
 * instead.
 *
 * A gateway over archive nodes serves any block if `TRIGATE_TRADING_NODE_ARCHIVE` is set.
 */
export class UnsupportedBlock extends Problem<UnsupportedBlock>()(
  "UnsupportedBlock",
  { group: "fix-request", status: 400, title: "Unsupported block" },
  {
    method: Schema.String,
    block: Schema.String,
    supported: Schema.Array(StateBlock)
  }
) {}

/**
 * The logs of this block range would require more upstream requests, logs or bytes than the gateway allows for one
 * query.
 *
 * `requested` is the number of blocks in the query; `served` is the maximum for one query at this upstream.
 */
export class LogRangeTooWide extends Problem<LogRangeTooWide>()(
  "LogRangeTooWide",
  { group: "fix-request", status: 422, title: "Log range too wide" },
  { requested: Schema.Natural, served: Schema.Natural }
) {}

/** The operation was requested on a node route, but only the official API serves it. */
export class UnavailableOnNode extends Problem<UnavailableOnNode>()(
  "UnavailableOnNode",
  { group: "fix-setup", status: 501, title: "Unavailable on a node" },
  { operation: Schema.String, availableOn: Schema.Array(Schema.String) }
) {}

/** This gateway has no upstream URL for the chain. */
export class ChainNotConfigured extends Problem<ChainNotConfigured>()(
  "ChainNotConfigured",
  { group: "fix-setup", status: 501, title: "Chain not configured" },
  { chain: Schema.Literals(chains) }
) {}

/** A token-chain address has an invalid form, checksum or workchain. */
export class InvalidAddress extends Problem<InvalidAddress>()(
  "InvalidAddress",
  { group: "fix-request", status: 400, title: "Invalid address" },
  { address: Schema.String, reason: Schema.String }
) {}

/** The request is larger than `limit` bytes after decompression. */
export class PayloadTooLarge extends Problem<PayloadTooLarge>()(
  "PayloadTooLarge",
  { group: "fix-request", status: 413, title: "Payload too large" },
  { limit: Schema.Natural }
) {}

/**
 * The errors that a request can fail with before it is sent: because of its content, its caller, or the gateway's
 * configuration.
 */
export const requestReasons = [
  InvalidRequest,
  UnsupportedMethod,
  UnsupportedAction,
  ChainNotConfigured,
  PayloadTooLarge,
  Unauthorized,
  NotPermitted,
  QuotaExceeded,
  Overloaded,
  NonceMismatch,
  NonceAlreadyUsed,
  InvalidSignature,
  SignerNotAllowed
] as const
export type RequestReason = (typeof requestReasons)[number]["Type"]

/**
 * The request was refused, and nothing was sent; `reason` is the error.
 *
 * `group` indicates what to do. If `group` is `outcome-unknown`, the reason is `NonceAlreadyUsed`: an action with this
 * nonce was sent before, so do not assume that this action failed. Over HTTP and JSON-RPC, only the reason is sent.
 *
 * @since 0.1.0
 * @category errors
 * @example
 * ```ts
 * import type { AnySignedAction } from "@trigate/domain/actions/SignedAction"
 * import { Exchange } from "@trigate/trading/Exchange"
 * import * as Effect from "effect/Effect"
 *
 * export const submit = Effect.fn(function*(signed: AnySignedAction) {
 *   const exchange = yield* Exchange
 *   return yield* exchange.submit(signed)
 * }, Effect.catchReasons("RequestError", {
 *   NonceAlreadyUsed: ({ settled = "sent" }) => Effect.succeed(settled),
 *   QuotaExceeded: ({ retryAfter }) => Effect.succeed(retryAfter)
 * }))
 * ```
 */
export class RequestError extends Schema.TaggedError<RequestError>()("RequestError", {
  reason: Schema.Union(requestReasons)
}) {
  override get message(): string {
    return this.reason.message
  }
  /** The error group of `reason`. */
  get group(): RequestReason["group"] {
    return this.reason.group
  }
  /** Seconds to wait before a retry; `undefined` if a retry does not help. */
  get retryAfter(): number | undefined {
    return "retryAfter" in this.reason ? this.reason.retryAfter : undefined
  }
  override get [ErrorReporter.ignore](): boolean {
    return ErrorReporter.isIgnored(this.reason)
  }
}
