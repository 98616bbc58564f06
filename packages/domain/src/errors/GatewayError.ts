/** The closed set of errors that services raise, the server sends, and the client decodes. */
import * as Schema from "effect/Schema"
import {
  ActionNotFound,
  InvalidSignature,
  NonceAlreadyUsed,
  NonceMismatch,
  NonceOutOfWindow,
  SignerNotAllowed
} from "../actions/ActionError.ts"
import { ArchiveNotConfigured, ArchiveUnavailable } from "./ArchiveError.ts"
import { NotPermitted, Overloaded, QuotaExceeded, Unauthorized } from "./CallerError.ts"
import {
  ChainNotConfigured,
  InvalidAddress,
  InvalidRequest,
  LogRangeTooWide,
  PayloadTooLarge,
  RequestError,
  type RequestReason,
  requestReasons,
  UnavailableOnNode,
  UnsupportedAction,
  UnsupportedBlock,
  UnsupportedMethod
} from "./RequestError.ts"
import { HistoryUnavailable, TokenNotFound, UnknownAsset } from "./ResourceError.ts"
import {
  CallReverted,
  OutcomeUnknown,
  UpstreamError,
  UpstreamForbidden,
  UpstreamMalformed,
  UpstreamRateLimited,
  type UpstreamReason,
  upstreamReasons,
  UpstreamTimeout,
  UpstreamUnavailable
} from "./UpstreamError.ts"

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
