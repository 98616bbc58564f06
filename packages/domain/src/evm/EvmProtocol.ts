/**
 * The JSON-RPC protocol: envelopes as text, the methods of `POST /evm`, and the calls of EVM nodes, which this module
 * validates, encodes, classifies and decodes.
 *
 * A caller's `id` is returned exactly as received, and a result is the upstream's text, so that IDs and integers of any
 * size are preserved.
 *
 * Any error of the query may mean that the query is too large, whatever its code and words. The messages of common
 * nodes also state which limit the query exceeds, and how large it is. Only errors that a smaller query would get too
 * are excluded: those about the caller's rate or access, about the method, and about blocks outside the chain.
 */
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Struct from "effect/Struct"
import * as Json from "../encoding/Encoding.ts"
import * as GatewayError from "../errors/GatewayError.ts"
import type { UnsupportedBlock } from "../errors/GatewayError.ts"
import * as Operation from "../operations/Operation.ts"
import { decodeRevert, failureOfCode, isLogRefusal, isOfSize, isRateLimit, limitIn } from "./EvmErrors.ts"
import * as EvmMethods from "./EvmMethods.ts"
import { archiveSetting, filterMethods, standardMethods } from "./EvmMethods.ts"
import type { Subscribe } from "./EvmStreams.ts"

/** Maximum number of calls in a batch that a gateway can be configured to accept. It is viem's default batch size. */
export const longestBatch = 1_000

/** One call: `id` is the raw JSON text of the ID, and is absent for a notification. `params` defaults to `[]`. */
export interface RpcCall {
  readonly id: string | undefined
  readonly method: string
  readonly params: Json.Json
}

/** An upstream's response to one call: a result or an error object. `age` is its age in the cache, in seconds. */
export type RpcResponse =
  | { readonly _tag: "Result"; readonly result: Json.Json; readonly age?: number }
  | {
    readonly _tag: "Error"
    readonly code: number
    readonly message: string
    /** The complete error object. */
    readonly error: Json.Json
    /**
     * Whether the upstream's error is not a valid JSON-RPC error object. If so, a different upstream URL might return a
     * valid response.
     */
    readonly isOdd?: true
    /**
     * Whether the error was sent with HTTP 401 or 403, which means that the upstream refuses the gateway, regardless of
     * the error code.
     */
    readonly isForbidden?: true
    readonly age?: number
  }

/** Makes a result response. */
export const result = (value: Json.Json, age?: number): RpcResponse => ({
  _tag: "Result",
  result: value,
  ...(age === undefined ? {} : { age })
})

/** Makes an error response, for implementations of a node. */
export const error = (code: number, message: string): RpcResponse => ({
  _tag: "Error",
  code,
  message,
  error: Json.write({ code, message })
})

/** Makes a node's response to an unsupported method. */
export const methodNotFound = (method: string): RpcResponse => error(-32601, `the method ${method} does not exist`)

const decodeRpcError = Schema.decodeUnknownOption(Schema.Struct({ code: Schema.Int, message: Schema.String }))

/** Encodes a request envelope. */
export const requestText = (id: number, method: string, params: string): string =>
  `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`

/** Encodes a result response from the JSON texts of the ID and the result. */
export const resultText = (id: string, result: string): string => `{"jsonrpc":"2.0","id":${id},"result":${result}}`

/** Encodes an error response from the JSON texts of the ID and the error object. */
export const errorText = (id: string, error: string): string => `{"jsonrpc":"2.0","id":${id},"error":${error}}`

const encodeError = Schema.encodeResult(GatewayError.GatewayError)

/** Makes the error object of a typed error: its code, its message, and the error itself as `data`. */
export const errorObject = (
  error: GatewayError.GatewayError,
  code: number = GatewayError.rpcCodes[error._tag]
): string => Json.stringify({ code, message: error.message, data: Result.getOrUndefined(encodeError(error)) })

const invalid = (message: string): GatewayError.InvalidRequest =>
  new GatewayError.InvalidRequest({ errors: [{ path: [], message }], detail: message })

const isId = (value: unknown): boolean =>
  value === null || Predicate.isString(value) || Predicate.isNumber(value) || Predicate.isBigInt(value)

/** Returns the raw text of a member; `undefined` if there is no such member. */
export const rawMember = (
  text: string,
  spans: ReadonlyMap<string, Json.Span>,
  name: string
): string | undefined => {
  const span = spans.get(name)
  return span === undefined ? undefined : text.slice(span.start, span.end)
}

const noParams = Json.parsed("[]", [])

/** Decodes one envelope. Fails with JSON-RPC's "invalid request" (-32600). */
export const readCall = (
  { text, valueOrUndefined: value }: Json.Json
): Result.Result<RpcCall, GatewayError.InvalidRequest> => {
  if (!Predicate.isObject(value)) return Result.fail(invalid("Expected a JSON-RPC object"))
  const { id, jsonrpc, method, params } = value
  if (jsonrpc !== "2.0") return Result.fail(invalid(`Expected "jsonrpc": "2.0"`))
  if (!Predicate.isString(method)) return Result.fail(invalid("Expected a method name"))
  // some Ethereum clients send absent params as `null`, which nodes accept
  if (params !== undefined && params !== null && !Array.isArray(params) && !Predicate.isObject(params)) {
    return Result.fail(invalid("Expected params to be an array or an object"))
  }
  if (id !== undefined && !isId(id)) return Result.fail(invalid("Expected id to be a string, a number or null"))
  const spans = Json.members(text)
  const raw = rawMember(text, spans, "params")
  return Result.succeed({
    id: rawMember(text, spans, "id"),
    method,
    params: raw === undefined || params === null ? noParams : Json.parsed(raw, params)
  })
}

/**
 * The formats in which viem, web3 and ethers encode calls. Params without a nested bracket, brace or escape cannot
 * contain a duplicate key.
 */
const usualCalls: ReadonlyArray<RegExp> = [
  /^\{"jsonrpc":"2\.0","id":(?<id>[0-9]{1,15}),"method":"(?<method>\w{1,64})","params":(?<params>\[[^[\]{}\\]*\])\}$/u,
  /^\{"method":"(?<method>\w{1,64})","params":(?<params>\[[^[\]{}\\]*\]),"id":(?<id>[0-9]{1,15}),"jsonrpc":"2\.0"\}$/u
]

/**
 * Maximum length, in characters, of a call that {@link usualCall} parses. A call of this length always has fewer JSON
 * values than the limit for request bodies.
 */
const longestUsual = 4096

/**
 * Parses a call in a common format; `undefined` means only that the format differs.
 *
 * For every text that it recognizes, a strict parser followed by {@link readCall} would return the same result at four
 * times the cost.
 */
export const usualCall = (text: string): RpcCall | undefined => {
  if (text.length > longestUsual) return undefined
  for (const pattern of usualCalls) {
    const { id, method, params } = pattern.exec(text)?.groups ?? {}
    if (id === undefined || method === undefined || params === undefined) continue
    const value = Json.parse(params)
    const isId = id === "0" || !id.startsWith("0")
    return isId && Result.isSuccess(value) ? { id, method, params: new Json.Json(params, value) } : undefined
  }
  return undefined
}

/** Returns a member of a parsed value; `undefined` if there is no such member. */
export const member = (value: unknown, name: string): unknown =>
  Predicate.hasProperty(value, name) ? value[name] : undefined

/** The code for errors without an integer code: a server error (JSON-RPC 2.0, 5.1). */
const noCode = -32000

const MAX_WORDS = 240

const errorMessage = (error: unknown, raw: string): string => {
  if (Predicate.isString(error)) return error
  const said = [member(error, "message"), member(error, "error"), member(error, "data")].find((each) =>
    Predicate.isString(each) && each !== ""
  )
  return Predicate.isString(said) ? said : raw.slice(0, MAX_WORDS)
}

/**
 * Decodes a node's error. Returns it unchanged if clients can decode it; otherwise adds the missing code or message.
 */
const readError = (raw: string, value: unknown): Extract<RpcResponse, { readonly _tag: "Error" }> => {
  const usual = decodeRpcError(value)
  if (Option.isSome(usual)) return { _tag: "Error", ...usual.value, error: Json.parsed(raw, value) }
  const given = member(value, "code")
  const code = Predicate.isString(given) && /^-?[0-9]{1,15}$/u.test(given) ? Number(given) : given
  const message = errorMessage(value, raw)
  const rest = Predicate.isObject(value) && !Array.isArray(value) ? value : {}
  const known = Predicate.isNumber(code) && Number.isSafeInteger(code) ? code : noCode
  return { _tag: "Error", code: known, message, error: Json.write({ ...rest, code: known, message }), isOdd: true }
}

/** Returns the text of a response's member; `undefined` if the response has no such member. */
type MemberText = (name: string) => string | undefined

const readMembers = (
  upstream: string,
  textOf: MemberText | undefined,
  value: unknown,
  id: number
): Result.Result<RpcResponse, GatewayError.UpstreamMalformed> => {
  const result = textOf?.("result")
  const error = textOf?.("error")
  const responseId = textOf?.("id")
  const isOwnResponse = responseId === String(id)
  // Erigon sends a null result with an error
  if (error !== undefined && error !== "null" && (result === undefined || result === "null")) {
    // a node that could not parse the request responds with a null id
    return isOwnResponse || responseId === "null"
      ? Result.succeed(readError(error, member(value, "error")))
      : Result.fail(Operation.malformed(upstream, "The response has a different id than the request"))
  }
  if (textOf === undefined) return Result.fail(Operation.malformed(upstream, "Expected a JSON-RPC object"))
  if (!isOwnResponse) {
    return Result.fail(Operation.malformed(upstream, "The response has a different id than the request"))
  }
  return result === undefined || (error !== undefined && error !== "null")
    ? Result.fail(Operation.malformed(upstream, "Expected exactly one of result and error"))
    : Result.succeed({ _tag: "Result", result: Json.parsed(result, member(value, "result")) })
}

/** Returns the function that looks up the members of a response as received; `undefined` if the response has none. */
const sentMembers = (text: string): MemberText | undefined => {
  const spans = Json.members(text)
  return spans.size === 0 ? undefined : (name) => rawMember(text, spans, name)
}

const isVisible = (text: string, at: number): boolean => text.charCodeAt(at) > 0x20

/** Matches a JSON string without escapes, such as a quantity, a hash or the data of a call: it needs no parser. */
const plainString = /^"[0-9A-Za-z]*"$/u

/**
 * Extracts the result from the response to the call with the ID `id`, if the response has the format that most nodes
 * use; otherwise returns `undefined`.
 */
const usualResult = (text: string, id: number): RpcResponse | undefined => {
  const head = `{"jsonrpc":"2.0","id":${id},"result":`
  const end = text.length - 1
  if (!text.startsWith(head) || text[end] !== "}" || !isVisible(text, head.length) || !isVisible(text, end - 1)) {
    return undefined
  }
  // the slice is one value: if the envelope has another member, the slice contains a comma outside a value, which is
  // invalid JSON
  const result = text.slice(head.length, end)
  if (plainString.test(result)) return { _tag: "Result", result: Json.of(result) }
  const value = Json.parse(result)
  return Result.isSuccess(value) ? { _tag: "Result", result: new Json.Json(result, value) } : undefined
}

/**
 * Decodes the response to the call with the ID `id`. Fails if the ID is wrong, or if the response does not have exactly
 * one of result and error.
 */
export const readResponse = (
  upstream: string,
  json: Json.Json,
  id: number
): Result.Result<RpcResponse, GatewayError.UpstreamMalformed> => {
  const usual = usualResult(json.text, id)
  if (usual !== undefined) return Result.succeed(usual)
  return Result.match(json.value, {
    onFailure: () => Result.fail(Operation.malformed(upstream, Json.notJson.message)),
    onSuccess: (parsed) => readMembers(upstream, sentMembers(json.text), parsed, id)
  })
}

/** The response to one call of a batch. */
export type BatchMember = Result.Result<RpcResponse, GatewayError.UpstreamMalformed>

/**
 * Decodes a batch response that has the usual format and order of most nodes; returns `undefined` for any other
 * response.
 *
 * The text is split before each expected ID. Each part is checked to be one response, so the split is unambiguous.
 */
const usualResults = (text: string, ids: ReadonlyArray<number>): ReadonlyArray<BatchMember> | undefined => {
  const results: Array<BatchMember> = []
  let start = 1
  for (const [place, id] of ids.entries()) {
    const next = ids[place + 1]
    const end = next === undefined ? text.length - 2 : text.indexOf(`},{"jsonrpc":"2.0","id":${next},"result":`, start)
    const response = end < 0 ? undefined : usualResult(text.slice(start, end + 1), id)
    if (response === undefined) return undefined
    results.push(Result.succeed(response))
    start = end + 2
  }
  return text.startsWith("[") && text.endsWith("]") ? results : undefined
}

/**
 * Decodes the response to a batch whose calls have the IDs `ids`. Returns a result or an error for each ID, in the
 * order of `ids`.
 *
 * The responses can be in any order. If the response to one call is missing or duplicated, only that call fails; a
 * response with an unknown ID is ignored. If the text is not an array, the whole batch fails.
 */
export const readBatch = (
  upstream: string,
  json: Json.Json,
  ids: ReadonlyArray<number>
): Result.Result<ReadonlyArray<BatchMember>, GatewayError.UpstreamMalformed> => {
  const usual = usualResults(json.text, ids)
  if (usual !== undefined) return Result.succeed(usual)
  const { text, valueOrUndefined } = json
  const elements = Array.isArray(valueOrUndefined) ? Json.elements(text) : undefined
  if (elements === undefined || !Array.isArray(valueOrUndefined)) {
    return Result.fail(Operation.malformed(upstream, "Expected the responses of a batch"))
  }
  const values: ReadonlyArray<unknown> = valueOrUndefined
  const places = new Map<string | undefined, number | undefined>()
  for (const [place, element] of elements.entries()) {
    const id = rawMember(element, Json.members(element), "id")
    places.set(id, places.has(id) ? undefined : place)
  }
  return Result.succeed(ids.map((id) => {
    const place = places.get(String(id))
    return place === undefined
      ? Result.fail(Operation.malformed(upstream, "The batch does not have exactly one response with the call's id"))
      : readMembers(upstream, sentMembers(elements[place] ?? ""), values[place], id)
  }))
}

/** Returns the function that encodes the members of a parsed response; `undefined` if the response has none. */
const parsedMembers = (value: unknown): MemberText | undefined =>
  Predicate.isReadonlyObject(value) && Object.keys(value).length > 0
    ? (name) => Object.hasOwn(value, name) ? Json.stringify(value[name]) : undefined
    : undefined

/**
 * Decodes a gateway's HTTP response to the call with the ID `id`. The result is encoded again, because a client that
 * decodes it does not need the bytes as received, nor the code that finds them.
 *
 * HTTP 429 means that a rate limit is exhausted, regardless of the body. With any other status, a JSON-RPC response is
 * decoded. A body that is not a JSON-RPC response fails with `UpstreamMalformed` for HTTP 200, otherwise with the error
 * of the problem document or of the status.
 */
export const parseResponse = (
  response: Operation.UpstreamResponse,
  id: number
): Effect.Effect<RpcResponse, GatewayError.ServedFailure> => {
  if (response.status === 429) return Effect.fail(Operation.servedResponseFailure(response))
  const { json, upstream } = response
  const read = Effect.fromResult(Result.match(json.value, {
    onFailure: () => Result.fail(Operation.malformed(upstream, Json.notJson.message)),
    onSuccess: (value) => readMembers(upstream, parsedMembers(value), value, id)
  }))
  return response.status === 200 ? read : Effect.mapError(read, () => Operation.servedResponseFailure(response))
}

/** A call to relay: its method, its params as received, and the `Surface` (group of routes) that received it. */
export interface EvmCall {
  readonly operation: Operation.ReadOperation | Operation.OnceOperation
  readonly params: Json.Json
  readonly surface: Operation.Surface
}

/** A read, with its params decoded as `request`. */
export interface CheckedRead extends EvmCall {
  readonly operation: Operation.ReadOperation
  readonly request: unknown
}

/** A call with decoded params that is sent at most once. */
export interface CheckedOnce extends EvmCall {
  readonly operation: Operation.OnceOperation
}

/** The backend of an EVM chain. */
export type EvmBackend = Operation.Backend<CheckedRead, CheckedOnce, RpcResponse>

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
 * Without this check, nodes of HyperEVM would silently return the latest state.
 */
export const checkBlock = (
  { blockParam, name }: Pick<Operation.Operation, "name" | "blockParam">,
  params: unknown
): Effect.Effect<void, GatewayError.UnsupportedBlock> => {
  const block: unknown = blockParam !== undefined && Array.isArray(params) ? params[blockParam.position] : undefined
  if (blockParam === undefined || block === undefined || blockParam.supported.some((tag) => tag === block)) {
    return Effect.void
  }
  const shown = (Predicate.isString(block) ? block : Json.stringify(block)).slice(0, MAX_SHOWN)
  return Effect.fail(
    new GatewayError.UnsupportedBlock({
      method: name,
      block: shown,
      supported: blockParam.supported,
      detail: `${name} reads the ${
        blockParam.supported.join(" or ")
      } block only, not ${shown}; over archive nodes, ${archiveSetting}=on allows any block`
    })
  )
}

const requestDecoder = memoize((operation: Operation.Operation) =>
  Operation.decodeValue(operation.relayedRequest ?? operation.request, ["params"])
)

/** Decodes the params of a call. Fails with `InvalidRequest`. */
export const decodeParams = (
  operation: Operation.Operation,
  params: unknown
): Effect.Effect<unknown, GatewayError.InvalidRequest> => requestDecoder(operation)(params)

/** Returns the decoded params of a call, or why the call is refused. */
const validate = (
  { operation, params, surface }: EvmCall
): Effect.Effect<unknown, GatewayError.InvalidRequest | UnsupportedBlock | GatewayError.UnavailableOnNode> => {
  if (Operation.sourcesOn(operation, surface).length === 0) return Effect.fail(Operation.unavailableOnNode(operation))
  return Result.match(params.value, {
    onFailure: (refusal) => Effect.fail(Operation.invalidRequest([refusal])),
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
): Effect.Effect<RpcResponse, GatewayError.CallFailure | GatewayError.OutcomeUnknown | UnsupportedBlock> => {
  const { operation, params, surface } = call
  const relayed = Effect.flatMapEager(
    validate(call),
    (request) =>
      operation.class === "once" ? once({ operation, params, surface }) : read({ operation, params, surface, request })
  )
  return Effect.mapErrorEager(relayed, GatewayError.wrapReason)
}

/** Adds the number of attempts to the error of an unavailable upstream; returns any other error unchanged. */
const after = (failure: GatewayError.CommonFailure) => (attempts: number): GatewayError.CommonFailure => {
  if (failure._tag !== "UpstreamUnavailable") return failure
  const { detail, retryAfter, upstream } = failure
  return new GatewayError.UpstreamUnavailable({
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
const ofStatus = (response: Operation.UpstreamResponse): Operation.AttemptResult<never, GatewayError.CommonFailure> => {
  const failure = Operation.responseFailure(response)
  const { retryAfter, status } = response
  if (status === 429) return Operation.retryable("rate_limited", () => failure, { retryAfter })
  if (isForbidden(status)) return Operation.retryable("declined", () => failure)
  return status >= 500
    ? Operation.retryable("server_fault", after(failure), { retryAfter })
    : Operation.refused(failure)
}

const unread = ({ json, upstream }: Operation.UpstreamResponse, issue: string) =>
  Result.isSuccess(json.value) ? Operation.mismatched(upstream, issue) : Operation.unreadable(upstream, issue)

/**
 * Returns whether an error reports an exhausted rate limit. Some nodes send a rate-limit code for a query that is too
 * large; no other address would accept that query.
 */
const isRateLimited = (response: Extract<RpcResponse, { readonly _tag: "Error" }>, method: string): boolean =>
  isRateLimit(response.code) && !(method === logsMethod ? isLogRefusal(response) : isOfSize(response.message))

/**
 * Classifies the response to a call of `method` with the ID `id`. Nodes send JSON-RPC errors with any HTTP status.
 */
export const judge = (id: number, method: string) =>
(
  response: Operation.UpstreamResponse
): Operation.AttemptResult<RpcResponse, GatewayError.CommonFailure> => {
  const foreign = Operation.ofForeign(response)
  if (foreign !== undefined) return foreign
  if (response.status === 429) return ofStatus(response)
  const read = readResponse(response.upstream, response.json, id)
  if (Result.isFailure(read)) {
    return response.status === 200 ? unread(response, read.failure.issue) : ofStatus(response)
  }
  const rpcResponse = read.success
  if (rpcResponse._tag === "Error" && isRateLimited(rpcResponse, method)) {
    return Operation.retryable("rate_limited", () => Operation.responseFailure(response), {
      answer: rpcResponse,
      retryAfter: response.retryAfter
    })
  }
  if (rpcResponse._tag === "Error" && isForbidden(response.status)) {
    return Operation.retryable("declined", () => Operation.responseFailure(response), {
      answer: { ...rpcResponse, isForbidden: true }
    })
  }
  return response.status >= 500 || (rpcResponse._tag === "Error" && rpcResponse.isOdd === true)
    ? Operation.retryable("declined", after(Operation.responseFailure(response)), { answer: rpcResponse })
    : Operation.answered(rpcResponse)
}

/** An ID that no request has. */
const unusedId = 0

/** Returns whether a node's error refers to the whole batch and not to one of its calls. */
const isBatchRefusal = ({ message }: { readonly message: string }): boolean => /\bbatch/iu.test(message)

/**
 * Returns the error with which geth refuses a batch: geth reports it as the response to the first call, and omits the
 * other responses. Returns `undefined` for any other response.
 */
const soleError = (responses: ReadonlyArray<BatchMember>) => {
  const [first, ...others] = responses
  const isSole = others.length > 0 && others.every(Result.isFailure)
  return isSole && first !== undefined && Result.isSuccess(first) && first.success._tag === "Error"
    ? first.success
    : undefined
}

/** Classifies the response to a batch whose calls have the IDs `ids`. */
export const judgeBatch = (ids: ReadonlyArray<number>) =>
(
  response: Operation.UpstreamResponse
): Operation.AttemptResult<Operation.BatchResponse<BatchMember>, GatewayError.CommonFailure> => {
  const foreign = Operation.ofForeign(response)
  if (foreign !== undefined) return foreign
  if (response.status === 429 || response.status >= 500) return ofStatus(response)
  const read = readBatch(response.upstream, response.json, ids)
  const declined = (failure: GatewayError.CommonFailure, message = "") =>
    Operation.retryable("declined", () => failure, {
      answer: { _tag: "NoBatches" as const, most: limitIn(message, ids.length) }
    })
  if (Result.isSuccess(read)) {
    const responses = read.success
    const broken = responses.find(Result.isFailure)
    if (broken === undefined) return Operation.answered({ _tag: "Each", responses })
    const sole = soleError(responses)
    return sole !== undefined && isBatchRefusal(sole)
      ? declined(broken.failure, sole.message)
      : Operation.retryable("mismatched", () => broken.failure, { answer: { _tag: "Each", responses } })
  }
  const refusal = Option.getOrUndefined(
    Result.getSuccess(readResponse(response.upstream, response.json, unusedId))
  )
  if (refusal?._tag === "Error" && isRateLimit(refusal.code) && !isBatchRefusal(refusal)) {
    const each = Result.succeed(refusal)
    return Operation.retryable("rate_limited", () => Operation.responseFailure(response), {
      answer: { _tag: "Each", responses: ids.map(() => each) },
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
  requestText(id, operation.name, params.text)

/** Encodes several calls as one batch request. */
export const writeBatch = (
  calls: ReadonlyArray<CheckedRead>,
  ids: ReadonlyArray<number>
): Operation.EncodedRead<Operation.BatchResponse<BatchMember>, GatewayError.CommonFailure> => ({
  body: Json.encode(`[${calls.map((call, index) => body(ids[index] ?? unusedId, call)).join(",")}]`),
  judge: judgeBatch(ids)
})

const isFaultCode = (code: number): boolean => code === -32603 || isRateLimit(code) || code >= 500

/** The read protocol of an EVM node. */
export const reads: Operation.ReadProtocol<CheckedRead, RpcResponse, GatewayError.CommonFailure> = {
  // for params with a schema, the letter case of hexadecimal digits is irrelevant
  key: ({ operation, params, request }) => {
    if (operation.verbatim === true) return params.text
    return request === undefined ? "" : Json.writeCanonical(request).toLowerCase()
  },
  cachePolicy: ({ operation, request }, now, onRequest) =>
    (onRequest ? operation.cachePolicyOnRequest?.(request, now) : undefined) ?? operation.cachePolicy?.(request, now),
  isCacheable: ({ operation, request }, response) =>
    response._tag === "Result" && (operation.isCacheable?.(request, response.result) ?? true),
  codec: {
    store: (response) => response._tag === "Result" ? { head: "", body: response.result.text } : undefined,
    restore: ({ body }, age) => result(Json.of(typeof body === "string" ? body : Json.decodeLossy(body)), age),
    faultOf: (response) => response._tag === "Result" ? undefined : isFaultCode(response.code) ? "upstream" : "caller"
  },
  write: (call, id) => ({ body: Json.encode(body(id, call)), judge: judge(id, call.operation.name) })
}

/**
 * Decodes the response with the ID `id` to a call that was sent at most once.
 *
 * Fails with `OutcomeUnknown` if the response does not determine the outcome of the call.
 */
export const readOnce = (
  { operation }: Pick<CheckedOnce, "operation">,
  response: Operation.UpstreamResponse,
  id: number
): Effect.Effect<RpcResponse, GatewayError.CommonFailure | GatewayError.OutcomeUnknown> => {
  const unknown = () => Effect.fail(Operation.outcomeUnknown(response, "call", { advice: operation.advice }))
  if (response.status >= 500) return unknown()
  if (response.status === 429) return Effect.fail(Operation.responseFailure(response))
  return Result.match(readResponse(response.upstream, response.json, id), {
    onSuccess: Effect.succeed,
    onFailure: () => response.status >= 400 ? Effect.fail(Operation.responseFailure(response)) : unknown()
  })
}

/** Makes the reader of an operation's responses. An error whose `data` contains a typed error decodes to that error. */
export const makeReader = <
  Request extends Operation.AnyCodec,
  Response extends Operation.AnyCodec,
  Failures extends ReadonlyArray<Operation.AnyCodec>
>(operation: Operation.Operation<string, Operation.MethodClass, Request, Response, Failures>) => {
  const decodeData = Schema.decodeUnknownOption(Schema.Union([...GatewayError.upstreamFailures, ...operation.failures]))
  const decodeResult = Operation.decodeJson(operation.response)
  return (
    upstream: string,
    response: RpcResponse
  ): Effect.Effect<Response["Type"], Failures[number]["Type"] | GatewayError.CommonFailure> => {
    if (response._tag === "Result") return decodeResult(upstream, response.result)
    const error = response.error.valueOrUndefined
    const data = member(error, "data")
    const travelled = Option.orElse(
      decodeData(data),
      () => decodeData(decodeRevert(upstream, response.code, response.message, error))
    )
    if (Option.isNone(travelled) && response.isForbidden === true) {
      const detail = `${upstream} returned error ${response.code}: ${response.message}`
      return Effect.fail(new GatewayError.UpstreamForbidden({ upstream, detail }))
    }
    return Effect.fail(Option.getOrElse(
      travelled,
      () => failureOfCode(upstream, operation.name, response.code, response.message)
    ))
  }
}

/** Sends a read on behalf of a service. */
export type Send<E, R = never> = (call: Omit<CheckedRead, "surface">) => Effect.Effect<RpcResponse, E, R>

/** Makes a read for the gateway's own calls. Unlike {@link makeMethod}, does not wrap errors in `UpstreamError`. */
export const makeRead = <
  Request extends Operation.AnyCodec,
  Response extends Operation.AnyCodec,
  const Failures extends ReadonlyArray<Operation.AnyCodec>
>(operation: Operation.Operation<string, "read", Request, Response, Failures>) => {
  const write = Operation.encodeRequest(operation.request, ["params"])
  const read = makeReader<Request, Response, Failures>(operation)
  return <E, R>(label: string, send: Send<E, R>) =>
    Effect.fnUntraced(function*(request?: Request["Type"]) {
      const params = yield* write(request)
      return yield* read(label, yield* send({ operation, params, request }))
    })
}

/** Makes the typed method of an operation; `label` is the upstream's label. */
export const makeMethod = <
  Request extends Operation.AnyCodec,
  Response extends Operation.AnyCodec,
  const Failures extends ReadonlyArray<Operation.AnyCodec>
>(operation: Operation.Operation<string, "read", Request, Response, Failures>) => {
  const make = makeRead<Request, Response, Failures>(operation)
  return <E, R>(service: string, label: string, send: Send<E, R>) => {
    const read = make(label, send)
    return Effect.fn(`${service}.${operation.name}`)((request?: Request["Type"]) =>
      Effect.mapError(read(request), GatewayError.wrapReason)
    )
  }
}

/** The hash of a transaction. */
export type TransactionHash = Json.Hash

/** A signed transaction. */
export interface SignedTransaction {
  readonly transaction: Json.Data
}

/** The codes with which nodes refuse a transaction, such as one whose nonce is too low (EIP-1474). */
const refusals: ReadonlySet<number> = new Set([-32000, -32003])

type SendFailure = GatewayError.OutcomeUnknown | GatewayError.PolicyViolation | GatewayError.ServedFailure

/**
 * Makes the typed method that sends a signed transaction at most once. Returns the hash of the transaction; `label` is
 * the upstream's label. For a gateway's client (`isClient`), the errors with which a gateway refuses its caller are
 * decoded too.
 */
export const makeSend = (operation: ReturnType<typeof EvmMethods.rawTransaction>, isClient = false) => {
  const write = Operation.encodeRequest(operation.request, ["params"])
  const read: (upstream: string, response: RpcResponse) => Effect.Effect<Json.Hash, SendFailure> = isClient
    ? makeReader({ ...operation, failures: [...operation.failures, ...GatewayError.callerFailures] })
    : makeReader(operation)
  const decodeHash = Operation.decodeJson(operation.response)
  const unknown = (upstream: string, detail: string) =>
    new GatewayError.OutcomeUnknown({ upstream, advice: EvmMethods.transactionAdvice, detail })
  return <E, R>(
    service: string,
    label: string,
    send: (call: Omit<CheckedOnce, "surface">) => Effect.Effect<RpcResponse, E, R>
  ) =>
    Effect.fn(`${service}.${operation.name}`)(
      function*({ transaction }: SignedTransaction) {
        const params = yield* write([transaction])
        const response = yield* send({ operation, params })
        if (response._tag === "Result") {
          // a malformed hash does not show whether the node accepted the transaction
          return yield* Effect.mapError(decodeHash(label, response.result), ({ message }) => unknown(label, message))
        }
        const { code, error, message } = response
        if (refusals.has(code)) return yield* Operation.invalidRequest([{ path: ["params", 0], message }])
        // an internal error without an error of a gateway does not show whether the node accepted the transaction
        const isOpen = member(error.valueOrUndefined, "data") === undefined
        return yield* Effect.mapError(read(label, response), (failure) =>
          isOpen && failure._tag === "UpstreamUnavailable" ? unknown(label, message) : failure)
      },
      Effect.mapError(GatewayError.wrapReason)
    )
}

/** Makes a typed method for each operation of a table. Refuses unsupported blocks before anything is sent. */
export const makeMethods = <Operations extends { readonly [name: string]: Operation.ReadOperation }>(
  operations: Operations,
  service: string,
  label: string,
  { read }: Pick<EvmBackend, "read">
): Operation.Methods<Operations, GatewayError.CommonFailure> =>
  Struct.map(
    operations,
    Operation.typedMethodMapper<GatewayError.CommonFailure>((operation) =>
      makeMethod(operation)(service, label, (call) =>
        Effect.andThen(checkBlock(operation, call.params.valueOrUndefined), read({ ...call, surface: "gateway" })))
    )
  )

/**
 * The default route. Its nodes have no history: for an older block, they would return the latest state.
 */
export const serving: EvmMethods.Serving = { chain: "trading", protocol: "evm", latestOnly: true }

/** The route over archive nodes, which serve the state at every block. */
export const archiveServing: EvmMethods.Serving = { ...serving, latestOnly: false }

const storageParams = Schema.Tuple([Json.Address, Json.StorageSlot, Schema.optionalKey(Schema.Literal("latest"))]).pipe(
  Schema.decodeTo(
    Schema.toType(Schema.Struct({ address: Json.Address, slot: Json.StorageSlot })),
    SchemaTransformation.transform({
      decode: ([address, slot]) => ({ address, slot }),
      encode: ({ address, slot }) => [address, slot, "latest"] as const
    })
  )
)

const addressParam = Schema.Tuple([Json.Address]).pipe(
  Schema.decodeTo(
    Schema.toType(Schema.Struct({ address: Json.Address })),
    SchemaTransformation.transform({
      decode: ([address]) => ({ address }),
      encode: ({ address }) => [address] as const
    })
  )
)

/** The time between two small blocks of HyperEVM, in milliseconds. */
const blockMillis = 1000

const oneBlock = (): Operation.CachePolicy => ({ fresh: blockMillis, staleIfError: 10 * blockMillis })

/**
 * A storage word of a contract, at `latest` only, because nodes without history would return the latest state for any
 * other block.
 */
export const getStorageAt = Operation.read({
  ...EvmMethods.served(serving),
  name: "eth_getStorageAt",
  summary: "A storage word of a contract, at the latest block",
  cheap: true,
  request: storageParams,
  response: Json.StorageSlot,
  failures: [GatewayError.UnsupportedBlock],
  blockParam: { position: 2, supported: ["latest"] },
  cachePolicyOnRequest: () => ({ fresh: blockMillis, staleIfError: 0 }),
  isCacheable: Operation.decodes(Json.StorageSlot),
  example: ["0x5555555555555555555555555555555555555555", "0x2", "latest"]
})

const baseFee = <const Name extends string>(name: Name, kind: "small" | "big") =>
  Operation.read({
    ...EvmMethods.served(serving),
    name,
    summary: `Base fee of the next ${kind} block, in wei`,
    cheap: true,
    request: EvmMethods.noParams,
    response: Json.Quantity,
    failures: [],
    cachePolicy: oneBlock,
    isCacheable: Operation.decodes(Json.Quantity),
    example: []
  })

/** Returns the base fee of the next small block, in wei. */
export const gasPrice = baseFee("eth_gasPrice", "small")

/** Returns the base fee of the next big block, in wei. */
export const bigBlockGasPrice = baseFee("eth_bigBlockGasPrice", "big")

/** Whether an account's transactions use big blocks, as set by `evmUserModify`. */
export const usingBigBlocks = Operation.read({
  ...EvmMethods.served(serving),
  name: "eth_usingBigBlocks",
  summary: "Whether an account's transactions use big blocks",
  cheap: true,
  request: addressParam,
  response: Schema.Boolean,
  failures: [],
  example: ["0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"]
})

/** The receipt of a transaction; `null` if the transaction is unknown or not yet in a block. */
export const getTransactionReceipt = EvmMethods.getTransactionReceipt(serving)

/** Makes the typed methods of a route, by their names in the services and the client. */
export const makeOperations = (serving: EvmMethods.Serving) =>
  ({
    ...EvmMethods.on(serving, EvmMethods.evmReads),
    getTransactionReceipt,
    getStorageAt,
    gasPrice,
    bigBlockGasPrice,
    usingBigBlocks
  }) as const

/** The typed methods of `POST /evm` for nodes without history. */
export const evmOperations = makeOperations(serving)

const systemMethods = {
  eth_getSystemTxsByBlockHash: { summary: "System transactions of a block, created by the venue" },
  eth_getSystemTxsByBlockNumber: { summary: "System transactions of a block, created by the venue" }
}

/** Sends a signed transaction. */
export const sendRawTransaction = EvmMethods.rawTransaction(serving)

/** Sends a signed transaction and waits for its receipt. */
export const sendRawTransactionSync = EvmMethods.rawTransactionSync(serving)

/** Any method of `POST /evm`. */
export type EvmOperation = Operation.Operation<string, "read"> | Operation.OnceOperation

/**
 * Returns all methods of `POST /evm`. Over archive nodes, a method is relayed without decoding if its schema allows only the
 * latest block.
 */
export const makeEvmMethods = (serving: EvmMethods.Serving): ReadonlyArray<EvmOperation> => {
  const typed = serving.latestOnly
    ? Object.values<EvmOperation>(evmOperations)
    : Object.values<EvmOperation>(makeOperations(serving)).filter(({ blockParam }) => blockParam === undefined)
  const names = new Set(typed.map(({ name }) => name))
  return [
    ...typed,
    sendRawTransaction,
    sendRawTransactionSync,
    ...EvmMethods.relayedReads({ ...standardMethods, ...systemMethods, ...filterMethods }, serving).filter(({ name }) =>
      !names.has(name)
    )
  ]
}

/** The methods of `POST /evm` for nodes without history, which is the default. */
export const evmMethods: ReadonlyArray<EvmOperation> = makeEvmMethods(serving)
