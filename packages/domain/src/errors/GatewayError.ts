/**
 * The closed set of errors that services raise, the server sends, and the client decodes: errors of the request, of the
 * caller, of signed actions, of resources and of upstreams.
 */
import * as ErrorReporter from "effect/ErrorReporter"
import * as Schema from "effect/Schema"
import { chains } from "../Caller.ts"
import { Address, Data, Millis } from "../encoding/Encoding.ts"
import { Problem, RetryAfter } from "./Problem.ts"

/**
 * The venue would refuse the nonce: it accepts nonces from 2 days before its current time to 1 day after.
 */
export class NonceOutOfWindow extends Problem<NonceOutOfWindow>()(
  "NonceOutOfWindow",
  { group: "fix-request", status: 422 },
  { nonce: Millis, now: Millis, earliest: Millis, latest: Millis }
) {}

/** The nonce inside the action differs from the nonce of the body. The venue refuses such a body: "Nonce mismatch.". */
export class NonceMismatch extends Problem<NonceMismatch>()(
  "NonceMismatch",
  { group: "fix-request", status: 422 },
  { nonce: Millis, actionNonce: Millis }
) {}

/**
 * This gateway has sent, or is sending, an action of this signer with this nonce; `detail` describes that action.
 *
 * After `OutcomeUnknown`, it is safe to send the identical bytes again.
 */
export class NonceAlreadyUsed extends Problem<NonceAlreadyUsed>()(
  "NonceAlreadyUsed",
  { group: "outcome-unknown", status: 409 },
  {
    signer: Address,
    nonce: Millis,
    settled: Schema.optionalKey(Schema.Literals(["accepted", "rejected"])).annotateKey({
      description: "The outcome of the earlier action, if that action has the same signed content and a known outcome"
    })
  }
) {}

/**
 * No signer can be recovered from the signature, the recovered signer is not the expected one, or the action was signed
 * for a different network.
 */
export class InvalidSignature extends Problem<InvalidSignature>()(
  "InvalidSignature",
  { group: "fix-request", status: 422 },
  {
    reason: Schema.String,
    recovered: Schema.optionalKey(Address),
    expected: Schema.optionalKey(Address)
  }
) {}

/** The signer is not on the allow-list of this gateway. */
export class SignerNotAllowed extends Problem<SignerNotAllowed>()(
  "SignerNotAllowed",
  { group: "fix-setup", status: 403 },
  { signer: Address }
) {}

/**
 * The guard's policy for the account refuses the action, and nothing was sent. `rule` is the member of the policy that
 * refuses it, `account` the account on which the action acts; `measured` and `limit` are in `unit`. `leg` is the entry of
 * the action's batch that is refused, counted from 0; it is absent if the whole action is refused.
 */
export class PolicyViolation extends Problem<PolicyViolation>()(
  "PolicyViolation",
  { group: "fix-request", status: 422 },
  {
    rule: Schema.String,
    policy: Schema.optionalKey(Schema.String),
    account: Schema.optionalKey(Address),
    measured: Schema.optionalKey(Schema.Finite),
    limit: Schema.optionalKey(Schema.Finite),
    unit: Schema.optionalKey(Schema.String),
    leg: Schema.optionalKey(Schema.Natural),
    retryAfter: Schema.optionalKey(RetryAfter)
  }
) {}

/**
 * The action log of this gateway does not contain the action: this gateway never sent it, or the log entry has expired.
 */
export class ActionNotFound extends Problem<ActionNotFound>()(
  "ActionNotFound",
  { group: "fix-request", status: 404 },
  {}
) {}

/** This gateway does not record candle history. `setting` is the variable that enables recording. */
export class ArchiveNotConfigured extends Problem<ArchiveNotConfigured>()(
  "ArchiveNotConfigured",
  { group: "fix-setup", status: 501 },
  { setting: Schema.String }
) {}

/**
 * The candle archive is unavailable.
 *
 * - `away`: the database currently cannot be reached or written;
 * - `newer`: a later version of this program has changed the database; this version neither reads nor writes it;
 * - `damaged`: the database contains data that this program cannot have written.
 */
export class ArchiveUnavailable extends Problem<ArchiveUnavailable>()(
  "ArchiveUnavailable",
  { group: "retry-later", status: 503 },
  { reason: Schema.Literals(["away", "newer", "damaged"]) }
) {}

/** The caller's key is missing, malformed, unknown, expired or revoked. */
export class Unauthorized extends Problem<Unauthorized>()(
  "Unauthorized",
  { group: "fix-setup", status: 401 },
  {}
) {}

/**
 * The caller lacks the permission `needed`. `missing` names the list to which the operator would add `needed`: a list in
 * the key's scope, or the list of web origins that are allowed to sign and send.
 */
export class NotPermitted extends Problem<NotPermitted>()(
  "NotPermitted",
  { group: "fix-setup", status: 403 },
  { missing: Schema.Literals(["chains", "classes", "operations", "signers", "origins"]), needed: Schema.String }
) {}

/** The caller has used up its quota, or its share of an upstream's rate limit. Retry after `retryAfter` seconds. */
export class QuotaExceeded extends Problem<QuotaExceeded>()(
  "QuotaExceeded",
  { group: "retry-later", status: 429 },
  { retryAfter: RetryAfter }
) {}

/** The gateway is overloaded and did not start the request: nothing was read or sent. Retry after `retryAfter` seconds. */
export class Overloaded extends Problem<Overloaded>()(
  "Overloaded",
  { group: "retry-later", status: 503 },
  { retryAfter: RetryAfter }
) {}

/** The address is not the master contract of a fungible token. `contractType` is the type of the contract found. */
export class TokenNotFound extends Problem<TokenNotFound>()(
  "TokenNotFound",
  { group: "fix-request", status: 404 },
  { address: Schema.String, contractType: Schema.String }
) {}

/**
 * The venue does not list the coin. The venue itself responds with HTTP 500 and `null`, which client libraries would
 * retry.
 */
export class UnknownAsset extends Problem<UnknownAsset>()(
  "UnknownAsset",
  { group: "fix-request", status: 404 },
  { coin: Schema.String }
) {}

/**
 * The node cannot return the account's transactions that follow the position `after`. The node does not know this
 * position, its pages of transactions are not contiguous, or too many pages follow the position.
 * To resume at a different node, pass `after` as the position.
 */
export class HistoryUnavailable extends Problem<HistoryUnavailable>()(
  "HistoryUnavailable",
  { group: "fix-request", status: 410 },
  { address: Schema.String, after: Schema.String }
) {}

/** One mistake in a request: its path and a description. */
export const RequestFault = Schema.Struct({
  path: Schema.Array(Schema.Union([Schema.String, Schema.Int])),
  message: Schema.String
}).annotate({ identifier: "RequestFault" })
export type RequestFault = typeof RequestFault.Type

/** The request does not match its schema: a missing field, a wrong type or range, a duplicate key, not JSON. */
export class InvalidRequest extends Problem<InvalidRequest>()(
  "InvalidRequest",
  { group: "fix-request", status: 400 },
  { errors: Schema.Array(RequestFault) }
) {}

/**
 * This gateway does not relay actions of this type; `supported` lists the relayed types.
 *
 * The status is 422, because client libraries retry after 400.
 */
export class UnsupportedAction extends Problem<UnsupportedAction>()(
  "UnsupportedAction",
  { group: "fix-request", status: 422 },
  { actionType: Schema.String, supported: Schema.Array(Schema.String) }
) {}

/** This route does not relay this JSON-RPC method. */
export class UnsupportedMethod extends Problem<UnsupportedMethod>()(
  "UnsupportedMethod",
  { group: "fix-request", status: 404 },
  { method: Schema.String }
) {}

/** The blocks whose state nodes of HyperEVM can return even without history. */
export const StateBlock = Schema.Literals(["latest", "pending"])

/** A block whose state nodes of HyperEVM can return even without history. */
export type StateBlock = typeof StateBlock.Type

/**
 * The request reads state at a block that is not in `supported`. A node without history would return the latest state
 * instead.
 *
 * A gateway over archive nodes serves any block if `TRIGATE_TRADING_NODE_ARCHIVE` is set.
 */
export class UnsupportedBlock extends Problem<UnsupportedBlock>()(
  "UnsupportedBlock",
  { group: "fix-request", status: 400 },
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
  { group: "fix-request", status: 422 },
  { requested: Schema.Natural, served: Schema.Natural }
) {}

/** The operation was requested on a node route, but only the venue's API serves it. */
export class UnavailableOnNode extends Problem<UnavailableOnNode>()(
  "UnavailableOnNode",
  { group: "fix-setup", status: 501, title: "Unavailable on a node" },
  { operation: Schema.String, availableOn: Schema.Array(Schema.String) }
) {}

/** This gateway has no upstream URL for the chain. */
export class ChainNotConfigured extends Problem<ChainNotConfigured>()(
  "ChainNotConfigured",
  { group: "fix-setup", status: 501 },
  { chain: Schema.Literals(chains) }
) {}

/** A token-chain address has an invalid form, checksum or workchain. */
export class InvalidAddress extends Problem<InvalidAddress>()(
  "InvalidAddress",
  { group: "fix-request", status: 400 },
  { address: Schema.String, reason: Schema.String }
) {}

/** The request is larger than `limit` bytes after decompression. */
export class PayloadTooLarge extends Problem<PayloadTooLarge>()(
  "PayloadTooLarge",
  { group: "fix-request", status: 413 },
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
  SignerNotAllowed,
  PolicyViolation
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
 * import type { AnySignedAction } from "@trigate/domain/actions/Action"
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

const upstream = Schema.String.annotate({ description: "Label of the upstream: trading-api, trading-node, …" })

/** Nothing was sent, or a read failed at every upstream URL. It is safe to retry after `retryAfter` seconds. */
export class UpstreamUnavailable extends Problem<UpstreamUnavailable>()(
  "UpstreamUnavailable",
  { group: "retry-later", status: 503 },
  { upstream, retryAfter: Schema.optionalKey(RetryAfter), attempts: Schema.Natural }
) {}

/** The upstream's rate limit is exhausted. Retry after `retryAfter` seconds, if present. */
export class UpstreamRateLimited extends Problem<UpstreamRateLimited>()(
  "UpstreamRateLimited",
  { group: "retry-later", status: 429 },
  { upstream, retryAfter: Schema.optionalKey(RetryAfter) }
) {}

/**
 * The upstream refuses the gateway itself with HTTP 401 or 403, because of the gateway's endpoint key, plan or IP
 * address. Retries fail until the operator changes the gateway's settings or the account at the provider.
 */
export class UpstreamForbidden extends Problem<UpstreamForbidden>()(
  "UpstreamForbidden",
  { group: "fix-setup", status: 502 },
  { upstream }
) {}

/**
 * The contract reverted the call. The same call would revert again in the same state. `data` is the contract's return
 * data in 0x hex: an ABI-encoded error.
 */
export class CallReverted extends Problem<CallReverted>()(
  "CallReverted",
  { group: "fix-request", status: 422 },
  { upstream, code: Schema.Int, data: Schema.optionalKey(Data) }
) {}

/** A read, including the response's body, did not finish within `deadline` milliseconds. */
export class UpstreamTimeout extends Problem<UpstreamTimeout>()(
  "UpstreamTimeout",
  { group: "retry-later", status: 504 },
  { upstream, deadline: Schema.Natural }
) {}

/** The upstream's response cannot be decoded: HTML, a truncated body, a wrong ID, or a wrong shape. */
export class UpstreamMalformed extends Problem<UpstreamMalformed>()(
  "UpstreamMalformed",
  { group: "retry-later", status: 502 },
  { upstream, issue: Schema.String }
) {}

/** The errors that a valid call can fail with because of its upstream. */
export const upstreamReasons = [
  UpstreamUnavailable,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamMalformed,
  UpstreamForbidden
] as const
export type UpstreamReason = (typeof upstreamReasons)[number]["Type"]

/**
 * The upstream did not serve the call; `reason` is the error. No state was changed.
 *
 * `group` indicates what to do; `retryAfter` is the number of seconds to wait, if the reason contains it. Over HTTP and
 * JSON-RPC, only the reason is sent.
 *
 * @since 0.1.0
 * @category errors
 * @example
 * ```ts
 * import { Info } from "@trigate/trading/Info"
 * import * as Effect from "effect/Effect"
 *
 * export const mids = Effect.gen(function*() {
 *   const info = yield* Info
 *   return yield* info.allMids()
 * }).pipe(
 *   Effect.catchReason("UpstreamError", "UpstreamRateLimited", ({ retryAfter }) => Effect.succeed({ retryAfter })),
 *   Effect.catchTag("UpstreamError", ({ retryAfter }) => Effect.succeed({ retryAfter }))
 * )
 * ```
 */
export class UpstreamError extends Schema.TaggedError<UpstreamError>()("UpstreamError", {
  reason: Schema.Union(upstreamReasons)
}) {
  override get message(): string {
    return this.reason.message
  }
  /** The error group of `reason`. */
  get group(): UpstreamReason["group"] {
    return this.reason.group
  }
  /** Seconds to wait before a retry; `undefined` if unknown. */
  get retryAfter(): number | undefined {
    return "retryAfter" in this.reason ? this.reason.retryAfter : undefined
  }
  override get [ErrorReporter.ignore](): boolean {
    return ErrorReporter.isIgnored(this.reason)
  }
}

/**
 * A call that changes state failed after at least one of its bytes may have reached the upstream. The call may have
 * taken effect.
 *
 * It is safe to send the identical bytes again: a "duplicate nonce" response means that the first attempt was accepted.
 * Do not sign the action again with a new nonce: both actions could execute.
 */
export class OutcomeUnknown extends Problem<OutcomeUnknown>()(
  "OutcomeUnknown",
  { group: "outcome-unknown", status: 504 },
  {
    upstream,
    nonce: Schema.optionalKey(Millis),
    signer: Schema.optionalKey(Address),
    advice: Schema.String
  }
) {}

/**
 * The failures of a read: no upstream URL responded, the rate limit or the deadline was exceeded, or the response does
 * not decode.
 */
export const ReadFailure = Schema.Union([
  UpstreamUnavailable,
  UpstreamRateLimited,
  QuotaExceeded,
  UpstreamTimeout,
  UpstreamMalformed
])
export type ReadFailure = typeof ReadFailure.Type

/** The failures of a call that is sent at most once: either the call was not sent, or its outcome is unknown. */
export const OnceFailure = Schema.Union([UpstreamUnavailable, UpstreamRateLimited, QuotaExceeded, OutcomeUnknown])
export type OnceFailure = typeof OnceFailure.Type

/** All error classes of the gateway, in the order of the table in docs/errors.md. */
export const gatewayErrors = [
  InvalidRequest,
  UnsupportedAction,
  UnsupportedMethod,
  UnsupportedBlock,
  LogRangeTooWide,
  UnavailableOnNode,
  ChainNotConfigured,
  NonceOutOfWindow,
  NonceMismatch,
  NonceAlreadyUsed,
  InvalidSignature,
  SignerNotAllowed,
  PolicyViolation,
  ActionNotFound,
  Unauthorized,
  NotPermitted,
  QuotaExceeded,
  Overloaded,
  InvalidAddress,
  TokenNotFound,
  UnknownAsset,
  HistoryUnavailable,
  ArchiveNotConfigured,
  ArchiveUnavailable,
  PayloadTooLarge,
  UpstreamUnavailable,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamMalformed,
  UpstreamForbidden,
  CallReverted,
  OutcomeUnknown
] as const

/** Any error of the gateway. Errors are distinguished by `_tag`; in JSON, also by the problem's `type`. */
export const GatewayError = Schema.Union(gatewayErrors)
export type GatewayError = typeof GatewayError.Type

/** The errors that every operation can fail with, and that a gateway forwards from an upstream gateway. */
export const upstreamFailures = [
  InvalidRequest,
  UnsupportedMethod,
  UnavailableOnNode,
  ChainNotConfigured,
  UpstreamUnavailable,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamMalformed,
  UpstreamForbidden
] as const

/** The errors that every operation can fail with, in an embedded service or through a gateway. */
export const commonFailures = [...upstreamFailures, QuotaExceeded] as const
export const CommonFailure = Schema.Union(commonFailures)
export type CommonFailure = typeof CommonFailure.Type

/**
 * The errors with which a gateway refuses a request because of its caller, the gateway's load or the request's size. Of
 * these, an embedded service raises only `QuotaExceeded` and, for signed actions, `NotPermitted`.
 */
export const callerFailures = [Unauthorized, NotPermitted, QuotaExceeded, Overloaded, PayloadTooLarge] as const

/** The errors that every operation can fail with through a gateway. */
export const servedFailures = [...upstreamFailures, ...callerFailures] as const
export const ServedFailure = Schema.Union(servedFailures)
export type ServedFailure = typeof ServedFailure.Type

/**
 * Type-level {@link wrapReason}: an error that can be the `reason` of an `UpstreamError` or a `RequestError` becomes
 * that wrapper; any other error is unchanged.
 */
export type WrapReason<E> = E extends UpstreamReason ? UpstreamError : E extends RequestReason ? RequestError : E

/**
 * Type-level {@link unwrapReason}: an `UpstreamError` or a `RequestError` becomes its reason; any other error is
 * unchanged.
 */
export type UnwrapReason<E> = E extends UpstreamError | RequestError ? E["reason"] : E

/** The errors that every method of a service or of the client can fail with. */
export type CallFailure = WrapReason<ServedFailure>

/** Any error of the gateway, directly or as the `reason` of an `UpstreamError` or a `RequestError`. */
export type CallError = GatewayError | UpstreamError | RequestError

const isUpstreamReason = Schema.is(Schema.Union(upstreamReasons))
const isRequestReason = Schema.is(Schema.Union(requestReasons))
const isWrapped = Schema.is(Schema.Union([UpstreamError, RequestError]))

/** Wraps an error that can be the `reason` of an `UpstreamError` or `RequestError`. Returns other errors unchanged. */
export function wrapReason<E>(error: E): WrapReason<E>
// the compiler does not evaluate a conditional type on a type parameter
export function wrapReason(error: unknown): unknown {
  if (isUpstreamReason(error)) return new UpstreamError({ reason: error })
  return isRequestReason(error) ? new RequestError({ reason: error }) : error
}

/** Returns the reason of an `UpstreamError` or a `RequestError`, and any other error unchanged. */
export function unwrapReason<E>(error: E): UnwrapReason<E>
export function unwrapReason(error: unknown): unknown {
  return isWrapped(error) ? error.reason : error
}

/**
 * The JSON-RPC code of each error (JSON-RPC 2.0, EIP-1474). Errors that no JSON-RPC route raises have -32603.
 *
 * Client libraries retry automatically after -32603 and -32005. `OutcomeUnknown` has a code after which no library
 * retries, because the sender has to decide: if the transaction was accepted, a retry fails with "nonce too low", which
 * looks like a refusal.
 */
export const rpcCodes: { readonly [Tag in GatewayError["_tag"]]: number } = {
  InvalidRequest: -32602,
  UnsupportedAction: -32603,
  UnsupportedMethod: -32601,
  UnsupportedBlock: -32602,
  LogRangeTooWide: -32005,
  UnavailableOnNode: -32004,
  ChainNotConfigured: -32004,
  NonceOutOfWindow: -32603,
  NonceMismatch: -32603,
  NonceAlreadyUsed: -32603,
  InvalidSignature: -32603,
  SignerNotAllowed: -32603,
  PolicyViolation: -32603,
  ActionNotFound: -32603,
  Unauthorized: -32001,
  NotPermitted: -32001,
  QuotaExceeded: -32005,
  Overloaded: -32005,
  InvalidAddress: -32602,
  TokenNotFound: -32603,
  UnknownAsset: -32603,
  HistoryUnavailable: -32603,
  ArchiveNotConfigured: -32004,
  ArchiveUnavailable: -32603,
  PayloadTooLarge: -32600,
  UpstreamUnavailable: -32603,
  UpstreamRateLimited: -32005,
  UpstreamTimeout: -32603,
  UpstreamMalformed: -32603,
  UpstreamForbidden: -32004,
  CallReverted: 3,
  OutcomeUnknown: -32050
}
