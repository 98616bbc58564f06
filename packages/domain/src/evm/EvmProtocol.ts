/** The JSON-RPC protocol of EVM nodes: validates and encodes calls, and classifies and decodes responses. */
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Json from "../encoding/Json.ts"
import * as Utf8 from "../encoding/Utf8.ts"
import { type CallFailure, type CommonFailure, wrapReason } from "../errors/GatewayError.ts"
import type { InvalidRequest } from "../errors/RequestError.ts"
import { type UnavailableOnNode, UnsupportedBlock } from "../errors/RequestError.ts"
import { type OutcomeUnknown, UpstreamUnavailable } from "../errors/UpstreamError.ts"
import * as JsonRpc from "../operations/JsonRpc.ts"
import type { RpcAnswer } from "../operations/JsonRpc.ts"
import { decodeValue, invalidRequest, sourcesOn, unavailableOnNode } from "../operations/Operation.ts"
import type { OnceOperation, Operation, Surface } from "../operations/Operation.ts"
import {
  answered,
  mismatched,
  ofForeign,
  outcomeUnknown,
  refused,
  responseFailure,
  retryable,
  unreadable
} from "../operations/Protocol.ts"
import type {
  AttemptResult,
  Backend,
  BatchAnswer,
  Question,
  ReadOperation,
  ReadProtocol
} from "../operations/Protocol.ts"
import type { UpstreamResponse } from "../operations/UpstreamResponse.ts"
import { archiveSetting } from "./EvmMethodTable.ts"
import type { Subscribe } from "./EvmSubscriptions.ts"
import { isLogRefusal, isOfSize, limitIn } from "./LogRefusal.ts"

/** A call to relay: its method, its params as received, and the `Surface` (group of routes) that received it. */
export interface EvmCall {
  readonly operation: ReadOperation | OnceOperation
  readonly params: Json.Json
  readonly surface: Surface
}

/** A read, with its params decoded as `request`. */
export interface CheckedRead extends EvmCall {
  readonly operation: ReadOperation
  readonly request: unknown
}

/** A call with decoded params that is sent at most once. */
export interface CheckedOnce extends EvmCall {
  readonly operation: OnceOperation
}

/** The backend of an EVM chain. */
export type EvmBackend = Backend<CheckedRead, CheckedOnce, RpcAnswer>

/** The backend of an EVM chain, including the chain's subscriptions. */
export interface StreamingBackend extends EvmBackend {
  readonly subscribe: Subscribe
}

const MAX_SHOWN = 128

/** The method whose queries a node may refuse because of their size. */
const logsMethod = "eth_getLogs"

/**
 * Refuses a block parameter that the method does not support. An absent parameter means `latest`.
 *
 * Without this check, nodes of the trading chain would silently return the latest state.
 */
export const checkBlock = (
  { blockParam, name }: Pick<Operation, "name" | "blockParam">,
  params: unknown
): Effect.Effect<void, UnsupportedBlock> => {
  const block: unknown = blockParam !== undefined && Array.isArray(params) ? params[blockParam.position] : undefined
  if (blockParam === undefined || block === undefined || blockParam.supported.some((tag) => tag === block)) {
    return Effect.void
  }
  const shown = (Predicate.isString(block) ? block : Json.stringify(block)).slice(0, MAX_SHOWN)
  return Effect.fail(
    new UnsupportedBlock({
      method: name,
      block: shown,
      supported: blockParam.supported,
      detail: `${name} reads the ${
        blockParam.supported.join(" or ")
      } block only, not ${shown}; over archive nodes, ${archiveSetting}=on allows any block`
    })
  )
}

const requestDecoder = memoize((operation: Operation) =>
  decodeValue(operation.relayedRequest ?? operation.request, ["params"])
)

/** Decodes the params of a call. Fails with `InvalidRequest`. */
export const decodeParams = (operation: Operation, params: unknown): Effect.Effect<unknown, InvalidRequest> =>
  requestDecoder(operation)(params)

/** Returns the decoded params of a call, or why the call is refused. */
const validate = (
  { operation, params, surface }: EvmCall
): Effect.Effect<unknown, InvalidRequest | UnsupportedBlock | UnavailableOnNode> => {
  if (sourcesOn(operation, surface).length === 0) return Effect.fail(unavailableOnNode(operation))
  return Result.match(params.value, {
    onFailure: (refusal) => Effect.fail(invalidRequest([refusal])),
    onSuccess: (value) => Effect.flatMapEager(checkBlock(operation, value), () => decodeParams(operation, value))
  })
}

/**
 * Validates a call and relays it.
 *
 * Before anything is sent, fails with `InvalidRequest` for params that do not decode, and with `UnsupportedBlock` for a
 * block that the method does not support.
 */
export const relay = ({ once, read }: EvmBackend) =>
(
  call: EvmCall
): Effect.Effect<RpcAnswer, CallFailure | OutcomeUnknown | UnsupportedBlock> => {
  const { operation, params, surface } = call
  const relayed = Effect.flatMapEager(
    validate(call),
    (request) =>
      operation.class === "once" ? once({ operation, params, surface }) : read({ operation, params, surface, request })
  )
  return Effect.mapErrorEager(relayed, wrapReason)
}

/** Adds the number of attempts to the error of an unavailable upstream; returns any other error unchanged. */
const after = (failure: CommonFailure) => (attempts: number): CommonFailure => {
  if (failure._tag !== "UpstreamUnavailable") return failure
  const { detail, retryAfter, upstream } = failure
  return new UpstreamUnavailable({
    upstream,
    attempts,
    ...(detail === undefined ? {} : { detail }),
    ...(retryAfter === undefined ? {} : { retryAfter })
  })
}

/**
 * Returns whether a status means that the upstream refuses the gateway. A different URL of the upstream might still
 * accept the gateway's key.
 */
const isForbidden = (status: number): boolean => status === 401 || status === 403

/** Returns the result of an attempt whose response is not JSON-RPC, as determined from the HTTP status. */
const ofStatus = (response: UpstreamResponse): AttemptResult<never, CommonFailure> => {
  const failure = responseFailure(response)
  const { retryAfter, status } = response
  if (status === 429) return retryable("rate_limited", () => failure, { retryAfter })
  if (isForbidden(status)) return retryable("declined", () => failure)
  return status >= 500 ? retryable("server_fault", after(failure), { retryAfter }) : refused(failure)
}

const unread = ({ json, upstream }: UpstreamResponse, issue: string) =>
  Result.isSuccess(json.value) ? mismatched(upstream, issue) : unreadable(upstream, issue)

/**
 * Returns whether an error reports an exhausted rate limit. Some nodes send a rate-limit code for a query that is too
 * large; no other address would accept that query.
 */
const isRateLimited = (answer: Extract<RpcAnswer, { readonly _tag: "Error" }>, method: string): boolean =>
  JsonRpc.isRateLimit(answer.code) && !(method === logsMethod ? isLogRefusal(answer) : isOfSize(answer.message))

/**
 * Classifies the response to a call of `method` with the ID `id`. Nodes send JSON-RPC errors with any HTTP status.
 */
export const judge = (id: number, method: string) =>
(
  response: UpstreamResponse
): AttemptResult<RpcAnswer, CommonFailure> => {
  const foreign = ofForeign(response)
  if (foreign !== undefined) return foreign
  if (response.status === 429) return ofStatus(response)
  const read = JsonRpc.readAnswer(response.upstream, response.json, id)
  if (Result.isFailure(read)) {
    return response.status === 200 ? unread(response, read.failure.issue) : ofStatus(response)
  }
  const answer = read.success
  if (answer._tag === "Error" && isRateLimited(answer, method)) {
    return retryable("rate_limited", () => responseFailure(response), { answer, retryAfter: response.retryAfter })
  }
  if (answer._tag === "Error" && isForbidden(response.status)) {
    return retryable("declined", () => responseFailure(response), { answer: { ...answer, isForbidden: true } })
  }
  return response.status >= 500 || (answer._tag === "Error" && answer.isOdd === true)
    ? retryable("declined", after(responseFailure(response)), { answer })
    : answered(answer)
}

/** An ID that no request has. */
const unusedId = 0

/** Returns whether a node's error refers to the whole batch and not to one of its calls. */
const isBatchRefusal = ({ message }: { readonly message: string }): boolean => /\bbatch/iu.test(message)

/**
 * Returns the error with which geth refuses a batch: geth reports it as the response to the first call, and omits the
 * other responses. Returns `undefined` for any other response.
 */
const soleError = (answers: ReadonlyArray<JsonRpc.BatchMember>) => {
  const [first, ...others] = answers
  const isSole = others.length > 0 && others.every(Result.isFailure)
  return isSole && first !== undefined && Result.isSuccess(first) && first.success._tag === "Error"
    ? first.success
    : undefined
}

/** Classifies the response to a batch whose calls have the IDs `ids`. */
export const judgeBatch = (ids: ReadonlyArray<number>) =>
(
  response: UpstreamResponse
): AttemptResult<BatchAnswer<JsonRpc.BatchMember>, CommonFailure> => {
  const foreign = ofForeign(response)
  if (foreign !== undefined) return foreign
  if (response.status === 429 || response.status >= 500) return ofStatus(response)
  const read = JsonRpc.readBatch(response.upstream, response.json, ids)
  const declined = (failure: CommonFailure, message = "") =>
    retryable("declined", () => failure, {
      answer: { _tag: "NoBatches" as const, most: limitIn(message, ids.length) }
    })
  if (Result.isSuccess(read)) {
    const answers = read.success
    const broken = answers.find(Result.isFailure)
    if (broken === undefined) return answered({ _tag: "Each", answers })
    const sole = soleError(answers)
    return sole !== undefined && isBatchRefusal(sole)
      ? declined(broken.failure, sole.message)
      : retryable("mismatched", () => broken.failure, { answer: { _tag: "Each", answers } })
  }
  const refusal = Option.getOrUndefined(
    Result.getSuccess(JsonRpc.readAnswer(response.upstream, response.json, unusedId))
  )
  if (refusal?._tag === "Error" && JsonRpc.isRateLimit(refusal.code) && !isBatchRefusal(refusal)) {
    const each = Result.succeed(refusal)
    return retryable("rate_limited", () => responseFailure(response), {
      answer: { _tag: "Each", answers: ids.map(() => each) },
      retryAfter: response.retryAfter
    })
  }
  // if the response is one object instead of a list, or has a 4xx status, the node is healthy but refuses the batch
  if (response.text.trimStart().startsWith("{") || response.status >= 400) {
    return declined(read.failure, refusal?._tag === "Error" && isBatchRefusal(refusal) ? refusal.message : undefined)
  }
  return unread(response, read.failure.issue)
}

/** Encodes one call. */
export const body = (id: number, { operation, params }: Pick<EvmCall, "operation" | "params">): string =>
  JsonRpc.requestText(id, operation.name, params.text)

/** Encodes several calls as one batch request. */
export const writeBatch = (
  calls: ReadonlyArray<CheckedRead>,
  ids: ReadonlyArray<number>
): Question<BatchAnswer<JsonRpc.BatchMember>, CommonFailure> => ({
  body: Utf8.encode(`[${calls.map((call, index) => body(ids[index] ?? unusedId, call)).join(",")}]`),
  judge: judgeBatch(ids)
})

const isFaultCode = (code: number): boolean => code === -32603 || JsonRpc.isRateLimit(code) || code >= 500

/** The read protocol of an EVM node. */
export const reads: ReadProtocol<CheckedRead, RpcAnswer, CommonFailure> = {
  // for params with a schema, the letter case of hexadecimal digits is irrelevant
  key: ({ operation, params, request }) => {
    if (operation.verbatim === true) return params.text
    return request === undefined ? "" : Json.canonicalOf(request).toLowerCase()
  },
  cachePolicy: ({ operation, request }, now, onRequest) =>
    (onRequest ? operation.cachePolicyOnRequest?.(request, now) : undefined) ?? operation.cachePolicy?.(request, now),
  isCacheable: ({ operation, request }, answer) =>
    answer._tag === "Result" && (operation.isCacheable?.(request, answer.result) ?? true),
  codec: {
    store: (answer) => answer._tag === "Result" ? { head: "", body: answer.result.text } : undefined,
    restore: ({ body }, age) => JsonRpc.result(Json.of(typeof body === "string" ? body : Utf8.decodeLossy(body)), age),
    faultOf: (answer) => answer._tag === "Result" ? undefined : isFaultCode(answer.code) ? "upstream" : "caller"
  },
  write: (call, id) => ({ body: Utf8.encode(body(id, call)), judge: judge(id, call.operation.name) })
}

/**
 * Decodes the response with the ID `id` to a call that was sent at most once.
 *
 * Fails with `OutcomeUnknown` if the response does not determine the outcome of the call.
 */
export const readOnce = (
  { operation }: Pick<CheckedOnce, "operation">,
  response: UpstreamResponse,
  id: number
): Effect.Effect<RpcAnswer, CommonFailure | OutcomeUnknown> => {
  const unknown = () => Effect.fail(outcomeUnknown(response, "call", { advice: operation.advice }))
  if (response.status >= 500) return unknown()
  if (response.status === 429) return Effect.fail(responseFailure(response))
  return Result.match(JsonRpc.readAnswer(response.upstream, response.json, id), {
    onSuccess: Effect.succeed,
    onFailure: () => response.status >= 400 ? Effect.fail(responseFailure(response)) : unknown()
  })
}
